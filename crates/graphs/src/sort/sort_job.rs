//! The sort on one machine: two passes, each record read and written exactly twice (2-IO, as
//! Themis).
//!
//! ```text
//!   sample      read -> sample_keys           quantiles of keys become partition boundaries
//!   pass_one    read -> partition -> write    input to the blocks of partitions, in scratch
//!   pass_two    read -> sort -> write         each partition, in memory, to its output file
//! ```
//!
//! A partition that turns out larger than memory goes through pass one again, alone, from scratch
//! to scratch, with boundaries of its own; one with only equal keys is copied in parts. Before the
//! output is published it is compared with the input (records, bytes, checksum).
//!
//! Input and output may be in an object store; scratch is on this machine's disks.
//!
//! Where memory has room for what the passes need and for the whole input, blocks stay in it, and
//! nothing goes to scratch. Where it has room for a part, a part of the blocks
//! stays in it, unless memory costs more than disks.
//!
//! The sort is not stable.

use std::cell::RefCell;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tonnage_disk::Disk;
use tonnage_object::RequestCounts;
use tonnage_pipeline::RunHandle;
use tonnage_records::Layout;
use tonnage_stages::boundaries::Boundaries;
use tonnage_stages::extent::aligned;
use tonnage_stages::scratch::{HeldBlocks, Scratch, SpareMemory};
use tonnage_stages::totals::Total;

use crate::error::{JobError, setting_error};
use crate::free_space::{check_room, make_writable};
use crate::inputs::{self, Input};
use crate::memory_plan::{Plan, Shape};
use crate::objects::object_input::ObjectStorage;
use crate::output::atomic_output;
use crate::output::job_output::JobOutput;
use crate::output::manifest::Manifest;
use crate::phases::{Phase, Watch, workers};
use crate::sort::external_sort::{CHUNKS, CHUNKS_PER_PARTITION, ExternalSort, chunk_bytes};
use crate::sort::pass_graphs::PassTwo;
use crate::sort::spilled_partition::SpilledPartition;

/// Spare memory holds at least one of so many parts of the input: less is not worth it.
const SPARE_PARTS: u64 = 16;

/// The sort to run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Files, directories of files, or URLs of objects or prefixes.
    pub inputs: Vec<PathBuf>,
    /// Directories for the output, one per device, or the URL of a prefix.
    pub output: Vec<PathBuf>,
    /// Directories for scratch, one per device.
    pub scratch: Vec<PathBuf>,
    /// Size of a record and place of its key.
    pub layout: Layout,
    /// Memory for all buffers and indexes.
    pub memory_bytes: usize,
    /// Whether all records go to scratch, also if memory has room for them: to see what a longer
    /// sort does.
    #[serde(default)]
    pub spill_all: bool,
    /// How to use the disks.
    #[serde(default)]
    pub disk: Disk,
    /// How to use an object store.
    #[serde(default)]
    #[serde(rename = "volumes")]
    pub storage: ObjectStorage,
    /// Number of sampled chunks, for tests of a sample that misses.
    #[serde(default)]
    pub sample_chunks: Option<usize>,
}

/// The results of a sort.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Records sorted.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Sum of their CRC-32s in hexadecimal, as `valsort` prints it.
    pub checksum: String,
    /// Seconds from the start to the manifest.
    pub seconds: f64,
    /// Bytes that were repartitioned.
    pub repartitioned_bytes: u64,
    /// Bytes in scratch, with the alignment of blocks.
    pub spilled_bytes: u64,
    /// How the memory was divided.
    pub plan: Plan,
    /// Requests to object stores.
    pub requests: RequestCounts,
    /// The phases in order.
    pub phases: Vec<Phase>,
}

/// Sorts.
///
/// # Errors
/// What is refused before anything is written, what fails while it runs, or the cancellation;
/// scratch is removed then, and nothing is published.
pub fn run(config: &Config, handle: &RunHandle) -> Result<Outcome, JobError> {
    SortJob::begin(config, handle)?.run()
}

struct SortJob<'a> {
    config: &'a Config,
    inputs: Vec<Input>,
    bytes: u64,
    passes: ExternalSort,
    output: JobOutput,
    scratch: Option<Arc<Scratch>>,
    in_memory: InMemory,
}

/// What stays in memory between the passes, and in how many bytes of it.
#[derive(Clone, Copy)]
enum InMemory {
    AllBlocks(usize),
    SomeBlocks(usize),
}

impl<'a> SortJob<'a> {
    fn begin(config: &'a Config, handle: &RunHandle) -> Result<Self, JobError> {
        let watch = Watch::begin(handle);
        for (setting, directories) in [("output", &config.output), ("scratch", &config.scratch)] {
            if directories.is_empty() {
                return Err(setting_error(setting, "specify at least one directory"));
            }
        }
        let record = config.layout.record_bytes;
        let access = config.storage.access()?;
        let inputs = inputs::find(&config.inputs, record, &config.storage, &access)?;
        let bytes = inputs.iter().map(|input| input.bytes).sum();
        for directory in &config.scratch {
            let refuse = |why: io::Error| {
                setting_error("scratch", format!("{}: {why}", directory.display()))
            };
            make_writable("scratch", directory)?;
            atomic_output::clean(directory).map_err(refuse)?;
        }
        let output = JobOutput::prepare(&config.output, &config.storage, &access, "")?;
        let (readers, writers) = (
            inputs::readers(&inputs, &access),
            output.lanes(&config.output),
        );
        let workers = workers();
        let shape = Shape {
            bytes,
            record_bytes: record,
            memory_bytes: config.memory_bytes,
            workers,
            devices: (readers, config.scratch.len(), writers),
            downloads: inputs::has_objects(&inputs),
            uploads: matches!(output, JobOutput::Objects(_)),
            endpoints: 1,
            connections: 1,
        };
        let (plan, in_memory) = match config.spill_all {
            true => (Plan::new(&shape, &config.disk)?, InMemory::SomeBlocks(0)),
            false => plan(&shape, &config.disk)?,
        };
        let spilled = match in_memory {
            InMemory::AllBlocks(_) => 0,
            InMemory::SomeBlocks(_) => bytes,
        };
        let directories = output.directories(&config.output);
        check_room((&config.scratch, spilled), (directories, bytes))?;
        let passes = ExternalSort::new(watch, &config.disk, access, config.layout, plan)?;
        Ok(Self {
            config,
            inputs,
            bytes,
            passes,
            output,
            scratch: None,
            in_memory,
        })
    }

    fn run(mut self) -> Result<Outcome, JobError> {
        let mut parts = 0;
        let mut total = Total::default();
        if self.bytes == 0 {
            parts = 1;
            self.output.write_only_part(Vec::new())?;
        } else {
            let (scratch, partitions, went_in) = self.partition_inputs()?;
            let spilled = self.passes.divide(&scratch, partitions)?;
            let devices = (scratch.devices(), self.output.lanes(&self.config.output));
            let part_bytes = self.passes.plan.output_block_bytes;
            let output = RefCell::new(&mut self.output);
            let part = |_| {
                parts += 1;
                output.borrow().part(parts - 1)
            };
            let to_output = |pass: PassTwo, _| {
                let parts = pass.files().to_vec();
                Ok(match output.borrow_mut().uploads(parts, part_bytes) {
                    Some(uploads) => pass.uploaded(uploads),
                    None => pass,
                })
            };
            let came_out = self.passes.pass_two(spilled, devices, part, to_output)?;
            if went_in != came_out || went_in.bytes != self.bytes {
                return Err(JobError::failure(format!(
                    "the sorted output does not match the input ({} bytes; read: {went_in}; written: \
                     {came_out}). A device or memory is corrupting data; the output was discarded",
                    self.bytes
                )));
            }
            total = came_out;
            // Kept until the output is published: freeing as many blocks as the input has takes a
            // file system a while, and nobody needs to wait for it.
            self.scratch = Some(scratch);
        }
        let checksum = format!("{:x}", total.checksum);
        let manifest = Manifest::new(parts, total.records, total.bytes, &checksum);
        let names = self.output.names(parts);
        self.output.publish(&names, &manifest, &self.passes.watch)?;
        Ok(Outcome {
            records: total.records,
            bytes: total.bytes,
            checksum,
            seconds: self.passes.watch.epoch.elapsed().as_secs_f64(),
            repartitioned_bytes: self.passes.repartitioned_bytes,
            spilled_bytes: self.scratch.map_or(0, |scratch| scratch.spilled_bytes()),
            plan: self.passes.plan,
            requests: self.passes.access.counted(),
            phases: self.passes.phases,
        })
    }

    /// Sample and pass one.
    fn partition_inputs(
        &mut self,
    ) -> Result<(Arc<Scratch>, Vec<SpilledPartition>, Total), JobError> {
        let (record, plan) = (self.config.layout.record_bytes, self.passes.plan.clone());
        let chunks = CHUNKS_PER_PARTITION * plan.partitions;
        let chunks = self
            .config
            .sample_chunks
            .unwrap_or(chunks.clamp(CHUNKS.0, CHUNKS.1));
        let sample = inputs::sample(&self.inputs, record, chunks, chunk_bytes(record));
        let keys = self.passes.keys(sample)?;
        let boundaries = Boundaries::from_sample(&keys, &self.config.layout, plan.partitions);
        let extents = inputs::extents(&self.inputs, record, plan.extent_bytes);
        // Room for blocks that are not full: one for each partition and worker.
        let ends = plan.workers * boundaries.partitions() * aligned(record);
        let room = self.bytes + self.bytes / plan.block_bytes as u64 * 4096 + ends as u64;
        let create = |room| Scratch::create(&self.config.disk, &self.config.scratch, room);
        let no_memory = |why: io::Error| {
            JobError::failure(format!("cannot allocate memory for blocks ({why})"))
        };
        let scratch = match self.in_memory {
            InMemory::AllBlocks(bytes) => {
                let moving = plan.workers * boundaries.partitions() + plan.spare_blocks;
                let blocks = HeldBlocks::new(bytes, plan.block_bytes, moving);
                create(0)?.holding(blocks.map_err(no_memory)?)
            }
            InMemory::SomeBlocks(0) => create(room)?,
            InMemory::SomeBlocks(bytes) => {
                let spare = SpareMemory::new(bytes, plan.block_bytes, self.bytes);
                create(room)?.with_spare_memory(spare.map_err(no_memory)?)
            }
        };
        let scratch = Arc::new(scratch);
        let passes = &mut self.passes;
        let (spilled, total) = passes.pass_one("pass_one", extents, boundaries, &scratch, 0)?;
        Ok((scratch, spilled, total))
    }
}

/// A plan with a part of the memory, and what the rest of it is for.
fn plan(shape: &Shape, disk: &Disk) -> Result<(Plan, InMemory), JobError> {
    if let Some((plan, rest)) = plan_with_all(shape, disk) {
        return Ok((plan, InMemory::AllBlocks(rest)));
    }
    // The least part with which the passes have long blocks.
    let mut parts = (2..=6).filter_map(|eighths| {
        let memory_bytes = shape.memory_bytes / 8 * eighths;
        let plan = Plan::new(
            &Shape {
                memory_bytes,
                ..*shape
            },
            disk,
        )
        .ok()?;
        let rest = shape.memory_bytes - memory_bytes;
        let is_worth = rest as u64 >= shape.bytes / SPARE_PARTS;
        (is_worth && plan.has_long_blocks(shape)).then_some((plan, InMemory::SomeBlocks(rest)))
    });
    match parts.next() {
        Some(plan) => Ok(plan),
        None => Ok((Plan::new(shape, disk)?, InMemory::SomeBlocks(0))),
    }
}

/// A plan with a part of the memory, and the rest of it, if that holds all blocks.
fn plan_with_all(shape: &Shape, disk: &Disk) -> Option<(Plan, usize)> {
    let records = usize::try_from(shape.bytes + shape.bytes / 16).ok()?; // blocks have whole ones
    let room = shape.memory_bytes.checked_sub(records)?;
    // The more memory the passes have, the more blocks are open; so it is tried which part fits.
    [8, 6, 4].into_iter().find_map(|ninths| {
        let memory_bytes = room / 9 * ninths;
        let of_passes = Shape {
            memory_bytes,
            ..*shape
        };
        let plan = Plan::new(&of_passes, disk).ok()?;
        let rest = shape.memory_bytes - memory_bytes;
        // Of each worker and partition two blocks are short, and one is open.
        let ends = (3 * plan.workers * plan.partitions + plan.spare_blocks) * plan.block_bytes;
        (records + ends <= rest).then_some((plan, rest))
    })
}
