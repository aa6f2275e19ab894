//! One worker's log of its requests to an object store.
//!
//! Only the time between the warm-up and the end counts, when all workers are busy. With large
//! chunks there are few requests, so a request that lies partly within counts for that share. FinishedCallback
//! ones alone would be too few, and the last ones too fast, since other workers have ended by then.

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
    /// The worker's number.
    pub worker: usize,
    /// Requests that count, by their shares.
    pub counted: f64,
    /// Nanoseconds of each request that ended after the warm-up, retries included.
    pub latencies: Histogram<u64>,
    /// Nanoseconds to the first byte of each of these that got one.
    pub first_bytes: Histogram<u64>,
    /// Requests that ended in each second since the worker began.
    pub each_second: Vec<u64>,
    /// All requests and their errors, those of the warm-up too.
    pub counts: RequestCounts,
    began: Instant,
    window: (Instant, Instant), // what counts lies between
    request: Instant,           // when the last one began
}

/// The time that counts, from a worker's beginning.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Begins to count.
    pub warm_up: Duration,
    /// Stops counting.
    pub end: Duration,
}

impl RequestLog {
    /// Begins the log of a worker now.
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

    /// Begins a request.
    pub(crate) fn begin(&mut self) {
        self.request = Instant::now();
    }

    /// Ends the request.
    pub(crate) fn end(&mut self, done: &CallStats) {
        self.note_end(Instant::now(), done.took, done.first_byte);
    }

    fn note_end(&mut self, now: Instant, took: Duration, first_byte: Option<Duration>) {
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

    /// Ends the log and adds it to all others.
    pub(crate) fn close(mut self, counts: RequestCounts, all: &Mutex<Vec<Self>>) {
        self.counts = counts;
        all.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(self);
    }
}

/// Turns an object store's error into a stage's.
pub(crate) fn failure(error: &ObjectError) -> StageError {
    match error {
        ObjectError::Stopped => StageError::Stopped,
        other => match other.changed() {
            Some(name) => Failure::at(Path::new(name), 0, other.to_string()).into(),
            None => Failure::new(other.to_string()).into(),
        },
    }
}

/// A buffer as the body of a put: nothing is copied, and its memory is freed when the last byte was
/// sent.
pub(crate) fn payload(buffer: Buffer) -> Bytes {
    Bytes::from_owner(OwnedBuffer(buffer))
}

/// A buffer owned by a request.
struct OwnedBuffer(Buffer);

impl AsRef<[u8]> for OwnedBuffer {
    fn as_ref(&self) -> &[u8] {
        self.0.payload()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests of so many milliseconds, one after another from the beginning.
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
            requests.note_end(now, took, Some(took / 2));
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
