//! `write` of objects: blocks as parts of uploads, each worker one request after another.
//!
//! Any worker takes the next block, so that parts of one object are under way side by side; what waits
//! and what is in a request's hands are buffers of the stage before, and no more.

use std::sync::Arc;

use tonnage_object::Client;
use tonnage_pipeline::{Failure, Stage, StageError, WorkerPorts};

use crate::object::request_log::failure;
use crate::object::uploads::Uploads;
use crate::output_file::OnFinished;

/// One part after another.
pub(super) struct ObjectWriter {
    uploads: Arc<Uploads>,
    client: Client,
    on_finished: OnFinished,
    record_bytes: usize,
}

impl ObjectWriter {
    pub fn new(
        uploads: &Arc<Uploads>,
        on_finished: OnFinished,
        record_bytes: usize,
    ) -> Result<Self, Failure> {
        Ok(Self {
            client: uploads
                .client()
                .map_err(|why| Failure::new(why.to_string()))?,
            uploads: Arc::clone(uploads),
            on_finished,
            record_bytes,
        })
    }
}

impl Stage for ObjectWriter {
    fn run(&mut self, ports: &mut WorkerPorts) -> Result<(), StageError> {
        while let Some(block) = ports.receive()? {
            let (number, len) = (block.number, block.len);
            let stopped = || ports.check().is_err();
            let put = self.uploads.put(&self.client, block, stopped);
            if put.map_err(|why| failure(&why))? {
                self.on_finished.notify(number)?;
            }
            ports.moved(len, len / self.record_bytes);
        }
        self.uploads.count(&self.client);
        Ok(())
    }
}
