//! `operate`: reads or writes of blocks of files, so many outstanding, for a set time or once through.
//!
//! A closed loop: what is done is replaced at once. At random places it does the small and large
//! operations of a systematic look at EC2 I/O (`read4k`: 4 KiB, read; `write4k-64`: 4 KiB, every
//! 64th made durable); segment after segment it does what IOR does, which Magellan used. A worker
//! keeps `disk.depth` of them in its queue; a program that blocks is a worker for each operation,
//! with a queue of one.
//!
//! An operation's time begins when it is meant to begin, which is when its predecessor was seen to
//! be done, so that what submitting takes is part of it. Memory is filled before the first one:
//! filling it again for each write would be a third of the time.

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
    /// How to use the disk; its depth is what each worker keeps outstanding.
    pub disk: Disk,
    /// What is operated on: a file for each worker, or one for all.
    pub files: Arc<Vec<Arc<DiskFile>>>,
    /// Where in it, and how long.
    pub pattern: Pattern,
    /// Whether it is written.
    pub writes: bool,
    /// One write in so many, at random, is done when it is durable; 0 for none.
    pub durable_one_in: u32,
    /// Size of an operation; offsets are multiples of it.
    pub block_bytes: usize,
    /// Threads.
    pub workers: usize,
    /// Whether all that are found done are replaced with one system call, or each with its own.
    pub batched: bool,
    /// Latencies of what begins earlier are not kept.
    pub warm_up: Duration,
    /// When a worker ends, the warm-up included; none if its pattern ends. Its time begins with its
    /// first operation: what came before, filling memory above all, is no part of it.
    pub lasts: Option<Duration>,
    /// Whether a worker that has written all makes its file durable, which is part of its time.
    pub flush_at_end: bool,
    /// Of the offsets, and of which writes are durable.
    pub seed: u64,
    /// What the workers saw, one entry each.
    pub seen: Arc<Mutex<Vec<WorkerTimings>>>,
    /// Where to note how the disk was used.
    pub modes: Arc<DiskModes>,
}

/// Which blocks of its file a worker goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// Any, until the time is up.
    Random,
    /// All of its part of every segment in turn, once. A segment has a part for each worker that
    /// shares the file, here or elsewhere.
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

/// What one worker saw.
#[derive(Clone, Debug)]
pub struct WorkerTimings {
    /// Its number.
    pub worker: usize,
    /// When its first operation was meant to begin.
    pub began: Instant,
    /// When its last was seen done, and its file durable if that was asked for.
    pub ended: Instant,
    /// Nanoseconds from the moment an operation was meant to begin to the moment it was seen done,
    /// of those that began after the warm-up.
    pub latencies: Histogram<u64>,
    /// Operations done between the warm-up and the end of the time.
    pub counted: u64,
    /// Operations done in each second since the worker began.
    pub each_second: Vec<u64>,
    /// Writes that were to be durable before they were done, those of the warm-up too.
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
        // Streams of workers are apart by more than they ever use: a worker's is its own seed's.
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
            // No more than there were: what is replaced may be done at once.
            while self.operate.batched
                && done < self.operate.disk.depth
                && let Some(next) = self.queue.ready()
            {
                done += 1;
                self.end(next, now, goes_on)?;
            }
            ports.moved(done * self.operate.block_bytes, done);
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
    /// Takes an operation on, which is meant to begin now; none if the pattern has ended.
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

    /// Where the next operation goes.
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
                // Workers that share a file have parts side by side.
                let part = first + (self.seen.worker / self.operate.files.len()) as u64;
                (segment < segments).then_some((segment * parts + part) * part_bytes + within)
            }
        }
    }

    /// Notes that an operation is done, and replaces it unless the time is up.
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

/// Random numbers, the same for the same seed (splitmix64).
struct Random(u64);

impl Random {
    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, each as likely as the others but for a part in 2^64 / `end`.
    fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.number()) * u128::from(end)) >> 64) as u64
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        for part in bytes.chunks_mut(8) {
            part.copy_from_slice(&self.number().to_le_bytes()[..part.len()]);
        }
    }
}
