//! `random_io`: reads or writes of single blocks, at a fixed queue depth, for a set time or once.
//!
//! A closed loop: each completed operation is replaced at once. At random offsets it does the small
//! and large operations of a systematic look at EC2 I/O (`read4k`: 4 KiB reads; `write4k-64`: 4 KiB
//! writes, every 64th durable); segment by segment it does what IOR does, which Magellan used. A
//! worker keeps `disk.depth` operations in its queue; for blocking I/O there is a worker per
//! operation, with a queue depth of 1.
//!
//! An operation's latency begins when its predecessor's completion was observed, so it includes
//! the cost of submission. Memory is filled once before the first
//! operation: refilling it for each write would be a third of the time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::Serialize;
use serde_json::{Value, json};
use tonnage_disk::{Completion, Direction, Disk, DiskFile, Queue, Request, Segment};
use tonnage_pipeline::{
    Buffer, Failure, MemoryNeed, Port, Stage, StageError, StageSpec, WorkerPorts,
};

use crate::disk::in_flight::{InFlight, failure, queue};
use crate::disk::modes::DiskModes;
use crate::latencies::latencies;

/// Operates on a file.
#[derive(Clone, Debug)]
pub struct RandomIo {
    /// How to use the disk; its depth is each worker's queue depth.
    pub disk: Disk,
    /// The files: one for each worker, or one for all.
    pub files: Arc<Vec<Arc<DiskFile>>>,
    /// Offsets, and how many.
    pub pattern: Pattern,
    /// Writes, instead of reads.
    pub writes: bool,
    /// One write in so many, at random, has to be durable to be done; 0 for none.
    pub durable_one_in: u32,
    /// Size of an operation; offsets are multiples of it.
    pub block_bytes: usize,
    /// Threads.
    pub workers: usize,
    /// Whether all completions at hand are replaced with one system call, or each with its own.
    pub batched: bool,
    /// Operations that begin earlier are not recorded.
    pub warm_up: Duration,
    /// When a worker ends, the warm-up included; `None` if its pattern ends. Its time begins with
    /// its first operation, after memory was filled.
    pub lasts: Option<Duration>,
    /// Whether a worker makes its file durable after the last write, as part of its time.
    pub flush_at_end: bool,
    /// Of offsets, and of the choice of durable writes.
    pub seed: u64,
    /// Each worker's timings.
    pub seen: Arc<Mutex<Vec<WorkerTimings>>>,
    /// Collects how the disk was used.
    pub modes: Arc<DiskModes>,
}

/// The blocks of its file that a worker uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// Any block, until the time is up.
    Random,
    /// Its part of every segment in turn, once. A segment has one part for each worker that shares
    /// the file, here or on other nodes.
    Segments {
        /// How many.
        segments: u64,
        /// Length of a part.
        part_bytes: u64,
        /// Parts of a segment.
        parts: u64,
        /// Which of them is the first worker's.
        first: u64,
    },
}

/// One worker's timings.
#[derive(Clone, Debug)]
pub struct WorkerTimings {
    /// The worker's number.
    pub worker: usize,
    /// When its first operation should begin.
    pub began: Instant,
    /// When its last operation completed, as observed, and its file was durable if requested.
    pub ended: Instant,
    /// Nanoseconds from when an operation should begin to when its completion was observed, for
    /// those that began after the warm-up.
    pub latencies: Histogram<u64>,
    /// Operations done between the warm-up and the end of the time.
    pub counted: u64,
    /// Operations done in each second since the worker began.
    pub each_second: Vec<u64>,
    /// Durable writes, those of the warm-up too.
    pub durable: u64,
}

impl StageSpec for RandomIo {
    fn kind(&self) -> &'static str {
        "operate"
    }

    fn config(&self) -> Value {
        json!({
            "disk": self.disk,
            "writes": self.writes,
            "durable_one_in": self.durable_one_in,
            "block_bytes": self.block_bytes,
            "files": self.files.len(),
            "file_bytes": self.files.first().map_or(0, |file| file.len()),
            "pattern": self.pattern,
            "flush_at_end": self.flush_at_end,
            "batched": self.batched,
            "warm_up_seconds": self.warm_up.as_secs_f64(),
            "seconds": self.lasts.map(|lasts| lasts.as_secs_f64()),
            "seed": self.seed,
        })
    }

    fn input(&self) -> Option<Port> {
        None
    }

    fn output(&self) -> Option<Port> {
        None
    }

    fn workers(&self) -> usize {
        self.workers
    }

    fn memory(&self) -> MemoryNeed {
        MemoryNeed {
            buffers: self.workers * self.disk.depth,
            buffer_bytes: self.block_bytes,
            private_bytes: 0,
        }
    }

    fn start(&self, worker: usize, ports: &WorkerPorts) -> Result<Box<dyn Stage>, Failure> {
        // Seeds far apart, so that the workers' streams do not overlap.
        let random = Random(self.seed ^ (worker as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let now = Instant::now();
        Ok(Box::new(RandomIoWorker {
            operate: self.clone(),
            file: Arc::clone(&self.files[worker % self.files.len()]),
            queue: queue(&self.disk, ports)?,
            random,
            next: 0,
            began: vec![now; self.disk.depth],
            seen: WorkerTimings {
                worker,
                began: now,
                ended: now,
                latencies: latencies(),
                counted: 0,
                each_second: Vec::new(),
                durable: 0,
            },
        }))
    }
}

struct RandomIoWorker {
    operate: RandomIo,
    file: Arc<DiskFile>,
    queue: Box<dyn Queue<InFlight>>,
    random: Random,
    next: u64,           // how many operations were begun
    began: Vec<Instant>, // by the tag of the operation
    seen: WorkerTimings,
}

impl Stage for RandomIoWorker {
    fn run(&mut self, ports: &mut WorkerPorts) -> Result<(), StageError> {
        let mut buffers = Vec::with_capacity(self.operate.disk.depth);
        for _ in 0..self.operate.disk.depth {
            let mut buffer = ports.buffer()?;
            self.random.fill(buffer.slot_mut());
            buffers.push(buffer);
        }
        self.seen.began = Instant::now();
        for (tag, buffer) in buffers.into_iter().enumerate() {
            self.begin(tag, buffer, self.seen.began);
        }
        while let Some(first) = self.queue.wait() {
            let now = Instant::now();
            let since = now.duration_since(self.seen.began);
            let goes_on = self.operate.lasts.is_none_or(|lasts| since < lasts);
            ports.check()?;
            let mut done = 1;
            self.end(first, now, goes_on)?;
            // No more than were outstanding: a replacement may complete at once.
            while self.operate.batched
                && done < self.operate.disk.depth
                && let Some(next) = self.queue.ready()
            {
                done += 1;
                self.end(next, now, goes_on)?;
            }
            ports.add_moved(done * self.operate.block_bytes, done);
            self.count(now, done, goes_on);
        }
        if self.operate.flush_at_end {
            self.file.flush().map_err(|why| failure(&why))?;
            self.seen.ended = Instant::now();
        }
        self.operate.modes.note(self.queue.mode());
        let seen = self.seen.clone();
        let mut all = self
            .operate
            .seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        all.push(seen);
        Ok(())
    }
}

impl RandomIoWorker {
    /// Begins an operation now, unless the pattern has ended.
    fn begin(&mut self, tag: usize, buffer: Buffer, now: Instant) {
        let Some(offset) = self.offset() else { return };
        let RandomIo {
            block_bytes,
            writes,
            durable_one_in,
            ..
        } = &self.operate;
        let durable =
            *writes && *durable_one_in > 0 && self.random.below((*durable_one_in).into()) == 0;
        self.seen.durable += u64::from(durable);
        let direction = match (writes, durable) {
            (false, _) => Direction::Read,
            (true, false) => Direction::Write,
            (true, true) => Direction::WriteDurably,
        };
        let segments = vec![Segment {
            file: Arc::clone(&self.file),
            offset,
            at: 0,
            len: *block_bytes,
        }];
        self.began[tag] = now;
        self.queue.submit(Request {
            direction,
            memory: InFlight(buffer),
            segments,
            tag: tag as u64,
        });
    }

    /// Offset of the next operation.
    fn offset(&mut self) -> Option<u64> {
        let place = self.next;
        self.next += 1;
        let block = self.operate.block_bytes as u64;
        match self.operate.pattern {
            Pattern::Random => Some(self.random.below(self.file.len() / block) * block),
            Pattern::Segments {
                segments,
                part_bytes,
                parts,
                first,
            } => {
                let (segment, within) = (place * block / part_bytes, place * block % part_bytes);
                // Workers that share a file have adjacent parts.
                let part = first + (self.seen.worker / self.operate.files.len()) as u64;
                (segment < segments).then_some((segment * parts + part) * part_bytes + within)
            }
        }
    }

    /// Records a completed operation, and replaces it unless the time is up.
    fn end(
        &mut self,
        done: Completion<InFlight>,
        now: Instant,
        goes_on: bool,
    ) -> Result<(), Failure> {
        done.result.map_err(|why| failure(&why))?;
        let tag = done.tag as usize;
        if self.began[tag] >= self.seen.began + self.operate.warm_up {
            let took = now.duration_since(self.began[tag]).as_nanos();
            self.seen.latencies.saturating_record(took as u64);
        }
        if goes_on {
            let InFlight(buffer) = done.memory;
            self.begin(tag, buffer, now);
        }
        Ok(())
    }

    fn count(&mut self, now: Instant, done: usize, in_time: bool) {
        let since = now.duration_since(self.seen.began);
        if in_time && since >= self.operate.warm_up {
            self.seen.counted += done as u64;
        }
        self.seen.ended = now;
        let second = since.as_secs() as usize;
        if self.seen.each_second.len() <= second {
            self.seen.each_second.resize(second + 1, 0);
        }
        self.seen.each_second[second] += done as u64;
    }
}

/// Random numbers (splitmix64), the same for the same seed.
struct Random(u64);

impl Random {
    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; uniform up to 1 part in 2^64 / `end`.
    fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.number()) * u128::from(end)) >> 64) as u64
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        for part in bytes.chunks_mut(8) {
            part.copy_from_slice(&self.number().to_le_bytes()[..part.len()]);
        }
    }
}
