//! Pass two: sorts the partitions that a node owns, from the scratch of all rounds, into files.
//!
//! A partition becomes `part-00012.parquet`, or, if it may be several files,
//! `part-00012-00000.parquet` and so on, in each folder that it has rows of: the order of names is
//! the order of keys. Once all files of a partition are durable they get their names; objects have
//! theirs when their uploads are complete. They are then added to a log, in the order of keys, with
//! their rows, and with how many files and bytes of rows the partition has.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tonnage_disk::Disk;
use tonnage_object::RequestCounts;
use tonnage_pipeline::{KeptPages, RunHandle};
use tonnage_stages::extent::aligned;
use tonnage_stages::object::uploads::{Seal, Uploads};
use tonnage_stages::output_file::OnFinished;
use tonnage_stages::scratch::Scratch;
use tonnage_stages::totals::Total;
use tonnage_stages::work::{Quota, RowSource as _};

use crate::cluster::finished_log::{FinishedLog, UNFINISHED};
use crate::cluster::pass_two::{Output, PartitionTask, Round};
use crate::cluster::tables::partition_log::PartitionLog;
use crate::error::JobError;
use crate::objects::object_input::{access, default_requests};
use crate::phases::{Phase, Watch, memory, workers};
use crate::sort::spilled_partition::SpilledPartition;
use crate::tables::format_config::{self, FormatConfig};
use crate::tables::memory::{StoreRequests, TablePlan, TableShape};
use crate::tables::output_files::{OutputFiles, PathOf};
use crate::tables::passes::sort_units::{PartitionFile, SortUnits};
use crate::tables::passes::spilled_rows::SpilledRows;
use crate::tables::passes::{EqualKeys, FileWriting, RowPartition, TablePasses};

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
        longest_row: 0, // blocks tell
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
    // Not joined: those that follow one another are on several nodes.
    let units = SortUnits::new(partitions, config.file_bytes, 0);
    let suffix = table.suffix();
    let names = units.files.iter().map(|file| name(file) + &suffix);
    let names = names.collect();
    let path_of = path_of(&config.output);
    let files = OutputFiles::new(&units, names, table.folders(), path_of);
    let paths = Arc::clone(files.paths());
    let uploads = match &config.output {
        Output::Directories(_) => None,
        Output::Objects { store, .. } => {
            let (names, part_bytes) = (Arc::clone(&paths), plan.output_block_bytes);
            let seal = Seal::EachWhenWhole;
            let uploads = Uploads::growing(store, names, part_bytes, seal, access);
            Some(Arc::new(uploads))
        }
    };
    let log = PartitionLog {
        log: FinishedLog::open(&config.finished)?,
        output: config.output.clone(),
        paths: Arc::clone(&paths),
        uploads: uploads.clone(),
    };
    let files = Arc::new(files.reporting(Box::new(move |whole| log.add(whole))));
    let durable = Arc::clone(&files);
    let writing = FileWriting {
        files: Arc::clone(&files) as Arc<_>,
        paths: Arc::clone(&paths),
        lanes,
        uploads,
        on_finished: OnFinished::call(move |number| durable.note_durable(number)),
    };
    let encoding = table.encoding(plan.group_bytes);
    let done = passes.pass_two(&plan, units, encoding, writing);
    if matches!(config.output, Output::Directories(_)) {
        for number in 0..paths.count() {
            let _none = fs::remove_file(paths.get(number)); // Whole partitions have other names.
        }
    }
    done?;
    let (sorted, _) = files.total();
    Ok(Outcome {
        sorted,
        repartitioned_bytes: passes.repartitioned_bytes,
        sent: [],
        received: [],
        requests: passes.access.counted(),
        seconds: passes.watch.epoch.elapsed().as_secs_f64(),
        phases: passes.phases,
    })
}

fn name(file: &PartitionFile) -> String {
    match file.place {
        None => format!("part-{:05}", file.partition),
        Some(place) => format!("part-{:05}-{place:05}", file.partition),
    }
}

/// Where a file is written: an object in its place, a file outside of the folders until it is whole.
fn path_of(output: &Output) -> Box<PathOf> {
    match output.clone() {
        Output::Directories(directories) => Box::new(move |number, name| {
            let in_folder = name.rsplit('/').next().unwrap_or(name);
            let partition = in_folder.split('.').next().unwrap_or(in_folder);
            directories[number % directories.len()]
                .join(format!("{partition}-{number:05}.{UNFINISHED}"))
        }),
        Output::Objects { prefix, .. } => Box::new(move |_, name| Path::new(&prefix).join(name)),
    }
}
