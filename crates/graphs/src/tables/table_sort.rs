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
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tonnage_disk::Disk;
use tonnage_pipeline::{KeptPages, RunHandle};
use tonnage_stages::object::access::ObjectAccess;
use tonnage_stages::output_file::OnFinished;
use tonnage_stages::scratch::{HeldBlocks, Scratch};
use tonnage_stages::sink::RowSample;

use crate::error::{JobError, setting_error};
use crate::free_space::{check_room, make_writable};
use crate::inputs;
use crate::objects::object_input::ObjectStorage;
use crate::output::atomic_output::{self, AtomicOutput};
use crate::output::manifest::Manifest;
use crate::phases::{self, Phase, Watch, workers};
use crate::tables::format::{self, FormatConfig, SplitRows, TableFormat};
use crate::tables::memory::{self, TablePlan, TableShape};
use crate::tables::passes::{SAMPLED_BYTES, SAMPLED_SPLITS, TablePasses};

/// The longest record of text that is gathered from splits; a row is shorter than a block.
const LONGEST_ROW: usize = 1 << 20;
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
    let memory = phases::memory(config.memory_bytes)?;
    let sort = TableSort {
        config,
        table: table.as_ref(),
        input_bytes,
        passes: TablePasses::new(watch, &config.disk, table.as_ref(), config.unique, memory),
    };
    sort.run(output)
}

struct TableSort<'a> {
    config: &'a Config,
    table: &'a dyn TableFormat,
    input_bytes: u64,
    passes: TablePasses<'a>,
}

impl TableSort<'_> {
    fn run(mut self, output: AtomicOutput) -> Result<Outcome, JobError> {
        let sampled = self.table.sample(SAMPLED_SPLITS, SAMPLED_BYTES)?;
        let sample = self.passes.sample_rows("sample", sampled)?;
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
            self.passes.memory = phases::memory(self.config.memory_bytes - plan.blocks_bytes)?;
        }
        let scratch = Arc::new(scratch);
        let ranges = self.passes.ranges(&sample, plan.partitions);
        let passes = &mut self.passes;
        let (spilled, went_in) = passes.partition("pass_one", &plan, all, ranges, &scratch, 0)?;
        let spilled = passes.divide(&plan, &scratch, spilled)?;
        let encoding = self.table.encoding(plan.group_bytes);
        let outputs = (self.config.output.len(), self.config.file_bytes);
        let done = passes.pass_two(
            &plan,
            spilled,
            encoding,
            outputs,
            |(number, _)| output.part(number),
            |_, _, _, _| OnFinished::default(),
        )?;
        let (sorted, left_out) = (done.rows, done.left_out);
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
        let parts = match done.files {
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
            seconds: self.passes.watch.epoch.elapsed().as_secs_f64(),
            repartitioned_bytes: self.passes.repartitioned_bytes,
            plan,
            phases: self.passes.phases,
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
}

fn no_memory(why: io::Error) -> JobError {
    JobError::failure(format!("cannot allocate memory for blocks ({why})"))
}
