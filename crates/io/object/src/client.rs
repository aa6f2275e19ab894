//! One thread's client: calls that block, on a runtime that runs only while one of them waits.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use object_store::aws::AmazonS3;
use object_store::client::HttpClient;
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, PutPayload, Result as StoreResult};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::counters::{Counters, ErrorKind, RequestCounts};
use crate::error::{ObjectError, root_cause};
use crate::hedging::HedgePolicy;
use crate::list_uploads;
use crate::progress::Progress;
use crate::range::{Cursor, Range};
use crate::settings::Settings;
use crate::store;
use crate::upload::{Part, Upload};

/// How often a call that waits looks up whether to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A client with a connection of its own.
#[derive(Debug)]
pub struct Client {
    settings: Settings,
    store: AmazonS3,
    http: HttpClient, // for what the library has no call for
    counts: Arc<Counters>,
    hedge_policy: Option<Arc<HedgePolicy>>,
    progress: Arc<Progress>,
    runtime: Runtime,
}

/// What a call did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallStats {
    /// Bytes of the object that were moved.
    pub bytes: usize,
    /// From the call's beginning to the body's first byte; of what is put there is none.
    pub first_byte: Option<Duration>,
    /// From the call's beginning to its end, repetitions and the pauses before them included.
    pub took: Duration,
    /// How many requests it was.
    pub requests: u64,
}

/// An object that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectInfo {
    /// Its name in the bucket.
    pub key: String,
    /// Its length.
    pub bytes: u64,
    /// What tells it from any other that had its name; `None` if the store does not say.
    pub etag: Option<String>,
}

impl Client {
    /// A client for a bucket. Nothing is asked of it yet.
    ///
    /// # Errors
    /// When the settings cannot be used.
    pub fn new(settings: &Settings) -> Result<Self, ObjectError> {
        let counts = Arc::default();
        let (store, http) = store::connect(settings, &counts)?;
        let runtime = Builder::new_current_thread().enable_all().build();
        Ok(Self {
            settings: settings.clone(),
            store,
            http,
            counts,
            hedge_policy: None,
            progress: Arc::default(),
            runtime: runtime
                .map_err(|why| ObjectError::Settings(format!("starting a runtime: {why}")))?,
        })
    }

    /// The same, which asks a second time for ranges of objects whose ETag is known when they take as
    /// long as the tail of those that it has seen does, or any other client of it.
    #[must_use]
    pub fn hedging(self, hedge_policy: &Arc<HedgePolicy>) -> Self {
        Self {
            hedge_policy: Some(Arc::clone(hedge_policy)),
            ..self
        }
    }

    /// The same, which adds what ranges receive to this.
    #[must_use]
    pub(crate) fn counting(self, progress: &Arc<Progress>) -> Self {
        Self {
            progress: Arc::clone(progress),
            ..self
        }
    }

    /// Fills `memory` with the object's bytes from `offset` on, unless `stopped` says so first. With
    /// an `etag` it has to be the object that has it.
    ///
    /// An answer that is shorter than what was asked for, though it is well, is gone on with, as often
    /// as a request that fails is repeated.
    ///
    /// # Errors
    /// When the request fails for good, the object ends before, or it is another one.
    pub fn get_range(
        &self,
        key: &str,
        etag: Option<&str>,
        offset: u64,
        memory: &mut [u8],
        stopped: impl Fn() -> bool,
    ) -> Result<CallStats, ObjectError> {
        let (began, bytes) = (Instant::now(), memory.len());
        let work = async {
            let range = Range {
                store: &self.store,
                key: path(key)?,
                etag,
                offset,
                retries: self.settings.retries,
                cursor: RefCell::new(Cursor::new(memory, &self.progress)),
            };
            range.get(self.hedge_policy.as_deref(), &self.counts).await
        };
        let (requests, first_byte) = self.wait("getting", key, (&stopped, Duration::ZERO), work)?;
        Ok(CallStats {
            bytes,
            first_byte,
            took: began.elapsed(),
            requests,
        })
    }

    /// Makes `payload` the object, unless `stopped` says so and some seconds have passed since.
    ///
    /// # Errors
    /// When the request fails for good.
    pub fn put(
        &self,
        key: &str,
        payload: Bytes,
        stopped: impl Fn() -> bool,
    ) -> Result<CallStats, ObjectError> {
        let (began, bytes) = (Instant::now(), payload.len());
        let work = async {
            let payload = PutPayload::from_bytes(payload);
            self.store.put(&path(key)?, payload).await
        };
        let (requests, _) = self.wait("putting", key, (&stopped, self.settings.put_grace), work)?;
        Ok(CallStats {
            bytes,
            first_byte: None,
            took: began.elapsed(),
            requests,
        })
    }

    /// Begins an object that will be put in parts, unless `stopped` says so and some seconds have
    /// passed since. It is there once the upload is completed; until it is aborted or completed, its
    /// parts take room.
    ///
    /// # Errors
    /// When the request fails for good.
    pub fn begin_upload(
        &self,
        key: &str,
        stopped: impl Fn() -> bool,
    ) -> Result<Upload, ObjectError> {
        let work = async { self.store.create_multipart(&path(key)?).await };
        let (_, id) = self.wait(
            "beginning to put",
            key,
            (&stopped, self.settings.put_grace),
            work,
        )?;
        let key = key.to_owned();
        Ok(Upload { key, id })
    }

    /// Puts part `number`, counted from 0, unless `stopped` says so and some seconds have passed
    /// since. All but the last part have 5 MiB at least. A number that is put again replaces the
    /// part that had it.
    ///
    /// # Errors
    /// When the request fails for good.
    pub fn put_part(
        &self,
        upload: &Upload,
        number: usize,
        payload: Bytes,
        stopped: impl Fn() -> bool,
    ) -> Result<(Part, CallStats), ObjectError> {
        let (began, bytes) = (Instant::now(), payload.len());
        let work = async {
            let (path, payload) = (path(&upload.key)?, PutPayload::from_bytes(payload));
            self.store
                .put_part(&path, &upload.id, number, payload)
                .await
        };
        let (requests, part) = self.wait(
            "putting a part of",
            &upload.key,
            (&stopped, self.settings.put_grace),
            work,
        )?;
        let done = CallStats {
            bytes,
            first_byte: None,
            took: began.elapsed(),
            requests,
        };
        Ok((Part(part), done))
    }

    /// Makes the parts, which are all from 0 on, the object of so many bytes, unless `stopped` says so
    /// and some seconds have passed since.
    ///
    /// # Errors
    /// When the request fails for good.
    pub fn complete(
        &self,
        upload: &Upload,
        bytes: u64,
        parts: impl IntoIterator<Item = Part>,
        stopped: impl Fn() -> bool,
    ) -> Result<(), ObjectError> {
        let parts = parts.into_iter().map(|Part(part)| part).collect();
        let work = async {
            let path = path(&upload.key)?;
            self.store
                .complete_multipart(&path, &upload.id, parts)
                .await
        };
        match self.wait(
            "completing",
            &upload.key,
            (&stopped, self.settings.put_grace),
            work,
        ) {
            // Repeated since no answer came: it may have been completed all the same.
            Err(ObjectError::Failed {
                requests: 2..,
                kind: ErrorKind::Missing,
                ..
            }) if self
                .find(&upload.key)
                .is_ok_and(|found| found.is_some_and(|found| found.bytes == bytes)) =>
            {
                Ok(())
            }
            ended => ended.map(|_| ()),
        }
    }

    /// Gives an upload up: its parts are gone.
    ///
    /// # Errors
    /// When the request fails for good.
    pub fn abort(&self, upload: &Upload) -> Result<(), ObjectError> {
        let work = async {
            self.store
                .abort_multipart(&path(&upload.key)?, &upload.id)
                .await
        };
        match self.wait("giving up", &upload.key, NEVER, work) {
            // As good as given up.
            Err(ObjectError::Failed {
                kind: ErrorKind::Missing,
                ..
            }) => Ok(()),
            ended => ended.map(|_| ()),
        }
    }

    /// The objects under `prefix/`.
    ///
    /// # Errors
    /// When a request fails for good.
    pub fn list(&self, prefix: &str) -> Result<Vec<ObjectInfo>, ObjectError> {
        let work = async {
            let prefix = path(prefix)?;
            let mut listed = self.store.list(Some(&prefix));
            let mut found = Vec::new();
            while let Some(one) = poll_fn(|context| listed.as_mut().poll_next(context)).await {
                found.push(one?.into());
            }
            Ok(found)
        };
        let began = self.counts.begin();
        let ended = self.block_on(NEVER, work)?;
        let counted = self.counts.end_many(began);
        ended.map_err(|why| self.failed("listing", prefix, &why, counted))
    }

    /// The first uploads under `prefix/` that nobody has completed or given up, as many as the store
    /// tells at once (mostly 1,000), and only then none if there is none; `None` if it does not tell.
    /// Who gives them all up asks again: pages of this list are not told alike by all stores.
    ///
    /// # Errors
    /// When a request fails for good.
    pub fn uploads(&self, prefix: &str) -> Result<Option<Vec<Upload>>, ObjectError> {
        let under = match prefix {
            "" => String::new(),
            folder => format!("{folder}/"),
        };
        let work = list_uploads::first_page(&self.settings, &self.store, &self.http, &under);
        let began = self.counts.begin();
        let ended = self.block_on(NEVER, work)?;
        let counted = self.counts.end_many(began);
        ended.map_err(|why| self.failed("listing uploads to", prefix, &why, counted))
    }

    /// The object of this name, if there is one.
    ///
    /// # Errors
    /// When the request fails for good.
    pub fn find(&self, key: &str) -> Result<Option<ObjectInfo>, ObjectError> {
        let work = async { self.store.head(&path(key)?).await };
        match self.wait("looking at", key, NEVER, work) {
            Ok((_, about)) => Ok(Some(about.into())),
            Err(ObjectError::Failed {
                kind: ErrorKind::Missing,
                ..
            }) => Ok(None),
            Err(why) => Err(why),
        }
    }

    /// Removes an object.
    ///
    /// # Errors
    /// When the request fails for good.
    pub fn remove(&self, key: &str) -> Result<(), ObjectError> {
        let work = async { self.store.delete(&path(key)?).await };
        match self.wait("removing", key, NEVER, work) {
            // As good as removed.
            Err(ObjectError::Failed {
                kind: ErrorKind::Missing,
                ..
            }) => Ok(()),
            ended => ended.map(|_| ()),
        }
    }

    /// All that was asked for so far, or since it was counted.
    #[must_use]
    pub fn counts(&self) -> RequestCounts {
        self.counts.counts()
    }

    /// The same, which is not told again.
    #[must_use]
    pub fn count(&mut self) -> RequestCounts {
        self.counts.take()
    }

    pub(crate) fn is_of(&self, store: &Settings) -> bool {
        self.settings == *store
    }

    /// Waits for the end of one request; gives how many it became, and what it gives.
    fn wait<T>(
        &self,
        doing: &'static str,
        key: &str,
        stop: Stop,
        work: impl Future<Output = StoreResult<T>>,
    ) -> Result<(u64, T), ObjectError> {
        let began = self.counts.begin();
        let ended = self.block_on(stop, work)?;
        let counted = self.counts.end(began, ended.is_ok());
        match ended {
            Ok(given) => Ok((counted.0, given)),
            Err(why) => Err(self.failed(doing, key, &why, counted)),
        }
    }

    fn block_on<T>(
        &self,
        stop: Stop,
        work: impl Future<Output = StoreResult<T>>,
    ) -> Result<StoreResult<T>, ObjectError> {
        let (stopped, grace) = stop;
        self.runtime.block_on(async {
            let mut work = pin!(work);
            let mut asked = None;
            loop {
                if let Ok(ended) = timeout(POLL_INTERVAL, work.as_mut()).await {
                    return Ok(ended);
                }
                if stopped() && asked.get_or_insert_with(Instant::now).elapsed() >= grace {
                    return Err(ObjectError::Stopped);
                }
            }
        })
    }

    fn failed(
        &self,
        doing: &'static str,
        key: &str,
        why: &object_store::Error,
        (requests, kind): (u64, ErrorKind),
    ) -> ObjectError {
        ObjectError::Failed {
            doing,
            name: self.settings.name(key),
            kind,
            what: root_cause(why),
            requests,
        }
    }
}

impl From<ObjectMeta> for ObjectInfo {
    fn from(about: ObjectMeta) -> Self {
        Self {
            key: about.location.into(),
            bytes: about.size,
            etag: about.e_tag,
        }
    }
}

/// Says when to stop, and how long to wait then all the same.
type Stop<'a> = (&'a dyn Fn() -> bool, Duration);

const NEVER: Stop = (&|| false, Duration::ZERO);

fn path(key: &str) -> StoreResult<Path> {
    Ok(Path::parse(key)?)
}
