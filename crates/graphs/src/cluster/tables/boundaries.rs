//! How the rows of all nodes are divided: partitions as quantiles of the keys that nodes sampled, and
//! sizes that are the same on all nodes.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tonnage_disk::Disk;
use tonnage_pipeline::RunHandle;
use tonnage_stages::boundaries::{Bound, KeyRanges};

use super::key_sample::KeySample;
use crate::error::JobError;
use crate::tables::limit::{self, Cutoff};
use crate::tables::memory::{StoreRequests, TablePlan, TableShape};

/// The samples, and what each node has.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Files of samples, one per node.
    pub samples: Vec<PathBuf>,
    /// Whether of rows with equal keys only the first is kept.
    pub unique: bool,
    /// How many rows are wanted, the first; all by default.
    #[serde(default)]
    pub limit: Option<u64>,
    /// Memory of a node.
    pub memory_bytes: usize,
    /// The most threads of a node.
    pub workers: usize,
    /// How many nodes.
    pub endpoints: usize,
    /// Connections from each to each other.
    pub connections: usize,
    /// Devices of scratch and output.
    pub devices: (usize, usize),
    /// Concurrent requests of a node to object stores.
    pub requests: StoreRequests,
}

/// Partitions.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Where each partition but the first begins.
    pub bounds: Vec<Bound>,
    /// Whether all keys of a partition are equal.
    pub single: Vec<bool>,
    /// How many of the first partitions have the rows that are wanted, most likely.
    pub wanted: usize,
    /// Bytes of a block.
    pub block_bytes: usize,
    /// About how many bytes a row has.
    pub row_bytes: usize,
    /// About how many bytes all rows have.
    pub rows_bytes: u64,
}

/// Chooses partitions.
///
/// # Errors
/// When a file cannot be read, or memory is too small.
pub fn run(config: &Config, _handle: &RunHandle) -> Result<Outcome, JobError> {
    limit::check(config.limit, config.unique)?;
    let mut all = KeySample::default();
    for path in &config.samples {
        let sample = KeySample::read(path)?;
        all.rows += sample.rows;
        all.bytes += sample.bytes;
        all.longest_row = all.longest_row.max(sample.longest_row);
        all.rows_bytes += sample.rows_bytes;
        all.all_rows += sample.all_rows;
        all.number_bytes = sample.number_bytes;
        all.decoding_bytes = all.decoding_bytes.max(sample.decoding_bytes);
        all.split_span = all.split_span.max(sample.split_span);
        all.keys.extend(sample.keys);
    }
    let row_bytes = usize::try_from(all.bytes / all.rows.max(1)).unwrap_or(usize::MAX);
    let plan = TablePlan::new(&TableShape {
        rows_bytes: all.rows_bytes,
        row_bytes,
        longest_row: all.longest_row,
        memory_bytes: config.memory_bytes,
        workers: config.workers,
        devices: config.devices,
        depth: Disk::default().depth,
        requests: config.requests,
        decoding_bytes: all.decoding_bytes,
        encoding_bytes: 0,
        split_span: all.split_span,
        endpoints: config.endpoints,
        links: (config.endpoints - 1) * config.connections,
        longest_partition: None,
    })?;
    let keys = all.keys.iter().map(Vec::as_slice).collect();
    let mut ranges = KeyRanges::from_sample(keys, plan.partitions);
    if config.unique {
        ranges = ranges.undivided().before_numbers(all.number_bytes);
    }
    let cutoff = config
        .limit
        .and_then(|limit| Cutoff::new(&all.keys, all.all_rows, limit));
    Ok(Outcome {
        bounds: ranges.bounds().to_vec(),
        single: (0..ranges.len())
            .map(|range| ranges.is_single(range))
            .collect(),
        wanted: cutoff.map_or(ranges.len(), |cutoff| ranges.up_to(&cutoff.key)),
        block_bytes: plan.block_bytes,
        row_bytes,
        rows_bytes: all.rows_bytes,
    })
}
