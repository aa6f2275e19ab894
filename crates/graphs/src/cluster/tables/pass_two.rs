//! Pass two: sorts the partitions that a node owns, from the scratch of all rounds, into files.
//!
//! A partition becomes `part-00012.parquet`, or, if it is several files, `part-00012-00000.parquet`
//! and so on: the order of names is the order of keys. A file gets its name when it is durable, an
//! object when its upload is complete. It is then added to a log, with its rows, and with how many
//! files and bytes of rows the partition has.

use std::cell::OnceCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tonnage_disk::Disk;
use tonnage_object::RequestCounts;
use tonnage_pipeline::{Failure, KeptPages, RunHandle};
use tonnage_stages::extent::aligned;
use tonnage_stages::object::uploads::{Seal, Uploads};
use tonnage_stages::output_file::OnFinished;
use tonnage_stages::scratch::Scratch;
use tonnage_stages::totals::Total;
use tonnage_stages::work::{Quota, RowSource as _};

use crate::cluster::finished_log::{FinishedLog, UNFINISHED};
use crate::cluster::pass_two::{Output, PartitionTask, Round};
use crate::error::JobError;
use crate::objects::object_input::{access, default_requests};
use crate::phases::{Phase, Watch, memory, workers};
use crate::sort::spilled_partition::SpilledPartition;
use crate::tables::format_config::{self, FormatConfig};
use crate::tables::memory::{StoreRequests, TablePlan, TableShape};
use crate::tables::passes::spilled_rows::SpilledRows;
use crate::tables::passes::{
    EqualKeys, FileTotals, FileWriting, PartitionFile, RowPartition, TablePasses,
};

/// What to sort.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What the rounds of pass one left on this node.
    pub rounds: Vec<Round>,
    /// Which partitions.
    pub partitions: Vec<PartitionTask>,
    /// What rows are sorted by, and the format of the output.
    pub format: FormatConfig,
    /// Whether rows with equal keys keep their order.
    pub stable: bool,
    /// Whether of rows with equal keys only the first is kept.
    pub unique: bool,
    /// The partition of which only the first rows are wanted, and how many.
    #[serde(default)]
    pub last_share: Option<(usize, u64)>,
    /// Where the output goes.
    pub output: Output,
    /// Bytes of rows that a file has, at most about.
    pub file_bytes: u64,
    /// Directories for partitions that are larger than memory, one per device.
    pub scratch: Vec<PathBuf>,
    /// The log of finished files.
    pub finished: PathBuf,
    /// Size of a block in pass one.
    pub block_bytes: usize,
    /// About how many bytes a row has.
    pub row_bytes: usize,
    /// Memory for all buffers, and what is encoded.
    pub memory_bytes: usize,
    /// How to use the disks.
    #[serde(default)]
    pub disk: Disk,
    /// Concurrent requests to an object store.
    #[serde(default = "default_requests")]
    pub requests: usize,
}

/// The results of a node.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Totals of all rows that were sorted.
    pub sorted: Total,
    /// Bytes that were partitioned again.
    pub repartitioned_bytes: u64,
    /// Nothing: no step sends files while it writes them.
    pub sent: [(); 0],
    /// Nothing.
    pub received: [(); 0],
    /// Requests to object stores.
    pub requests: RequestCounts,
    /// Seconds in total.
    pub seconds: f64,
    /// The runs.
    pub phases: Vec<Phase>,
}

/// Sorts.
///
/// # Errors
/// What is refused, what fails, or the cancellation; files that are finished by then stay.
pub fn run(config: &Config, handle: &RunHandle) -> Result<Outcome, JobError> {
    let watch = Watch::begin(handle);
    let _pages = KeptPages::begin();
    let rounds = Round::open_all(&config.rounds, &config.disk)?;
    let devices = config.rounds.first().map_or(1, |round| round.scratch.len());
    let spilled_partition = |wanted: &PartitionTask| SpilledPartition {
        number: wanted.number,
        blocks: rounds
            .iter()
            .flat_map(|round| round.take(wanted.number))
            .collect(),
        lane: wanted.number % devices,
        in_order: false,
    };
    let spilled: Vec<SpilledPartition> = config.partitions.iter().map(spilled_partition).collect();
    let spans = spilled.iter().map(SpilledPartition::span);
    let access = access(config.requests)?;
    let (lanes, uploads) = match &config.output {
        Output::Directories(directories) => (directories.len(), 0),
        Output::Objects { .. } => (access.requests, access.requests),
    };
    let table = format_config::open(&config.format, &[], config.stable)?;
    // Blocks are read again, and their rows taken, if a partition is to be divided.
    let blocks = SpilledRows {
        shape: table.shape(),
    };
    let plan = TablePlan::new(&TableShape {
        rows_bytes: spans.clone().sum::<usize>() as u64,
        row_bytes: config.row_bytes,
        memory_bytes: config.memory_bytes,
        workers: workers(),
        devices: (devices, lanes),
        depth: config.disk.depth,
        requests: StoreRequests {
            downloads: 0,
            uploads,
        },
        decoding_bytes: blocks.memory_bytes(),
        encoding_bytes: table.encoding(0).memory_bytes(),
        split_span: aligned(config.block_bytes),
        endpoints: 1,
        links: 0,
        longest_partition: Some(spans.max().unwrap_or(0)),
    })?;
    let plan = plan.with_blocks(config.block_bytes);
    let log = FinishedLog::open(&config.finished)?;
    let memory = memory(plan.memory_bytes)?;
    let (table, unique) = (table.as_ref(), config.unique);
    let mut passes = TablePasses::new(watch, &config.disk, table, unique, memory);
    passes.access = access.clone();
    // An unlinked file, which costs nothing unless a partition is too large.
    let again = Arc::new(Scratch::create(&config.disk, &config.scratch, 0)?);
    let partition = |(spilled, wanted): (SpilledPartition, &PartitionTask)| {
        let is_numbered = table.shape().number_bytes() > 0;
        let keys = EqualKeys::of(wanted.single, unique, is_numbered);
        let mut partition = RowPartition::new(spilled, Total::default(), keys);
        match config.last_share {
            Some((number, rows)) if number == wanted.number => {
                partition.quota = Some(Arc::new(Quota::new(rows)));
            }
            _ => {}
        }
        partition
    };
    let partitions = spilled.into_iter().zip(&config.partitions);
    let partitions = partitions.map(partition).collect();
    let partitions = passes.divide(&plan, &again, partitions)?;
    let (suffix, part_bytes) = (table.suffix(), plan.output_block_bytes);
    let (mut paths, uploads) = (Arc::default(), OnceCell::new());
    let done = passes.pass_two(
        &plan,
        partitions,
        table.encoding(plan.group_bytes),
        &FileWriting {
            lanes,
            file_bytes: config.file_bytes,
            joined_bytes: 0, // A file is finished with its partition, which another node can repeat.
            uploads: &|names| {
                let Output::Objects { store, .. } = &config.output else {
                    return None;
                };
                let (seal, access) = (Seal::EachWhenWhole, access.clone());
                let made = Uploads::growing(store, Arc::clone(names), part_bytes, seal, access);
                Some(Arc::clone(uploads.get_or_init(|| Arc::new(made))))
            },
            folders: None,
        },
        |(number, file)| {
            let name = format!("{}{suffix}", name(file));
            match &config.output {
                Output::Directories(directories) => {
                    directories[number % directories.len()].join(format!("{name}.{UNFINISHED}"))
                }
                Output::Objects { prefix, .. } => Path::new(prefix).join(name),
            }
        },
        |totals| {
            let Output::Objects { store, .. } = &config.output else {
                paths = Arc::clone(&totals.paths);
                return OnFinished::call(move |file| add(&log, &totals, file));
            };
            let (store, uploads) = (store.clone(), uploads.get().cloned());
            OnFinished::call(move |file| {
                let url = store.name(&totals.paths[file].to_string_lossy());
                let bytes = uploads.as_ref().map_or(0, |all| all.put_bytes_of(file));
                log.note(url.as_ref(), about(&totals, file, bytes))
            })
        },
    );
    for path in paths.iter() {
        let _none = fs::remove_file(path); // Finished files have another name.
    }
    Ok(Outcome {
        sorted: done?.rows,
        repartitioned_bytes: passes.repartitioned_bytes,
        sent: [],
        received: [],
        requests: passes.access.counted(),
        seconds: passes.watch.epoch.elapsed().as_secs_f64(),
        phases: passes.phases,
    })
}

fn name(file: &PartitionFile) -> String {
    match file.files {
        1 => format!("part-{:05}", file.partition),
        _ => format!("part-{:05}-{:05}", file.partition, file.place),
    }
}

/// Gives a finished file its name, and logs it.
fn add(log: &FinishedLog, totals: &FileTotals, number: usize) -> Result<(), Failure> {
    let path = &totals.paths[number];
    let found = fs::metadata(path);
    let found = found.map_err(|why| Failure::at(path, 0, format!("cannot stat: {why}")))?;
    log.add(path, about(totals, number, found.len()))
}

/// What the log has of a file of so many bytes.
fn about(totals: &FileTotals, number: usize, bytes: u64) -> Value {
    let file = &totals.files[number];
    let (rows, left_out) = (totals.rows.of(number), totals.left_out.of(number));
    json!({
        "bytes": bytes,
        "records": rows.records - left_out.records,
        "checksum": format!("{:x}", rows.checksum),
        "files": file.files,
        "taken": file.partition_bytes,
    })
}
