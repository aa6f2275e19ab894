//! The sort: two passes, each record read and written exactly twice (2-IO, as Themis).
//!
//! ```text
//!   sample      read -> keys                  quantiles of keys become partition boundaries
//!   pass_one    read -> partition -> write    input to the blocks of partitions, in scratch
//!   pass_two    read -> sort -> write         each partition, in memory, to its output file
//! ```
//!
//! A partition that turns out larger than memory goes through pass one again, alone, from scratch
//! to scratch, with boundaries of its own; one whose keys are all equal is copied in parts. What
//! comes out is compared with what went in (records, bytes, checksum) before it gets its name.
//!
//! The order of equal keys is not kept.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tonnage_disk::Disk;
use tonnage_pipeline::{Arena, Control, Graph, Node};
use tonnage_records::Layout;
use tonnage_stages::boundaries::Boundaries;
use tonnage_stages::extent::{ALIGNMENT, Extent, aligned};
use tonnage_stages::ledger::{Modes, Total};
use tonnage_stages::scratch::Scratch;
use tonnage_stages::sink::{Keys, OutputFile, Target};
use tonnage_stages::source::Read;
use tonnage_stages::work::Unit;

use crate::cut::Cut;
use crate::inputs::{self, Input};
use crate::job::{JobError, Phase, Watch, memory, workers};
use crate::passes::{PassOne, PassTwo, read_extents};
use crate::plan::{Plan, Shape};
use crate::room::{check_room, make_writable};
use crate::seal::{self, Unsealed};

/// Sampled chunks for each partition, and the bounds of their number.
const CHUNKS_PER_PARTITION: usize = 4;
const CHUNKS: (usize, usize) = (64, 4096);
/// Length of a sampled chunk: as cheap to read as a single record.
const CHUNK_BYTES: usize = 16 << 10;
/// Records in a chunk at most: a million keys in memory tell enough.
const CHUNK_RECORDS: usize = 256;
/// How often a partition may be partitioned again. Each round divides by the number of partitions
/// that memory has room for, so a second round is already rare.
const ROUNDS: usize = 8;
/// Parts in which a partition of equal keys is copied.
const COPIED_BYTES: usize = 16 << 20;

/// A sort to be done.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Files, or directories of files.
    pub inputs: Vec<PathBuf>,
    /// Directories for the output, one a device.
    pub output: Vec<PathBuf>,
    /// Directories for scratch, one a device.
    pub scratch: Vec<PathBuf>,
    /// Size of a record and place of its key.
    pub layout: Layout,
    /// Memory for all buffers and indexes.
    pub memory_bytes: usize,
    /// How to use the disks.
    #[serde(default)]
    pub disk: Disk,
    /// How many chunks to sample; for tests of a sample that misses.
    #[serde(default)]
    pub sample_chunks: Option<usize>,
}

/// What a sort did.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Records sorted.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Sum of their CRC-32s, in hexadecimal as `valsort` prints it.
    pub checksum: String,
    /// Seconds from the start to the manifest.
    pub seconds: f64,
    /// Bytes that had to be partitioned again.
    pub repartitioned_bytes: u64,
    /// How the memory was divided.
    pub plan: Plan,
    /// The phases in order.
    pub phases: Vec<Phase>,
}

/// Sorts.
///
/// # Errors
/// What is refused before anything is written, what fails while it runs, or the cancellation; in
/// every case scratch is gone and no output has its name.
pub fn run(config: &Config, control: &Control) -> Result<Outcome, JobError> {
    SortJob::begin(config, control)?.run()
}

/// Length of a sampled chunk: a record at least.
fn chunk_bytes(record_bytes: usize) -> usize {
    CHUNK_BYTES
        .min(CHUNK_RECORDS * record_bytes)
        .max(record_bytes)
}

struct SortJob<'a> {
    config: &'a Config,
    watch: Watch,
    inputs: Vec<Input>,
    bytes: u64,
    plan: Plan,
    memory: Arc<Arena>,
    unsealed: Unsealed,
    phases: Vec<Phase>,
    repartitioned_bytes: u64,
    scratch: Option<Arc<Scratch>>,
}

impl<'a> SortJob<'a> {
    fn begin(config: &'a Config, control: &Control) -> Result<Self, JobError> {
        let watch = Watch::begin(control);
        for (flag, directories) in [("--output", &config.output), ("--scratch", &config.scratch)] {
            if directories.is_empty() {
                return Err(JobError::Refused(format!(
                    "{flag}: give at least one directory"
                )));
            }
        }
        let record = config.layout.record_bytes;
        let inputs = inputs::find(&config.inputs, record)?;
        let bytes = inputs.iter().map(|input| input.bytes).sum();
        for directory in &config.scratch {
            let refuse = |why: io::Error| {
                JobError::Refused(format!("--scratch {}: {why}", directory.display()))
            };
            make_writable("--scratch", directory)?;
            seal::clean(directory).map_err(refuse)?;
        }
        let unsealed = Unsealed::prepare(&config.output)?;
        check_room(&config.scratch, &config.output, bytes)?;
        let devices = inputs::extents(&inputs, record, usize::MAX / 2).len();
        let workers = workers();
        let shape = Shape {
            bytes,
            record_bytes: record,
            memory_bytes: config.memory_bytes,
            workers,
            devices: (devices, config.scratch.len(), config.output.len()),
        };
        let plan = Plan::new(&shape, &config.disk)?;
        let phases = Vec::new();
        let memory = memory(config.memory_bytes)?;
        Ok(Self {
            config,
            watch,
            inputs,
            bytes,
            plan,
            memory,
            unsealed,
            phases,
            repartitioned_bytes: 0,
            scratch: None,
        })
    }

    fn run(mut self) -> Result<Outcome, JobError> {
        let mut parts = 1;
        let mut total = Total::default();
        if self.bytes == 0 {
            let path = self.unsealed.part(0);
            fs::File::create(&path).map_err(|why| JobError::file("creating", &path, &why))?;
        } else {
            let (scratch, partitions, went_in) = self.partition_inputs()?;
            let came_out;
            (parts, came_out) = self.sort_partitions(&scratch, partitions)?;
            if went_in != came_out || went_in.bytes != self.bytes {
                return Err(JobError::failed(format!(
                    "what came out is not what went in: {} bytes of input, of which {went_in:?} was \
                     read, became {came_out:?}; a device or its memory corrupts data, the output \
                     was not kept",
                    self.bytes
                )));
            }
            total = came_out;
            // Until the output has its name: giving back as many blocks as the input has takes a
            // file system a while, and nobody needs to wait for it.
            self.scratch = Some(scratch);
        }
        let checksum = format!("{:x}", total.checksum);
        let manifest = seal::manifest(parts, total.records, total.bytes, &checksum);
        self.unsealed.publish(parts, &manifest)?;
        Ok(Outcome {
            records: total.records,
            bytes: total.bytes,
            checksum,
            seconds: self.watch.epoch.elapsed().as_secs_f64(),
            repartitioned_bytes: self.repartitioned_bytes,
            plan: self.plan,
            phases: self.phases,
        })
    }

    /// Sample and pass one.
    fn partition_inputs(&mut self) -> Result<(Arc<Scratch>, Vec<Cut>, Total), JobError> {
        let record = self.config.layout.record_bytes;
        let chunks = CHUNKS_PER_PARTITION * self.plan.partitions;
        let chunks = self
            .config
            .sample_chunks
            .unwrap_or(chunks.clamp(CHUNKS.0, CHUNKS.1));
        let sample = inputs::sample(&self.inputs, record, chunks, chunk_bytes(record));
        let boundaries = self.boundaries(sample, self.plan.partitions)?;
        let extents = inputs::extents(&self.inputs, record, self.plan.extent_bytes);
        // Room for blocks that are not full: one for each partition and worker.
        let ends = self.plan.workers * boundaries.partitions() * aligned(record);
        let room = self.bytes + self.bytes / self.plan.block_bytes as u64 * 4096 + ends as u64;
        let scratch = Scratch::create(&self.config.disk, &self.config.scratch, room)?;
        let scratch = Arc::new(scratch);
        let (cuts, total) = self.pass_one("pass_one", extents, boundaries, &scratch, 0)?;
        Ok((scratch, cuts, total))
    }

    /// Boundaries from sampled extents.
    fn boundaries(
        &mut self,
        sample: Vec<Vec<Arc<Extent>>>,
        partitions: usize,
    ) -> Result<Boundaries, JobError> {
        let Config {
            disk,
            layout,
            memory_bytes,
            ..
        } = self.config;
        let largest = sample
            .iter()
            .flatten()
            .map(|extent| extent.span())
            .max()
            .unwrap_or(0);
        let read = Read {
            buffers: (memory_bytes / 2 / largest.max(1)).clamp(1, 4 * disk.depth) + sample.len(),
            buffer_bytes: largest,
            ..read_extents(disk, &self.plan, layout.record_bytes, sample)
        };
        let found = Arc::new(Mutex::new(Vec::new()));
        let keys = Keys {
            layout: *layout,
            found: Arc::clone(&found),
        };
        let modes = Arc::clone(&read.modes);
        let graph = Graph::chain([Node::new("read", read), Node::new("keys", keys)]);
        self.phase("sample", &graph, &[&modes])?;
        let keys = found.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Boundaries::from_sample(&keys, layout, partitions))
    }

    /// Divides extents among partitions; tells the partitions and what was divided.
    fn pass_one(
        &mut self,
        name: &str,
        extents: Vec<Vec<Arc<Extent>>>,
        boundaries: Boundaries,
        scratch: &Arc<Scratch>,
        first_number: usize,
    ) -> Result<(Vec<Cut>, Total), JobError> {
        let record = self.config.layout.record_bytes;
        let disk = &self.config.disk;
        // A second round may have more partitions than the plan: their blocks are shorter then.
        let open = self.plan.workers * boundaries.partitions().max(self.plan.partitions);
        let planned = self.plan.workers * self.plan.partitions * self.plan.block_bytes;
        let block_bytes = (planned / open / ALIGNMENT * ALIGNMENT).max(aligned(record));
        let plan = Plan {
            block_bytes,
            ..self.plan.clone()
        };
        let (target, lanes) = (Target::Scratch(Arc::clone(scratch)), scratch.devices());
        let pass = PassOne::new(disk, &plan, record, extents, boundaries, target, lanes)
            .numbered_from(first_number);
        self.phase(name, &pass.graph(), &[&pass.read.modes, &pass.write.modes])?;
        let boundaries = &pass.partition.boundaries;
        let cut = |place: usize| Cut {
            blocks: scratch.take(first_number + place),
            lane: (first_number + place) % self.config.scratch.len(),
            in_order: boundaries.is_single(place),
        };
        let cuts = (0..boundaries.partitions()).map(cut).collect();
        Ok((cuts, pass.partition.ledger.total()))
    }

    /// Pass two, after partitioning again what is too large for it.
    fn sort_partitions(
        &mut self,
        scratch: &Arc<Scratch>,
        mut cuts: Vec<Cut>,
    ) -> Result<(usize, Total), JobError> {
        let mut next_number = cuts.len();
        for _ in 0..ROUNDS {
            let too_large = |cut: &Cut| !cut.in_order && cut.span() > self.plan.slot_bytes;
            if !cuts.iter().any(too_large) {
                return self.pass_two(cuts);
            }
            let (slot_bytes, mut divided) = (self.plan.slot_bytes, Vec::new());
            for cut in cuts {
                if cut.in_order || cut.span() <= slot_bytes {
                    divided.push(cut);
                } else {
                    let again = self.partition_again(cut, scratch, next_number)?;
                    next_number += again.len();
                    divided.extend(again);
                }
            }
            cuts = divided;
        }
        Err(JobError::failed(format!(
            "partitions stay larger than --memory {} bytes allows; give more memory",
            self.config.memory_bytes
        )))
    }

    fn partition_again(
        &mut self,
        cut: Cut,
        scratch: &Arc<Scratch>,
        first_number: usize,
    ) -> Result<Vec<Cut>, JobError> {
        let bytes: u64 = cut.blocks.iter().map(|block| block.len as u64).sum();
        self.repartitioned_bytes += bytes;
        // A larger share than the first sample had: this is where that one missed.
        let chunks = CHUNKS.0 * CHUNKS_PER_PARTITION;
        let record = self.config.layout.record_bytes;
        let sample = vec![cut.sample(chunks, chunk_bytes(record) / record * record)];
        let whole = vec![cut.divided(self.plan.extent_bytes)];
        let wanted = (2 * bytes / (self.plan.slot_bytes as u64).max(1) + 2) as usize;
        // At least three, so that a key that is most of the sample is set apart.
        let boundaries = self.boundaries(sample, wanted.min(self.plan.partitions.max(3)))?;
        Ok(self
            .pass_one("pass_one_again", whole, boundaries, scratch, first_number)?
            .0)
    }

    /// Sorts every partition into its output file.
    fn pass_two(&mut self, cuts: Vec<Cut>) -> Result<(usize, Total), JobError> {
        let Config { disk, layout, .. } = self.config;
        let cuts: Vec<Cut> = cuts
            .into_iter()
            .filter(|cut| !cut.blocks.is_empty())
            .collect();
        let mut files = Vec::with_capacity(cuts.len());
        let mut units: Vec<Unit> = Vec::new();
        let mut lanes: Vec<Vec<Arc<Extent>>> = vec![Vec::new(); self.config.scratch.len()];
        for cut in cuts {
            let cut_lane = cut.lane;
            // Each part of what is copied is a file of its own, since files are written from
            // aligned offsets and parts end at records.
            let most = self.plan.slot_bytes.min(COPIED_BYTES);
            for mut extent in cut.extents(most, layout.record_bytes) {
                let file = files.len();
                extent.number = units.len();
                files.push(OutputFile {
                    path: self.unsealed.part(file),
                    bytes: extent.len() as u64,
                });
                let extent = Arc::new(extent);
                lanes[cut_lane].push(Arc::clone(&extent));
                units.push(Unit {
                    extent,
                    file,
                    lane: file % self.config.output.len(),
                });
            }
        }
        let (parts, outputs) = (files.len(), self.config.output.len());
        let pass = PassTwo::new(disk, &self.plan, layout, lanes, units, files, outputs);
        let modes = [&pass.read.modes, &pass.write.modes];
        self.phase("pass_two", &pass.graph(), &modes)?;
        Ok((parts, pass.sort.ledger.total()))
    }

    fn phase(&mut self, name: &str, graph: &Graph, modes: &[&Arc<Modes>]) -> Result<(), JobError> {
        let mut phase = self.watch.run(name, graph, &self.memory, None)?;
        for mode in modes.iter().flat_map(|modes| modes.seen()) {
            if !phase.disk_modes.contains(&mode) {
                phase.disk_modes.push(mode);
            }
        }
        self.phases.push(phase);
        Ok(())
    }
}
