//! Partition boundaries of a cluster: quantiles of the keys that all nodes sampled.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tonnage_pipeline::RunHandle;
use tonnage_records::Layout;
use tonnage_stages::boundaries::{Bound, Boundaries};

use crate::error::JobError;

/// The samples, and how to divide them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Files of keys, one per node.
    pub samples: Vec<PathBuf>,
    /// Where the key is.
    pub layout: Layout,
    /// How many partitions to aim for.
    pub partitions: usize,
}

/// Boundaries.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Where each partition but the first begins.
    pub bounds: Vec<Bound>,
    /// Whether all keys of a partition are equal, so that it is in order already.
    pub single: Vec<bool>,
}

/// Chooses boundaries.
///
/// # Errors
/// When a file cannot be read.
pub fn run(config: &Config, _control: &RunHandle) -> Result<Outcome, JobError> {
    let mut keys = Vec::new();
    for path in &config.samples {
        let sample = fs::read(path).map_err(|why| JobError::file("read", path, &why))?;
        keys.extend(sample);
    }
    let boundaries = Boundaries::from_sample(&keys, &config.layout, config.partitions);
    Ok(Outcome {
        bounds: boundaries.bounds().to_vec(),
        single: (0..boundaries.partitions())
            .map(|place| boundaries.is_single(place))
            .collect(),
    })
}
