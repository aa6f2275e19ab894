//! `read` of objects: extents by range requests, one request at a time per worker.
//!
//! The number of concurrent requests decides the throughput of a store (MATE-EC2's threaded
//! retrieval). So all objects are one lane with as many workers as requests, and an idle worker
//! takes the next extent: a slow or retried request delays no other.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tonnage_pipeline::{Failure, Stage, StageError, WorkerPorts};

use crate::extent::{Extent, FileRef, Object};
use crate::object::access::{ObjectAccess, WorkerClients};
use crate::object::request_log::failure;

/// One request after another.
pub(super) struct ObjectReader {
    pub lanes: Arc<Vec<Vec<Arc<Extent>>>>,
    /// Place of the next extent of the lane, which its workers share.
    pub next: Arc<AtomicUsize>,
    pub lane: usize,
    pub access: ObjectAccess,
    pub record_bytes: usize,
}

impl Stage for ObjectReader {
    fn run(&mut self, ports: &mut WorkerPorts) -> Result<(), StageError> {
        let mut clients = WorkerClients::default();
        while !ports.time_is_up() {
            let Some(extent) = self.lanes[self.lane].get(self.next.fetch_add(1, Relaxed)) else {
                break;
            };
            let (object, offset) = object(extent)?;
            let mut buffer = ports.buffer()?;
            (buffer.number, buffer.offset) = (extent.number, extent.offset);
            (buffer.lane, buffer.len) = (self.lane, extent.len());
            let memory = &mut buffer.slot_mut()[..extent.len()];
            let (etag, stopped) = (object.etag.as_deref(), || ports.check().is_err());
            let client = clients.get(&object.store, &self.access);
            let client = client.map_err(|why| failure(&why))?;
            let got = client.get_range(&object.key, etag, offset, memory, stopped);
            got.map_err(|why| failure(&why))?;
            ports.add_moved(extent.len(), extent.len() / self.record_bytes);
            ports.send(buffer)?;
        }
        self.access.give(clients);
        Ok(())
    }
}

/// The object of an extent, and the offset of its range.
fn object(extent: &Extent) -> Result<(&Object, u64), Failure> {
    match extent.pieces.as_slice() {
        [piece] => match &piece.file {
            FileRef::Object(object) => Ok((object, piece.offset)),
            _ => Err(Failure::new(
                "internal error: a file is in a queue of objects",
            )),
        },
        _ => Err(Failure::new(
            "internal error: an extent of an object is not one range",
        )),
    }
}
