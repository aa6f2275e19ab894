//! A round of pass one with blocks from the host: they go to the owners of their partitions, and
//! the partitions that this node owns arrive in its scratch. On one machine a node owns all.
//!
//! It is the sort's pass one with `from_host` in place of its first two stages; a round (owners,
//! the index, lost peers) works as in the sort.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tonnage_disk::Disk;
use tonnage_net::Settings;
use tonnage_object::RequestCounts;
use tonnage_pipeline::{Graph, GraphError, Node, RunHandle};
use tonnage_records::Layout;
use tonnage_stages::boundaries::Boundaries;
use tonnage_stages::extent::ALIGNMENT;
use tonnage_stages::host_queue::HostQueue;
use tonnage_stages::scratch::Scratch;
use tonnage_stages::sink::Target;
use tonnage_stages::source::{FromHost, HostBlock};
use tonnage_stages::totals::Total;

use crate::cluster::exchange::connect;
use crate::cluster::pass_one_result;
use crate::error::{JobError, usage_error};
use crate::memory_plan::{Plan, Shape, UNCOUNTED};
use crate::phases::{Watch, memory};
use crate::sort::pass_graphs::PassOne;

/// A node's part in a round.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The nodes, if there are several.
    #[serde(default)]
    pub mesh: Option<Settings>,
    /// The owner of each partition, 0 if there is one node; `None` if it is not wanted.
    pub owners: Vec<Option<usize>>,
    /// Files for the partitions that this node owns, one per device.
    pub scratch: Vec<PathBuf>,
    /// Where to write the index.
    pub index: PathBuf,
    /// The largest block, the same on all nodes.
    pub block_bytes: usize,
    /// Memory for all buffers.
    pub memory_bytes: usize,
    /// How to use the disks.
    #[serde(default)]
    pub disk: Disk,
}

/// The results of a node.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// As for any round.
    #[serde(flatten)]
    pub round: pass_one_result::Outcome,
    /// Memory for each whole partition.
    pub spans: Vec<u64>,
    /// Blocks that the host gave here, by partition.
    pub given: Vec<Total>,
    /// Blocks in the index, by partition: what pass two has to read.
    pub came: Vec<Total>,
}

/// Runs a round's part with what arrives through `queue`, until that is closed.
///
/// # Errors
/// What is refused, what fails here (not at a peer), or the cancellation. The queue is aborted in
/// any case.
pub fn run(
    config: &Config,
    queue: &Arc<HostQueue<HostBlock>>,
    handle: &RunHandle,
) -> Result<Outcome, JobError> {
    let outcome = run_round(config, queue, handle);
    queue.abort();
    outcome
}

fn run_round(
    config: &Config,
    queue: &Arc<HostQueue<HostBlock>>,
    handle: &RunHandle,
) -> Result<Outcome, JobError> {
    let watch = Watch::begin(handle);
    let scratch = Scratch::in_files(&config.disk, &config.scratch, 0)?;
    let scratch = Arc::new(scratch.counting());
    let mesh = config.mesh.as_ref();
    let met = mesh.map(|mesh| connect(mesh, handle)).transpose()?;
    let meeting_seconds = watch.epoch.elapsed().as_secs_f64();
    let mut pass = pass(config, queue, &scratch)?;
    pass = match (met, mesh) {
        (Some(met), Some(mesh)) => pass.between_nodes(met, mesh.number, &config.owners),
        _ => keep_on_this_node(pass, &config.owners),
    };
    let graph = with_host_blocks(&pass, queue).map_err(|why| JobError::failure(why.to_string()))?;
    let memory = memory(config.memory_bytes)?;
    let mut phase = watch.run("pass_one", &graph, &memory, None)?;
    phase.disk_modes = pass.write.modes.distinct();
    let (wire, partitions) = (pass.wire.as_ref(), config.owners.len());
    let saved = pass_one_result::save_round(wire, partitions, &scratch, &config.index)?;
    let mut spans = scratch.spans();
    spans.resize(partitions, 0);
    let totals = &pass.partition.totals;
    Ok(Outcome {
        round: pass_one_result::Outcome {
            read: totals.total(),
            sent: saved.sent,
            received: saved.received,
            partitions: saved.partitions,
            meeting_seconds,
            requests: RequestCounts::default(),
            seconds: watch.epoch.elapsed().as_secs_f64(),
            phases: vec![phase],
        },
        spans,
        given: (0..partitions).map(|place| totals.of(place)).collect(),
        came: scratch.counted(partitions),
    })
}

/// The sort's pass one, of which only the stages behind the blocks are used.
fn pass(
    config: &Config,
    queue: &HostQueue<HostBlock>,
    scratch: &Arc<Scratch>,
) -> Result<PassOne, JobError> {
    let block_bytes = config.block_bytes.next_multiple_of(ALIGNMENT);
    // The queue's blocks need memory in addition to the buffers. On a cluster the receiving stage has
    // as many buffers as the sending one.
    let room = config
        .memory_bytes
        .saturating_sub(queue.most_bytes() + block_bytes);
    let spare_blocks = room / block_bytes / if config.mesh.is_some() { 2 } else { 1 };
    if spare_blocks == 0 {
        return Err(usage_error(format!(
            "{} bytes of memory are not enough for a block of {block_bytes} bytes and {} bytes of queued blocks; use more",
            config.memory_bytes,
            queue.most_bytes()
        )));
    }
    let shape = Shape {
        bytes: 0,
        record_bytes: 100, // of a sort that is not run
        memory_bytes: config.memory_bytes,
        workers: 1,
        devices: (1, 1, 1),
        downloads: false,
        uploads: false,
        endpoints: 1,
        connections: 1,
    };
    let plan = Plan {
        block_bytes,
        spare_blocks,
        ..Plan::new(&shape, &config.disk)?
    };
    Ok(PassOne::new(
        &config.disk,
        &plan,
        UNCOUNTED,
        vec![Vec::new()],
        Boundaries::new(Vec::new(), &Layout::SORT_BENCHMARK),
        Target::Scratch(Arc::clone(scratch)),
        config.scratch.len(),
    ))
}

/// On one machine everything wanted stays here, on the device of its partition.
fn keep_on_this_node(mut pass: PassOne, owners: &[Option<usize>]) -> PassOne {
    let lanes = pass.write.lanes;
    let lane = |(place, owner): (usize, &Option<usize>)| owner.map(|_| place % lanes);
    pass.partition.lanes = Arc::new(owners.iter().enumerate().map(lane).collect());
    pass
}

/// A pass's graph with blocks from the host in place of reading and partitioning.
///
/// # Errors
/// When the pass has no such stages.
pub fn with_host_blocks(
    pass: &PassOne,
    queue: &Arc<HostQueue<HostBlock>>,
) -> Result<Graph, GraphError> {
    let given = FromHost {
        queue: Arc::clone(queue),
        lanes: Arc::clone(&pass.partition.lanes),
        buffers: pass.partition.spare_blocks,
        buffer_bytes: pass.partition.block_bytes,
        totals: Arc::clone(&pass.partition.totals),
    };
    pass.graph()
        .replace("read"..="partition", Node::new("from_host", given))
}
