//! `valsort`: checks that records are in order, over one file or many (`read -> summarise`).

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tonnage_disk::Disk;
use tonnage_pipeline::{Graph, Node, RunHandle};
use tonnage_records::{Layout, Summary};
use tonnage_stages::disk::modes::DiskModes;
use tonnage_stages::extent::aligned;
use tonnage_stages::ports::RECORDS;
use tonnage_stages::sink::Summarise;
use tonnage_stages::source::ReadExtents;

use crate::error::JobError;
use crate::inputs;
use crate::objects::object_input::ObjectStorage;
use crate::phases::{Phase, Watch, memory, workers};

/// Bytes of an extent.
const EXTENT_BYTES: usize = 4 << 20;

/// What to validate.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Files in order, or directories, or urls.
    pub inputs: Vec<PathBuf>,
    /// Size of a record and place of its key.
    pub layout: Layout,
    /// How to use the disks.
    #[serde(default)]
    pub disk: Disk,
    /// How to use an object store.
    #[serde(default)]
    #[serde(rename = "volumes")]
    pub storage: ObjectStorage,
}

/// The summary of a file, or of all files in order.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// The file, or the object's URL; `None` for all together.
    pub file: Option<PathBuf>,
    /// Records.
    pub records: u64,
    /// Sum of their CRC-32s.
    pub checksum: String,
    /// Records whose key is less than that of the one before.
    pub unordered: u64,
    /// The first of them, counted from 0.
    pub first_unordered: Option<u64>,
    /// Records whose key equals that of the one before.
    pub duplicate_keys: u64,
}

/// The results.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// All files as one sequence.
    #[serde(flatten)]
    pub all: Finding,
    /// Bytes read.
    pub bytes: u64,
    /// Seconds it took.
    pub seconds: f64,
    /// Each file alone.
    pub files: Vec<Finding>,
    /// The run.
    pub phases: Vec<Phase>,
}

/// Validates.
///
/// # Errors
/// What is refused, what fails, or the cancellation. Disorder is a finding, not an error.
pub fn run(config: &Config, handle: &RunHandle) -> Result<Outcome, JobError> {
    let watch = Watch::begin(handle);
    let record = config.layout.record_bytes;
    let access = config.storage.access()?;
    let inputs = inputs::find(&config.inputs, record, &config.storage, &access)?;
    let lanes = inputs::extents(&inputs, record, EXTENT_BYTES);
    let workers = workers();
    let largest = lanes
        .iter()
        .flatten()
        .map(|extent| extent.span())
        .max()
        .unwrap_or(0);
    let modes = Arc::new(DiskModes::default());
    let read = ReadExtents {
        disk: config.disk.clone(),
        buffers: 4 * lanes.len() + inputs::readers(&inputs, &access) + workers + 1,
        lanes: Arc::new(lanes),
        access,
        next: Arc::default(),
        gives: RECORDS,
        record_bytes: record,
        buffer_bytes: aligned(largest).max(4096),
        modes: Arc::clone(&modes),
    };
    let found = Arc::new(Mutex::new(Vec::new()));
    let summarise = Summarise {
        layout: config.layout,
        workers,
        found: Arc::clone(&found),
    };
    let graph = Graph::chain([Node::new("read", read), Node::new("summarise", summarise)]);
    let mut phase = watch.run("validate", &graph, &memory(graph.memory_bytes())?, None)?;
    phase.disk_modes = modes.distinct();

    let mut summaries = std::mem::take(&mut *found.lock().unwrap_or_else(PoisonError::into_inner));
    summaries.sort_unstable_by_key(|(file, offset, _)| (*file, *offset));
    let mut of_files = vec![Summary::empty(); inputs.len()];
    for (file, _, summary) in summaries {
        let before = std::mem::replace(&mut of_files[file], Summary::empty());
        of_files[file] = before.merge(summary);
    }
    let files = inputs.iter().zip(&of_files);
    let files = files.map(|(input, summary)| finding(Some(input.file.name()), summary));
    let files = files.collect();
    let all = of_files.into_iter().fold(Summary::empty(), Summary::merge);
    Ok(Outcome {
        all: finding(None, &all),
        bytes: inputs.iter().map(|input| input.bytes).sum(),
        seconds: watch.epoch.elapsed().as_secs_f64(),
        files,
        phases: vec![phase],
    })
}

fn finding(file: Option<PathBuf>, summary: &Summary) -> Finding {
    Finding {
        file,
        records: summary.records,
        checksum: summary.checksum_hex(),
        unordered: summary.unordered,
        first_unordered: summary.first_unordered,
        duplicate_keys: summary.duplicate_keys,
    }
}
