//! A condition variable that costs nothing to signal while nobody waits.
//!
//! The standard one enters the kernel at every signal. Buffers are handed over thousands of times a
//! second, mostly to a worker that is busy.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Condvar, MutexGuard, PoisonError};

/// Lets threads sleep until what a mutex guards has changed.
#[derive(Debug, Default)]
pub struct QuietCondvar {
    change: Condvar,
    waiters: AtomicUsize, // read and written with the mutex held
}

impl QuietCondvar {
    /// Sleeps until signalled, or wakes spuriously.
    pub fn wait<'a, T>(&self, guarded: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.waiters.fetch_add(1, Relaxed);
        let guarded = self
            .change
            .wait(guarded)
            .unwrap_or_else(PoisonError::into_inner);
        self.waiters.fetch_sub(1, Relaxed);
        guarded
    }

    /// Releases the mutex after a change that one sleeper can use.
    pub fn signal_one<T>(&self, guarded: MutexGuard<'_, T>) {
        let sleeps = self.waiters.load(Relaxed) > 0;
        drop(guarded);
        if sleeps {
            self.change.notify_one();
        }
    }

    /// Releases the mutex after a change that all sleepers have to see.
    pub fn signal_all<T>(&self, guarded: MutexGuard<'_, T>) {
        let sleeps = self.waiters.load(Relaxed) > 0;
        drop(guarded);
        if sleeps {
            self.change.notify_all();
        }
    }
}
