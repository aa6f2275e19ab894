//! What a client asked for and what became of it, request by request.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Trouble {
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

impl Trouble {
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
pub struct Tally {
    /// Requests that were sent, or tried to be.
    pub requests: u64,
    /// Those of them that were sent since an earlier one had failed.
    pub retries: u64,
    /// Those of them that failed.
    pub errors: BTreeMap<Trouble, u64>,
}

impl Tally {
    /// Adds another.
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.retries += other.retries;
        for (trouble, count) in &other.errors {
            *self.errors.entry(*trouble).or_default() += count;
        }
    }
}

/// A tally that a client and its HTTP service share.
#[derive(Debug, Default)]
pub(crate) struct Counts(Mutex<Counted>);

#[derive(Debug, Default)]
struct Counted {
    tally: Tally,
    failed: u64, // the sum of the errors
    last: Option<Trouble>,
}

impl Counts {
    /// A request is sent.
    pub fn request(&self) {
        self.lock().tally.requests += 1;
    }

    /// It failed.
    pub fn failed(&self, trouble: Trouble) {
        let mut counted = self.lock();
        counted.failed += 1;
        counted.last = Some(trouble);
        *counted.tally.errors.entry(trouble).or_default() += 1;
    }

    /// An operation begins, of one request if all goes well.
    pub fn begin(&self) -> (u64, u64) {
        let mut counted = self.lock();
        counted.last = None;
        (counted.tally.requests, counted.failed)
    }

    /// The operation that began then, of one request if all goes well, has ended: what its answers
    /// did not tell is found out. An answer that begins well and breaks off is a request without an
    /// error. Gives the requests, and why the last that failed did.
    pub fn end(&self, began: (u64, u64), well: bool) -> (u64, Trouble) {
        let (sent, told) = self.since(began);
        let broken = sent.saturating_sub(told + u64::from(well));
        let mut counted = self.lock();
        if broken > 0 {
            counted.failed += broken;
            counted.last = counted.last.or(Some(Trouble::Broken));
            *counted.tally.errors.entry(Trouble::Broken).or_default() += broken;
        }
        counted.tally.retries += sent.saturating_sub(1);
        (sent, counted.last.unwrap_or(Trouble::Refused))
    }

    /// The same of an operation of several requests, of which it is known only which failed.
    pub fn end_of_several(&self, began: (u64, u64)) -> (u64, Trouble) {
        let (sent, told) = self.since(began);
        let mut counted = self.lock();
        counted.tally.retries += told.min(sent.saturating_sub(1));
        (sent, counted.last.unwrap_or(Trouble::Broken))
    }

    fn since(&self, began: (u64, u64)) -> (u64, u64) {
        let counted = self.lock();
        (counted.tally.requests - began.0, counted.failed - began.1)
    }

    /// All so far.
    pub fn tally(&self) -> Tally {
        self.lock().tally.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_broke_off_is_an_error_that_no_answer_told() {
        let counts = Counts::default();
        let began = counts.begin();
        counts.request();
        counts.failed(Trouble::Throttled);
        counts.request(); // its body breaks off
        counts.request();
        assert_eq!(counts.end(began, true).0, 3);
        let tally = counts.tally();
        assert_eq!((tally.requests, tally.retries), (3, 2));
        assert_eq!(tally.errors[&Trouble::Throttled], 1);
        assert_eq!(tally.errors[&Trouble::Broken], 1);
    }

    #[test]
    fn a_last_answer_that_breaks_off_is_one_too() {
        let counts = Counts::default();
        let began = counts.begin();
        counts.request();
        assert_eq!(counts.end(began, false), (1, Trouble::Broken));
        assert_eq!(counts.tally().retries, 0);
    }

    #[test]
    fn what_is_refused_before_it_is_sent_is_no_request() {
        let counts = Counts::default();
        let began = counts.begin();
        assert_eq!(counts.end(began, false), (0, Trouble::Refused));
        assert_eq!(counts.tally(), Tally::default());
    }
}
