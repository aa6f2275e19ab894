//! Hedged requests: which requests are sent a second time, and when.
//!
//! A few requests take many times as long as the others, and a caller that needs all of them waits
//! for these. So a request that takes longer than 95 % of those before it is sent a second time
//! (Dean and Barroso, "The Tail at Scale", 2013), of about its length, but
//!
//! - not before twice the median: a new request takes as long itself;
//! - not before one more connection is worth it;
//! - at most one in twenty: where more are slow it is the store, which needs no more requests.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Requests before percentiles mean anything.
const FEWEST: usize = 32;
/// Requests remembered: concurrency changes, and latency with it.
const REMEMBERED: usize = 256;
/// The share of requests that may be hedged, and of those that count as slow.
const ONE_IN: usize = 20;
/// No hedge is sent earlier.
const LEAST: Duration = Duration::from_millis(50);

/// Latencies of requests, of any number of clients, by length: those from one power of two up to
/// the next are alike. A job's first requests sample a few records; they say nothing about the long
/// ones that follow.
#[derive(Debug, Default)]
pub struct HedgePolicy(Mutex<BTreeMap<u32, LatencyHistory>>);

#[derive(Debug, Default)]
struct LatencyHistory {
    last: VecDeque<Duration>,
    requests: usize,
    hedged: usize,
}

impl HedgePolicy {
    /// The time after which a request of `len` bytes is hedged; `None` until that is known.
    pub(crate) fn begins(&self, len: usize) -> Option<Duration> {
        let mut took = self.of(len, |seen| Vec::from(seen.last.clone()));
        if took.len() < FEWEST {
            return None;
        }
        took.sort_unstable();
        let (middle, late) = (took[took.len() / 2], took[took.len() - took.len() / ONE_IN]);
        Some(late.max(2 * middle).max(LEAST))
    }

    /// Whether one more hedge is allowed; counts it then.
    pub(crate) fn grant(&self, len: usize) -> bool {
        self.of(len, |seen| {
            let granted = (seen.hedged + 1) * ONE_IN <= seen.requests;
            seen.hedged += usize::from(granted);
            granted
        })
    }

    /// Records a successful request.
    pub(crate) fn saw(&self, len: usize, took: Duration) {
        self.of(len, |seen| {
            seen.requests += 1;
            seen.last.push_back(took);
            if seen.last.len() > REMEMBERED {
                seen.last.pop_front();
            }
        });
    }

    /// Uses the history of requests of about this length.
    fn of<T>(&self, len: usize, work: impl FnOnce(&mut LatencyHistory) -> T) -> T {
        let mut histories = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        work(histories.entry(len.max(1).ilog2()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: usize = 16 << 20;

    fn after(times: impl IntoIterator<Item = u64>) -> HedgePolicy {
        let hedge_policy = HedgePolicy::default();
        times
            .into_iter()
            .for_each(|one| hedge_policy.saw(LEN, Duration::from_millis(one)));
        hedge_policy
    }

    #[test]
    fn few_requests_have_no_tail() {
        assert_eq!(after(0..FEWEST as u64 - 1).begins(LEN), None);
        assert!(after(0..FEWEST as u64).begins(LEN).is_some());
    }

    #[test]
    fn it_begins_beyond_95_of_100_and_twice_the_middle() {
        let late = after((0..100).map(|one| if one < 90 { 100 } else { 1000 }));
        assert_eq!(late.begins(LEN), Some(Duration::from_millis(1000)));
        let rare = after((0..100).map(|one| if one < 99 { 100 } else { 1000 }));
        assert_eq!(rare.begins(LEN), Some(Duration::from_millis(200)));
        assert_eq!(after([1; 100]).begins(LEN), Some(LEAST));
    }

    #[test]
    fn what_was_long_ago_is_forgotten() {
        let hedge_policy = after((0..2 * REMEMBERED).map(|one| {
            let early = one < REMEMBERED;
            if early { 10_000 } else { 100 }
        }));
        assert_eq!(hedge_policy.begins(LEN), Some(Duration::from_millis(200)));
    }

    #[test]
    fn one_in_twenty_is_granted() {
        let hedge_policy = after([100; 60]);
        let granted = (0..10).filter(|_| hedge_policy.grant(LEN)).count();
        assert_eq!(granted, 3);
    }
    #[test]
    fn short_requests_say_nothing_about_long_ones() {
        let hedge_policy = after([5; 400]);
        for longer in [2 * LEN, 40 * LEN] {
            assert_eq!(hedge_policy.begins(longer), None);
            assert!(!hedge_policy.grant(longer));
        }
        assert_eq!(hedge_policy.begins(LEN + 4096), Some(LEAST));
        assert!(hedge_policy.grant(LEN + 4096));
    }
}
