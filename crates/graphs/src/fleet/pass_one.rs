//! A round of pass one: an endpoint's splits go to the owners of their partitions, and what belongs
//! to it comes to its scratch.
//!
//! A peer that is lost ends nothing: what came from it is left out of the index. What is sent carries
//! checksums. Whoever asked for the round sees from all outcomes what has come where.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tonnage_disk::Disk;
use tonnage_net::{Mesh, NetError, Settings};
use tonnage_object::Tally;
use tonnage_pipeline::Control;
use tonnage_records::Layout;
use tonnage_stages::boundaries::{Bound, Boundaries};
use tonnage_stages::ledger::Total;
use tonnage_stages::scratch::Scratch;
use tonnage_stages::sink::Target;
use tonnage_stages::work::{Received, Sent};

use crate::inputs::{self, Split};
use crate::job::{JobError, Phase, Watch, memory, workers};
use crate::passes::PassOne;
use crate::plan::{Plan, Shape};
use crate::two_pass::TwoPass;
use crate::volumes::{fetch, usual_requests};

/// An endpoint's part in a round.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Who takes part.
    pub mesh: Settings,
    /// What this one reads.
    pub splits: Vec<Split>,
    /// Where each partition but the first begins.
    pub bounds: Vec<Bound>,
    /// The endpoint that owns each partition; none if it is not wanted.
    pub owners: Vec<Option<usize>>,
    /// Files for what this one owns, one a device.
    pub scratch: Vec<PathBuf>,
    /// How much that may be.
    pub room_bytes: u64,
    /// Where to write what lies where.
    pub index: PathBuf,
    /// Size of a block, for all endpoints the same.
    pub block_bytes: usize,
    /// Size of a record and place of its key.
    pub layout: Layout,
    /// Memory for all buffers and indexes.
    pub memory_bytes: usize,
    /// How to use the disks.
    #[serde(default)]
    pub disk: Disk,
    /// Requests to an object store at once.
    #[serde(default = "usual_requests")]
    pub requests: usize,
}

/// What an endpoint did.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// What it read, wanted or not.
    pub read: Total,
    /// What each of its connections sent.
    pub sent: Vec<Sent>,
    /// What came by each connection.
    pub received: Vec<Received>,
    /// Bytes in the index, of each partition.
    pub partitions: Vec<u64>,
    /// How long it took until all had met.
    pub meeting_seconds: f64,
    /// What was asked of object stores.
    pub requests: Tally,
    /// Seconds in all.
    pub seconds: f64,
    /// The run.
    pub phases: Vec<Phase>,
}

/// Runs a round's part.
///
/// # Errors
/// What is refused, what fails here (not at a peer), or the cancellation.
pub fn run(config: &Config, control: &Control) -> Result<Outcome, JobError> {
    let (watch, record_bytes) = (Watch::begin(control), config.layout.record_bytes);
    let boundaries = Boundaries::new(config.bounds.clone(), &config.layout);
    if config.owners.len() != boundaries.partitions() {
        return Err(JobError::Refused(format!(
            "owners of {} partitions were given, there are {}",
            config.owners.len(),
            boundaries.partitions()
        )));
    }
    let fetch = fetch(config.requests)?;
    let inputs = inputs::splits(&config.splits, record_bytes)?;
    let bytes: u64 = inputs.iter().map(|input| input.bytes).sum();
    let (readers, scratches) = (inputs::readers(&inputs, &fetch), config.scratch.len());
    let shape = Shape {
        bytes,
        record_bytes,
        memory_bytes: config.memory_bytes,
        workers: workers(),
        devices: (readers, scratches, scratches),
        uploads: false,
        endpoints: config.mesh.endpoints.len(),
    };
    let plan = Plan {
        block_bytes: config.block_bytes,
        ..Plan::new(&shape, &config.disk)?
    };
    let extents = inputs::extents(&inputs, record_bytes, plan.extent_bytes);
    let scratch = Scratch::named(&config.disk, &config.scratch, config.room_bytes)?;
    let scratch = Arc::new(scratch);
    let mesh = Mesh::connect(&config.mesh, || control.is_cancelled()).map_err(|why| match why {
        NetError::Stopped => JobError::Cancelled,
        other => JobError::failed(other.to_string()),
    })?;
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
    .across(mesh, config.mesh.number, &config.owners);
    pass.read.fetch = fetch.clone();
    let mut passes = TwoPass {
        watch,
        disk: config.disk.clone(),
        fetch,
        layout: config.layout,
        memory: memory(plan.memory_bytes)?,
        plan,
        phases: Vec::new(),
        repartitioned_bytes: 0,
    };
    passes.phase(
        "pass_one",
        &pass.graph(),
        &[&pass.read.modes, &pass.write.modes],
    )?;
    let (sent, received) = match &pass.wire {
        Some((send, receive)) => (taken(&send.sent), taken(&receive.received)),
        None => (Vec::new(), Vec::new()),
    };
    let is_lost = |source| {
        received
            .iter()
            .any(|from| from.peer == source && from.lost.is_some())
    };
    let mut partitions = scratch.keep(|source| !is_lost(source));
    partitions.resize(config.owners.len(), 0);
    scratch
        .save(&config.index)
        .map_err(|why| JobError::file("writing", &config.index, &why))?;
    Ok(Outcome {
        read: pass.partition.ledger.total(),
        sent,
        received,
        partitions,
        meeting_seconds,
        requests: passes.fetch.counted(),
        seconds: passes.watch.epoch.elapsed().as_secs_f64(),
        phases: passes.phases,
    })
}

fn taken<T>(list: &Mutex<Vec<T>>) -> Vec<T> {
    std::mem::take(&mut list.lock().unwrap_or_else(PoisonError::into_inner))
}
