//! What a client asked for and what became of it, request by request.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// No connection came about.
    Unreachable,
    /// It took longer than the patience.
    Timeout,
    /// The connection ended before the answer did.
    Broken,
    /// The store asks for fewer requests (429, 503).
    Throttled,
    /// The store failed (any other 5xx).
    Server,
    /// The store does not accept the keys, or does not allow this with them (401, 403).
    Denied,
    /// There is no such object or bucket (404).
    Missing,
    /// It is not the object any more that it was (412).
    Changed,
    /// The store does not do this (any other answer).
    Refused,
}

impl ErrorKind {
    /// What an answer's status means; `None` if it is well.
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
    /// Requests that were sent, or tried to be.
    pub requests: u64,
    /// Those of them that were sent since an earlier one had failed.
    pub retries: u64,
    /// Those of them that were sent since an earlier one took long, beside it.
    pub hedged: u64,
    /// Those of them that failed.
    pub errors: BTreeMap<ErrorKind, u64>,
}

impl RequestCounts {
    /// Adds another.
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.retries += other.retries;
        self.hedged += other.hedged;
        for (kind, count) in &other.errors {
            *self.errors.entry(*kind).or_default() += count;
        }
    }
}

/// A tally that a client and its HTTP service share.
#[derive(Debug, Default)]
pub(crate) struct Counters(Mutex<CounterState>);

#[derive(Debug, Default)]
struct CounterState {
    counts: RequestCounts,
    failed: u64,   // the sum of the errors
    given_up: u64, // neither well nor failed: another was faster
    last: Option<ErrorKind>,
}

/// How much there was when an operation began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checkpoint {
    requests: u64,
    hedged: u64,
    ended: u64, // failed, or given up
}

impl Counters {
    /// A request is sent.
    pub fn request(&self) {
        self.lock().counts.requests += 1;
    }

    /// It failed.
    pub fn failed(&self, kind: ErrorKind) {
        let mut counted = self.lock();
        counted.failed += 1;
        counted.last = Some(kind);
        *counted.counts.errors.entry(kind).or_default() += 1;
    }

    /// The same is asked for a second time, beside the first.
    pub fn hedged(&self) {
        self.lock().counts.hedged += 1;
    }

    /// How things stand, for [`Counters::waits_since`].
    pub fn now(&self) -> Checkpoint {
        self.lock().now()
    }

    /// Whether one request was sent since, which has not failed.
    pub fn waits_since(&self, began: Checkpoint) -> bool {
        let now = self.now();
        (now.requests - began.requests, now.ended - began.ended) == (1, 0)
    }

    /// A request that was sent is not waited for any more.
    pub fn given_up(&self) {
        self.lock().given_up += 1;
    }

    /// An operation begins, of one request if all goes well.
    pub fn begin(&self) -> Checkpoint {
        let mut counted = self.lock();
        counted.last = None;
        counted.now()
    }

    /// The operation that began then, of one request if all goes well, has ended: what its answers
    /// did not tell is found out. An answer that begins well and breaks off is a request without an
    /// error. Gives the requests, and why the last that failed did.
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

    /// The same of an operation of several requests, of which it is known only which failed.
    pub fn end_many(&self, began: Checkpoint) -> (u64, ErrorKind) {
        let mut counted = self.lock();
        let now = counted.now();
        let sent = now.requests - began.requests;
        counted.counts.retries += (now.ended - began.ended).min(sent.saturating_sub(1));
        (sent, counted.last.unwrap_or(ErrorKind::Broken))
    }

    /// All so far.
    pub fn counts(&self) -> RequestCounts {
        self.lock().counts.clone()
    }

    /// The same, which is forgotten; between operations.
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
        counts.failed(ErrorKind::Throttled);
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
        counts.failed(ErrorKind::Server);
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
