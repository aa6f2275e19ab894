//! Counts the quotes of a node's splits of text, whose newlines may be within quotes: then it is known
//! of each split whether it begins within them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tonnage_disk::Disk;
use tonnage_object::RequestCounts;
use tonnage_pipeline::{Graph, Node, RunHandle};
use tonnage_stages::extent::{Extent, Piece};
use tonnage_stages::sink::CountQuotes;

use crate::error::JobError;
use crate::objects::object_input::{access, default_requests};
use crate::phases::{Phase, Watch, memory, workers};
use crate::tables::format_config::FormatConfig;
use crate::tables::input::object_file::ObjectFiles;
use crate::tables::input::table_file::{TableFile, TableFileConfig};
use crate::tables::passes::read_splits;

/// The splits to look at.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The splits.
    pub splits: Vec<TableFileConfig>,
    /// Their format.
    pub format: FormatConfig,
    /// Bytes of what is read at once.
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

/// What splits have.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Whether each split has an odd number of quotes; none has any where quotes mean nothing.
    pub odd: Vec<bool>,
    /// Requests to object stores.
    pub requests: RequestCounts,
    /// The run.
    pub phases: Vec<Phase>,
}

/// Counts.
///
/// # Errors
/// What is refused, what fails, or the cancellation.
pub fn run(config: &Config, handle: &RunHandle) -> Result<Outcome, JobError> {
    let watch = Watch::begin(handle);
    let access = access(config.requests)?;
    let splits = TableFile::find(&config.splits, &ObjectFiles::new(&access, handle))?;
    let mut odd = vec![false; splits.len()];
    let Some(quote) = config.format.quote() else {
        return Ok(Outcome {
            odd,
            requests: access.counted(),
            phases: Vec::new(),
        });
    };
    let (split_of, extents) = extents(&splits, config.split_bytes);
    let memory = memory(config.memory_bytes)?;
    let requests = access.clone();
    let buffers = workers() + access.requests;
    let read = read_splits(&config.disk, requests, &memory, &extents, buffers);
    let modes = Arc::clone(&read.modes);
    let found: Arc<Mutex<BTreeMap<usize, bool>>> = Arc::default();
    let count = CountQuotes {
        quote,
        extents: Arc::new(extents),
        workers: workers(),
        odd: Arc::clone(&found),
    };
    let graph = Graph::chain([Node::new("read", read), Node::new("count_quotes", count)]);
    let phase = watch.run_on_disks("count_quotes", &graph, &memory, &[&modes])?;
    for (extent, is_odd) in found.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        odd[split_of[*extent]] ^= is_odd;
    }
    Ok(Outcome {
        odd,
        requests: access.counted(),
        phases: vec![phase],
    })
}

/// What is read of splits, of at most `most_bytes` each, and the split of each extent.
fn extents(splits: &[TableFile], most_bytes: usize) -> (Vec<usize>, Vec<Arc<Extent>>) {
    let (mut split_of, mut extents) = (Vec::new(), Vec::new());
    for (number, split) in splits.iter().enumerate() {
        let end = split.input.offset + split.input.bytes;
        for offset in (split.input.offset..end).step_by(most_bytes) {
            split_of.push(number);
            extents.push(Arc::new(Extent {
                number: extents.len(),
                offset,
                in_order: false,
                pieces: vec![Piece {
                    file: split.input.file.clone(),
                    offset,
                    len: (end - offset).min(most_bytes as u64) as usize,
                    crc: None,
                }],
            }));
        }
    }
    (split_of, extents)
}
