//! Samples the keys of rows of a node's splits, and how long rows are.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tonnage_disk::Disk;
use tonnage_object::RequestCounts;
use tonnage_pipeline::RunHandle;

use super::key_sample::KeySample;
use crate::error::JobError;
use crate::objects::object_input::{access, default_requests};
use crate::phases::{Phase, Watch, memory};
use crate::tables::format_config::{self, FormatConfig};
use crate::tables::input::object_file::ObjectFiles;
use crate::tables::input::table_file::{TableFile, TableFileConfig};
use crate::tables::passes::{LONGEST_ROW, TablePasses};
use crate::tables::table_format::scaled;

/// What to sample.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The splits.
    pub splits: Vec<TableFileConfig>,
    /// Places to sample.
    pub chunks: usize,
    /// Where the sample goes.
    pub sample: PathBuf,
    /// Their format, and what rows are sorted by.
    pub format: FormatConfig,
    /// Whether rows with equal keys keep their order.
    pub stable: bool,
    /// Whether of rows with equal keys only the first is kept.
    pub unique: bool,
    /// Bytes of what is read at once, as in pass one.
    pub split_bytes: usize,
    /// Memory for all buffers.
    pub memory_bytes: usize,
    /// How to use the disks.
    #[serde(default)]
    pub disk: Disk,
    /// Concurrent requests to an object store.
    #[serde(default = "default_requests")]
    pub requests: usize,
}

/// What was sampled.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Number of keys.
    pub keys: usize,
    /// Requests to object stores.
    pub requests: RequestCounts,
    /// The run.
    pub phases: Vec<Phase>,
}

/// Samples.
///
/// # Errors
/// What is refused, what fails, or the cancellation.
pub fn run(config: &Config, handle: &RunHandle) -> Result<Outcome, JobError> {
    let watch = Watch::begin(handle);
    let access = access(config.requests)?;
    let splits = TableFile::find(&config.splits, &ObjectFiles::new(&access, handle))?;
    let table = format_config::open(&config.format, &splits, config.stable)?;
    let memory = memory(config.memory_bytes)?;
    let (table, unique) = (table.as_ref(), config.unique);
    let mut passes = TablePasses::new(watch, &config.disk, table, unique, memory);
    passes.access = access;
    let found = passes.sample(config.chunks)?;
    let all = table.all(config.split_bytes, LONGEST_ROW)?;
    let spans = all.extents.iter().map(|extent| extent.span());
    let rows_bytes = table.rows_bytes(&found);
    let rows_about = || scaled(found.rows, rows_bytes, found.bytes);
    let sample = KeySample {
        rows: found.rows,
        bytes: found.bytes,
        longest_row: found.longest_row,
        rows_bytes,
        all_rows: table.rows().unwrap_or_else(rows_about),
        number_bytes: table.shape().number_bytes(),
        decoding_bytes: all.rows.memory_bytes(),
        split_span: spans.max().unwrap_or(0),
        keys: passes.range_keys(&found).map(<[u8]>::to_vec).collect(),
    };
    sample.write(&config.sample)?;
    Ok(Outcome {
        keys: sample.keys.len(),
        requests: passes.access.counted(),
        phases: passes.phases,
    })
}
