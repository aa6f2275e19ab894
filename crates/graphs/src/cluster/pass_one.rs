//! A round of pass one: a node sends its splits to the owners of their partitions, and receives the
//! partitions that it owns into its scratch.
//!
//! A lost peer does not end the round: the index leaves out what arrived from it. Frames carry
//! checksums. The driver sees from all outcomes what has arrived where.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use tonnage_disk::Disk;
use tonnage_net::Settings;
use tonnage_pipeline::RunHandle;
use tonnage_records::Layout;
use tonnage_stages::boundaries::{Bound, Boundaries};
use tonnage_stages::scratch::Scratch;
use tonnage_stages::sink::Target;

use crate::cluster::exchange::connect;
use crate::cluster::pass_one_result;
pub use crate::cluster::pass_one_result::Outcome;
use crate::error::{JobError, usage_error};
use crate::inputs::{self, Split};
use crate::memory_plan::{Plan, Shape};
use crate::objects::object_input::{access, default_requests};
use crate::phases::{Watch, workers};
use crate::sort::external_sort::ExternalSort;
use crate::sort::pass_graphs::PassOne;

/// A node's part in a round.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The nodes.
    pub mesh: Settings,
    /// What this node reads.
    pub splits: Vec<Split>,
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
    /// Size of a record and place of its key.
    pub layout: Layout,
    /// Memory for all buffers and indexes.
    pub memory_bytes: usize,
    /// How to use the disks.
    #[serde(default)]
    pub disk: Disk,
    /// Concurrent requests to an object store.
    #[serde(default = "default_requests")]
    pub requests: usize,
}

/// Runs a round's part.
///
/// # Errors
/// What is refused, what fails here (not at a peer), or the cancellation.
pub fn run(config: &Config, handle: &RunHandle) -> Result<Outcome, JobError> {
    let (watch, record_bytes) = (Watch::begin(handle), config.layout.record_bytes);
    let boundaries = Boundaries::new(config.bounds.clone(), &config.layout);
    if config.owners.len() != boundaries.partitions() {
        return Err(usage_error(format!(
            "there are owners for {} partitions, but there are {} partitions",
            config.owners.len(),
            boundaries.partitions()
        )));
    }
    let access = access(config.requests)?;
    let inputs = inputs::splits(&config.splits, record_bytes)?;
    let bytes: u64 = inputs.iter().map(|input| input.bytes).sum();
    let (readers, scratches) = (inputs::readers(&inputs, &access), config.scratch.len());
    let shape = Shape {
        bytes,
        record_bytes,
        memory_bytes: config.memory_bytes,
        workers: workers(),
        devices: (readers, scratches, scratches),
        downloads: inputs::has_objects(&inputs),
        uploads: false,
        endpoints: config.mesh.endpoints.len(),
        connections: config.mesh.connections,
    };
    let plan = Plan {
        block_bytes: config.block_bytes,
        ..Plan::new(&shape, &config.disk)?
    };
    let extents = inputs::extents(&inputs, record_bytes, plan.extent_bytes);
    let scratch = Scratch::in_files(&config.disk, &config.scratch, config.room_bytes)?;
    let scratch = Arc::new(scratch.with_checksums());
    let mesh = connect(&config.mesh, handle)?;
    let meeting_seconds = watch.epoch.elapsed().as_secs_f64();
    let (target, lanes) = (Target::Scratch(Arc::clone(&scratch)), config.scratch.len());
    let mut pass = PassOne::new(
        &config.disk,
        &plan,
        record_bytes,
        extents,
        boundaries,
        target,
        lanes,
    )
    .between_nodes(mesh, config.mesh.number, &config.owners);
    pass.read.access = access.clone();
    let mut passes = ExternalSort::new(watch, &config.disk, access, config.layout, plan)?;
    passes.phase(
        "pass_one",
        &pass.graph(),
        &[&pass.read.modes, &pass.write.modes],
    )?;
    let (wire, partitions) = (pass.wire.as_ref(), config.owners.len());
    let saved = pass_one_result::save_round(wire, partitions, &scratch, &config.index)?;
    Ok(Outcome {
        read: pass.partition.totals.total(),
        sent: saved.sent,
        received: saved.received,
        partitions: saved.partitions,
        meeting_seconds,
        requests: passes.access.counted(),
        seconds: passes.watch.epoch.elapsed().as_secs_f64(),
        phases: passes.phases,
    })
}
