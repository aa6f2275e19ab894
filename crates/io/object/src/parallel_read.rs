//! Reads ranges of any object, each by several concurrent requests, straight into one place:
//! MATE-EC2's threaded retrieval, for readers that decide as they go what to read next.
//!
//! A range is divided evenly, so that its last part is not awaited longer than the others. Clients
//! are kept for the next range, since their connections are.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::client_pool::ClientPool;
use crate::counters::RequestCounts;
use crate::error::ObjectError;
use crate::settings::Settings;

/// The shortest part worth a request of its own: with 40 ms to the first byte and 85 MB/s, transfer
/// is a quarter of the request's time.
const RANGE_BYTES: usize = 1 << 20;

/// Reads ranges of objects, from any number of threads.
#[derive(Debug)]
pub struct ParallelReader {
    store: Settings,
    at_once: usize,
    clients: ClientPool,
    counts: Mutex<RequestCounts>,
    stopped: AtomicBool,
}

impl ParallelReader {
    /// For a store, whose bucket each call names, with so many concurrent requests per range.
    #[must_use]
    pub fn new(store: &Settings, at_once: usize) -> Self {
        Self {
            store: store.clone(),
            at_once: at_once.max(1),
            clients: ClientPool::default(),
            counts: Mutex::default(),
            stopped: AtomicBool::new(false),
        }
    }

    /// Fills `memory` with the object's bytes from `offset` on; see [`Client::get_range`].
    ///
    /// # Errors
    /// The first failure, or that it was stopped.
    pub fn read(
        &self,
        bucket: &str,
        key: &str,
        etag: Option<&str>,
        offset: u64,
        memory: &mut [u8],
    ) -> Result<(), ObjectError> {
        let count = memory.len().div_ceil(RANGE_BYTES).clamp(1, self.at_once);
        let len = memory.len().div_ceil(count).max(1);
        let failed = AtomicBool::new(false);
        let store = Settings {
            bucket: bucket.to_owned(),
            ..self.store.clone()
        };
        let get = |(offset, part): (u64, &mut [u8])| {
            let mut client = self.clients.take(&store)?;
            let stopped = || self.stopped.load(Relaxed) || failed.load(Relaxed);
            let got = client.get_range(key, etag, offset, part, stopped);
            self.lock().add(&client.count());
            self.clients.give(client);
            got.map(drop).inspect_err(|_| failed.store(true, Relaxed))
        };
        thread::scope(|scope| {
            let mut parts = (offset..).step_by(len).zip(memory.chunks_mut(len));
            let Some(first) = parts.next() else {
                return Ok(());
            };
            let others: Vec<_> = parts.map(|part| scope.spawn(|| get(part))).collect();
            let others = std::iter::once(get(first)).chain(
                others
                    .into_iter()
                    .map(|one| one.join().expect("it does not panic")),
            );
            let ended: Vec<_> = others.collect(); // Waits for all.
            let why = |of: &Result<(), ObjectError>| matches!(of, Err(ObjectError::Stopped));
            // Parts that were stopped because one failed say less than that one.
            let (stopped, message): (Vec<_>, Vec<_>) = ended.into_iter().partition(why);
            message.into_iter().chain(stopped).collect()
        })
    }

    /// Makes all current and later reads fail.
    pub fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }

    /// Requests of reads that have ended.
    #[must_use]
    pub fn counts(&self) -> RequestCounts {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, RequestCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
