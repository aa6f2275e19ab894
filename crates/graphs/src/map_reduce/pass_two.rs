//! Pass two to the host: partitions of pass one, each in one portion or in several small enough
//! ones.
//!
//! It is the sort's pass two with `to_host` in place of its last two stages. Blocks are never
//! divided: a portion is whole blocks.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tonnage_disk::Disk;
use tonnage_pipeline::{Graph, GraphError, Node, RunHandle};
use tonnage_records::Layout;
use tonnage_stages::extent::{ALIGNMENT, Extent};
use tonnage_stages::host_queue::HostQueue;
use tonnage_stages::scratch::Scratch;
use tonnage_stages::sink::{PartitionBlocks, ToHost};
use tonnage_stages::totals::{Total, Totals};
use tonnage_stages::work::Unit;

use crate::cluster::pass_two::Round;
use crate::error::{JobError, usage_error};
use crate::memory_plan::{Plan, Shape, UNCOUNTED};
use crate::phases::{Phase, Watch, memory};
use crate::sort::pass_graphs::PassTwo;
use crate::sort::spilled_partition::SpilledPartition;

/// What to read.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What the rounds of pass one left on this node.
    pub rounds: Vec<Round>,
    /// Partitions, in this order for each device.
    pub partitions: Vec<usize>,
    /// The largest portion; a larger partition arrives in several.
    pub portion_bytes: usize,
    /// Memory for portions.
    pub memory_bytes: usize,
    /// How to use the disks.
    #[serde(default)]
    pub disk: Disk,
}

/// The results.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Blocks, their bytes and the sum of their CRC-32s.
    pub taken: Total,
    /// Seconds in total.
    pub seconds: f64,
    /// The run.
    pub phases: Vec<Phase>,
}

/// Reads partitions. When it ends all have left, except for what still waits in the queue.
///
/// # Errors
/// What is refused, what fails, or the cancellation; the queue is aborted then, and closed
/// otherwise.
pub fn run(
    config: &Config,
    queue: &Arc<HostQueue<PartitionBlocks>>,
    handle: &RunHandle,
) -> Result<Outcome, JobError> {
    let outcome = read(config, queue, handle);
    match outcome {
        Ok(_) => queue.close(),
        Err(_) => queue.abort(),
    }
    outcome
}

fn read(
    config: &Config,
    queue: &Arc<HostQueue<PartitionBlocks>>,
    handle: &RunHandle,
) -> Result<Outcome, JobError> {
    let watch = Watch::begin(handle);
    let rounds = Round::open_all(&config.rounds, &config.disk)?;
    let devices = config.rounds.first().map_or(1, |round| round.scratch.len());
    let mut portions: Vec<(usize, Arc<Extent>)> = Vec::new();
    let mut lanes: Vec<Vec<Arc<Extent>>> = vec![Vec::new(); devices];
    for &partition in &config.partitions {
        let lane = partition % devices;
        for mut extent in portions_of(&rounds, partition, lane, config.portion_bytes)? {
            extent.number = portions.len();
            let extent = Arc::new(extent);
            lanes[lane].push(Arc::clone(&extent));
            portions.push((partition, extent));
        }
    }
    let pass = pass(config, &portions, lanes)?;
    let totals = Arc::new(Totals::default());
    let taken = ToHost {
        portions: Arc::new(portions),
        queue: Arc::clone(queue),
        totals: Arc::clone(&totals),
    };
    let graph = to_host(&pass, taken).map_err(|why| JobError::failure(why.to_string()))?;
    let memory = memory(config.memory_bytes)?;
    let mut phase = watch.run("pass_two", &graph, &memory, None)?;
    phase.disk_modes = pass.read.modes.distinct();
    Ok(Outcome {
        taken: totals.total(),
        seconds: watch.epoch.elapsed().as_secs_f64(),
        phases: vec![phase],
    })
}

/// A partition in portions of whole blocks.
fn portions_of(
    rounds: &[Scratch],
    partition: usize,
    lane: usize,
    portion_bytes: usize,
) -> Result<Vec<Extent>, JobError> {
    let spilled = SpilledPartition {
        number: partition,
        blocks: rounds
            .iter()
            .flat_map(|round| round.take(partition))
            .collect(),
        lane,
        in_order: true, // What need not stay together is cut in portions.
    };
    let longest = spilled
        .blocks
        .iter()
        .map(|block| block.len)
        .max()
        .unwrap_or(0);
    if longest + 2 * ALIGNMENT > portion_bytes {
        return Err(usage_error(format!(
            "a block of {longest} bytes does not fit into a sort buffer of {portion_bytes} bytes"
        )));
    }
    Ok(spilled.extents(portion_bytes, 1))
}

/// The sort's pass two, of which only the reading is used.
fn pass(
    config: &Config,
    portions: &[(usize, Arc<Extent>)],
    lanes: Vec<Vec<Arc<Extent>>>,
) -> Result<PassTwo, JobError> {
    let largest = portions.iter().map(|(_, extent)| extent.span()).max();
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
        slots: (config.memory_bytes / largest.unwrap_or(0).max(ALIGNMENT)).min(portions.len()),
        ..Plan::new(&shape, &config.disk)?
    };
    // Fewer than there are devices suffice: devices take turns with the memory.
    if plan.slots == 0 && !portions.is_empty() {
        return Err(usage_error(format!(
            "{} bytes of memory are not enough for a sort buffer of {} bytes; use more",
            config.memory_bytes, config.portion_bytes
        )));
    }
    let unit = |(_, extent): &(usize, Arc<Extent>)| Unit {
        extent: Arc::clone(extent),
        file: 0,
        lane: 0,
    };
    let units = portions.iter().map(unit).collect();
    let layout = Layout {
        record_bytes: UNCOUNTED,
        ..Layout::SORT_BENCHMARK
    };
    Ok(PassTwo::new(
        &config.disk,
        &plan,
        &layout,
        lanes,
        units,
        Vec::new(),
        1,
    ))
}

/// A pass's graph with its partitions given to the host in place of sorting and writing.
///
/// # Errors
/// When the pass has no such stages.
pub fn to_host(pass: &PassTwo, taken: ToHost) -> Result<Graph, GraphError> {
    pass.graph()
        .replace("sort"..="write", Node::new("to_host", taken))
}
