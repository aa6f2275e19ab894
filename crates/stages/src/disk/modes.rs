//! How the disk queues of a graph were really used, collected as their workers end.

use std::sync::{Mutex, PoisonError};

use tonnage_disk::Mode;

/// The modes of a graph's disk queues.
#[derive(Debug, Default)]
pub struct DiskModes(Mutex<Vec<Mode>>);

impl DiskModes {
    /// Notes one queue's mode.
    pub fn note(&self, mode: Mode) {
        let mut modes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !modes.contains(&mode) {
            modes.push(mode);
        }
    }

    /// The distinct modes.
    #[must_use]
    pub fn distinct(&self) -> Vec<Mode> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
