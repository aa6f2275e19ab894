//! `read`: extents of files into buffers, by direct I/O, several at once on every device.
//!
//! Worker i reads lane i, the extents of one device in order. It keeps the device's queue full
//! while it has buffers, and passes completed extents on in the order of completion. Extents of
//! objects are one more lane, which several workers read by range requests (`read_objects`).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use serde_json::{Value, json};
use tonnage_disk::{Direction, Disk, DiskFile, Queue, Request, Segment};
use tonnage_pipeline::{
    Buffer, Failure, MemoryNeed, Port, Stage, StageError, StageSpec, WorkerPorts,
};
use tonnage_records::crc32;

use super::read_objects::ObjectReader;
use crate::disk::in_flight::{InFlight, failure, queue};
use crate::disk::modes::DiskModes;
use crate::extent::{ALIGNMENT, Extent, FileRef, aligned};
use crate::object::access::ObjectAccess;

/// Reads extents.
#[derive(Clone, Debug)]
pub struct ReadExtents {
    /// The disks.
    pub disk: Disk,
    /// What to read: one lane per device, and one for all objects.
    pub lanes: Arc<Vec<Vec<Arc<Extent>>>>,
    /// How objects are read.
    pub access: ObjectAccess,
    /// The next extent of the objects' lane.
    pub next: Arc<AtomicUsize>,
    /// What the extents contain.
    pub gives: Port,
    /// Size of a record, for counting.
    pub record_bytes: usize,
    /// Buffers of its own.
    pub buffers: usize,
    /// Size of each; at least the largest extent's span.
    pub buffer_bytes: usize,
    /// Collects how the disks were used.
    pub modes: Arc<DiskModes>,
}

impl ReadExtents {
    /// The lane of the objects, if there are any.
    fn objects(&self) -> Option<usize> {
        let of_objects = |lane: &Vec<Arc<Extent>>| {
            let mut pieces = lane.iter().flat_map(|extent| &extent.pieces);
            matches!(
                pieces.next().map(|piece| &piece.file),
                Some(FileRef::Object(_))
            )
        };
        self.lanes.iter().position(of_objects)
    }
}

impl StageSpec for ReadExtents {
    fn kind(&self) -> &'static str {
        "read"
    }

    fn config(&self) -> Value {
        let extents = self.lanes.iter().flatten();
        json!({
            "disk": self.disk,
            "extents": self.lanes.iter().map(Vec::len).collect::<Vec<_>>(),
            "bytes": extents.map(|extent| extent.len() as u64).sum::<u64>(),
            "record_bytes": self.record_bytes,
            "buffers": self.buffers,
            "buffer_bytes": self.buffer_bytes,
        })
    }

    fn input(&self) -> Option<Port> {
        None
    }

    fn output(&self) -> Option<Port> {
        Some(self.gives)
    }

    fn workers(&self) -> usize {
        match self.objects() {
            Some(_) => self.lanes.len() - 1 + self.access.requests.max(1),
            None => self.lanes.len(),
        }
    }

    fn memory(&self) -> MemoryNeed {
        MemoryNeed {
            buffers: self.buffers,
            buffer_bytes: self.buffer_bytes,
            private_bytes: 0,
        }
    }

    fn start(&self, worker: usize, ports: &WorkerPorts) -> Result<Box<dyn Stage>, Failure> {
        match self.objects() {
            // Workers beyond the lanes share the lane of the objects.
            Some(lane) if worker == lane || worker >= self.lanes.len() => {
                return Ok(Box::new(ObjectReader {
                    lanes: Arc::clone(&self.lanes),
                    next: Arc::clone(&self.next),
                    lane,
                    access: self.access.clone(),
                    record_bytes: self.record_bytes,
                }));
            }
            _ => {}
        }
        let queue = queue(&self.disk, ports)?;
        Ok(Box::new(Reader {
            read: self.clone(),
            lane: worker,
            queue,
            last: None,
        }))
    }
}

struct Reader {
    read: ReadExtents,
    lane: usize,
    queue: Box<dyn Queue<InFlight>>,
    last: Option<(Arc<Path>, Arc<DiskFile>)>,
}

impl Stage for Reader {
    fn run(&mut self, ports: &mut WorkerPorts) -> Result<(), StageError> {
        let read = self.read.clone();
        let extents = &read.lanes[self.lane];
        let mut next = 0;
        loop {
            let ended = next == extents.len() || ports.time_is_up();
            if !ended && self.wants_more(&extents[next]) {
                // Wait for memory only if there is nothing else to wait for.
                let buffer = match self.queue.outstanding() {
                    0 => Some(ports.buffer()?),
                    _ => ports.try_buffer()?,
                };
                if let Some(buffer) = buffer {
                    if let Some(whole) = self.submit(buffer, next, &extents[next])? {
                        self.pass_on(whole, &extents[next], ports)?;
                    }
                    next += 1;
                    continue;
                }
            }
            ports.depth(self.queue.in_flight());
            let Some(done) = self.queue.wait() else { break };
            let extent = &extents[done.tag as usize];
            let InFlight(buffer) = done.memory;
            let got = done.result.map_err(|why| failure(&why))?;
            if got < Self::needed_bytes(extent) {
                return Err(self.ends_early(extent, got).into());
            }
            self.pass_on(buffer, extent, ports)?;
        }
        self.read.modes.note(self.queue.mode());
        Ok(())
    }
}

impl Reader {
    /// Whether the device's queue has room for another request.
    fn wants_more(&self, next: &Extent) -> bool {
        let operations = next.span().div_ceil(self.read.disk.transfer_bytes).max(1);
        self.queue.outstanding() <= self.read.disk.depth.div_ceil(operations)
    }

    fn pass_on(
        &self,
        buffer: Buffer,
        extent: &Extent,
        ports: &mut WorkerPorts,
    ) -> Result<(), StageError> {
        check(&buffer, extent)?;
        ports.add_moved(extent.len(), extent.len() / self.read.record_bytes);
        ports.send(buffer)
    }

    /// Copies what is in memory, and asks the device for the rest; gives the buffer back if there
    /// is none.
    fn submit(
        &mut self,
        mut buffer: Buffer,
        place: usize,
        extent: &Extent,
    ) -> Result<Option<Buffer>, Failure> {
        let mut segments = Vec::with_capacity(extent.pieces.len());
        let mut at = 0;
        for piece in &extent.pieces {
            let len = aligned(piece.head() + piece.len);
            if let FileRef::Held(block) = &piece.file {
                let bytes = &block.payload()[piece.offset as usize..][..piece.len];
                buffer.slot_mut()[at..at + piece.len].copy_from_slice(bytes);
            } else {
                segments.push(Segment {
                    file: self.open(&piece.file)?,
                    offset: piece.offset - piece.head() as u64,
                    at,
                    len,
                });
            }
            at += len;
        }
        debug_assert!(
            at <= buffer.capacity(),
            "an extent is larger than its buffer"
        );
        buffer.head = extent.pieces.first().map_or(0, crate::extent::Piece::head);
        buffer.len = match extent.pieces.as_slice() {
            [piece] => piece.len,
            _ => at - buffer.head,
        };
        (buffer.number, buffer.offset, buffer.lane) = (extent.number, extent.offset, self.lane);
        if segments.is_empty() {
            return Ok(Some(buffer));
        }
        let (memory, tag) = (InFlight(buffer), place as u64);
        self.queue.submit(Request {
            direction: Direction::Read,
            memory,
            segments,
            tag,
        });
        Ok(None)
    }

    fn open(&mut self, file: &FileRef) -> Result<Arc<DiskFile>, Failure> {
        match (file, &self.last) {
            (FileRef::Open(file), _) => Ok(Arc::clone(file)),
            (FileRef::Path(path), Some((last, file))) if last == path => Ok(Arc::clone(file)),
            (FileRef::Path(path), _) => {
                let file = self
                    .read
                    .disk
                    .open_read(path)
                    .map_err(|why| failure(&why))?;
                self.last = Some((Arc::clone(path), Arc::clone(&file)));
                Ok(file)
            }
            (other, _) => Err(Failure::new(format!(
                "internal error: {} is in a queue of files",
                other.name().display()
            ))),
        }
    }

    /// Bytes that must arrive: up to the end of the payload; the rest may be past the end of the
    /// file.
    fn needed_bytes(extent: &Extent) -> usize {
        let pieces = extent.pieces.iter();
        let read = pieces.filter(|piece| !matches!(piece.file, FileRef::Held(_)));
        let mut spans = read.map(|piece| piece.head() + piece.len).rev();
        let last = spans.next().unwrap_or(0);
        spans.map(aligned).sum::<usize>() + last
    }

    fn ends_early(&self, extent: &Extent, got: usize) -> Failure {
        let what = |path: &Path, offset: u64| {
            let path = path.display();
            format!("{path} was truncated while it was read: it now ends at offset {offset}")
        };
        match extent.pieces.first() {
            Some(piece) => {
                let offset = piece.offset - (piece.offset % ALIGNMENT as u64) + got as u64;
                let path = piece.file.name();
                Failure::at(&path, offset, what(&path, offset))
            }
            None => Failure::new("an empty extent was read"),
        }
    }
}

/// Refuses what is not as it was written.
fn check(buffer: &Buffer, extent: &Extent) -> Result<(), Failure> {
    for (piece, payload) in extent.pieces.iter().zip(extent.payloads(buffer)) {
        if piece.crc.is_some_and(|crc| crc.get() != crc32(payload)) {
            let (path, offset) = (piece.file.name(), piece.offset);
            let what = format!(
                "{}: the block at offset {offset} is not as it was written: the device or memory \
                 is corrupting data",
                path.display()
            );
            return Err(Failure::at(&path, offset, what));
        }
    }
    Ok(())
}
