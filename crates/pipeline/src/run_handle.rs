//! Cancels a run and shows its progress, from any thread.
//!
//! Stopping sets one flag and wakes every queue and pool, so that no worker waits on.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

use crate::buffer::Pool;
use crate::edge::Edge;

/// Cancels and watches a run; clones share it.
#[derive(Clone, Debug, Default)]
pub struct RunHandle {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    cancelled: AtomicBool,
    stopped: AtomicBool,
    done_bytes: AtomicU64,
    waiters: Mutex<Vec<Waiter>>,
}

#[derive(Debug)]
pub(crate) enum Waiter {
    Edge(Arc<Edge>),
    Pool(Arc<Pool>),
}

impl RunHandle {
    /// Asks the run, and any later one under this handle, to end.
    pub fn cancel(&self) {
        self.shared.cancelled.store(true, SeqCst);
        self.stop();
    }

    /// Whether `cancel` was called.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.shared.cancelled.load(SeqCst)
    }

    /// Bytes that the last stages of all runs under this handle have processed.
    #[must_use]
    pub fn done_bytes(&self) -> u64 {
        self.shared.done_bytes.load(SeqCst)
    }

    /// Publishes the progress that a running graph has made under this handle.
    pub(crate) fn set_done_bytes(&self, bytes: u64) {
        self.shared.done_bytes.store(bytes, SeqCst);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.shared.stopped.load(SeqCst)
    }

    pub(crate) fn stop(&self) {
        self.shared.stopped.store(true, SeqCst);
        for sleeper in self.waiters().iter() {
            match sleeper {
                Waiter::Edge(edge) => edge.wake(),
                Waiter::Pool(pool) => pool.wake(),
            }
        }
    }

    pub(crate) fn begin(&self, waiters: Vec<Waiter>) {
        *self.waiters() = waiters;
        // In this order, so that a cancel between the two stores is not lost.
        self.shared.stopped.store(false, SeqCst);
        if self.is_cancelled() {
            self.shared.stopped.store(true, SeqCst);
        }
    }

    fn waiters(&self) -> std::sync::MutexGuard<'_, Vec<Waiter>> {
        self.shared
            .waiters
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
