//! The histogram for all latencies: HDR, which keeps the leading digits of any value.

use std::time::Duration;

use hdrhistogram::Histogram;

/// Digits kept: a latency is off by at most 1 part in 1,000.
const DIGITS: u8 = 3;
/// Longer latencies are recorded as this.
pub const LONGEST: Duration = Duration::from_secs(3600);

/// An empty histogram of nanoseconds.
#[must_use]
pub fn latencies() -> Histogram<u64> {
    let longest = u64::try_from(LONGEST.as_nanos()).unwrap_or(u64::MAX);
    Histogram::new_with_bounds(1, longest, DIGITS).expect("the bounds are constants that it takes")
}

/// The largest relative error of a latency.
#[must_use]
pub fn error_bound(latencies: &Histogram<u64>) -> f64 {
    10_f64.powi(-i32::from(latencies.sigfig()))
}
