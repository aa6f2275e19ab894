//! `write` of objects: blocks as parts of uploads, each worker one request after another.
//!
//! Any worker takes the next block, so that parts of one object are under way side by side; what waits
//! and what is in a request's hands are buffers of the stage before, and no more.

use std::sync::Arc;

use tonnage_object::Client;
use tonnage_pipeline::{Failure, Flow, Stage, StageError};

use super::write::{OnWhole, Write};
use crate::requests::failure;
use crate::uploads::Uploads;

/// One part after another.
pub(super) struct Uploader {
    uploads: Arc<Uploads>,
    client: Client,
    on_whole: OnWhole,
    record_bytes: usize,
}

impl Uploader {
    pub fn new(write: &Write, uploads: &Arc<Uploads>) -> Result<Self, Failure> {
        Ok(Self {
            client: uploads
                .client()
                .map_err(|why| Failure::new(why.to_string()))?,
            uploads: Arc::clone(uploads),
            on_whole: write.on_whole.clone(),
            record_bytes: write.record_bytes,
        })
    }
}

impl Stage for Uploader {
    fn run(&mut self, flow: &mut Flow) -> Result<(), StageError> {
        while let Some(block) = flow.receive()? {
            let (number, len) = (block.number, block.len);
            let stopped = || flow.check().is_err();
            let put = self.uploads.put(&self.client, block, stopped);
            if put.map_err(|why| failure(&why))? {
                self.on_whole.tell(number)?;
            }
            flow.moved(len, len / self.record_bytes);
        }
        self.uploads.count(&self.client);
        Ok(())
    }
}
