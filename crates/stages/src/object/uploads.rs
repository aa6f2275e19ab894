//! Objects that any number of workers write in parts: S3's multipart uploads.
//!
//! A block is a part, so nothing is gathered or copied, and parts of one object are uploaded
//! concurrently. An object becomes visible, whole, when its upload is completed: either each when
//! its last part was put, or all at the end, once they are known to be right. Uploads that were not
//! completed are aborted when the last owner drops them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use bytes::Bytes;
use tonnage_object::{Client, ObjectError, Part, Settings, Upload};
use tonnage_pipeline::Buffer;

use crate::object::access::ObjectAccess;
use crate::object::request_log::payload;
use crate::output_file::{FilePaths, OutputFile};

/// A request's time limit is for parts of this size; a longer one has as much more time.
const TIMED_BYTES: usize = 16 << 20;
/// Limits for aborting an upload on drop: nobody is left to report a failure to.
const LAST_PATIENCE_SECONDS: f64 = 10.0;
const LAST_RETRIES: usize = 2;

/// When objects become visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seal {
    /// Each when all of its parts were put.
    EachWhenWhole,
    /// All when [`Uploads::complete`] is called.
    AllTogether,
}

/// Objects that are being uploaded.
#[derive(Debug)]
pub struct Uploads {
    store: Settings,
    names: Arc<FilePaths>,
    lengths: Vec<u64>, // if they are known
    part_bytes: usize,
    seal: Seal,
    requests: ObjectAccess,
    states: Mutex<BTreeMap<usize, Arc<Mutex<State>>>>,
}

/// How far an object is.
#[derive(Debug, Default)]
struct State {
    upload: Option<Upload>, // while there is something to be given up
    parts: BTreeMap<usize, Part>,
    put_bytes: u64,
    end: Option<u64>, // its length, once its last block told it
    sealed: bool,     // its completion was requested: the object may exist
}

impl Uploads {
    /// Objects, named by their paths, from blocks of `part_bytes` (the last one may be shorter).
    /// `requests` limits concurrent requests, and counts them.
    #[must_use]
    pub fn new(
        store: &Settings,
        objects: Vec<OutputFile>,
        part_bytes: usize,
        seal: Seal,
        requests: ObjectAccess,
    ) -> Self {
        let lengths = objects.iter().map(|object| object.bytes).collect();
        let names = objects.into_iter().map(|object| object.path).collect();
        let names = Arc::new(FilePaths::new(names));
        let mut uploads = Self::growing(store, names, part_bytes, seal, requests);
        uploads.lengths = lengths;
        uploads
    }

    /// Objects whose lengths only their last blocks tell.
    #[must_use]
    pub fn growing(
        store: &Settings,
        names: Arc<FilePaths>,
        part_bytes: usize,
        seal: Seal,
        requests: ObjectAccess,
    ) -> Self {
        let longer = (part_bytes as f64 / TIMED_BYTES as f64).max(1.0);
        Self {
            store: Settings {
                patience_seconds: store.patience_seconds * longer,
                ..store.clone()
            },
            names,
            lengths: Vec::new(),
            part_bytes,
            seal,
            requests,
            states: Mutex::default(),
        }
    }

    /// Bytes that were put of an object so far.
    #[must_use]
    pub fn put_bytes_of(&self, number: usize) -> u64 {
        lock(&self.state(number)).put_bytes
    }

    /// Bytes that were put so far.
    #[must_use]
    pub fn put_bytes(&self) -> u64 {
        let of = |number| lock(&self.state(number)).put_bytes;
        (0..self.objects()).map(of).sum()
    }

    /// How many objects there are.
    #[must_use]
    pub fn objects(&self) -> usize {
        self.names.count()
    }

    /// Bytes of the objects whose lengths are known before.
    #[must_use]
    pub fn known_bytes(&self) -> u64 {
        self.lengths.iter().sum()
    }

    /// A client for a worker.
    pub(crate) fn client(&self) -> Result<Client, ObjectError> {
        Client::new(&self.store)
    }

    /// Counts what a worker's client did.
    pub(crate) fn count(&self, client: &Client) {
        self.requests.count(&client.counts());
    }

    /// Puts a block; returns whether its object is complete now.
    pub(crate) fn put(
        &self,
        client: &Client,
        block: Buffer,
        stopped: impl Fn() -> bool,
    ) -> Result<bool, ObjectError> {
        let (number, len) = (block.number, block.len as u64);
        let part_number = (block.offset / self.part_bytes as u64) as usize;
        let shared = self.state(number);
        let mut state = lock(&shared);
        if block.is_last {
            state.end = Some(block.offset + len);
        }
        let known = self.lengths.get(number).copied();
        if known.or(state.end) == Some(len) && self.seal == Seal::EachWhenWhole {
            drop(state);
            // One request instead of three.
            client.put(&self.key(number), payload(block), stopped)?;
            lock(&shared).put_bytes = len;
            return Ok(true);
        }
        // A block without bytes is no part; it only tells that its object has ended.
        if len > 0 {
            drop(state);
            let upload = self.begun(client, number, &stopped)?;
            let (part, _) = client.put_part(&upload, part_number, payload(block), &stopped)?;
            state = lock(&shared);
            state.parts.insert(part_number, part);
            state.put_bytes += len;
        }
        let length = known.or(state.end);
        let is_whole = length == Some(state.put_bytes) && self.seal == Seal::EachWhenWhole;
        drop(state);
        if is_whole {
            self.complete_one(client, number, stopped)?;
        }
        Ok(is_whole)
    }

    /// The object's upload. The first part begins it; other workers wait for that request as for
    /// one of their own.
    fn begun(
        &self,
        client: &Client,
        number: usize,
        stopped: impl Fn() -> bool,
    ) -> Result<Upload, ObjectError> {
        let state = self.state(number);
        let mut state = lock(&state);
        if let Some(upload) = &state.upload {
            return Ok(upload.clone());
        }
        let upload = client.begin_upload(&self.key(number), stopped)?;
        state.upload = Some(upload.clone());
        Ok(upload)
    }

    fn complete_one(
        &self,
        client: &Client,
        number: usize,
        stopped: impl Fn() -> bool,
    ) -> Result<(), ObjectError> {
        let state = self.state(number);
        let mut state = lock(&state);
        state.sealed = true;
        if let Some(upload) = &state.upload {
            let parts = state.parts.values().cloned();
            client.complete(upload, state.put_bytes, parts, stopped)?;
            state.upload = None;
        } else if state.parts.is_empty() && self.seal == Seal::AllTogether {
            client.put(&self.key(number), Bytes::new(), stopped)?;
        }
        Ok(())
    }

    /// Completes all objects. If one fails, or `stopped` returns true, none stays.
    ///
    /// # Errors
    /// The first failure.
    pub fn complete(&self, stopped: impl Fn() -> bool + Sync) -> Result<(), ObjectError> {
        let complete = |client: &Client, number| match stopped() {
            true => Err(ObjectError::Stopped),
            false => self.complete_one(client, number, &stopped),
        };
        self.each(&self.store, complete).inspect_err(|_| {
            let _may_stay = self.take_back();
        })
    }

    /// Removes objects that were completed, or may have been although no answer said so.
    ///
    /// # Errors
    /// When the store cannot be used at all.
    pub fn take_back(&self) -> Result<(), ObjectError> {
        self.each(&self.store, |client, number| {
            let state = self.state(number);
            let state = lock(&state);
            if !state.sealed {
                return Ok(());
            }
            // First, so that it cannot be completed after its object was removed.
            if let Some(upload) = &state.upload {
                let _there_is_none = client.abort(upload);
            }
            let _may_stay = client.remove(&self.key(number)); // The others may go all the same.
            Ok(())
        })
    }

    /// Applies `work` to each object, several at once, up to the first failure.
    fn each(
        &self,
        store: &Settings,
        work: impl Fn(&Client, usize) -> Result<(), ObjectError> + Sync,
    ) -> Result<(), ObjectError> {
        let next = AtomicUsize::new(0);
        let some = || {
            let client = Client::new(store)?;
            let numbers = std::iter::repeat_with(|| next.fetch_add(1, Relaxed));
            let mut numbers = numbers.take_while(|&number| number < self.objects());
            let ended = numbers.try_for_each(|number| work(&client, number));
            self.count(&client);
            ended.inspect_err(|_| next.store(self.objects(), Relaxed))
        };
        thread::scope(|scope| {
            let workers = self.requests.requests.clamp(1, self.objects().max(1));
            let running: Vec<_> = (0..workers).map(|_| scope.spawn(some)).collect();
            let ended = running
                .into_iter()
                .map(|worker| worker.join().expect("it does not panic"));
            // Wait for all, then report the first failure.
            ended.collect::<Vec<_>>().into_iter().collect()
        })
    }

    fn key(&self, number: usize) -> String {
        let name = self.names.get(number).into_os_string().into_string();
        name.expect("names of objects are made of text")
    }

    fn state(&self, number: usize) -> Arc<Mutex<State>> {
        Arc::clone(lock(&self.states).entry(number).or_default())
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Uploads {
    fn drop(&mut self) {
        let open = |number: usize| lock(&self.state(number)).upload.clone();
        if (0..self.objects()).all(|number| open(number).is_none()) {
            return;
        }
        let store = Settings {
            retries: self.store.retries.min(LAST_RETRIES),
            patience_seconds: self.store.patience_seconds.min(LAST_PATIENCE_SECONDS),
            ..self.store.clone()
        };
        let _stays = self.each(&store, |client, number| match open(number) {
            Some(upload) => match client.abort(&upload) {
                // A store that does not answer will not answer for the next upload either.
                Err(why) if why.is_unresponsive() => Err(why),
                _ => Ok(()),
            },
            None => Ok(()),
        });
    }
}
