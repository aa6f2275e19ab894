//! The CPU benchmark: the work of each pass of the sort, with its disks taken off.
//!
//! ```text
//!   partitioning   pass_one.keep(partition).feed(generate).drain(discard)
//!   sorting        pass_two.keep(sort).feed(generate).drain(discard)
//! ```
//!
//! These are the job's stages with the job's settings, on records of the sort benchmark that are
//! generated before the clock starts. The rest of a job's CPU time is its I/O, which the disk
//! benchmark measures.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tonnage_disk::Disk;
use tonnage_pipeline::{Graph, GraphError, Node, Port, RunError, RunHandle};
use tonnage_records::{Encoding, Generator, Layout};
use tonnage_stages::boundaries::Boundaries;
use tonnage_stages::extent::{Extent, FileRef, Piece, aligned};
use tonnage_stages::ports::{BLOCKS, PARTITIONS, RECORDS};
use tonnage_stages::sink::Target;
use tonnage_stages::source::{Chunk, Content, Generate};
use tonnage_stages::work::Unit;

use crate::benches::disk::discard;
use crate::error::{JobError, setting_error};
use crate::memory_plan::{Plan, Shape};
use crate::phases::{Phase, Watch, memory, workers};
use crate::sort::pass_graphs::{PassOne, PassTwo};

/// Records whose keys give the boundaries.
const SAMPLED_RECORDS: usize = 20_000;

/// The benchmark to run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Size of the sort.
    pub bytes: u64,
    /// Its memory.
    pub memory_bytes: usize,
    /// Seconds for each phase.
    pub seconds: f64,
}

/// The results.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// `partition` and `sort`.
    pub phases: Vec<Phase>,
}

/// Pass one's work without its disks.
///
/// # Errors
/// When the pass has no such stage.
pub fn partitioning(pass: &PassOne, generate: Generate) -> Result<Graph, GraphError> {
    let work = pass.graph().keep("partition"..="partition")?;
    Ok(work
        .feed(Node::new("generate", generate))
        .drain(discard(BLOCKS)))
}

/// Pass two's work without its disks.
///
/// # Errors
/// When the pass has no such stage.
pub fn sorting(pass: &PassTwo, generate: Generate) -> Result<Graph, GraphError> {
    let work = pass.graph().keep("sort"..="sort")?;
    Ok(work
        .feed(Node::new("generate", generate))
        .drain(discard(BLOCKS)))
}

/// Runs both.
///
/// # Errors
/// What is refused, what fails, or the cancellation.
pub fn run(config: &Config, handle: &RunHandle) -> Result<Outcome, JobError> {
    let watch = Watch::begin(handle);
    let layout = Layout::SORT_BENCHMARK;
    let disk = Disk::default();
    let workers = workers();
    let shape = Shape {
        bytes: config.bytes,
        record_bytes: layout.record_bytes,
        memory_bytes: config.memory_bytes,
        workers,
        devices: (1, 1, 1),
        downloads: false,
        uploads: false,
        endpoints: 1,
        connections: 1,
    };
    let plan = Plan::new(&shape, &disk)?;
    let budget = memory(config.memory_bytes)?;
    let duration = Duration::try_from_secs_f64(config.seconds)
        .map_err(|_| setting_error("seconds", format!("{} is not a duration", config.seconds)))?;

    let mut keys = vec![0; SAMPLED_RECORDS * layout.record_bytes];
    Generator::new(Encoding::Binary, false, 0).fill(0, &mut keys);
    let keys: Vec<u8> = keys
        .chunks_exact(layout.record_bytes)
        .flat_map(|record| layout.key(record).to_vec())
        .collect();
    let boundaries = Boundaries::from_sample(&keys, &layout, plan.partitions);
    let (record, nowhere) = (layout.record_bytes, Target::Files(Arc::default()));
    let pass = PassOne::new(&disk, &plan, record, Vec::new(), boundaries, nowhere, 1);
    let feed = generate(
        RECORDS,
        plan.extent_bytes,
        plan.extent_buffers,
        layout.record_bytes,
    );
    let graph = partitioning(&pass, feed).map_err(RunError::from)?;
    let mut phases = vec![watch.run("partition", &graph, &budget, Some(duration))?];

    let wanted = (config.bytes / plan.partitions as u64).clamp(1, plan.slot_bytes as u64 / 2);
    let partition_bytes = (wanted as usize / layout.record_bytes).max(1) * layout.record_bytes;
    let units = vec![unit(partition_bytes)];
    let pass = PassTwo::new(&disk, &plan, &layout, Vec::new(), units, Vec::new(), 1);
    let feed = generate(PARTITIONS, partition_bytes, plan.slots, layout.record_bytes);
    let graph = sorting(&pass, feed).map_err(RunError::from)?;
    phases.push(watch.run("sort", &graph, &budget, Some(duration))?);
    Ok(Outcome { phases })
}

/// One buffer of records again and again, each time in another slot of the pool.
fn generate(gives: Port, bytes: usize, buffers: usize, record_bytes: usize) -> Generate {
    let chunk = |place: usize| Chunk {
        number: 0,
        offset: 0,
        len: bytes,
        lane: 0,
        first_record: (place * bytes / record_bytes) as u64,
    };
    Generate {
        generator: Arc::new(Generator::new(Encoding::Binary, false, 0)),
        content: Content::Endless,
        chunks: Arc::new((0..buffers).map(chunk).collect()),
        gives,
        record_bytes,
        workers: 1,
        lanes_apart: false,
        buffers,
        buffer_bytes: aligned(bytes),
        next: Arc::new(AtomicUsize::new(0)),
    }
}

/// A partition of one piece.
fn unit(partition_bytes: usize) -> Unit {
    let file = FileRef::Path(std::path::Path::new("").into());
    let pieces = vec![Piece {
        file,
        offset: 0,
        len: partition_bytes,
        crc: None,
    }];
    let extent = Arc::new(Extent {
        number: 0,
        offset: 0,
        in_order: false,
        pieces,
    });
    Unit {
        extent,
        file: 0,
        lane: 0,
    }
}
