//! The object store benchmark: chunks got or put by a number of threads, in memory.
//!
//! ```text
//!   get         get -> discard
//!   put         generate -> put      an object for each chunk, or a part of one upload
//! ```
//!
//! It follows MATE-EC2's threaded retrieval: a store is limited not by the size of requests alone,
//! but by their number at once. Each thread makes one request after another.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tonnage_object::{Client, ObjectInfo, RequestCounts, Settings};
use tonnage_pipeline::{Graph, Node, RunHandle};
use tonnage_records::{Encoding, Generator, Layout};
use tonnage_stages::extent::aligned;
use tonnage_stages::object::request_log::{RequestLog, Window};
use tonnage_stages::ports::BLOCKS;
use tonnage_stages::sink::{Put, PutAs};
use tonnage_stages::source::{Chunk, Content, Generate, Get};

use crate::benches::disk::discard;
use crate::benches::random_io::{Latency, Worker};
use crate::error::{JobError, setting_error, usage_error};
use crate::objects::object_input::{check_access, store_error};
use crate::phases::{Phase, Watch, memory};

/// Most parts of an upload. A longer trial puts them again.
const PARTS: usize = 10_000;
/// Objects that each thread puts again and again.
const OBJECTS_PER_THREAD: usize = 4;
/// Buffers that wait to be put; each thread holds one more.
const WAITING: usize = 2;

/// One trial.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The bucket.
    pub store: Settings,
    /// What to do.
    pub work: Work,
    /// Prefix of the objects' names.
    pub prefix: String,
    /// Size of a chunk.
    pub chunk_bytes: usize,
    /// Concurrent requests.
    pub threads: usize,
    /// Length of the trial, the warm-up included; ignored by work that ends by itself.
    #[serde(default)]
    pub seconds: f64,
    /// Seconds of it that do not count.
    #[serde(default)]
    pub warm_up_seconds: f64,
}

/// The work of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Work {
    /// Gets chunks of these objects.
    Get {
        /// Number of objects.
        objects: usize,
        /// Size of each.
        object_bytes: usize,
    },
    /// Puts chunks as objects.
    Put,
    /// Puts chunks as parts of one upload, which becomes an object.
    Multipart,
    /// Puts objects of one chunk each, once, to be got later.
    LayOut {
        /// Number of objects.
        objects: usize,
    },
}

/// The results of a trial.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Chunks per second between the warm-up and the end; a chunk that lies partly within counts
    /// for that share. `None` if the interval is empty.
    pub operations_per_second: Option<f64>,
    /// Latency of a chunk, retries included.
    pub latency: Latency,
    /// Time to its first byte, if there was one.
    pub first_byte: Latency,
    /// Requests and errors of all workers, those of the warm-up too.
    pub tally: RequestCounts,
    /// Seconds to complete the upload, which no rate includes.
    pub completing_seconds: Option<f64>,
    /// Each worker.
    pub workers: Vec<Worker>,
    /// The run.
    pub phases: Vec<Phase>,
}

/// Runs the trial.
///
/// # Errors
/// What is refused (a store that cannot be used at all, too), what fails, or the cancellation.
pub fn run(config: &Config, handle: &RunHandle) -> Result<Outcome, JobError> {
    let watch = Watch::begin(handle);
    let (seconds, warm_seconds) = (config.seconds, config.warm_up_seconds);
    let [duration, warm_up] = [seconds, warm_seconds].map(Duration::try_from_secs_f64);
    let (Ok(duration), Ok(warm_up)) = (duration, warm_up) else {
        return Err(setting_error(
            "seconds",
            format!("{seconds} is not a duration"),
        ));
    };
    if config.chunk_bytes == 0 || config.threads == 0 {
        return Err(usage_error(
            "a chunk needs at least 1 byte, and a trial at least 1 thread",
        ));
    }
    let (client, _) = open_bucket(&config.store, &config.prefix)?;
    let trial = Trial {
        config,
        store: Arc::new(config.store.clone()),
        window: Window {
            warm_up,
            end: duration,
        },
        seen: Arc::default(),
    };
    let mut completing_seconds = None;
    let phase = match config.work {
        Work::Get {
            objects,
            object_bytes,
        } => {
            if object_bytes < config.chunk_bytes || objects == 0 {
                return Err(setting_error(
                    "object_size",
                    format!(
                        "{object_bytes} bytes are less than a chunk of {} bytes; use larger objects",
                        config.chunk_bytes
                    ),
                ));
            }
            let graph = trial.get(objects, object_bytes / config.chunk_bytes);
            trial.run("get", &graph, Some(duration), &watch)?
        }
        Work::Put | Work::LayOut { .. } => {
            let prefix = config.prefix.clone();
            let (name, duration) = match config.work {
                Work::Put => ("put", Some(duration)),
                _ => ("lay_out", None),
            };
            trial.run(
                name,
                &trial.put(PutAs::Objects { prefix }),
                duration,
                &watch,
            )?
        }
        Work::Multipart => {
            let key = PutAs::key(&config.prefix, 0);
            let upload = client
                .begin_upload(&key, || handle.is_cancelled())
                .map_err(|why| store_error(&why))?;
            let parts = Arc::new(Mutex::new(BTreeMap::new()));
            let put_as = PutAs::Parts {
                upload: upload.clone(),
                parts: Arc::clone(&parts),
            };
            let ran = trial.run("put", &trial.put(put_as), Some(duration), &watch);
            let ended = ran.and_then(|phase| {
                let parts =
                    std::mem::take(&mut *parts.lock().unwrap_or_else(PoisonError::into_inner));
                let began = Instant::now();
                let bytes = (parts.len() * config.chunk_bytes) as u64;
                client
                    .complete(&upload, bytes, parts.into_values(), || false)
                    .map_err(|why| store_error(&why))?;
                completing_seconds = Some(began.elapsed().as_secs_f64());
                Ok(phase)
            });
            // Parts of an incomplete upload would stay, unseen.
            ended.inspect_err(|_| drop(client.abort(&upload)))?
        }
    };
    Ok(trial.outcome(phase, completing_seconds))
}

/// Which objects to remove.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remove {
    /// The bucket.
    pub store: Settings,
    /// The folder.
    pub folder: String,
}

/// The result.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Removed {
    /// Objects removed.
    pub objects: usize,
}

/// Removes all objects of a folder.
///
/// # Errors
/// What is refused, what fails, or the cancellation; some objects may be removed by then.
pub fn remove(config: &Remove, handle: &RunHandle) -> Result<Removed, JobError> {
    if config.folder.trim_matches('/').is_empty() {
        return Err(usage_error(
            "only the objects below a prefix can be removed, never a whole bucket",
        ));
    }
    let (client, found) = open_bucket(&config.store, &config.folder)?;
    let mut objects = 0;
    for found in found {
        if handle.is_cancelled() {
            return Err(JobError::Cancelled);
        }
        client.remove(&found.key).map_err(|why| store_error(&why))?;
        objects += 1;
    }
    Ok(Removed { objects })
}

struct Trial<'a> {
    config: &'a Config,
    store: Arc<Settings>,
    window: Window,
    seen: Arc<Mutex<Vec<RequestLog>>>,
}

impl Trial<'_> {
    fn run(
        &self,
        name: &str,
        graph: &Graph,
        duration: Option<Duration>,
        watch: &Watch,
    ) -> Result<Phase, JobError> {
        watch.run(name, graph, &memory(graph.memory_bytes())?, duration)
    }

    fn get(&self, objects: usize, chunks: usize) -> Graph {
        let key = |number| PutAs::key(&self.config.prefix, number);
        let get = Get {
            store: Arc::clone(&self.store),
            keys: Arc::new((0..objects).map(key).collect()),
            chunks,
            chunk_bytes: self.config.chunk_bytes,
            workers: self.config.threads,
            window: self.window,
            next: Arc::new(AtomicUsize::new(0)),
            seen: Arc::clone(&self.seen),
        };
        Graph::chain([Node::new("get", get), discard(BLOCKS)])
    }

    fn put(&self, put_as: PutAs) -> Graph {
        let Config {
            chunk_bytes,
            threads,
            work,
            ..
        } = *self.config;
        let record_bytes = Layout::SORT_BENCHMARK.record_bytes;
        let chunk = |number: usize| Chunk {
            number,
            offset: 0,
            len: chunk_bytes,
            lane: 0,
            first_record: (number * (chunk_bytes / record_bytes)) as u64,
        };
        let (content, numbers) = match work {
            Work::LayOut { objects } => (Content::Reused, objects),
            Work::Multipart => (Content::Endless, PARTS),
            Work::Get { .. } | Work::Put => (Content::Endless, OBJECTS_PER_THREAD * threads),
        };
        let generate = Generate {
            generator: Arc::new(Generator::new(Encoding::Binary, false, 0)),
            content,
            chunks: Arc::new((0..numbers).map(chunk).collect()),
            gives: BLOCKS,
            record_bytes,
            workers: 1,
            lanes_apart: false,
            buffers: threads + WAITING,
            buffer_bytes: aligned(chunk_bytes),
            next: Arc::new(AtomicUsize::new(0)),
        };
        let put = Put {
            store: Arc::clone(&self.store),
            put_as,
            inbox_bytes: chunk_bytes,
            workers: threads,
            window: self.window,
            seen: Arc::clone(&self.seen),
        };
        Graph::chain([Node::new("generate", generate), Node::new("put", put)])
    }

    fn outcome(&self, phase: Phase, completing_seconds: Option<f64>) -> Outcome {
        let mut seen =
            std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner));
        seen.sort_unstable_by_key(|seen| seen.worker);
        let mut tally = RequestCounts::default();
        seen.iter().for_each(|seen| tally.add(&seen.counts));
        let Window { warm_up, end } = self.window;
        let seconds = end.saturating_sub(warm_up).as_secs_f64();
        let counted: f64 = seen.iter().map(|seen| seen.counted).sum();
        Outcome {
            operations_per_second: (seconds > 0.0).then(|| counted / seconds),
            latency: Latency::of(seen.iter().map(|seen| &seen.latencies)),
            first_byte: Latency::of(seen.iter().map(|seen| &seen.first_bytes)),
            tally,
            completing_seconds,
            workers: seen.iter().map(worker).collect(),
            phases: vec![phase],
        }
    }
}

fn worker(seen: &RequestLog) -> Worker {
    Worker {
        each_second: seen.each_second.clone(),
    }
}

/// A client of a bucket that has answered, and the objects of a folder.
fn open_bucket(store: &Settings, folder: &str) -> Result<(Client, Vec<ObjectInfo>), JobError> {
    let client = Client::new(store).map_err(|why| store_error(&why))?;
    let found = check_access(store, client.list(folder))?;
    Ok((client, found))
}
