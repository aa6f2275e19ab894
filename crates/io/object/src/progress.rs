//! What ranges receive, as it comes: not only when they are whole.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Bytes so far, and how soon an answer began; for any number of clients.
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
    /// An answer has begun, so long after it was asked for.
    pub fn begun(&self, first_byte: Duration) {
        let nanos = u64::try_from(first_byte.as_nanos()).unwrap_or(u64::MAX);
        self.first_byte_nanos.fetch_min(nanos, Relaxed);
    }

    /// So many bytes more.
    pub fn came(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Relaxed);
    }

    /// All so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// The shortest time to the first byte of any answer: what the way to the store takes, since
    /// whatever else is in the way made the others longer. `None` before any has begun.
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
