//! One thread's client: blocking calls, on a runtime that runs only while one of them waits.

use std::cell::RefCell;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use object_store::aws::AmazonS3;
use object_store::client::HttpClient;
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutPayload, Result as StoreResult};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::counters::{Counters, ErrorKind, RequestCounts};
use crate::error::{ObjectError, root_cause};
use crate::hedging::HedgePolicy;
use crate::http::object_list::{self, Listing, ObjectInfo};
use crate::http::signed_page::Lister;
use crate::progress::Progress;
use crate::range::{Cursor, Range};
use crate::settings::Settings;
use crate::store;
use crate::upload::{self, Part, Upload};

/// How often a waiting call checks whether to stop.
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

/// Statistics of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallStats {
    /// Bytes of the object that were moved.
    pub bytes: usize,
    /// Time from the call to the first byte of the body; `None` for a put.
    pub first_byte: Option<Duration>,
    /// Time from the call to its end, retries and the pauses before them included.
    pub took: Duration,
    /// Number of requests.
    pub requests: u64,
}

impl Client {
    /// A client of a bucket. It makes no request yet.
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
                .map_err(|why| ObjectError::Settings(format!("cannot start a runtime: {why}")))?,
        })
    }

    /// The same client, which hedges requests for ranges of objects with a known ETag: it repeats
    /// one that takes as long as the slowest of those that share the policy.
    #[must_use]
    pub fn hedging(self, hedge_policy: &Arc<HedgePolicy>) -> Self {
        Self {
            hedge_policy: Some(Arc::clone(hedge_policy)),
            ..self
        }
    }

    /// The same client, which also counts the bytes that ranges receive.
    #[must_use]
    pub(crate) fn counting(self, progress: &Arc<Progress>) -> Self {
        Self {
            progress: Arc::clone(progress),
            ..self
        }
    }

    /// Fills `memory` with the object's bytes from `offset` on, unless `stopped` returns true. With
    /// an `etag` the object has to have it.
    ///
    /// A successful but short answer is continued, as often as a failed request is retried.
    ///
    /// # Errors
    /// When the request fails for good, the object is shorter, or it has another ETag.
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

    /// Makes `payload` the object, unless `stopped` returns true and some seconds have passed
    /// since.
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

    /// Begins a multipart upload, unless `stopped` returns true and some seconds have passed since.
    /// The object exists once the upload is completed; until it is completed or aborted, its parts
    /// take space.
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

    /// Puts part `number`, counted from 0, unless `stopped` returns true and some seconds have
    /// passed since. All parts except the last have at least 5 MiB. A number that is put again
    /// replaces the previous part.
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

    /// Makes the parts, numbered from 0, the object of so many bytes, unless `stopped` returns true
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
            // Retried since no answer came, but the first request may have completed it.
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

    /// Aborts an upload and removes its parts.
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
            // It is gone already.
            Err(ObjectError::Failed {
                kind: ErrorKind::Missing,
                ..
            }) => Ok(()),
            ended => ended.map(|_| ()),
        }
    }

    /// The objects under `prefix/` that can be read, by their names.
    ///
    /// # Errors
    /// When a request fails for good.
    pub fn list(&self, prefix: &str) -> Result<Vec<ObjectInfo>, ObjectError> {
        self.list_all(prefix).map(|listing| listing.objects)
    }

    /// The same, and the names of those that cannot be read.
    ///
    /// # Errors
    /// When a request fails for good.
    pub fn list_all(&self, prefix: &str) -> Result<Listing, ObjectError> {
        let under = folder_of(prefix);
        let work = object_list::all(self.lister(), &under);
        let began = self.counts.begin();
        let ended = self.block_on(NEVER, work)?;
        let counted = self.counts.end_many(began);
        ended.map_err(|why| self.request_error("listing", prefix, &why, counted))
    }

    /// The first incomplete uploads under `prefix/`, as many as the store lists at once (usually
    /// 1,000); empty only if there are none, `None` if the store does not list them. To abort them
    /// all, ask again: stores differ in how they continue this list.
    ///
    /// # Errors
    /// When a request fails for good.
    pub fn uploads(&self, prefix: &str) -> Result<Option<Vec<Upload>>, ObjectError> {
        let under = folder_of(prefix);
        let work = upload::list::first_page(self.lister(), &under);
        let began = self.counts.begin();
        let ended = self.block_on(NEVER, work)?;
        let counted = self.counts.end_many(began);
        ended.map_err(|why| self.request_error("listing uploads to", prefix, &why, counted))
    }

    /// The object of this name, if it exists.
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
            // It is gone already.
            Err(ObjectError::Failed {
                kind: ErrorKind::Missing,
                ..
            }) => Ok(()),
            ended => ended.map(|_| ()),
        }
    }

    /// Requests since the beginning, or since `count`.
    #[must_use]
    pub fn counts(&self) -> RequestCounts {
        self.counts.counts()
    }

    /// Takes the requests so far out of the count.
    #[must_use]
    pub fn count(&mut self) -> RequestCounts {
        self.counts.take()
    }

    fn lister(&self) -> Lister<'_> {
        Lister {
            settings: &self.settings,
            store: &self.store,
            http: &self.http,
        }
    }

    pub(crate) fn is_of(&self, store: &Settings) -> bool {
        self.settings == *store
    }

    /// Waits for the end of one operation; returns its number of requests, and its result.
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
            Err(why) => Err(self.request_error(doing, key, &why, counted)),
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

    fn request_error(
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

/// Tells when to stop, and how long to wait after that.
type Stop<'a> = (&'a dyn Fn() -> bool, Duration);

const NEVER: Stop = (&|| false, Duration::ZERO);

fn path(key: &str) -> StoreResult<Path> {
    Ok(Path::parse(key)?)
}

/// What the names of objects below a prefix begin with.
fn folder_of(prefix: &str) -> String {
    match prefix {
        "" => String::new(),
        folder => format!("{folder}/"),
    }
}
