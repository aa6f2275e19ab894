//! A round of pass one: as for records (`cluster::pass_one`), with rows.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tonnage_disk::Disk;
use tonnage_net::Settings;
use tonnage_pipeline::{KeptPages, RunHandle};
use tonnage_stages::boundaries::{Bound, KeyRanges};
use tonnage_stages::scratch::Scratch;
use tonnage_stages::totals::Total;

use crate::cluster::exchange::{Exchange, connect};
use crate::cluster::pass_one_result;
use crate::error::{JobError, usage_error};
use crate::inputs::{self, Input};
use crate::objects::object_input::{access, default_requests};
use crate::phases::{Watch, memory, workers};
use crate::tables::format_config::{self, FormatConfig};
use crate::tables::input::object_file::ObjectFiles;
use crate::tables::input::table_file::{TableFile, TableFileConfig};
use crate::tables::memory::{StoreRequests, TablePlan, TableShape};
use crate::tables::passes::{LONGEST_ROW, TablePasses};

/// A node's part in a round.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The nodes.
    pub mesh: Settings,
    /// What this node reads.
    pub splits: Vec<TableFileConfig>,
    /// Their format, and what rows are sorted by.
    pub format: FormatConfig,
    /// Whether rows with equal keys keep their order.
    pub stable: bool,
    /// Bytes of what is read at once, the same on all nodes.
    pub split_bytes: usize,
    /// Where each partition but the first begins.
    pub bounds: Vec<Bound>,
    /// The owner of each partition; `None` if it is not wanted.
    pub owners: Vec<Option<usize>>,
    /// Files for the partitions that this node owns, one per device.
    pub scratch: Vec<PathBuf>,
    /// Expected bytes of these.
    pub room_bytes: u64,
    /// Where to write the index.
    pub index: PathBuf,
    /// Size of a block, the same on all nodes.
    pub block_bytes: usize,
    /// About how many bytes a row has.
    pub row_bytes: usize,
    /// Memory for all buffers, what is decoded, and what is encoded.
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
    /// As of records.
    #[serde(flatten)]
    pub round: pass_one_result::Outcome,
    /// The rows that it read of each partition, wanted or not.
    pub partition_rows: Vec<Total>,
}

/// Runs a round's part.
///
/// # Errors
/// What is refused, what fails here (not at a peer), or the cancellation.
pub fn run(config: &Config, handle: &RunHandle) -> Result<Outcome, JobError> {
    let watch = Watch::begin(handle);
    let _pages = KeptPages::begin();
    let ranges = KeyRanges::new(config.bounds.clone());
    let partitions = config.owners.len();
    if partitions != ranges.len() {
        return Err(usage_error(format!(
            "there are owners for {partitions} partitions, but there are {} partitions",
            ranges.len()
        )));
    }
    let access = access(config.requests)?;
    let splits = TableFile::find(&config.splits, &ObjectFiles::new(&access, handle))?;
    let table = format_config::open(&config.format, &splits, config.stable)?;
    let all = table.all(config.split_bytes, LONGEST_ROW)?;
    let (devices, endpoints) = (config.scratch.len(), config.mesh.endpoints.len());
    let inputs: Vec<Input> = splits.into_iter().map(|split| split.input).collect();
    let spans = all.extents.iter().map(|extent| extent.span());
    let shape = TableShape {
        rows_bytes: config.room_bytes * endpoints as u64, // as if all got as much
        row_bytes: config.row_bytes,
        longest_row: 0, // blocks tell
        memory_bytes: config.memory_bytes,
        workers: workers(),
        devices: (devices, devices),
        depth: config.disk.depth,
        requests: StoreRequests {
            downloads: if inputs::has_objects(&inputs) {
                access.requests
            } else {
                0
            },
            uploads: 0,
        },
        decoding_bytes: all.rows.memory_bytes(),
        encoding_bytes: 0,
        split_span: spans.max().unwrap_or(0),
        endpoints,
        links: (endpoints - 1) * config.mesh.connections,
        longest_partition: None,
    };
    let plan = TablePlan::of_round(&shape, partitions, config.block_bytes)?;
    let scratch = Scratch::in_files(&config.disk, &config.scratch, config.room_bytes)?;
    let scratch = Arc::new(scratch.with_checksums());
    let memory = memory(plan.memory_bytes)?;
    let mesh = connect(&config.mesh, handle)?;
    let meeting_seconds = watch.epoch.elapsed().as_secs_f64();
    let mut passes = TablePasses::new(watch, &config.disk, table.as_ref(), false, memory);
    passes.access = access;
    let count = all.count;
    let mut pass = passes.pass_one(&plan, all, ranges, &scratch, 0);
    let blocks = (plan.block_bytes, plan.spare_blocks);
    let wire = Exchange::of_blocks(mesh, config.mesh.number, 1, blocks, devices);
    pass.partition.lanes = Arc::new(wire.lanes_to(&config.owners));
    pass.wire = Some(wire);
    let read = passes.run_pass_one("pass_one", &pass)?;
    if count.is_some_and(|count| count != read.records) {
        return Err(JobError::failure(format!(
            "{} rows were read of files that have {} there: a device or memory is corrupting data",
            read.records,
            count.unwrap_or(0)
        )));
    }
    let wire = pass.wire.as_ref();
    let saved = pass_one_result::save_round(wire, partitions, &scratch, &config.index)?;
    let round = pass_one_result::Outcome {
        read,
        sent: saved.sent,
        received: saved.received,
        partitions: saved.partitions,
        meeting_seconds,
        requests: passes.access.counted(),
        seconds: passes.watch.epoch.elapsed().as_secs_f64(),
        phases: passes.phases,
    };
    let rows = |partition| pass.partition.totals.of(partition);
    Ok(Outcome {
        round,
        partition_rows: (0..partitions).map(rows).collect(),
    })
}
