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
    /// Those of them that were sent since an earlier one took long, beside it.
    pub hedged: u64,
    /// Those of them that failed.
    pub errors: BTreeMap<Trouble, u64>,
}

impl Tally {
    /// Adds another.
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.retries += other.retries;
        self.hedged += other.hedged;
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
    failed: u64,   // the sum of the errors
    given_up: u64, // neither well nor failed: another was faster
    last: Option<Trouble>,
}

/// How much there was when an operation began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Began {
    requests: u64,
    hedged: u64,
    ended: u64, // failed, or given up
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

    /// The same is asked for a second time, beside the first.
    pub fn hedged(&self) {
        self.lock().tally.hedged += 1;
    }

    /// How things stand, for [`Counts::waits_since`].
    pub fn now(&self) -> Began {
        self.lock().now()
    }

    /// Whether one request was sent since, which has not failed.
    pub fn waits_since(&self, began: Began) -> bool {
        let now = self.now();
        (now.requests - began.requests, now.ended - began.ended) == (1, 0)
    }

    /// A request that was sent is not waited for any more.
    pub fn given_up(&self) {
        self.lock().given_up += 1;
    }

    /// An operation begins, of one request if all goes well.
    pub fn begin(&self) -> Began {
        let mut counted = self.lock();
        counted.last = None;
        counted.now()
    }

    /// The operation that began then, of one request if all goes well, has ended: what its answers
    /// did not tell is found out. An answer that begins well and breaks off is a request without an
    /// error. Gives the requests, and why the last that failed did.
    pub fn end(&self, began: Began, well: bool) -> (u64, Trouble) {
        let mut counted = self.lock();
        let now = counted.now();
        let (sent, hedged) = (now.requests - began.requests, now.hedged - began.hedged);
        let broken = sent.saturating_sub(now.ended - began.ended + u64::from(well));
        if broken > 0 {
            counted.failed += broken;
            counted.last = counted.last.or(Some(Trouble::Broken));
            *counted.tally.errors.entry(Trouble::Broken).or_default() += broken;
        }
        counted.tally.retries += sent.saturating_sub(1 + hedged);
        (sent, counted.last.unwrap_or(Trouble::Refused))
    }

    /// The same of an operation of several requests, of which it is known only which failed.
    pub fn end_of_several(&self, began: Began) -> (u64, Trouble) {
        let mut counted = self.lock();
        let now = counted.now();
        let sent = now.requests - began.requests;
        counted.tally.retries += (now.ended - began.ended).min(sent.saturating_sub(1));
        (sent, counted.last.unwrap_or(Trouble::Broken))
    }

    /// All so far.
    pub fn tally(&self) -> Tally {
        self.lock().tally.clone()
    }

    /// The same, which is forgotten; between operations.
    pub fn take(&self) -> Tally {
        std::mem::take(&mut *self.lock()).tally
    }

    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counted {
    fn now(&self) -> Began {
        Began {
            requests: self.tally.requests,
            hedged: self.tally.hedged,
            ended: self.failed + self.given_up,
        }
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

    #[test]
    fn what_is_given_up_since_another_was_faster_is_no_error() {
        let counts = Counts::default();
        let began = counts.begin();
        counts.request();
        counts.failed(Trouble::Server);
        counts.request();
        counts.hedged();
        counts.request();
        counts.given_up();
        assert_eq!(counts.end(began, true).0, 3);
        let tally = counts.tally();
        assert_eq!((tally.requests, tally.retries, tally.hedged), (3, 1, 1));
        assert_eq!(tally.errors.values().sum::<u64>(), 1);
    }
}
