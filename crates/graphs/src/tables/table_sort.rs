//! The sort of tables on one machine: two passes, each row written to scratch and read once.
//!
//! ```text
//!   sample      read -> sample_rows                  quantiles of keys become partitions
//!   pass_one    read -> partition_rows -> write      files to the blocks of partitions, in scratch
//!   pass_two    read -> sort_rows -> write           each partition, in memory, to its files
//! ```
//!
//! As the sort of records (`sort::sort_job`), but for what is read and written. A partition that
//! is larger than memory is divided again, alone. Before the output is published, the number, the
//! bytes and the hashes of the rows that came out are compared with those that went in.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tonnage_disk::Disk;
use tonnage_pipeline::{Arena, Graph, KeptPages, Node, RunHandle};
use tonnage_stages::boundaries::KeyRanges;
use tonnage_stages::disk::modes::DiskModes;
use tonnage_stages::extent::{Extent, aligned};
use tonnage_stages::object::access::ObjectAccess;
use tonnage_stages::output_file::OnFinished;
use tonnage_stages::ports::{PARTITIONS, SPLITS};
use tonnage_stages::scratch::{HeldBlocks, Scratch};
use tonnage_stages::sink::{RowSample, SampleRows, Target, WriteBlocks};
use tonnage_stages::source::ReadExtents;
use tonnage_stages::totals::{Total, Totals};
use tonnage_stages::work::{PartitionRows, RowEncoding, RowUnit, SortRows};

use crate::error::{JobError, setting_error};
use crate::free_space::{check_room, make_writable};
use crate::inputs;
use crate::objects::object_input::ObjectStorage;
use crate::output::atomic_output::{self, AtomicOutput};
use crate::output::manifest::Manifest;
use crate::phases::{self, Phase, Watch, workers};
use crate::sort::spilled_partition::SpilledPartition;
use crate::tables::format::{self, FormatConfig, SplitRows, TableFormat};
use crate::tables::memory::{self, TablePlan, TableShape};
use crate::tables::spilled_rows::SpilledRows;

/// Splits that are sampled, and the most bytes of each.
const SAMPLED_SPLITS: usize = 64;
const SAMPLED_BYTES: usize = 256 << 10;
/// Sampled splits in memory at once, for each worker: memory that is not touched costs nothing.
const SAMPLING_BUFFERS: usize = 4;
/// The most keys of a sampled split.
const SAMPLED_KEYS: usize = 256;
/// The longest record of text that is gathered from splits; a row is shorter than a block.
const LONGEST_ROW: usize = 1 << 20;
/// Most rounds of dividing partitions again.
const ROUNDS: usize = 8;

/// The sort to run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Files, or directories of files.
    pub inputs: Vec<PathBuf>,
    /// Their format, and what they are sorted by.
    pub format: FormatConfig,
    /// Whether rows with equal keys keep their order.
    #[serde(default)]
    pub stable: bool,
    /// Whether of rows with equal keys only the first is kept.
    #[serde(default)]
    pub unique: bool,
    /// Directories for the output, one per device.
    pub output: Vec<PathBuf>,
    /// Bytes of rows that a file has, at most about.
    pub file_bytes: u64,
    /// Directories for scratch, one per device.
    pub scratch: Vec<PathBuf>,
    /// Memory for all buffers, what is decoded, and what is encoded.
    pub memory_bytes: usize,
    /// How to use the disks.
    #[serde(default)]
    pub disk: Disk,
}

/// The results of a sort.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Rows that were read.
    pub rows: u64,
    /// Rows that were left out, since their keys were equal to others'.
    pub left_out: u64,
    /// Bytes of the input files.
    pub input_bytes: u64,
    /// Bytes of rows between the passes.
    pub rows_bytes: u64,
    /// Bytes in scratch.
    pub spilled_bytes: u64,
    /// Bytes of the output files.
    pub output_bytes: u64,
    /// Sum of the rows' hashes in hexadecimal.
    pub checksum: String,
    /// Seconds from the start to the manifest.
    pub seconds: f64,
    /// Bytes that were partitioned again.
    pub repartitioned_bytes: u64,
    /// How the memory was divided.
    pub plan: TablePlan,
    /// The phases in order.
    pub phases: Vec<Phase>,
}

/// Sorts.
///
/// # Errors
/// What is refused before anything is written, what fails while it runs, or the cancellation;
/// scratch is removed then, and nothing is published.
pub fn run(config: &Config, handle: &RunHandle) -> Result<Outcome, JobError> {
    let watch = Watch::begin(handle);
    let _pages = KeptPages::begin();
    for (setting, directories) in [("output", &config.output), ("scratch", &config.scratch)] {
        if directories.is_empty() {
            return Err(setting_error(setting, "specify at least one directory"));
        }
    }
    let inputs = inputs::find(
        &config.inputs,
        1,
        &ObjectStorage::default(),
        &ObjectAccess::default(),
    )?;
    let input_bytes = inputs.iter().map(|input| input.bytes).sum();
    let table = format::open(&config.format, inputs, config.stable)?;
    for directory in &config.scratch {
        let refuse =
            |why: io::Error| setting_error("scratch", format!("{}: {why}", directory.display()));
        make_writable("scratch", directory)?;
        atomic_output::clean(directory).map_err(refuse)?;
    }
    let output = AtomicOutput::prepare(&config.output, &table.suffix())?;
    let sort = TableSort {
        config,
        table: table.as_ref(),
        input_bytes,
        memory: phases::memory(config.memory_bytes)?,
        watch,
        phases: Vec::new(),
        repartitioned_bytes: 0,
    };
    sort.run(output)
}

struct TableSort<'a> {
    config: &'a Config,
    table: &'a dyn TableFormat,
    input_bytes: u64,
    memory: Arc<Arena>,
    watch: Watch,
    phases: Vec<Phase>,
    repartitioned_bytes: u64,
}

impl TableSort<'_> {
    fn run(mut self, output: AtomicOutput) -> Result<Outcome, JobError> {
        let sampled = self.table.sample(SAMPLED_SPLITS, SAMPLED_BYTES)?;
        let sample = self.sample_rows("sample", sampled)?;
        let rows_bytes = self.table.rows_bytes(&sample);
        let (split_bytes, _) = memory::splits(self.config.memory_bytes, workers());
        let all = self.table.all(split_bytes, LONGEST_ROW)?;
        let plan = self.plan(&sample, rows_bytes, &all)?;
        let spilled = if plan.blocks_bytes > 0 { 0 } else { rows_bytes };
        let directories = (&self.config.scratch, &self.config.output);
        check_room((directories.0, spilled), (directories.1, rows_bytes))?;
        let mut scratch = Scratch::create(&self.config.disk, directories.0, spilled)?;
        if plan.blocks_bytes > 0 {
            let moving = plan.moving_blocks();
            let blocks = HeldBlocks::new(plan.blocks_bytes, plan.block_bytes, moving);
            scratch = scratch.holding(blocks.map_err(no_memory)?);
            self.memory = phases::memory(self.config.memory_bytes - plan.blocks_bytes)?;
        }
        let scratch = Arc::new(scratch);
        let (spilled, went_in) = self.pass_one(&plan, all, &sample, &scratch)?;
        let spilled = self.divide(&plan, &scratch, spilled)?;
        let encoding = self.table.encoding(plan.group_bytes);
        let (parts, sorted, left_out) = self.pass_two(&plan, spilled, encoding, &output)?;
        if went_in != sorted
            || self
                .table
                .rows()
                .is_some_and(|rows| rows != went_in.records)
        {
            return Err(JobError::failure(format!(
                "the sorted rows do not match the input (read: {went_in}; sorted: {sorted}). A \
                 device or memory is corrupting data; the output was discarded"
            )));
        }
        let parts = match parts {
            0 => self.write_empty(&output)?,
            parts => parts,
        };
        let mut output_bytes = 0;
        for number in 0..parts {
            let path = output.part(number);
            let about = fs::metadata(&path).map_err(|why| JobError::file("stat", &path, &why))?;
            output_bytes += about.len();
        }
        let checksum = format!("{:x}", went_in.checksum);
        let rows = went_in.records - left_out.records;
        let manifest = Manifest::of_files(output.names(parts), rows, output_bytes);
        output.publish(parts, &manifest)?;
        Ok(Outcome {
            rows: went_in.records,
            left_out: left_out.records,
            input_bytes: self.input_bytes,
            rows_bytes: went_in.bytes,
            spilled_bytes: scratch.spilled_bytes(),
            output_bytes,
            checksum,
            seconds: self.watch.epoch.elapsed().as_secs_f64(),
            repartitioned_bytes: self.repartitioned_bytes,
            plan,
            phases: self.phases,
        })
    }

    /// Writes a file without rows, which has the columns at least; gives the number of files.
    fn write_empty(&self, output: &AtomicOutput) -> Result<usize, JobError> {
        let path = output.part(0);
        let content = self.table.empty_file()?;
        let written = fs::write(&path, content).and_then(|()| fs::File::open(&path)?.sync_all());
        written.map_err(|why| JobError::file("write", &path, &why))?;
        Ok(1)
    }

    fn plan(
        &self,
        sample: &RowSample,
        rows_bytes: u64,
        all: &SplitRows,
    ) -> Result<TablePlan, JobError> {
        let spans = all.extents.iter().map(|extent| extent.span());
        TablePlan::new(&TableShape {
            rows_bytes,
            row_bytes: usize::try_from(sample.bytes / sample.rows.max(1)).unwrap_or(usize::MAX),
            memory_bytes: self.config.memory_bytes,
            workers: workers(),
            devices: (self.config.scratch.len(), self.config.output.len()),
            split_span: spans.max().unwrap_or(0),
            depth: self.config.disk.depth,
            decoding_bytes: all.rows.memory_bytes(),
        })
    }

    fn sample_rows(&mut self, name: &str, sampled: SplitRows) -> Result<RowSample, JobError> {
        let SplitRows { rows, extents } = sampled;
        let found = Arc::new(Mutex::new(RowSample::default()));
        let read = self.read(&extents, SAMPLING_BUFFERS * workers(), SPLITS);
        let sample = SampleRows {
            source: rows,
            splits: Arc::new(extents),
            keys: SAMPLED_KEYS,
            workers: workers(),
            found: Arc::clone(&found),
        };
        let modes = Arc::clone(&read.modes);
        let graph = Graph::chain([Node::new("read", read), Node::new("sample_rows", sample)]);
        self.phase(name, &graph, &[&modes])?;
        let found = found.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(found.clone())
    }

    /// Reads extents into at most so many buffers, or as many as half of the memory has.
    fn read(
        &self,
        extents: &[Arc<Extent>],
        buffers: usize,
        gives: tonnage_pipeline::Port,
    ) -> ReadExtents {
        let spans = extents.iter().map(|extent| extent.span());
        let largest = spans.max().unwrap_or(0).max(aligned(1));
        let fit = (self.memory.bytes() / 2 / largest).max(1);
        ReadExtents {
            disk: self.config.disk.clone(),
            lanes: Arc::new(vec![extents.to_vec()]),
            access: ObjectAccess::default(),
            next: Arc::default(),
            gives,
            record_bytes: 1,
            buffers: buffers.min(fit).min(extents.len().max(1)),
            buffer_bytes: largest,
            modes: Arc::new(DiskModes::default()),
        }
    }

    fn pass_one(
        &mut self,
        plan: &TablePlan,
        all: SplitRows,
        sample: &RowSample,
        scratch: &Arc<Scratch>,
    ) -> Result<(Vec<SpilledPartition>, Total), JobError> {
        let ranges = self.ranges(sample, plan.partitions);
        self.partition("pass_one", plan, all, ranges, scratch, 0)
    }

    fn ranges(&self, sample: &RowSample, partitions: usize) -> KeyRanges {
        let keys = sample.keys.iter().map(Vec::as_slice);
        if !self.config.unique {
            return KeyRanges::from_sample(keys.collect(), partitions);
        }
        // Rows with equal keys meet, whatever their numbers.
        let shape = self.table.shape();
        let keys = keys.map(|key| shape.order_of(key)).collect();
        KeyRanges::from_sample(keys, partitions).undivided()
    }

    fn partition(
        &mut self,
        name: &str,
        plan: &TablePlan,
        split_rows: SplitRows,
        ranges: KeyRanges,
        scratch: &Arc<Scratch>,
        first_number: usize,
    ) -> Result<(Vec<SpilledPartition>, Total), JobError> {
        let devices = scratch.devices();
        let SplitRows { rows, extents } = split_rows;
        let read = self.read(&extents, plan.split_buffers, SPLITS);
        let lanes = (0..ranges.len()).map(|place| Some((first_number + place) % devices));
        let partition = PartitionRows {
            source: rows,
            splits: Arc::new(extents),
            ranges: Arc::new(ranges),
            first_number,
            lanes: Arc::new(lanes.collect()),
            workers: plan.workers,
            block_bytes: plan.block_bytes,
            spare_blocks: plan.spare_blocks,
            lasting: scratch.pool(),
            totals: Arc::new(Totals::default()),
        };
        let write = WriteBlocks {
            disk: self.config.disk.clone(),
            target: Target::Scratch(Arc::clone(scratch)),
            lanes: devices,
            record_bytes: 1,
            inbox_bytes: plan.spare_blocks * plan.block_bytes,
            on_finished: OnFinished::default(),
            modes: Arc::new(DiskModes::default()),
        };
        let (ranges, totals) = (Arc::clone(&partition.ranges), Arc::clone(&partition.totals));
        let modes = [Arc::clone(&read.modes), Arc::clone(&write.modes)];
        let nodes = [
            Node::new("read", read),
            Node::new("partition_rows", partition),
            Node::new("write", write),
        ];
        self.phase(name, &Graph::chain(nodes), &[&modes[0], &modes[1]])?;
        let spilled = |place: usize| SpilledPartition {
            number: first_number + place,
            blocks: scratch.take(first_number + place),
            lane: (first_number + place) % devices,
            in_order: ranges.is_single(place) && !self.config.unique,
        };
        Ok(((0..ranges.len()).map(spilled).collect(), totals.total()))
    }

    /// Partitions again what is too large for pass two.
    fn divide(
        &mut self,
        plan: &TablePlan,
        scratch: &Arc<Scratch>,
        mut spilled: Vec<SpilledPartition>,
    ) -> Result<Vec<SpilledPartition>, JobError> {
        let mut next_number = spilled.len();
        for _ in 0..ROUNDS {
            if spilled
                .iter()
                .all(|partition| partition.span() <= plan.slot_bytes)
            {
                return Ok(spilled);
            }
            let mut divided = Vec::new();
            for partition in spilled {
                if partition.span() <= plan.slot_bytes {
                    divided.push(partition);
                    continue;
                }
                if partition.in_order {
                    divided.extend(partition.in_parts(plan.slot_bytes));
                    continue;
                }
                let bytes = partition
                    .blocks
                    .iter()
                    .map(|block| block.len)
                    .sum::<usize>();
                self.repartitioned_bytes += bytes as u64;
                let rows = Arc::new(SpilledRows {
                    shape: self.table.shape(),
                });
                let blocks = numbered(partition.divided(usize::MAX));
                let every = blocks.len().div_ceil(SAMPLED_SPLITS);
                let chosen = blocks.iter().step_by(every).cloned().collect();
                let sampled = SplitRows {
                    rows: rows.clone(),
                    extents: numbered(chosen),
                };
                let sample = self.sample_rows("sample_again", sampled)?;
                let wanted = (2 * bytes / plan.slot_bytes + 2).min(plan.partitions.max(3));
                let ranges = self.ranges(&sample, wanted);
                let all = SplitRows {
                    rows,
                    extents: blocks,
                };
                let (again, _) =
                    self.partition("pass_one_again", plan, all, ranges, scratch, next_number)?;
                next_number += again.len();
                divided.extend(again);
            }
            spilled = divided;
        }
        Err(JobError::failure(format!(
            "partitions are still too large for {} bytes of memory after repeated splitting; use \
             more memory",
            plan.memory_bytes
        )))
    }

    /// Sorts each partition into its files; gives their number, the rows, and those left out.
    fn pass_two(
        &mut self,
        plan: &TablePlan,
        spilled: Vec<SpilledPartition>,
        encoding: Arc<dyn RowEncoding>,
        output: &AtomicOutput,
    ) -> Result<(usize, Total, Total), JobError> {
        let outputs = self.config.output.len();
        let mut units: Vec<RowUnit> = Vec::new();
        let mut files = 0;
        for partition in spilled
            .into_iter()
            .filter(|partition| !partition.blocks.is_empty())
        {
            let bytes: u64 = partition.blocks.iter().map(|block| block.len as u64).sum();
            let unit_files = bytes.div_ceil(self.config.file_bytes.max(1)).max(1) as usize;
            units.push(RowUnit {
                extent: Arc::new(partition.into_extent(units.len())),
                first_file: files,
                files: unit_files,
            });
            files += unit_files;
        }
        let extents: Vec<Arc<Extent>> = units.iter().map(|unit| Arc::clone(&unit.extent)).collect();
        let read = self.read(&extents, plan.slots, PARTITIONS);
        let totals = Arc::new(Totals::default());
        let sort = SortRows {
            units: Arc::new(units),
            shape: self.table.shape(),
            is_unique: self.config.unique,
            encoding,
            most_rows: plan.most_rows,
            workers: plan.workers,
            lanes: outputs,
            buffers: plan.output_blocks,
            buffer_bytes: plan.output_block_bytes,
            totals: Arc::clone(&totals),
        };
        let paths = (0..files).map(|number| output.part(number)).collect();
        let write = WriteBlocks {
            disk: self.config.disk.clone(),
            target: Target::Growing(Arc::new(paths)),
            lanes: outputs,
            record_bytes: 1,
            inbox_bytes: self.config.disk.depth * plan.output_block_bytes,
            on_finished: OnFinished::default(),
            modes: Arc::new(DiskModes::default()),
        };
        let modes = [Arc::clone(&read.modes), Arc::clone(&write.modes)];
        let nodes = [
            Node::new("read", read),
            Node::new("sort_rows", sort),
            Node::new("write", write),
        ];
        self.phase("pass_two", &Graph::chain(nodes), &[&modes[0], &modes[1]])?;
        Ok((files, totals.of(0), totals.of(1)))
    }

    fn phase(
        &mut self,
        name: &str,
        graph: &Graph,
        modes: &[&Arc<DiskModes>],
    ) -> Result<(), JobError> {
        let phase = self.watch.run_on_disks(name, graph, &self.memory, modes)?;
        self.phases.push(phase);
        Ok(())
    }
}

fn no_memory(why: io::Error) -> JobError {
    JobError::failure(format!("cannot allocate memory for blocks ({why})"))
}

/// Extents with their places as numbers.
fn numbered(extents: Vec<Arc<Extent>>) -> Vec<Arc<Extent>> {
    let number = |(number, extent): (usize, Arc<Extent>)| {
        Arc::new(Extent {
            number,
            ..extent.as_ref().clone()
        })
    };
    extents.into_iter().enumerate().map(number).collect()
}
