//! Counts a client's requests and their results.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// No connection could be made.
    Unreachable,
    /// It exceeded the time limit.
    Timeout,
    /// The connection ended before the answer did.
    Broken,
    /// The store asks for fewer requests (429, 503).
    Throttled,
    /// The store failed (any other 5xx).
    Server,
    /// The store rejects the keys, or the keys do not permit this (401, 403).
    Denied,
    /// There is no such object or bucket (404).
    Missing,
    /// The object was replaced (412).
    Changed,
    /// The store does not support this (any other status).
    Refused,
}

impl ErrorKind {
    /// The kind of error of a status; `None` for success.
    pub(crate) fn of_status(status: u16) -> Option<Self> {
        match status {
            200..=299 => None,
            401 | 403 => Some(Self::Denied),
            404 => Some(Self::Missing),
            412 => Some(Self::Changed),
            429 | 503 => Some(Self::Throttled),
            500..=599 => Some(Self::Server),
            _ => Some(Self::Refused),
        }
    }
}

/// Requests and their errors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RequestCounts {
    /// Requests that were sent, or attempted.
    pub requests: u64,
    /// Requests sent because an earlier one had failed.
    pub retries: u64,
    /// Requests sent in addition to an earlier one that was slow.
    pub hedged: u64,
    /// Requests that failed.
    pub errors: BTreeMap<ErrorKind, u64>,
}

impl RequestCounts {
    /// Adds another count.
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.retries += other.retries;
        self.hedged += other.hedged;
        for (kind, count) in &other.errors {
            *self.errors.entry(*kind).or_default() += count;
        }
    }
}

/// Counts that a client and its HTTP service share.
#[derive(Debug, Default)]
pub(crate) struct Counters(Mutex<CounterState>);

#[derive(Debug, Default)]
struct CounterState {
    counts: RequestCounts,
    failed: u64,   // the sum of the errors
    given_up: u64, // neither well nor failed: another was faster
    last: Option<ErrorKind>,
}

/// The counts when an operation began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checkpoint {
    requests: u64,
    hedged: u64,
    ended: u64, // failed, or given up
}

impl Counters {
    /// Counts a request.
    pub fn request(&self) {
        self.lock().counts.requests += 1;
    }

    /// Counts its failure.
    pub fn count_failure(&self, kind: ErrorKind) {
        let mut counted = self.lock();
        counted.failed += 1;
        counted.last = Some(kind);
        *counted.counts.errors.entry(kind).or_default() += 1;
    }

    /// Counts a hedge.
    pub fn hedged(&self) {
        self.lock().counts.hedged += 1;
    }

    /// The current counts, for [`Counters::waits_since`].
    pub fn now(&self) -> Checkpoint {
        self.lock().now()
    }

    /// Whether exactly one request was sent since, and it has not failed.
    pub fn waits_since(&self, began: Checkpoint) -> bool {
        let now = self.now();
        (now.requests - began.requests, now.ended - began.ended) == (1, 0)
    }

    /// Counts a request that nobody awaits any more.
    pub fn given_up(&self) {
        self.lock().given_up += 1;
    }

    /// Begins an operation, of one request if all goes well.
    pub fn begin(&self) -> Checkpoint {
        let mut counted = self.lock();
        counted.last = None;
        counted.now()
    }

    /// Ends an operation of one request, if all goes well. Counts errors that no answer reported:
    /// an answer that begins well and breaks off. Returns the number of requests, and the last
    /// error.
    pub fn end(&self, began: Checkpoint, well: bool) -> (u64, ErrorKind) {
        let mut counted = self.lock();
        let now = counted.now();
        let (sent, hedged) = (now.requests - began.requests, now.hedged - began.hedged);
        let broken = sent.saturating_sub(now.ended - began.ended + u64::from(well));
        if broken > 0 {
            counted.failed += broken;
            counted.last = counted.last.or(Some(ErrorKind::Broken));
            *counted.counts.errors.entry(ErrorKind::Broken).or_default() += broken;
        }
        counted.counts.retries += sent.saturating_sub(1 + hedged);
        (sent, counted.last.unwrap_or(ErrorKind::Refused))
    }

    /// Ends an operation of several requests, of which only the failed ones are known.
    pub fn end_many(&self, began: Checkpoint) -> (u64, ErrorKind) {
        let mut counted = self.lock();
        let now = counted.now();
        let sent = now.requests - began.requests;
        counted.counts.retries += (now.ended - began.ended).min(sent.saturating_sub(1));
        (sent, counted.last.unwrap_or(ErrorKind::Broken))
    }

    /// All counts so far.
    pub fn counts(&self) -> RequestCounts {
        self.lock().counts.clone()
    }

    /// Takes all counts so far; between operations.
    pub fn take(&self) -> RequestCounts {
        std::mem::take(&mut *self.lock()).counts
    }

    fn lock(&self) -> MutexGuard<'_, CounterState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CounterState {
    fn now(&self) -> Checkpoint {
        Checkpoint {
            requests: self.counts.requests,
            hedged: self.counts.hedged,
            ended: self.failed + self.given_up,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_broke_off_is_an_error_that_no_answer_told() {
        let counts = Counters::default();
        let began = counts.begin();
        counts.request();
        counts.count_failure(ErrorKind::Throttled);
        counts.request(); // its body breaks off
        counts.request();
        assert_eq!(counts.end(began, true).0, 3);
        let counts = counts.counts();
        assert_eq!((counts.requests, counts.retries), (3, 2));
        assert_eq!(counts.errors[&ErrorKind::Throttled], 1);
        assert_eq!(counts.errors[&ErrorKind::Broken], 1);
    }

    #[test]
    fn a_last_answer_that_breaks_off_is_one_too() {
        let counts = Counters::default();
        let began = counts.begin();
        counts.request();
        assert_eq!(counts.end(began, false), (1, ErrorKind::Broken));
        assert_eq!(counts.counts().retries, 0);
    }

    #[test]
    fn what_is_refused_before_it_is_sent_is_no_request() {
        let counts = Counters::default();
        let began = counts.begin();
        assert_eq!(counts.end(began, false), (0, ErrorKind::Refused));
        assert_eq!(counts.counts(), RequestCounts::default());
    }

    #[test]
    fn what_is_given_up_since_another_was_faster_is_no_error() {
        let counts = Counters::default();
        let began = counts.begin();
        counts.request();
        counts.count_failure(ErrorKind::Server);
        counts.request();
        counts.hedged();
        counts.request();
        counts.given_up();
        assert_eq!(counts.end(began, true).0, 3);
        let counts = counts.counts();
        assert_eq!((counts.requests, counts.retries, counts.hedged), (3, 1, 1));
        assert_eq!(counts.errors.values().sum::<u64>(), 1);
    }
}
