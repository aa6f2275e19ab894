//! Bytes that ranges have received so far, complete or not.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Bytes so far, and the shortest time to a first byte, of any number of clients.
#[derive(Debug)]
pub(crate) struct Progress {
    bytes: AtomicU64,
    first_byte_nanos: AtomicU64, // the shortest
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            bytes: AtomicU64::new(0),
            first_byte_nanos: AtomicU64::new(u64::MAX),
        }
    }
}

impl Progress {
    /// An answer has begun, so long after its request.
    pub fn begun(&self, first_byte: Duration) {
        let nanos = u64::try_from(first_byte.as_nanos()).unwrap_or(u64::MAX);
        self.first_byte_nanos.fetch_min(nanos, Relaxed);
    }

    /// Counts bytes.
    pub fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Relaxed);
    }

    /// Bytes so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// The shortest time to a first byte. It estimates the latency of the store, since other delays
    /// only add to it. `None` before the first answer.
    pub fn first_byte(&self) -> Option<Duration> {
        let nanos = self.first_byte_nanos.load(Relaxed);
        (nanos < u64::MAX).then_some(Duration::from_nanos(nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_time_to_a_first_byte_is_kept() {
        let progress = Progress::default();
        assert_eq!(progress.first_byte(), None);
        for millis in [7, 3, 9] {
            progress.begun(Duration::from_millis(millis));
        }
        assert_eq!(progress.first_byte(), Some(Duration::from_millis(3)));
    }
}
