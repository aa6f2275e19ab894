//! Hedged requests: which requests are sent a second time, and when.
//!
//! A few requests take many times as long as the others, and a caller that needs all of them waits
//! for these. So a request that takes longer than 95 % of those before it is sent a second time
//! (Dean and Barroso, "The Tail at Scale", 2013), but
//!
//! - not before twice the median: a new request takes as long itself;
//! - not before one more connection is worth it;
//! - at most one in twenty: where more are slow it is the store, which needs no more requests.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Requests before percentiles mean anything.
const FEWEST: usize = 32;
/// Requests remembered: concurrency changes, and latency with it.
const REMEMBERED: usize = 256;
/// The share of requests that may be hedged, and of those that count as slow.
const ONE_IN: usize = 20;
/// No hedge is sent earlier.
const LEAST: Duration = Duration::from_millis(50);

/// Latencies of requests of similar length, of any number of clients.
#[derive(Debug, Default)]
pub struct HedgePolicy(Mutex<LatencyHistory>);

#[derive(Debug, Default)]
struct LatencyHistory {
    last: VecDeque<Duration>,
    requests: usize,
    hedged: usize,
}

impl HedgePolicy {
    /// The time after which a request is hedged; `None` until that is known.
    pub(crate) fn begins(&self) -> Option<Duration> {
        let mut took = Vec::from(self.lock().last.clone());
        if took.len() < FEWEST {
            return None;
        }
        took.sort_unstable();
        let (middle, late) = (took[took.len() / 2], took[took.len() - took.len() / ONE_IN]);
        Some(late.max(2 * middle).max(LEAST))
    }

    /// Whether one more hedge is allowed; counts it then.
    pub(crate) fn grant(&self) -> bool {
        let mut seen = self.lock();
        let granted = (seen.hedged + 1) * ONE_IN <= seen.requests;
        seen.hedged += usize::from(granted);
        granted
    }

    /// Records a successful request.
    pub(crate) fn saw(&self, took: Duration) {
        let mut seen = self.lock();
        seen.requests += 1;
        seen.last.push_back(took);
        if seen.last.len() > REMEMBERED {
            seen.last.pop_front();
        }
    }

    fn lock(&self) -> MutexGuard<'_, LatencyHistory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(times: impl IntoIterator<Item = u64>) -> HedgePolicy {
        let hedge_policy = HedgePolicy::default();
        times
            .into_iter()
            .for_each(|one| hedge_policy.saw(Duration::from_millis(one)));
        hedge_policy
    }

    #[test]
    fn few_requests_have_no_tail() {
        assert_eq!(after(0..FEWEST as u64 - 1).begins(), None);
        assert!(after(0..FEWEST as u64).begins().is_some());
    }

    #[test]
    fn it_begins_beyond_95_of_100_and_twice_the_middle() {
        let late = after((0..100).map(|one| if one < 90 { 100 } else { 1000 }));
        assert_eq!(late.begins(), Some(Duration::from_millis(1000)));
        let rare = after((0..100).map(|one| if one < 99 { 100 } else { 1000 }));
        assert_eq!(rare.begins(), Some(Duration::from_millis(200)));
        assert_eq!(after([1; 100]).begins(), Some(LEAST));
    }

    #[test]
    fn what_was_long_ago_is_forgotten() {
        let hedge_policy = after((0..2 * REMEMBERED).map(|one| {
            let early = one < REMEMBERED;
            if early { 10_000 } else { 100 }
        }));
        assert_eq!(hedge_policy.begins(), Some(Duration::from_millis(200)));
    }

    #[test]
    fn one_in_twenty_is_granted() {
        let hedge_policy = after([100; 60]);
        let granted = (0..10).filter(|_| hedge_policy.grant()).count();
        assert_eq!(granted, 3);
    }
}
