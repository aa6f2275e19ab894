//! Chunks of objects and files on demand, in the memory that they were retrieved into.
//!
//! ```text
//!   requests ..> retrieve -chunks-> lend ..> chunks
//! ```
//!
//! The host requests chunk by chunk (MATE-EC2's pool of jobs), and more than it takes, so that
//! chunks are prefetched while one is processed.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tonnage_disk::Disk;
pub use tonnage_object::ClientPool;
use tonnage_object::RequestCounts;
use tonnage_pipeline::{Buffer, Graph, Node, RunHandle};
use tonnage_stages::extent::{ALIGNMENT, FileRef, Object, aligned};
use tonnage_stages::host_queue::{Aborted, HostQueue};
use tonnage_stages::object::access::ObjectAccess;
use tonnage_stages::sink::Lend;
use tonnage_stages::source::{Pace, Retrieve};

use crate::error::{JobError, setting_error, usage_error};
use crate::objects::object_input::{ObjectStorage, ObjectUrl};
use crate::phases::{Phase, Watch, memory};

/// What to retrieve, and how.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Files and objects; requests name them by their index.
    pub sources: Vec<Source>,
    /// Size of the largest chunk.
    pub chunk_bytes: usize,
    /// Size of a range.
    pub range_bytes: usize,
    /// For chunks: in flight, waiting, and being processed.
    pub memory_bytes: usize,
    /// How to use object storage; there is a worker per concurrent request.
    #[serde(default)]
    #[serde(rename = "volumes")]
    pub storage: ObjectStorage,
    /// How to use the disks.
    #[serde(default)]
    pub disk: Disk,
}

/// A file or an object.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Path or URL.
    pub path: PathBuf,
    /// The object's ETag, if known.
    #[serde(default)]
    pub etag: Option<String>,
}

/// The results.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Requests to stores.
    pub requests: RequestCounts,
    /// Seconds in total.
    pub seconds: f64,
    /// The run.
    pub phases: Vec<Phase>,
}

/// Both ends of a retrieval: requests and chunks.
#[derive(Debug)]
pub struct Ends {
    asked: Arc<HostQueue<(usize, usize, u64, usize)>>,
    taken: Arc<HostQueue<Buffer>>,
    pace: Arc<Pace>,
    clients: Arc<ClientPool>,
    before: u64, // received by clients
}

impl Ends {
    /// The ends of a new retrieval that uses shared clients.
    #[must_use]
    pub fn new(clients: &Arc<ClientPool>) -> Self {
        Self {
            clients: Arc::clone(clients),
            before: clients.received(),
            // Unbounded: requests are a few words each, and the pool's memory bounds chunks.
            asked: Arc::new(HostQueue::new(usize::MAX)),
            taken: Arc::new(HostQueue::new(usize::MAX)),
            pace: Arc::default(),
        }
    }

    /// Requests `len` bytes of a source from `offset` on; the chunk will have this `number`.
    ///
    /// # Errors
    /// When the retrieval has ended.
    pub fn ask(
        &self,
        number: usize,
        source: usize,
        offset: u64,
        len: usize,
    ) -> Result<(), Aborted> {
        self.asked.put((number, source, offset, len), 1, || false)
    }

    /// Ends the requests.
    pub fn close(&self) {
        self.asked.close();
    }

    /// The next chunk; `None` after the last.
    ///
    /// # Errors
    /// When the retrieval has ended before.
    pub fn take(&self) -> Result<Option<Buffer>, Aborted> {
        self.taken.take(|| false)
    }

    /// The limit of concurrent requests, and how the store reacts to it.
    pub fn pace(&self) -> &Pace {
        &self.pace
    }

    /// Drops chunks that have not arrived; no more may be requested.
    pub fn leave(&self) {
        self.pace.leave();
    }

    /// Bytes received so far, those of incomplete chunks too.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.clients.received() - self.before + self.pace.read()
    }

    /// The shortest time to a first byte, of this retrieval and those before it.
    #[must_use]
    pub fn first_byte(&self) -> Option<Duration> {
        self.clients.first_byte()
    }

    /// Ends the use of both ends.
    pub fn abort(&self) {
        self.asked.abort();
        self.taken.abort();
    }
}

/// Retrieves chunks until the requests end.
///
/// # Errors
/// What is refused, what fails, or the cancellation; then nobody waits at the ends any more.
pub fn run(config: &Config, ends: &Ends, handle: &RunHandle) -> Result<Outcome, JobError> {
    let outcome = retrieve(config, ends, handle);
    match outcome {
        Ok(_) => ends.taken.close(),
        Err(_) => ends.abort(),
    }
    outcome
}

fn retrieve(config: &Config, ends: &Ends, handle: &RunHandle) -> Result<Outcome, JobError> {
    let watch = Watch::begin(handle);
    let access = ObjectAccess {
        clients: Arc::clone(&ends.clients),
        ..config.storage.access()?
    };
    if config.range_bytes == 0 || config.chunk_bytes == 0 {
        return Err(usage_error("chunks and ranges need at least 1 byte"));
    }
    let buffer_bytes = aligned(config.chunk_bytes) + ALIGNMENT;
    let buffers = config.memory_bytes / buffer_bytes;
    if buffers < 2 {
        return Err(setting_error(
            "memory",
            format!(
                "{} bytes are not enough for two chunks of {} bytes; use more memory or smaller chunks",
                config.memory_bytes, config.chunk_bytes
            ),
        ));
    }
    let files = config
        .sources
        .iter()
        .map(|source| file(source, &config.storage));
    let retrieve = Retrieve {
        asked: Arc::clone(&ends.asked),
        files: Arc::new(files.collect()),
        range_bytes: config.range_bytes,
        workers: access.requests,
        pace: Arc::clone(&ends.pace),
        buffers,
        buffer_bytes,
        disk: config.disk.clone(),
        access: access.clone(),
        begun: Arc::new(Mutex::default()),
    };
    let lend = Lend {
        queue: Arc::clone(&ends.taken),
    };
    let graph = Graph::chain([Node::new("retrieve", retrieve), Node::new("lend", lend)]);
    let phase = watch.run("retrieval", &graph, &memory(graph.memory_bytes())?, None)?;
    Ok(Outcome {
        requests: access.counted(),
        seconds: watch.epoch.elapsed().as_secs_f64(),
        phases: vec![phase],
    })
}

fn file(source: &Source, storage: &ObjectStorage) -> FileRef {
    match ObjectUrl::of(&source.path) {
        Some(url) => FileRef::Object(Arc::new(Object {
            store: Arc::new(storage.bucket(&url)),
            key: url.key,
            etag: source.etag.clone(),
        })),
        None => FileRef::Path(source.path.as_path().into()),
    }
}
