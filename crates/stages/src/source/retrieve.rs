//! `retrieve`: chunks of objects and files on demand, each by several concurrent ranges.
//!
//! This is MATE-EC2's threaded retrieval: a chunk has one buffer, and each range is written
//! straight to its place in it. Workers take the next range of the chunk begun last, and begin the
//! next chunk when that one has no ranges left. So nobody waits for a chunk to be complete, and
//! chunks are prefetched while others are processed, as far as there are buffers.
//!
//! The host requests chunks through a queue while this runs (selective job assignment is its task)
//! and may change the number of active workers, depending on throughput and throttling ([`Pace`]).
//! A chunk of a file is read by one worker, by direct I/O, at the queue depth of its disk.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tonnage_disk::{Direction, Disk, Queue, Request, Segment};
use tonnage_object::{Client, ErrorKind, ObjectError};
use tonnage_pipeline::{
    Buffer, BufferPart, Failure, MemoryNeed, Port, Stage, StageError, StageSpec, WorkerPorts,
};

use crate::disk::in_flight::{InFlight, failure, queue};
use crate::extent::{FileRef, Object, Piece, aligned};
use crate::host_queue::HostQueue;
use crate::object::access::{ObjectAccess, WorkerClients};
use crate::object::request_log;
use crate::ports::CHUNKS;

/// How long an inactive worker sleeps before it looks again.
const REST: Duration = Duration::from_millis(20);

/// A requested chunk: its number, the index of its file, its offset there, and its length.
pub type ChunkRequest = (usize, usize, u64, usize);

/// Retrieves chunks.
#[derive(Clone)]
pub struct Retrieve {
    /// Requested chunks, in order; closed at the end.
    pub asked: Arc<HostQueue<ChunkRequest>>,
    /// The files and objects.
    pub files: Arc<Vec<FileRef>>,
    /// Size of a range.
    pub range_bytes: usize,
    /// Most workers.
    pub workers: usize,
    /// Limits the active workers, and collects what they met.
    pub pace: Arc<Pace>,
    /// Chunks that are being retrieved or wait for the host.
    pub buffers: usize,
    /// Size of the largest chunk, with alignment before and after.
    pub buffer_bytes: usize,
    /// The disks of the files.
    pub disk: Disk,
    /// Requests so far.
    pub access: ObjectAccess,
    /// Ranges of begun chunks that no worker has taken yet.
    pub begun: Arc<Mutex<VecDeque<Range>>>,
}

/// The limit of concurrent requests, and how the store reacts to it.
#[derive(Debug)]
pub struct Pace {
    at_once: AtomicUsize,
    throttled: AtomicU64,
    read: AtomicU64, // of files
    left: AtomicBool,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            at_once: AtomicUsize::new(usize::MAX),
            throttled: AtomicU64::new(0),
            read: AtomicU64::new(0),
            left: AtomicBool::new(false),
        }
    }
}

impl Pace {
    /// Limits concurrent requests from now on.
    pub fn set_at_once(&self, requests: usize) {
        self.at_once.store(requests, Relaxed);
    }

    /// Requests that the store throttled.
    pub fn throttled(&self) -> u64 {
        self.throttled.load(Relaxed)
    }

    /// Ends the retrieval early: workers end without an error.
    pub fn leave(&self) {
        self.left.store(true, Relaxed);
    }

    fn is_left(&self) -> bool {
        self.left.load(Relaxed)
    }

    /// Bytes read from files.
    pub fn read(&self) -> u64 {
        self.read.load(Relaxed)
    }

    /// Counts throttled requests.
    fn saw(&self, throttled: u64) {
        self.throttled.fetch_add(throttled, Relaxed);
    }
}

/// A range of a chunk, and its place in memory.
pub struct Range {
    object: Arc<Object>,
    offset: u64,
    part: BufferPart,
}

impl fmt::Debug for Retrieve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retrieve")
            .field("workers", &self.workers)
            .field("range_bytes", &self.range_bytes)
            .finish_non_exhaustive()
    }
}

impl StageSpec for Retrieve {
    fn kind(&self) -> &'static str {
        "retrieve"
    }

    fn config(&self) -> Value {
        json!({
            "disk": self.disk,
            "range_bytes": self.range_bytes,
            "buffers": self.buffers,
            "buffer_bytes": self.buffer_bytes,
        })
    }

    fn input(&self) -> Option<Port> {
        None
    }

    fn output(&self) -> Option<Port> {
        Some(CHUNKS)
    }

    fn workers(&self) -> usize {
        self.workers
    }

    fn memory(&self) -> MemoryNeed {
        MemoryNeed {
            buffers: self.buffers,
            buffer_bytes: self.buffer_bytes,
            private_bytes: 0,
        }
    }

    fn start(&self, _worker: usize, _flow: &WorkerPorts) -> Result<Box<dyn Stage>, Failure> {
        Ok(Box::new(Retriever {
            retrieve: self.clone(),
            queue: None,
            clients: WorkerClients::default(),
        }))
    }
}

/// What a worker does next.
enum NextStep {
    Get(Range),
    Read(Piece, Buffer),
    End,
}

struct Retriever {
    retrieve: Retrieve,
    queue: Option<Box<dyn Queue<InFlight>>>, // once a file is read: it pins all memory
    clients: WorkerClients,
}

impl Stage for Retriever {
    fn run(&mut self, ports: &mut WorkerPorts) -> Result<(), StageError> {
        loop {
            self.rest(ports)?;
            let whole = match self.next_step(ports)? {
                NextStep::Get(range) => self.get(range, ports)?,
                NextStep::Read(piece, buffer) => Some(self.read(&piece, buffer, ports)?),
                NextStep::End => break,
            };
            if let Some(chunk) = whole {
                ports.add_moved(chunk.len, 1);
                ports.send(chunk)?;
            }
        }
        let clients = std::mem::take(&mut self.clients);
        self.retrieve.access.give(clients);
        Ok(())
    }
}

impl Retriever {
    /// Waits while this worker is beyond the limit.
    fn rest(&self, ports: &WorkerPorts) -> Result<(), StageError> {
        while ports.worker() >= self.retrieve.pace.at_once.load(Relaxed).max(1) {
            ports.check()?;
            let is_over = self.retrieve.asked.is_over() && self.begun().is_empty();
            if is_over || self.retrieve.pace.is_left() {
                break;
            }
            thread::sleep(REST);
        }
        Ok(())
    }

    /// The next range of the begun chunk, or the next chunk. A worker that waits for a
    /// request or for memory holds the lock: there is nothing else to do.
    fn next_step(&self, ports: &mut WorkerPorts) -> Result<NextStep, StageError> {
        if self.retrieve.pace.is_left() {
            return Ok(NextStep::End);
        }
        let mut begun = self.begun();
        if let Some(range) = begun.pop_front() {
            return Ok(NextStep::Get(range));
        }
        let asked = self.retrieve.asked.take(|| ports.check().is_err());
        let Some((number, place, offset, len)) = asked.map_err(|_| StageError::Stopped)? else {
            return Ok(NextStep::End);
        };
        let file = self.retrieve.files[place].clone();
        let piece = Piece {
            file,
            offset,
            len,
            crc: None,
        };
        let mut buffer = ports.buffer()?;
        debug_assert!(aligned(piece.head() + piece.len) <= buffer.capacity());
        (buffer.number, buffer.offset) = (number, piece.offset);
        (buffer.head, buffer.len) = (piece.head(), piece.len);
        let FileRef::Object(object) = &piece.file else {
            return Ok(NextStep::Read(piece, buffer));
        };
        let mut offset = piece.offset;
        for mut part in BufferPart::divide(buffer, self.retrieve.range_bytes) {
            let len = part.memory().len() as u64;
            begun.push_back(Range {
                object: Arc::clone(object),
                offset,
                part,
            });
            offset += len;
        }
        Ok(begun.pop_front().map_or(NextStep::End, NextStep::Get))
    }

    /// Gets a range; gives the chunk if that was its last.
    fn get(&mut self, mut range: Range, ports: &WorkerPorts) -> Result<Option<Buffer>, StageError> {
        let object = Arc::clone(&range.object);
        let client = self.clients.get(&object.store, &self.retrieve.access);
        let client = client.map_err(|why| request_log::failure(&why))?;
        let pace = &self.retrieve.pace;
        let (etag, stopped) = (object.etag.as_deref(), || {
            pace.is_left() || ports.check().is_err()
        });
        let before = throttled(client);
        let got = client.get_range(
            &object.key,
            etag,
            range.offset,
            range.part.memory(),
            stopped,
        );
        match got {
            Err(ObjectError::Stopped) if pace.is_left() => return Ok(None),
            got => got.map_err(|why| request_log::failure(&why))?,
        };
        pace.saw(throttled(client) - before);
        Ok(range.part.join())
    }

    /// Reads a chunk of a file.
    fn read(
        &mut self,
        piece: &Piece,
        buffer: Buffer,
        ports: &WorkerPorts,
    ) -> Result<Buffer, StageError> {
        let queue = match &mut self.queue {
            Some(queue) => queue,
            none => none.insert(queue(&self.retrieve.disk, ports)?),
        };
        let path = piece.file.name();
        let file = self.retrieve.disk.open_read(&path);
        let segment = Segment {
            file: file.map_err(|why| failure(&why))?,
            offset: piece.offset - piece.head() as u64,
            at: 0,
            len: aligned(piece.head() + piece.len),
        };
        queue.submit(Request {
            direction: Direction::Read,
            memory: InFlight(buffer),
            segments: vec![segment],
            tag: 0,
        });
        let done = queue.wait().expect("one was submitted");
        let got = done.result.map_err(|why| failure(&why))?;
        if got < piece.head() + piece.len {
            let (offset, shown) = (piece.offset + got as u64, path.display());
            let what = format!(
                "{shown} was truncated after it was indexed: it now ends at offset {offset}"
            );
            return Err(Failure::at(&path, offset, what).into());
        }
        self.retrieve.pace.read.fetch_add(got as u64, Relaxed);
        let InFlight(buffer) = done.memory;
        Ok(buffer)
    }

    fn begun(&self) -> std::sync::MutexGuard<'_, VecDeque<Range>> {
        let begun = self.retrieve.begun.lock();
        begun.unwrap_or_else(PoisonError::into_inner)
    }
}

/// How often the store has throttled this client.
fn throttled(client: &Client) -> u64 {
    client
        .counts()
        .errors
        .get(&ErrorKind::Throttled)
        .copied()
        .unwrap_or(0)
}
