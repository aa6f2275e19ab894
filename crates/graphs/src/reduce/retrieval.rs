//! Chunks of objects and files, as they are asked for, in the memory that they were retrieved into.
//!
//! ```text
//!   asked ..> retrieve -chunks-> hand ..> taken
//! ```
//!
//! Whoever asks says which chunk is next (MATE-EC2's pool of jobs), and asks for more than are taken,
//! so that the next ones come while one is processed.

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

use crate::error::JobError;
use crate::error::refused;
use crate::objects::object_input::{ObjectStorage, ObjectUrl};
use crate::watch::{Phase, Watch, memory};

/// What to retrieve, and how.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Files and objects that chunks are asked of, by their place here.
    pub sources: Vec<Source>,
    /// Size of the largest chunk.
    pub chunk_bytes: usize,
    /// Size of a range.
    pub range_bytes: usize,
    /// For chunks: those under way, those that wait, and those that are processed.
    pub memory_bytes: usize,
    /// How to use object storage; of its requests at once there are as many workers.
    #[serde(default)]
    pub volumes: ObjectStorage,
    /// How to use the disks.
    #[serde(default)]
    pub disk: Disk,
}

/// A file, or an object as it was found.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Path or url.
    pub path: PathBuf,
    /// What tells the object from any other of its name, if the store says.
    #[serde(default)]
    pub etag: Option<String>,
}

/// What was retrieved.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// What was asked of stores.
    pub requests: RequestCounts,
    /// Seconds in all.
    pub seconds: f64,
    /// The run.
    pub phases: Vec<Phase>,
}

/// Both ends of a retrieval: who asks, and who takes.
#[derive(Debug)]
pub struct Ends {
    asked: Arc<HostQueue<(usize, usize, u64, usize)>>,
    taken: Arc<HostQueue<Buffer>>,
    pace: Arc<Pace>,
    clients: Arc<ClientPool>,
    before: u64, // received by clients
}

impl Ends {
    /// Of a retrieval that uses these, which others have used and will.
    #[must_use]
    pub fn new(clients: &Arc<ClientPool>) -> Self {
        Self {
            clients: Arc::clone(clients),
            before: clients.received(),
            // What waits there is a few words each, and chunks that wait hold memory: it bounds them.
            asked: Arc::new(HostQueue::new(usize::MAX)),
            taken: Arc::new(HostQueue::new(usize::MAX)),
            pace: Arc::default(),
        }
    }

    /// Asks for `len` bytes of a source from `offset` on; the chunk will have the `number`.
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

    /// Nothing more is asked for.
    pub fn close(&self) {
        self.asked.close();
    }

    /// The next chunk; `None` when all that was asked for was taken.
    ///
    /// # Errors
    /// When the retrieval has ended before.
    pub fn take(&self) -> Result<Option<Buffer>, Aborted> {
        self.taken.take(|| false)
    }

    /// How many requests there may be at once, and what the store says of that.
    pub fn pace(&self) -> &Pace {
        &self.pace
    }

    /// What has not come yet is not wanted any more; nothing more may be asked for.
    pub fn leave(&self) {
        self.pace.leave();
    }

    /// Bytes that have come, of chunks that are not whole yet as well.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.clients.received() - self.before + self.pace.read()
    }

    /// The shortest time to the first byte of an answer, of this retrieval and those before it.
    #[must_use]
    pub fn first_byte(&self) -> Option<Duration> {
        self.clients.first_byte()
    }

    /// Nobody takes any more.
    pub fn abort(&self) {
        self.asked.abort();
        self.taken.abort();
    }
}

/// Retrieves until nothing more is asked for.
///
/// # Errors
/// What is refused, what fails, or the cancellation; nobody waits at the ends any more then.
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
        ..config.volumes.access()?
    };
    if config.range_bytes == 0 || config.chunk_bytes == 0 {
        return Err(refused("a chunk has a byte at least, and so has a range"));
    }
    let buffer_bytes = aligned(config.chunk_bytes) + ALIGNMENT;
    let buffers = config.memory_bytes / buffer_bytes;
    if buffers < 2 {
        return Err(refused(format!(
            "--memory of {} bytes holds no two chunks of {}: give more, or less --chunk-bytes",
            config.memory_bytes, config.chunk_bytes
        )));
    }
    let files = config
        .sources
        .iter()
        .map(|source| file(source, &config.volumes));
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
    let hand = Lend {
        queue: Arc::clone(&ends.taken),
    };
    let graph = Graph::chain([Node::new("retrieve", retrieve), Node::new("hand", hand)]);
    let phase = watch.run("retrieval", &graph, &memory(graph.memory_bytes())?, None)?;
    Ok(Outcome {
        requests: access.counted(),
        seconds: watch.epoch.elapsed().as_secs_f64(),
        phases: vec![phase],
    })
}

fn file(source: &Source, volumes: &ObjectStorage) -> FileRef {
    match ObjectUrl::of(&source.path) {
        Some(url) => FileRef::Object(Arc::new(Object {
            store: Arc::new(volumes.bucket(&url)),
            key: url.key,
            etag: source.etag.clone(),
        })),
        None => FileRef::Path(source.path.as_path().into()),
    }
}
