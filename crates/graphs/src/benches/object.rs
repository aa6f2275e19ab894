//! The object store benchmark: chunks got or put by so many threads, in memory.
//!
//! ```text
//!   get         get -> discard
//!   put         generate -> put      an object for each chunk, or a part of one upload
//! ```
//!
//! It follows MATE-EC2's threaded retrieval: what limits a store is not a request's size alone, but
//! how many are under way. Each thread makes one request after another.

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
use crate::error::JobError;
use crate::error::refused;
use crate::objects::object_input::{check_access, store_error};
use crate::watch::{Phase, Watch, memory};

/// Parts that an upload can have. One that goes on for longer puts them again.
const PARTS: usize = 10_000;
/// Objects that are put again and again by each thread.
const OBJECTS_PER_THREAD: usize = 4;
/// Buffers that wait to be put: threads hold one each.
const WAITING: usize = 2;

/// One trial.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The bucket.
    pub store: Settings,
    /// What to do there.
    pub work: Work,
    /// What names of objects begin with.
    pub prefix: String,
    /// Size of a chunk.
    pub chunk_bytes: usize,
    /// How many at once.
    pub threads: usize,
    /// Length of the trial, the warm-up included; of no matter to what ends by itself.
    #[serde(default)]
    pub seconds: f64,
    /// What of it is not counted.
    #[serde(default)]
    pub warm_up_seconds: f64,
}

/// What is done again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Work {
    /// Chunks are got of these objects.
    Get {
        /// How many there are.
        objects: usize,
        /// Size of each.
        object_bytes: usize,
    },
    /// Chunks are put as objects.
    Put,
    /// Chunks are put as parts of one upload, which becomes an object.
    Multipart,
    /// Objects are put once, each of one chunk, to be got later.
    LayOut {
        /// How many.
        objects: usize,
    },
}

/// What a trial did.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Chunks in a second between the warm-up and the end of the time; those partly within count for
    /// the share of their time that is. `None` if nothing lies between.
    pub operations_per_second: Option<f64>,
    /// What each took, repetitions included.
    pub latency: Latency,
    /// The time to its first byte, of those that got any.
    pub first_byte: Latency,
    /// RequestLog of all workers and what became of them, those of the warm-up too.
    pub tally: RequestCounts,
    /// How long it took to complete the upload, which is in no rate.
    pub completing_seconds: Option<f64>,
    /// Each worker.
    pub workers: Vec<Worker>,
    /// The run.
    pub phases: Vec<Phase>,
}

/// Runs the trial.
///
/// # Errors
/// What is refused, a store that cannot be used at all included; what fails; or the cancellation.
pub fn run(config: &Config, handle: &RunHandle) -> Result<Outcome, JobError> {
    let watch = Watch::begin(handle);
    let (seconds, warm_seconds) = (config.seconds, config.warm_up_seconds);
    let [duration, warm_up] = [seconds, warm_seconds].map(Duration::try_from_secs_f64);
    let (Ok(duration), Ok(warm_up)) = (duration, warm_up) else {
        return Err(refused(format!(
            "--seconds {seconds}: give a number of seconds"
        )));
    };
    if config.chunk_bytes == 0 || config.threads == 0 {
        return Err(refused(
            "a chunk has a byte at least, and one thread moves it",
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
                return Err(refused(format!(
                    "--object-size {object_bytes} is less than --chunk {}: give more",
                    config.chunk_bytes
                )));
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
            // Parts of what did not become an object would stay, unseen.
            ended.inspect_err(|_| drop(client.abort(&upload)))?
        }
    };
    Ok(trial.outcome(phase, completing_seconds))
}

/// Objects to be removed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remove {
    /// The bucket.
    pub store: Settings,
    /// All in this folder.
    pub folder: String,
}

/// What was removed.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Removed {
    /// How many objects.
    pub objects: usize,
}

/// Removes all objects of a folder.
///
/// # Errors
/// What is refused, what fails, or the cancellation; some objects may be removed by then.
pub fn remove(config: &Remove, handle: &RunHandle) -> Result<Removed, JobError> {
    if config.folder.trim_matches('/').is_empty() {
        return Err(refused(
            "a folder's objects are removed, never all of a bucket",
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

/// A client that the bucket has answered, and what is in a folder of it.
fn open_bucket(store: &Settings, folder: &str) -> Result<(Client, Vec<ObjectInfo>), JobError> {
    let client = Client::new(store).map_err(|why| store_error(&why))?;
    let found = check_access(store, client.list(folder))?;
    Ok((client, found))
}
