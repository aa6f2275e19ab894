//! `write` of objects: blocks as parts of uploads, one request at a time per worker.
//!
//! Any worker takes the next block, so parts of one object are uploaded concurrently. Blocks that
//! wait or are being sent are buffers of the stage before; there are no others.

use std::sync::Arc;

use tonnage_object::Client;
use tonnage_pipeline::{Failure, Stage, StageError, WorkerPorts};

use crate::object::request_log::failure;
use crate::object::uploads::Uploads;
use crate::output_file::OnFinished;

/// Uploads one part after another.
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
            ports.add_moved(len, len / self.record_bytes);
        }
        self.uploads.count(&self.client);
        Ok(())
    }
}
