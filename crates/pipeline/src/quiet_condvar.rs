//! A condition variable that costs nothing to signal while nobody waits for it.
//!
//! The standard one asks the kernel at every signal. Buffers are handed over thousands of times a
//! second, and mostly to somebody who is at work.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Condvar, MutexGuard, PoisonError};

/// Where those sleep who wait for what a mutex guards to change.
#[derive(Debug, Default)]
pub struct QuietCondvar {
    change: Condvar,
    waiters: AtomicUsize, // read and written with the mutex held
}

impl QuietCondvar {
    /// Sleeps until signalled, or for no reason at all.
    pub fn wait<'a, T>(&self, guarded: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.waiters.fetch_add(1, Relaxed);
        let guarded = self
            .change
            .wait(guarded)
            .unwrap_or_else(PoisonError::into_inner);
        self.waiters.fetch_sub(1, Relaxed);
        guarded
    }

    /// Gives the mutex back after a change that one of those who sleep can use.
    pub fn signal_one<T>(&self, guarded: MutexGuard<'_, T>) {
        let sleeps = self.waiters.load(Relaxed) > 0;
        drop(guarded);
        if sleeps {
            self.change.notify_one();
        }
    }

    /// Gives the mutex back after a change that all who sleep have to look at.
    pub fn signal_all<T>(&self, guarded: MutexGuard<'_, T>) {
        let sleeps = self.waiters.load(Relaxed) > 0;
        drop(guarded);
        if sleeps {
            self.change.notify_all();
        }
    }
}
