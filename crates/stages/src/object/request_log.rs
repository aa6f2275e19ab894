//! What requests to an object store took, as the worker saw it that made them.
//!
//! What counts lies between the warm-up and the end of the time, when all workers are at work.
//! RequestLog are few where chunks are large, so one that lies only partly within counts for the share
//! of its time that does: whole ones alone would be too few, and those at the end too fast, since
//! others have ended by then.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hdrhistogram::Histogram;
use tonnage_object::{CallStats, ObjectError, RequestCounts};
use tonnage_pipeline::{Buffer, Failure, StageError};

use crate::latencies::latencies;

/// One worker's requests.
#[derive(Clone, Debug)]
pub struct RequestLog {
    /// Its number.
    pub worker: usize,
    /// How many count, in shares.
    pub counted: f64,
    /// Nanoseconds that each took that ended after the warm-up, repetitions included.
    pub latencies: Histogram<u64>,
    /// Nanoseconds to the first byte of each of them that got any.
    pub first_bytes: Histogram<u64>,
    /// How many ended in each second since the worker began.
    pub each_second: Vec<u64>,
    /// All that was asked for, and its errors; of the warm-up too.
    pub counts: RequestCounts,
    began: Instant,
    window: (Instant, Instant), // what counts lies between
    request: Instant,           // when the last one began
}

/// When requests count, from a worker's beginning.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Not before this.
    pub warm_up: Duration,
    /// Not after this.
    pub end: Duration,
}

impl RequestLog {
    /// A worker that begins now.
    pub(crate) fn new(worker: usize, window: Window) -> Self {
        let now = Instant::now();
        Self {
            worker,
            counted: 0.0,
            latencies: latencies(),
            first_bytes: latencies(),
            each_second: Vec::new(),
            counts: RequestCounts::default(),
            began: now,
            window: (now + window.warm_up, now + window.end),
            request: now,
        }
    }

    /// A request begins.
    pub(crate) fn begin(&mut self) {
        self.request = Instant::now();
    }

    /// It has ended.
    pub(crate) fn end(&mut self, done: &CallStats) {
        self.ended(Instant::now(), done.took, done.first_byte);
    }

    fn ended(&mut self, now: Instant, took: Duration, first_byte: Option<Duration>) {
        let (from, to) = self.window;
        let within = now
            .min(to)
            .saturating_duration_since(self.request.max(from));
        let all = now.duration_since(self.request);
        self.counted += within.as_secs_f64() / all.as_secs_f64().max(f64::MIN_POSITIVE);
        if now >= from {
            self.latencies.saturating_record(took.as_nanos() as u64);
            if let Some(first) = first_byte {
                self.first_bytes.saturating_record(first.as_nanos() as u64);
            }
        }
        let second = now.duration_since(self.began).as_secs() as usize;
        if self.each_second.len() <= second {
            self.each_second.resize(second + 1, 0);
        }
        self.each_second[second] += 1;
    }

    /// The worker has ended.
    pub(crate) fn close(mut self, counts: RequestCounts, all: &Mutex<Vec<Self>>) {
        self.counts = counts;
        all.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(self);
    }
}

/// An object store's error as a stage's.
pub(crate) fn failure(error: &ObjectError) -> StageError {
    match error {
        ObjectError::Stopped => StageError::Stopped,
        other => match other.changed() {
            Some(name) => Failure::at(Path::new(name), 0, other.to_string()).into(),
            None => Failure::new(other.to_string()).into(),
        },
    }
}

/// A buffer as what is put: nothing is copied, and its memory is given back when the last of it was
/// sent.
pub(crate) fn payload(buffer: Buffer) -> Bytes {
    Bytes::from_owner(Held(buffer))
}

/// A buffer that a request holds.
struct Held(Buffer);

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        self.0.payload()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A worker's requests, each so many milliseconds long, one after another from its beginning.
    fn counted(milliseconds: &[u64], warm_up: u64, end: u64) -> (f64, u64) {
        let window = Window {
            warm_up: Duration::from_millis(warm_up),
            end: Duration::from_millis(end),
        };
        let mut requests = RequestLog::new(0, window);
        let mut now = requests.began;
        for took in milliseconds.iter().copied().map(Duration::from_millis) {
            requests.request = now;
            now += took;
            requests.ended(now, took, Some(took / 2));
        }
        assert_eq!(requests.latencies.len(), requests.first_bytes.len());
        (requests.counted, requests.latencies.len())
    }

    #[test]
    fn requests_count_for_the_share_that_lies_within() {
        for (milliseconds, warm_up, end, share, ended) in [
            (&[100, 100, 100][..], 100, 300, 2.0, 3),
            (&[100, 100, 100], 150, 250, 1.0, 2),
            (&[400], 100, 300, 0.5, 1),
            (&[50, 10, 200], 60, 160, 0.5, 2),
            (&[50, 50], 100, 200, 0.0, 1),
            (&[50, 400], 0, 50, 1.0, 2),
            (&[], 0, 100, 0.0, 0),
        ] {
            let (counted, latencies) = counted(milliseconds, warm_up, end);
            assert!(
                (counted - share).abs() < 1e-9,
                "{milliseconds:?}: {counted}"
            );
            assert_eq!(latencies, ended, "{milliseconds:?}");
        }
    }
}
