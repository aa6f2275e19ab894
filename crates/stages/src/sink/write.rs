//! `write`: blocks to scratch or to files, by direct I/O, several at once on every device.
//! Blocks for scratch stay in memory as long as there is room for them, and memory is cheap.
//!
//! Worker i writes lane i, which is one device. A file is created with its full size when its first
//! block arrives. After its last block a second thread cuts it to its true length and flushes it,
//! so that the device never waits for a flush. A worker ends when all that it wrote is durable.
//! `write_objects` writes objects.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use serde_json::{Value, json};
use tonnage_disk::{Direction, Disk, DiskError, DiskFile, Queue, Request, Segment};
use tonnage_pipeline::{Buffer, Failure, Port, Routing, Stage, StageError, StageSpec, WorkerPorts};

use crate::disk::in_flight::{InFlight, failure, queue};
use crate::disk::modes::DiskModes;
use crate::extent::aligned;
use crate::object::uploads::Uploads;
use crate::output_file::{FilePaths, OnFinished, OutputFile};
use crate::ports::BLOCKS;
use crate::scratch::Scratch;

use super::write_objects::ObjectWriter;

/// Files that may wait to be flushed; each stays open until then.
const WAITING_FILES: usize = 64;
/// Steps in which a file of unknown length grows.
const GROWTH_BYTES: u64 = 16 << 20;

/// Where blocks go.
#[derive(Clone, Debug)]
pub enum Target {
    /// To scratch, wherever there is room; the block's number is its partition.
    Scratch(Arc<Scratch>),
    /// To the file of the block's number, at the block's offset.
    Files(Arc<Vec<OutputFile>>),
    /// The same, for files whose length only their last block tells.
    Growing(Arc<FilePaths>),
    /// To the object of the block's number, as the part that its offset determines.
    Objects(Arc<Uploads>),
}

/// Writes blocks.
#[derive(Clone, Debug)]
pub struct WriteBlocks {
    /// The disks.
    pub disk: Disk,
    /// Where blocks go.
    pub target: Target,
    /// Devices, or concurrent requests for objects; one worker each.
    pub lanes: usize,
    /// Size of a record, for counting.
    pub record_bytes: usize,
    /// Bytes that may wait for each device.
    pub inbox_bytes: usize,
    /// Called when a file is finished and durable.
    pub on_finished: OnFinished,
    /// Collects how the disks were used.
    pub modes: Arc<DiskModes>,
}

impl StageSpec for WriteBlocks {
    fn kind(&self) -> &'static str {
        "write"
    }

    fn config(&self) -> Value {
        let bytes = |files: &[OutputFile]| files.iter().map(|file| file.bytes).sum::<u64>();
        let target = match &self.target {
            Target::Scratch(scratch) => json!({"scratch_devices": scratch.devices()}),
            Target::Files(files) => json!({"files": files.len(), "bytes": bytes(files)}),
            Target::Growing(files) => json!({"files": files.count()}),
            Target::Objects(uploads) => {
                json!({"objects": uploads.objects(), "bytes": uploads.known_bytes()})
            }
        };
        json!({"disk": self.disk, "target": target, "inbox_bytes": self.inbox_bytes})
    }

    fn input(&self) -> Option<Port> {
        Some(BLOCKS)
    }

    fn output(&self) -> Option<Port> {
        None
    }

    fn workers(&self) -> usize {
        self.lanes
    }

    fn routing(&self) -> Routing {
        match self.target {
            Target::Objects(_) => Routing::Any,
            _ => Routing::ByLane,
        }
    }

    fn inbox_bytes(&self) -> usize {
        self.inbox_bytes
    }

    fn start(&self, _worker: usize, ports: &WorkerPorts) -> Result<Box<dyn Stage>, Failure> {
        if let Target::Objects(uploads) = &self.target {
            return Ok(Box::new(ObjectWriter::new(
                uploads,
                self.on_finished.clone(),
                self.record_bytes,
            )?));
        }
        let queue = queue(&self.disk, ports)?;
        let finisher = Finisher::start(self.on_finished.clone())?;
        Ok(Box::new(Writer {
            write: self.clone(),
            queue,
            open: HashMap::new(),
            finisher,
            began: Instant::now(),
            taken: 0,
        }))
    }
}

struct Writer {
    write: WriteBlocks,
    queue: Box<dyn Queue<InFlight>>,
    open: HashMap<usize, OpenFile>,
    finisher: Finisher,
    began: Instant,
    taken: usize, // bytes
}

/// A file that is being written.
struct OpenFile {
    file: Arc<DiskFile>,
    written: u64,
    bytes: Option<u64>, // its length, once it is known
}

impl Stage for Writer {
    fn run(&mut self, ports: &mut WorkerPorts) -> Result<(), StageError> {
        loop {
            // In batches, so that one call into the driver, and the hypervisor, serves several.
            let refill = self.queue.outstanding() <= self.write.disk.depth / 2;
            while refill && self.queue.outstanding() < self.write.disk.depth {
                let buffer = match self.queue.outstanding() {
                    0 => ports.receive()?,
                    _ => ports.poll()?,
                };
                let Some(buffer) = buffer else { break };
                self.submit(buffer, ports)?;
            }
            ports.depth(self.queue.in_flight());
            let Some(done) = self.queue.wait() else { break };
            done.result.map_err(|why| failure(&why))?;
            let InFlight(buffer) = done.memory;
            self.written(&buffer)?;
            ports.add_moved(buffer.len, buffer.len / self.write.record_bytes);
        }
        self.write.modes.note(self.queue.mode());
        self.finisher.join()?;
        Ok(())
    }
}

impl Writer {
    fn submit(&mut self, buffer: Buffer, ports: &mut WorkerPorts) -> Result<(), Failure> {
        debug_assert_eq!(buffer.head, 0, "a block begins its buffer");
        let buffer = match &self.write.target {
            Target::Scratch(scratch) => {
                scratch.count(buffer.number, buffer.peer, buffer.payload());
                let bytes = buffer.len;
                self.taken += bytes;
                let pace = self.began.elapsed().as_secs_f64() / self.taken as f64;
                let Some(buffer) = scratch.hold(buffer, pace) else {
                    ports.add_moved(bytes, bytes / self.write.record_bytes);
                    return Ok(());
                };
                buffer
            }
            _ => buffer,
        };
        let (file, offset) = self.place(&buffer).map_err(|why| failure(&why))?;
        if buffer.len == 0 {
            return self.written(&buffer); // It only tells that its file has ended.
        }
        let segments = vec![Segment {
            file,
            offset,
            at: 0,
            len: aligned(buffer.len),
        }];
        let (memory, direction) = (InFlight(buffer), Direction::Write);
        self.queue.submit(Request {
            direction,
            memory,
            segments,
            tag: 0,
        });
        Ok(())
    }

    fn place(&mut self, block: &Buffer) -> Result<(Arc<DiskFile>, u64), DiskError> {
        match &self.write.target {
            Target::Scratch(scratch) => scratch.place(block.number, block.peer, block.payload()),
            Target::Files(files) => {
                let OutputFile { path, bytes } = &files[block.number];
                let room = aligned(usize::try_from(*bytes).unwrap_or(usize::MAX)) as u64;
                let file = match self.open.entry(block.number) {
                    Entry::Occupied(open) => open.into_mut(),
                    Entry::Vacant(new) => new.insert(OpenFile {
                        file: self.write.disk.create(path, room)?,
                        written: 0,
                        bytes: Some(*bytes),
                    }),
                };
                Ok((Arc::clone(&file.file), block.offset))
            }
            Target::Growing(paths) => {
                let open = match self.open.entry(block.number) {
                    Entry::Occupied(open) => open.into_mut(),
                    Entry::Vacant(new) => new.insert(OpenFile {
                        file: self.write.disk.create(paths.get(block.number), 0)?,
                        written: 0,
                        bytes: None,
                    }),
                };
                let end = block.offset + block.len as u64;
                if block.is_last {
                    open.bytes = Some(end);
                }
                // In steps: a file that grows with each block makes its writes wait for another.
                if aligned(end as usize) as u64 > open.file.len() {
                    open.file.grow(match block.is_last {
                        true => aligned(end as usize) as u64,
                        false => end.next_multiple_of(GROWTH_BYTES),
                    })?;
                }
                Ok((Arc::clone(&open.file), block.offset))
            }
            Target::Objects(_) => unreachable!("an uploader has them"),
        }
    }

    /// Counts a block as written; passes the file on after its last block.
    fn written(&mut self, block: &Buffer) -> Result<(), Failure> {
        let Entry::Occupied(mut open) = self.open.entry(block.number) else {
            return Ok(());
        };
        open.get_mut().written += block.len as u64;
        match open.get().bytes {
            Some(bytes) if bytes == open.get().written => {
                let file = open.remove().file;
                self.finisher.finish((block.number, file, bytes))
            }
            _ => Ok(()),
        }
    }
}

/// A thread that finishes files: cuts them to length and flushes them.
struct Finisher {
    files: Option<mpsc::SyncSender<Last>>,
    thread: Option<JoinHandle<Result<(), Failure>>>,
}

/// A completely written file: its number, the file, its length.
type Last = (usize, Arc<DiskFile>, u64);

impl Finisher {
    fn start(on_finished: OnFinished) -> Result<Self, Failure> {
        let (files, inbox) = mpsc::sync_channel::<Last>(WAITING_FILES);
        let finish = move || {
            inbox.iter().try_for_each(|(number, file, bytes)| {
                file.finish(bytes).map_err(|why| failure(&why))?;
                on_finished.notify(number)
            })
        };
        let thread = thread::Builder::new()
            .name("finish".into())
            .spawn(finish)
            .map_err(|why| Failure::new(format!("cannot start a thread: {why}")))?;
        Ok(Self {
            files: Some(files),
            thread: Some(thread),
        })
    }

    fn finish(&mut self, last: Last) -> Result<(), Failure> {
        match &self.files {
            Some(files) if files.send(last).is_ok() => Ok(()),
            _ => self.join(), // A thread that is gone has failed: this tells why.
        }
    }

    fn join(&mut self) -> Result<(), Failure> {
        self.files = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(()),
        }
    }
}

impl Drop for Finisher {
    fn drop(&mut self) {
        // After a failure elsewhere: wait, so that no file is touched once the run has ended.
        let _failed = self.join();
    }
}
