//! What each worker moved and how its time went.
//!
//! A worker is in one [`State`] at a time and stamps every change, so the three times add up to
//! the time it lived. Others may read a probe while it runs: the state it is in counts up to now.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use serde::Serialize;

use crate::clock::ThreadClock;

/// What a worker does right now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Works, or waits for its own device.
    Busy = 0,
    /// Waits for input.
    Starved = 1,
    /// Waits for room downstream or for a buffer of its own pool.
    Blocked = 2,
}

/// What a stage did up to some moment; sums over its workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Counters {
    /// Bytes dealt with.
    pub bytes: u64,
    /// Records dealt with, where the stage knows records.
    pub records: u64,
    /// Seconds at work, waiting for its own device included.
    pub busy_seconds: f64,
    /// Seconds without input.
    pub starved_seconds: f64,
    /// Seconds without room for output.
    pub blocked_seconds: f64,
    /// CPU seconds of the stage's own threads, user and system.
    pub cpu_seconds: f64,
    /// Operations that the stage's devices had in hand at this moment.
    pub depth: usize,
}

/// The counters of every stage at one moment of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    /// Seconds since the run began.
    pub seconds: f64,
    /// One for each stage, in the graph's order.
    pub stages: Vec<Counters>,
}

/// One worker's probe.
#[derive(Debug)]
pub struct Probe {
    epoch: Instant,
    state: AtomicU8,
    since_nanos: AtomicU64,
    spent_nanos: [AtomicU64; 3],
    bytes: AtomicU64,
    records: AtomicU64,
    depth: AtomicUsize,
    cpu: Mutex<(Option<ThreadClock>, f64)>, // the clock while it lives, then the final seconds
}

impl Probe {
    /// A probe of a worker that is not yet started.
    pub fn new(epoch: Instant) -> Self {
        Self {
            epoch,
            state: AtomicU8::new(State::Busy as u8),
            since_nanos: AtomicU64::new(u64::MAX),
            spent_nanos: Default::default(),
            bytes: AtomicU64::new(0),
            records: AtomicU64::new(0),
            depth: AtomicUsize::new(0),
            cpu: Mutex::new((None, 0.0)),
        }
    }

    /// The worker starts, on the calling thread.
    pub fn begin(&self) {
        self.lock_cpu().0 = ThreadClock::current();
        self.since_nanos.store(self.now(), Relaxed);
    }

    /// The worker ends, on the calling thread.
    pub fn end(&self) {
        self.enter(State::Busy);
        self.since_nanos.store(u64::MAX, Relaxed);
        let mut cpu = self.lock_cpu();
        cpu.1 = cpu
            .0
            .take()
            .and_then(ThreadClock::read)
            .map_or(0.0, |time| time.as_secs_f64());
    }

    /// Changes the state; time up to now goes to the old one.
    pub fn enter(&self, state: State) {
        let now = self.now();
        let old = self.state.swap(state as u8, Relaxed);
        let since = self.since_nanos.swap(now, Relaxed);
        self.spent_nanos[usize::from(old)].fetch_add(now.saturating_sub(since), Relaxed);
    }

    /// Counts what was moved.
    pub fn moved(&self, bytes: usize, records: usize) {
        self.bytes.fetch_add(bytes as u64, Relaxed);
        self.records.fetch_add(records as u64, Relaxed);
    }

    /// Notes how many operations the device has in hand.
    pub fn depth(&self, depth: usize) {
        self.depth.store(depth, Relaxed);
    }

    /// Adds what this worker did so far to `sum`.
    pub fn add_to(&self, sum: &mut Counters) {
        let state = usize::from(self.state.load(Relaxed));
        let since = self.since_nanos.load(Relaxed);
        let seconds = |of: State| {
            let current = if of as usize == state {
                self.now().saturating_sub(since)
            } else {
                0
            };
            (self.spent_nanos[of as usize].load(Relaxed) + current) as f64 * 1e-9
        };
        sum.bytes += self.bytes.load(Relaxed);
        sum.records += self.records.load(Relaxed);
        sum.busy_seconds += seconds(State::Busy);
        sum.starved_seconds += seconds(State::Starved);
        sum.blocked_seconds += seconds(State::Blocked);
        sum.depth += self.depth.load(Relaxed);
        let cpu = self.lock_cpu();
        let running = cpu.0.and_then(ThreadClock::read);
        sum.cpu_seconds += running.map_or(cpu.1, |time| time.as_secs_f64());
    }

    fn lock_cpu(&self) -> std::sync::MutexGuard<'_, (Option<ThreadClock>, f64)> {
        self.cpu
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}
