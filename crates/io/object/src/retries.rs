//! The retry policy: how often a request that failed for a transient reason is sent again, and the
//! growing pauses in between. `object_store` follows it, and so does the one request that is sent
//! without it.

use std::time::Duration;

use object_store::{BackoffConfig, RetryConfig};

/// Retries by default. Jobs of thousands of requests set more.
pub(crate) const RETRIES: usize = 4;
/// Pause before the first retry; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Most doublings.
const DOUBLINGS: u32 = 7;

/// The policy for `object_store`, which adds jitter; each attempt has the time limit `patience`.
pub(crate) fn retry_config(retries: usize, patience: Duration) -> RetryConfig {
    RetryConfig {
        max_retries: retries,
        retry_timeout: patience * (1 + retries as u32),
        backoff: BackoffConfig {
            init_backoff: FIRST_PAUSE,
            ..BackoffConfig::default()
        },
    }
}

/// The pauses before each retry.
pub(crate) fn pauses(retries: usize) -> impl Iterator<Item = Duration> {
    (0..retries as u32).map(|time| FIRST_PAUSE * (1 << time.min(DOUBLINGS)))
}
