//! Random and sequential operations on files, as a graph of one stage: `random_io`.
//!
//! This is no edit of a job: a job moves long extents. It measures a device for programs that want
//! single blocks, or wait for each write to be durable (the cluster study's `read4k` to
//! `write4k-64`), or share a file among processes (IOR's patterns, which Magellan used).

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use tonnage_disk::{Disk, DiskFile, Engine};
use tonnage_pipeline::{Graph, Node, RunHandle};
use tonnage_stages::disk::modes::DiskModes;
use tonnage_stages::extent::ALIGNMENT;
use tonnage_stages::latencies::error_bound;
use tonnage_stages::source::{Pattern, RandomIo, WorkerTimings};

use crate::error::{JobError, setting_error, usage_error};
use crate::phases::{Phase, Watch, memory};

/// One trial of one operation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The file for all workers, or one for each. They exist already, unless segments are written
    /// that no other node shares.
    pub files: Vec<PathBuf>,
    /// Segment after segment, instead of random offsets.
    #[serde(default)]
    pub segments: Option<Segments>,
    /// Whether to make everything durable at the end, as part of the time.
    #[serde(default)]
    pub flush_at_end: bool,
    /// Writes, instead of reads.
    pub writes: bool,
    /// One write in so many has to be durable to be done; 0 for none.
    pub durable_one_in: u32,
    /// Size of an operation.
    pub block_bytes: usize,
    /// Queue depth.
    pub outstanding: usize,
    /// A thread per operation, with blocking I/O, instead of one ring for all.
    pub blocking: bool,
    /// Whether all completions at hand are replaced with one system call.
    pub batched: bool,
    /// Length of the trial, the warm-up included.
    pub seconds: f64,
    /// Seconds of it that do not count.
    pub warm_up_seconds: f64,
    /// Seed of the offsets.
    pub seed: u64,
    /// How to use the disk; the fields above determine its engine and depth.
    #[serde(default)]
    pub disk: Disk,
}

/// A whole file in order, once: IOR's pattern.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segments {
    /// Number of segments.
    pub count: u64,
    /// A worker's part of each.
    pub part_bytes: u64,
    /// Set if other nodes have parts of the file, too.
    #[serde(default)]
    pub among: Option<SegmentShare>,
}

/// The place of this node's parts in each segment of a shared file.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentShare {
    /// Parts of a segment, of all nodes.
    pub parts: u64,
    /// The part of this node's first worker; its other workers follow.
    pub first: u64,
}

impl Segments {
    /// The place of this node's parts; all parts if no other node shares the file.
    fn own_share(&self, workers: usize, files: usize) -> SegmentShare {
        self.among.unwrap_or(SegmentShare {
            parts: (workers / files) as u64,
            first: 0,
        })
    }
}

/// The results of a trial.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Seconds from the first worker's first operation to the last worker's end.
    pub seconds: f64,
    /// Operations per second: of a random pattern between the warm-up and the end; of segments over
    /// the whole time, the final flush included.
    pub operations_per_second: f64,
    /// Durable writes, those of the warm-up too.
    pub durable_writes: u64,
    /// Latencies of all workers together.
    pub latency: Latency,
    /// Each worker.
    pub workers: Vec<Worker>,
    /// The run.
    pub phases: Vec<Phase>,
}

/// Latencies in nanoseconds; `None` where there was no operation.
#[derive(Clone, Debug, Serialize)]
pub struct Latency {
    /// Number of operations.
    pub count: u64,
    /// Their mean.
    pub mean: Option<f64>,
    /// Percentiles, each with its value.
    pub percentiles: Vec<(f64, u64)>,
    /// The longest.
    pub max: Option<u64>,
    /// The histogram: the largest latency of each bin that is not empty, and its count.
    pub bins: Vec<(u64, u64)>,
    /// The largest relative error of a latency.
    pub error_bound: f64,
}

/// What one worker did.
#[derive(Clone, Debug, Serialize)]
pub struct Worker {
    /// Operations completed in each second since it began, the warm-up included.
    pub each_second: Vec<u64>,
}

const PERCENTILES: [f64; 7] = [1.0, 25.0, 50.0, 90.0, 99.0, 99.9, 99.99];

/// Runs the trial.
///
/// # Errors
/// What is refused, what fails, or the cancellation.
pub fn run(config: &Config, handle: &RunHandle) -> Result<Outcome, JobError> {
    let watch = Watch::begin(handle);
    let refuse = |why: String| Err(usage_error(why));
    if config.block_bytes == 0 || config.outstanding == 0 {
        return refuse(
            "an operation needs at least 1 byte, and the queue depth is at least 1".to_owned(),
        );
    }
    let (workers, depth) = match config.blocking {
        true => (config.outstanding, 1),
        false => (1, config.outstanding),
    };
    let disk = Disk {
        engine: match (config.disk.engine, config.blocking) {
            (Engine::Null, _) => Engine::Null,
            (_, true) => Engine::Blocking,
            (engine, false) => engine,
        },
        depth,
        transfer_bytes: config.block_bytes,
        deferred: true,
        ..config.disk.clone()
    };
    let files = open(config, &disk, workers)?;
    let pattern = match config.segments {
        None => Pattern::Random,
        Some(segments) => {
            let SegmentShare { parts, first } = segments.own_share(workers, files.len());
            Pattern::Segments {
                segments: segments.count,
                part_bytes: segments.part_bytes,
                parts,
                first,
            }
        }
    };
    if !config.block_bytes.is_multiple_of(ALIGNMENT) {
        return refuse(format!(
            "operations of {} bytes are not a multiple of {ALIGNMENT} bytes",
            config.block_bytes
        ));
    }
    let (seconds, warm_seconds) = (config.seconds, config.warm_up_seconds);
    let [duration, warm_up] = [seconds, warm_seconds].map(Duration::try_from_secs_f64);
    let (Ok(duration), Ok(warm_up)) = (duration, warm_up) else {
        return Err(setting_error(
            "seconds",
            format!("{seconds} is not a duration"),
        ));
    };
    let (seen, modes) = (
        Arc::new(Mutex::new(Vec::new())),
        Arc::new(DiskModes::default()),
    );
    let operate = RandomIo {
        disk,
        files: Arc::new(files),
        pattern,
        flush_at_end: config.flush_at_end,
        writes: config.writes,
        durable_one_in: config.durable_one_in,
        block_bytes: config.block_bytes,
        workers,
        batched: config.batched,
        warm_up,
        lasts: config.segments.is_none().then_some(duration),
        seed: config.seed,
        seen: Arc::clone(&seen),
        modes: Arc::clone(&modes),
    };
    let graph = Graph::chain([Node::new("operate", operate)]);
    let budget = memory(graph.memory_bytes())?;
    let mut phase = watch.run("operate", &graph, &budget, None)?;
    phase.disk_modes = modes.distinct();
    let mut seen = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
    seen.sort_unstable_by_key(|seen| seen.worker);
    let began = seen.iter().map(|seen| seen.began).min();
    let ended = seen.iter().map(|seen| seen.ended).max();
    let took = began.zip(ended).map_or(0.0, |(began, ended)| {
        ended.duration_since(began).as_secs_f64()
    });
    let rate = match config.segments {
        None => seen.iter().map(|seen| seen.counted).sum::<u64>() as f64 / (seconds - warm_seconds),
        Some(_) => phase.report.stages[0].counters.records as f64 / took,
    };
    Ok(Outcome {
        seconds: took,
        operations_per_second: rate,
        durable_writes: seen.iter().map(|seen| seen.durable).sum(),
        latency: Latency::of(seen.iter().map(|seen| &seen.latencies)),
        workers: seen.iter().map(worker).collect(),
        phases: vec![phase],
    })
}

/// The files, created if they are to be written from the beginning.
fn open(config: &Config, disk: &Disk, workers: usize) -> Result<Vec<Arc<DiskFile>>, JobError> {
    if config.files.is_empty() || !workers.is_multiple_of(config.files.len()) {
        let files = config.files.len();
        return Err(usage_error(format!(
            "{files} files cannot be divided among {workers} workers; use one file, or one for each worker"
        )));
    }
    let Some(segments) = config.segments else {
        let open = |path: &PathBuf| {
            let file = match config.writes {
                true => disk.open_update(path)?,
                false => disk.open_read(path)?,
            };
            if file.len() < config.block_bytes as u64 {
                return Err(setting_error(
                    "file_size",
                    format!(
                        "{} has {} bytes, but an operation needs {}; use a larger file",
                        path.display(),
                        file.len(),
                        config.block_bytes
                    ),
                ));
            }
            Ok(file)
        };
        return config.files.iter().map(open).collect();
    };
    let Segments {
        count, part_bytes, ..
    } = segments;
    if part_bytes == 0 || !part_bytes.is_multiple_of(config.block_bytes as u64) {
        return Err(setting_error(
            "block",
            format!(
                "{part_bytes} bytes are not a multiple of the transfer size, {} bytes",
                config.block_bytes
            ),
        ));
    }
    let own = (workers / config.files.len()) as u64;
    let SegmentShare { parts, first } = segments.own_share(workers, config.files.len());
    if first.checked_add(own).is_none_or(|end| end > parts) {
        return Err(usage_error(format!(
            "parts {first} to {first} + {own} are more than the {parts} parts of a segment"
        )));
    }
    let bytes = count * part_bytes * parts;
    let open = |path: &PathBuf| {
        // A file that other nodes write, too, exists already.
        let file = match (config.writes, segments.among) {
            (true, None) => return Ok(disk.create(path, bytes)?),
            (true, Some(_)) => disk.open_update(path)?,
            (false, _) => disk.open_read(path)?,
        };
        if file.len() < bytes {
            let (show, len) = (path.display(), file.len());
            return Err(usage_error(format!(
                "{show} has {len} bytes, but {bytes} bytes are to be read; write the file first"
            )));
        }
        Ok(file)
    };
    config.files.iter().map(open).collect()
}

fn worker(seen: &WorkerTimings) -> Worker {
    Worker {
        each_second: seen.each_second.clone(),
    }
}

impl Latency {
    /// All workers of one process: they used the same device at the same time.
    pub(crate) fn of<'a>(workers: impl IntoIterator<Item = &'a Histogram<u64>>) -> Self {
        let mut all: Option<Histogram<u64>> = None;
        for latencies in workers {
            match &mut all {
                // Histograms with equal bounds always add up.
                Some(all) => all.add(latencies).expect("made alike"),
                None => all = Some(latencies.clone()),
            }
        }
        let Some(all) = all.filter(|all| !all.is_empty()) else {
            return Self {
                count: 0,
                mean: None,
                percentiles: Vec::new(),
                max: None,
                bins: Vec::new(),
                error_bound: 0.0,
            };
        };
        let bins = all.iter_recorded();
        Self {
            count: all.len(),
            mean: Some(all.mean()),
            percentiles: PERCENTILES
                .map(|percent| (percent, all.value_at_percentile(percent)))
                .to_vec(),
            max: Some(all.max()),
            bins: bins
                .map(|bin| (bin.value_iterated_to(), bin.count_at_value()))
                .collect(),
            error_bound: error_bound(&all),
        }
    }
}
