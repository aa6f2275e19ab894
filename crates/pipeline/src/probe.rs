//! What each worker moved and how it spent its time.
//!
//! A worker is in one [`WorkerState`] at a time and stamps every change, so the three times add up
//! to its lifetime. Others may read a probe while it runs: the current state counts up to now. A
//! lock, taken once per wait, keeps readers from seeing half a change.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::thread_clock::ThreadClock;

/// What a worker does right now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerState {
    /// Works, or waits for its own device.
    Busy = 0,
    /// Waits for input.
    Starved = 1,
    /// Waits for room downstream or for a buffer of its own pool.
    Blocked = 2,
}

/// What a stage has done so far; sums over its workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Counters {
    /// Bytes processed.
    pub bytes: u64,
    /// Records processed, where the stage knows records.
    pub records: u64,
    /// Busy seconds, waiting for its own device included.
    pub busy_seconds: f64,
    /// Starved seconds: no input.
    pub starved_seconds: f64,
    /// Blocked seconds: no room for output.
    pub blocked_seconds: f64,
    /// CPU seconds of the stage's own threads, user and system.
    pub cpu_seconds: f64,
    /// Queue depth of the stage's devices at this moment.
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
    times: Mutex<Times>,
    bytes: AtomicU64,
    records: AtomicU64,
    depth: AtomicUsize,
    cpu: Mutex<(Option<ThreadClock>, f64)>, // the clock while it lives, then the final seconds
}

/// How a worker spent its time.
#[derive(Debug)]
struct Times {
    state: WorkerState,
    since: Option<Duration>, // the last change, counted from the epoch; `None` unless it lives
    spent: [Duration; 3],
}

impl Times {
    /// Counts the time up to `now`.
    fn settle(&mut self, now: Duration) {
        if let Some(since) = &mut self.since {
            self.spent[self.state as usize] += now.saturating_sub(*since);
            *since = now;
        }
    }
}

impl Probe {
    /// A probe of a worker that is not yet started.
    pub fn new(epoch: Instant) -> Self {
        let times = Times {
            state: WorkerState::Busy,
            since: None,
            spent: [Duration::ZERO; 3],
        };
        Self {
            epoch,
            times: Mutex::new(times),
            bytes: AtomicU64::new(0),
            records: AtomicU64::new(0),
            depth: AtomicUsize::new(0),
            cpu: Mutex::new((None, 0.0)),
        }
    }

    /// The worker starts, on the calling thread.
    pub fn begin(&self) {
        lock(&self.cpu).0 = ThreadClock::current();
        lock(&self.times).since = Some(self.epoch.elapsed());
    }

    /// The worker ends, on the calling thread.
    pub fn end(&self) {
        let mut times = lock(&self.times);
        times.settle(self.epoch.elapsed());
        times.since = None;
        drop(times);
        let mut cpu = lock(&self.cpu);
        let used = cpu.0.take().and_then(ThreadClock::read);
        cpu.1 = used.map_or(0.0, |time| time.as_secs_f64());
    }

    /// Changes the state; the time up to now belongs to the old one.
    pub fn enter(&self, state: WorkerState) {
        let mut times = lock(&self.times);
        times.settle(self.epoch.elapsed());
        times.state = state;
    }

    /// Counts what was moved.
    pub fn add_moved(&self, bytes: usize, records: usize) {
        self.bytes.fetch_add(bytes as u64, Relaxed);
        self.records.fetch_add(records as u64, Relaxed);
    }

    /// Whether anything was moved.
    pub fn has_moved(&self) -> bool {
        self.bytes.load(Relaxed) > 0
    }

    /// Records the queue depth of the device.
    pub fn depth(&self, depth: usize) {
        self.depth.store(depth, Relaxed);
    }

    /// Adds what this worker did so far to `sum`.
    pub fn add_to(&self, sum: &mut Counters) {
        let mut times = lock(&self.times);
        times.settle(self.epoch.elapsed());
        let [busy, starved, blocked] = times.spent.map(|spent| spent.as_secs_f64());
        drop(times);
        sum.bytes += self.bytes.load(Relaxed);
        sum.records += self.records.load(Relaxed);
        sum.busy_seconds += busy;
        sum.starved_seconds += starved;
        sum.blocked_seconds += blocked;
        sum.depth += self.depth.load(Relaxed);
        let cpu = lock(&self.cpu);
        let running = cpu.0.and_then(ThreadClock::read);
        sum.cpu_seconds += running.map_or(cpu.1, |time| time.as_secs_f64());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use super::*;

    /// A reader never sees a time decrease, nor the same time twice, while the state changes.
    #[test]
    fn times_never_fall_while_states_change() {
        let epoch = Instant::now();
        let (probe, ended) = (Probe::new(epoch), AtomicBool::new(false));
        let times = |of: &Counters| {
            [
                of.busy_seconds,
                of.starved_seconds,
                of.blocked_seconds,
                of.cpu_seconds,
            ]
        };
        thread::scope(|scope| {
            scope.spawn(|| {
                probe.begin();
                for _ in 0..20_000 {
                    for state in [
                        WorkerState::Starved,
                        WorkerState::Busy,
                        WorkerState::Blocked,
                    ] {
                        probe.enter(state);
                    }
                }
                probe.end();
                ended.store(true, Relaxed);
            });
            let mut before = Counters::default();
            while !ended.load(Relaxed) {
                let mut now = Counters::default();
                probe.add_to(&mut now);
                for (before, now) in times(&before).into_iter().zip(times(&now)) {
                    assert!(before <= now, "{before} became {now}");
                }
                let sum: f64 = times(&now)[..3].iter().sum();
                assert!(sum <= epoch.elapsed().as_secs_f64() + 1e-6, "{now:?}");
                before = now;
            }
        });
    }
}
