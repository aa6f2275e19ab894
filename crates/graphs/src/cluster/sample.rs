//! Samples the keys of chunks spread evenly over a node's splits.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tonnage_disk::Disk;
use tonnage_object::RequestCounts;
use tonnage_pipeline::RunHandle;
use tonnage_records::Layout;

use crate::error::JobError;
use crate::inputs::{self, Split};
use crate::memory_plan::{Plan, Shape};
use crate::objects::object_input::{access, default_requests};
use crate::phases::{Phase, Watch, workers};
use crate::sort::external_sort::{ExternalSort, chunk_bytes};

/// What to sample.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The splits.
    pub splits: Vec<Split>,
    /// Number of chunks.
    pub chunks: usize,
    /// Where the keys go, concatenated.
    pub keys: PathBuf,
    /// Size of a record and place of its key.
    pub layout: Layout,
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
    let (watch, record_bytes) = (Watch::begin(handle), config.layout.record_bytes);
    let access = access(config.requests)?;
    let inputs = inputs::splits(&config.splits, record_bytes)?;
    let sample = inputs::sample(
        &inputs,
        record_bytes,
        config.chunks,
        chunk_bytes(record_bytes),
    );
    let shape = Shape {
        bytes: inputs.iter().map(|input| input.bytes).sum(),
        record_bytes,
        memory_bytes: config.memory_bytes,
        workers: workers(),
        devices: (inputs::readers(&inputs, &access), 1, 1),
        downloads: inputs::has_objects(&inputs),
        uploads: false,
        endpoints: 1,
        connections: 1,
    };
    let mut passes = ExternalSort::new(
        watch,
        &config.disk,
        access,
        config.layout,
        Plan::new(&shape, &config.disk)?,
    )?;
    let keys = passes.keys(sample)?;
    fs::write(&config.keys, &keys).map_err(|why| JobError::file("write", &config.keys, &why))?;
    Ok(Outcome {
        keys: keys.len() / config.layout.key_bytes,
        requests: passes.access.counted(),
        phases: passes.phases,
    })
}
