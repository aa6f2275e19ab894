//! The disk benchmark: pass one of the sort without its work, as edits of its graph.
//!
//! ```text
//!   read_write   pass_one.replace(partition, deal)                reads here, writes there
//!   read_only    pass_one.keep(read).drain(discard)
//!   write_only   pass_one.keep(write).feed(generate)
//!   headroom     generate -> discard, without the pass: what the harness itself can move
//! ```
//!
//! Its files are unlinked scratch, so a killed benchmark leaves nothing behind. It follows Themis'
//! DiskBench: half the devices read and half write; a single device does both.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tonnage_disk::Disk;
use tonnage_pipeline::{Arena, Graph, GraphError, Node, Port, RunError, RunHandle};
use tonnage_records::{Encoding, Generator, Layout};
use tonnage_stages::boundaries::Boundaries;
use tonnage_stages::extent::Extent;
use tonnage_stages::ports::{BLOCKS, RECORDS};
use tonnage_stages::scratch::Scratch;
use tonnage_stages::sink::{Discard, Target};
use tonnage_stages::source::{Chunk, Content, Generate};
use tonnage_stages::work::Deal;

use crate::error::{JobError, setting_error};
use crate::free_space::make_writable;
use crate::memory_plan::{Plan, Shape};
use crate::phases::{Phase, Watch, memory, workers};
use crate::sort::pass_graphs::PassOne;

/// What a trial does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Mode {
    /// Reads and writes at once.
    #[serde(rename = "rw")]
    ReadWrite,
    /// Reads.
    #[serde(rename = "ro")]
    ReadOnly,
    /// Writes.
    #[serde(rename = "wo")]
    WriteOnly,
    /// Neither.
    #[serde(rename = "headroom")]
    Headroom,
}

/// The benchmark to run. Trials run in the given order, over the same files.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Directories to read from, one per device.
    pub read: Vec<PathBuf>,
    /// Directories to write to, one per device.
    pub write: Vec<PathBuf>,
    /// Bytes to read, and most bytes to write; a trial ends when it has moved them.
    pub bytes: u64,
    /// Trials.
    pub trials: Vec<Trial>,
    /// Memory, as the sort would have it.
    pub memory_bytes: usize,
    /// How to use the disks.
    #[serde(default)]
    pub disk: Disk,
}

/// One trial.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Trial {
    /// What it does.
    pub mode: Mode,
    /// Seconds, at most.
    pub seconds: f64,
}

/// The results of the trials, one phase each, named by its mode.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// One phase per trial, in order, after `prepare`, which writes what is read.
    pub phases: Vec<Phase>,
}

/// Reads and writes at once: the pass with its work replaced.
///
/// # Errors
/// When the pass has no such stage.
pub fn read_write(pass: &PassOne) -> Result<Graph, GraphError> {
    let partitions = pass.partition.boundaries.partitions().max(pass.write.lanes);
    let tag = Deal {
        partitions,
        lanes: pass.write.lanes,
    };
    pass.graph()
        .replace("partition"..="partition", Node::new("deal", tag))
}

/// Reads only.
///
/// # Errors
/// When the pass has no such stage.
pub fn read_only(pass: &PassOne) -> Result<Graph, GraphError> {
    Ok(pass.graph().keep("read"..="read")?.drain(discard(RECORDS)))
}

/// Writes only.
///
/// # Errors
/// When the pass has no such stage.
pub fn write_only(pass: &PassOne, bytes: u64) -> Result<Graph, GraphError> {
    Ok(pass
        .graph()
        .keep("write"..="write")?
        .feed(generate(pass, bytes, Content::Reused)))
}

/// Neither: the same generator and discard, with nothing between.
#[must_use]
pub fn headroom(pass: &PassOne, bytes: u64) -> Graph {
    Graph::chain([generate(pass, bytes, Content::Endless), discard(BLOCKS)])
}

/// Drops every buffer.
#[must_use]
pub fn discard(takes: Port) -> Node {
    Node::new("discard", Discard { takes })
}

/// Buffers as the pass reads them, `bytes` in total, for its devices in turn.
fn generate(pass: &PassOne, bytes: u64, content: Content) -> Node {
    let (len, lanes) = (pass.read.buffer_bytes, pass.write.lanes);
    let chunk = |number: u64| Chunk {
        number: number as usize % lanes,
        offset: 0,
        len,
        lane: number as usize % lanes,
        first_record: number * len as u64 / Layout::SORT_BENCHMARK.record_bytes as u64,
    };
    let generate = Generate {
        generator: Arc::new(Generator::new(Encoding::Binary, false, 0)),
        content,
        chunks: Arc::new(
            (0..(bytes / len as u64).max(lanes as u64))
                .map(chunk)
                .collect(),
        ),
        gives: BLOCKS,
        record_bytes: pass.read.record_bytes,
        workers: 1,
        lanes_apart: false,
        buffers: pass.read.buffers,
        buffer_bytes: len,
        next: Arc::new(AtomicUsize::new(0)),
    };
    Node::new("generate", generate)
}

/// Runs the trials.
///
/// # Errors
/// What is refused, what fails, or the cancellation.
pub fn run(config: &Config, handle: &RunHandle) -> Result<Outcome, JobError> {
    let watch = Watch::begin(handle);
    for (use_, directories) in [("reading", &config.read), ("writing", &config.write)] {
        if directories.is_empty() {
            return Err(setting_error(
                "dir",
                format!("there is no directory for {use_}"),
            ));
        }
        for directory in directories.iter() {
            make_writable("dir", directory)?;
        }
    }
    let bench = Bench::prepare(config, &watch)?;
    let mut phases = vec![bench.prepared.clone()];
    for trial in &config.trials {
        phases.push(bench.run(trial, &watch)?);
    }
    Ok(Outcome { phases })
}

/// What all trials share: the plan, and the data to read.
struct Bench<'a> {
    config: &'a Config,
    plan: Plan,
    memory: Arc<Arena>,
    source: Vec<Vec<Arc<Extent>>>,
    prepared: Phase,
}

impl<'a> Bench<'a> {
    /// Writes the data that trials read.
    fn prepare(config: &'a Config, watch: &Watch) -> Result<Self, JobError> {
        let workers = workers();
        let shape = Shape {
            bytes: config.bytes,
            record_bytes: Layout::SORT_BENCHMARK.record_bytes,
            memory_bytes: config.memory_bytes,
            workers,
            devices: (config.read.len(), config.write.len(), config.write.len()),
            downloads: false,
            uploads: false,
            endpoints: 1,
            connections: 1,
        };
        let plan = Plan::new(&shape, &config.disk)?;
        let scratch = Arc::new(Scratch::create(&config.disk, &config.read, config.bytes)?);
        let pass = pass(config, &plan, vec![Vec::new()], &scratch);
        let graph = write_only(&pass, config.bytes).map_err(RunError::from)?;
        let memory = memory(config.memory_bytes)?;
        let prepared = watch.run("prepare", &graph, &memory, None)?;
        let source = scratch.filled(plan.extent_bytes);
        Ok(Self {
            config,
            plan,
            memory,
            source,
            prepared,
        })
    }

    /// Runs a trial until its time is up or its room is used. It writes a new file, as a job does:
    /// blocks that a file system or hypervisor has to allocate cost more than overwritten ones.
    fn run(&self, trial: &Trial, watch: &Watch) -> Result<Phase, JobError> {
        let (disk, write) = (&self.config.disk, &self.config.write);
        let writes = matches!(trial.mode, Mode::ReadWrite | Mode::WriteOnly);
        let room = if writes { self.config.bytes } else { 0 };
        let scratch = Arc::new(Scratch::create(disk, write, room)?);
        let pass = pass(self.config, &self.plan, self.source.clone(), &scratch);
        let (name, graph) = match trial.mode {
            Mode::ReadWrite => ("rw", read_write(&pass)),
            Mode::ReadOnly => ("ro", read_only(&pass)),
            Mode::WriteOnly => ("wo", write_only(&pass, self.config.bytes)),
            Mode::Headroom => ("headroom", Ok(headroom(&pass, self.config.bytes))),
        };
        let graph = graph.map_err(RunError::from)?;
        let duration = Duration::try_from_secs_f64(trial.seconds).map_err(|_| {
            setting_error("seconds", format!("{} is not a duration", trial.seconds))
        })?;
        let mut phase = watch.run(name, &graph, &self.memory, Some(duration))?;
        phase.disk_modes = pass.read.modes.distinct();
        for mode in pass.write.modes.distinct() {
            if !phase.disk_modes.contains(&mode) {
                phase.disk_modes.push(mode);
            }
        }
        Ok(phase)
    }
}

/// The pass whose graph is edited.
fn pass(
    config: &Config,
    plan: &Plan,
    source: Vec<Vec<Arc<Extent>>>,
    scratch: &Arc<Scratch>,
) -> PassOne {
    let layout = Layout::SORT_BENCHMARK;
    let (disk, record) = (&config.disk, layout.record_bytes);
    let boundaries = Boundaries::from_sample(&[], &layout, plan.partitions);
    let (target, lanes) = (Target::Scratch(Arc::clone(scratch)), scratch.devices());
    let mut pass = PassOne::new(disk, plan, record, source, boundaries, target, lanes);
    // The `deal` stage has no blocks: what is being written are buffers of the read stage.
    let read = &mut pass.read;
    let writing = (lanes * disk.depth * disk.transfer_bytes).div_ceil(read.buffer_bytes);
    let fit = config.memory_bytes / read.buffer_bytes;
    read.buffers = (read.buffers + writing).min(fit).max(read.buffers);
    pass
}
