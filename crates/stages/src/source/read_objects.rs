//! `read` of objects: extents by range requests, one request at a time per worker.
//!
//! The number of concurrent requests decides the throughput of a store (MATE-EC2's threaded
//! retrieval). So all objects are one lane with as many workers as requests, and an idle worker
//! takes the next extent: a slow or retried request delays no other. An extent of several ranges
//! is read by one worker, range by range, to the places that it would have from a disk.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tonnage_pipeline::{Failure, Stage, StageError, WorkerPorts};

use crate::extent::{Extent, FileRef, Object, Piece};
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
        let extents = &self.lanes[self.lane];
        while !ports.time_is_up() && self.next.load(Relaxed) < extents.len() {
            // Memory first: an extent that others wait for would wait for theirs.
            let mut buffer = ports.buffer()?;
            let Some(extent) = extents.get(self.next.fetch_add(1, Relaxed)) else {
                break;
            };
            (buffer.number, buffer.offset) = (extent.number, extent.offset);
            buffer.lane = self.lane;
            let places: Vec<Range<usize>> = extent.places().collect();
            buffer.head = places.first().map_or(0, |place| place.start);
            buffer.len = places.last().map_or(0, |place| place.end) - buffer.head;
            for (piece, place) in extent.pieces.iter().zip(places) {
                let object = object(piece)?;
                let (etag, stopped) = (object.etag.as_deref(), || ports.check().is_err());
                let client = clients.get(&object.store, &self.access);
                let client = client.map_err(|why| failure(&why))?;
                let memory = &mut buffer.slot_mut()[place];
                let got = client.get_range(&object.key, etag, piece.offset, memory, stopped);
                got.map_err(|why| failure(&why))?;
            }
            ports.add_moved(extent.len(), extent.len() / self.record_bytes);
            ports.send(buffer)?;
        }
        self.access.give(clients);
        Ok(())
    }
}

/// The object of a piece.
fn object(piece: &Piece) -> Result<&Object, Failure> {
    match &piece.file {
        FileRef::Object(object) => Ok(object),
        _ => Err(Failure::new(
            "internal error: a file is in a queue of objects",
        )),
    }
}
