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

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use serde::{Deserialize, Serialize};
use tonnage_disk::Disk;
use tonnage_object::RequestCounts;
use tonnage_pipeline::{KeptPages, RunHandle};
use tonnage_stages::output_file::OnFinished;
use tonnage_stages::scratch::{HeldBlocks, Scratch, SpareMemory};
use tonnage_stages::sink::RowSample;
use tonnage_stages::totals::Total;

use crate::error::{JobError, setting_error};
use crate::free_space::{check_room, make_writable};
use crate::inputs::{self, Input};
use crate::memory_plan::{MOST_PARTS, PART_BYTES};
use crate::objects::object_input::ObjectStorage;
use crate::output::atomic_output;
use crate::output::job_output::JobOutput;
use crate::output::manifest::Manifest;
use crate::phases::{self, Phase, Watch, workers};
use crate::tables::format_config::{self, FormatConfig};
use crate::tables::input::object_file::ObjectFiles;
use crate::tables::input::table_file::{TableFile, TableFileConfig};
use crate::tables::limit::{self, Cutoff};
use crate::tables::memory::{self, StoreRequests, TablePlan, TableShape};
use crate::tables::output_files::OutputFiles;
use crate::tables::passes::joined_files::joined_bytes;
use crate::tables::passes::sort_units::SortUnits;
use crate::tables::passes::{FileWriting, LONGEST_ROW, RowPartition, SAMPLED_SPLITS, TablePasses};
use crate::tables::table_format::{SplitRows, TableFormat, scaled};

/// The most bytes of rows in an object: as many parts as stores accept have twice as much.
const LARGEST_OBJECT_BYTES: u64 = PART_BYTES[0] as u64 * MOST_PARTS / 2;

/// The sort to run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Files, in their order.
    pub inputs: Vec<TableFileConfig>,
    /// Their format, and what they are sorted by.
    pub format: FormatConfig,
    /// Whether rows with equal keys keep their order.
    #[serde(default)]
    pub stable: bool,
    /// Whether of rows with equal keys only the first is kept.
    #[serde(default)]
    pub unique: bool,
    /// How many rows are wanted, the first; all by default.
    #[serde(default)]
    pub limit: Option<u64>,
    /// Directories for the output, one per device, or the URL of a prefix.
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
    /// How to use an object store.
    #[serde(default)]
    #[serde(rename = "volumes")]
    pub storage: ObjectStorage,
}

/// The results of a sort.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Rows that were read.
    pub rows: u64,
    /// Rows that were written.
    pub written_rows: u64,
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
    let watch = Watch::begin(handle);
    let _pages = KeptPages::begin();
    for (setting, directories) in [("output", &config.output), ("scratch", &config.scratch)] {
        if directories.is_empty() {
            return Err(setting_error(setting, "specify at least one directory"));
        }
    }
    limit::check(config.limit, config.unique)?;
    let access = config.storage.access()?;
    let files = TableFile::find(&config.inputs, &ObjectFiles::new(&access, handle))?;
    let input_bytes = files.iter().map(|file| file.input.bytes).sum();
    let table = format_config::open(&config.format, &files, config.stable)?;
    for directory in &config.scratch {
        let refuse =
            |why: io::Error| setting_error("scratch", format!("{}: {why}", directory.display()));
        make_writable("scratch", directory)?;
        atomic_output::clean(directory).map_err(refuse)?;
    }
    let suffix = table.suffix();
    let output = JobOutput::prepare(&config.output, &config.storage, &access, &suffix)?;
    let uploads = match &output {
        JobOutput::Files(_) => 0,
        JobOutput::Objects(_) => access.requests,
    };
    if uploads > 0 && config.file_bytes > LARGEST_OBJECT_BYTES {
        let why = format!("an object has at most {LARGEST_OBJECT_BYTES} bytes; use less");
        return Err(setting_error("file_bytes", why));
    }
    let memory = phases::memory(config.memory_bytes)?;
    let inputs: Vec<Input> = files.into_iter().map(|file| file.input).collect();
    let downloads = match inputs::has_objects(&inputs) {
        true => access.requests,
        false => 0,
    };
    let mut passes = TablePasses::new(watch, &config.disk, table.as_ref(), config.unique, memory);
    passes.access = access;
    let sort = TableSort {
        config,
        table: table.as_ref(),
        input_bytes,
        requests: StoreRequests { downloads, uploads },
        lanes: output.lanes(&config.output),
        directories: output.directories(&config.output),
        passes,
    };
    sort.run(output)
}

struct TableSort<'a> {
    config: &'a Config,
    table: &'a dyn TableFormat,
    input_bytes: u64,
    requests: StoreRequests,
    /// Devices, or requests, that the output is written by.
    lanes: usize,
    /// Directories of the output, if it is on disks.
    directories: &'a [PathBuf],
    passes: TablePasses<'a>,
}

impl TableSort<'_> {
    fn run(mut self, mut output: JobOutput) -> Result<Outcome, JobError> {
        let mut sample = self.passes.sample(SAMPLED_SPLITS)?;
        let rows_bytes = self.table.rows_bytes(&sample);
        let cutoff = self.config.limit.and_then(|limit| {
            let about = scaled(sample.rows, rows_bytes, sample.bytes);
            Cutoff::new(&sample.keys, self.table.rows().unwrap_or(about), limit)
        });
        let mut spilled = self.spill(&mut sample, rows_bytes, cutoff.as_ref())?;
        if cutoff.is_some() && spilled.has_too_few(self.config.limit) {
            // The sample misled.
            spilled = self.spill(&mut sample, rows_bytes, None)?;
        }
        let Spilled {
            plan,
            scratch,
            partitions,
            read,
        } = spilled;
        if let Some(rows) = self.table.rows().filter(|&rows| rows != read.records) {
            return Err(mismatch(&format!("{rows} rows"), &read));
        }
        let kept = limit::total(&partitions);
        let plan = plan.for_rows(kept.records, kept.bytes);
        let partitions = self.passes.divide(&plan, &scratch, partitions)?;
        let wanted = limit::total(&partitions);
        let file_bytes = self.config.file_bytes;
        let joined_bytes = joined_bytes(wanted.bytes, plan.workers, file_bytes);
        let units = SortUnits::new(partitions, file_bytes, joined_bytes);
        let names = output.names(units.files.len());
        let path_of = output.path_of();
        let files = OutputFiles::new(&units, names, self.table.folders(), path_of);
        let files = Arc::new(files);
        let writing = FileWriting {
            files: Arc::clone(&files) as Arc<_>,
            paths: Arc::clone(files.paths()),
            lanes: self.lanes,
            uploads: output.growing_uploads(files.paths(), plan.output_block_bytes),
            on_finished: OnFinished::default(),
        };
        let encoding = self.table.encoding(plan.group_bytes);
        self.passes.pass_two(&plan, units, encoding, writing)?;
        let (sorted, left_out) = files.total();
        if wanted != sorted {
            return Err(mismatch(&wanted, &sorted));
        }
        let (mut names, mut in_order) = (files.names(), files.names_in_order());
        if names.is_empty() {
            output.write_only_part(self.table.empty_file()?)?; // It has the columns at least.
            (names, in_order) = (output.names(1), output.names(1));
        }
        let output_bytes = output.written_bytes(names.len())?;
        let written_rows = sorted.records - left_out.records;
        let manifest = Manifest::of_files(in_order, written_rows, output_bytes);
        output.publish(&names, &manifest, &self.passes.watch)?;
        Ok(Outcome {
            rows: read.records,
            written_rows,
            input_bytes: self.input_bytes,
            rows_bytes: read.bytes,
            spilled_bytes: scratch.spilled_bytes(),
            output_bytes,
            checksum: format!("{:x}", read.checksum),
            seconds: self.passes.watch.epoch.elapsed().as_secs_f64(),
            repartitioned_bytes: self.passes.repartitioned_bytes,
            plan,
            requests: self.passes.access.counted(),
            phases: self.passes.phases,
        })
    }

    /// Pass one: the rows that are wanted, most likely, in partitions. Where a row is longer than a
    /// block, it begins again with longer blocks, which the sample asks for then.
    fn spill(
        &mut self,
        sample: &mut RowSample,
        rows_bytes: u64,
        cutoff: Option<&Cutoff>,
    ) -> Result<Spilled, JobError> {
        let share = cutoff.map_or(1.0, |cutoff| cutoff.share);
        let wanted_bytes = (rows_bytes as f64 * share) as u64;
        let (split_bytes, _) =
            memory::splits(self.config.memory_bytes, workers(), self.requests.downloads);
        let all = self.table.all(split_bytes, LONGEST_ROW)?;
        let plan = self.plan(sample, wanted_bytes, &all)?;
        let is_held = plan.blocks_bytes > 0;
        let least_bytes = self.table.least_bytes(wanted_bytes);
        let spilled_bytes = if is_held { 0 } else { least_bytes };
        let directories = (&self.config.scratch, self.directories);
        let written_bytes = self.table.least_output_bytes(least_bytes);
        check_room(
            (directories.0, spilled_bytes),
            (directories.1, written_bytes),
        )?;
        let mut scratch = Scratch::create(&self.config.disk, directories.0, spilled_bytes)?;
        if is_held {
            let moving = plan.moving_blocks();
            let blocks = HeldBlocks::new(plan.blocks_bytes, plan.block_bytes, moving);
            scratch = scratch.holding(blocks.map_err(no_memory)?);
        } else if plan.spare_bytes > 0 {
            let spare = SpareMemory::new(plan.spare_bytes, plan.block_bytes, wanted_bytes);
            scratch = scratch.with_spare_memory(spare.map_err(no_memory)?);
        }
        self.passes.memory = phases::memory(plan.passes_bytes())?;
        let scratch = Arc::new(scratch);
        let ranges = match cutoff {
            Some(cutoff) => cutoff.ranges(sample, plan.partitions),
            None => self.passes.ranges(sample, plan.partitions),
        };
        let mut pass = self.passes.pass_one(&plan, all, ranges, &scratch, 0);
        if cutoff.is_some() {
            let mut lanes = pass.partition.lanes.to_vec();
            lanes.pop();
            lanes.push(None); // what is beyond the cutoff
            pass.partition.lanes = Arc::new(lanes);
        }
        let long_row = Arc::clone(&pass.partition.long_row);
        let partitioned = self.passes.partition("pass_one", &pass, &scratch);
        if partitioned.is_err() && long_row.load(Relaxed) > 0 {
            // Again, with room for it in a block, and for others that are longer than sampled ones.
            sample.longest_row = long_row.load(Relaxed).max(2 * plan.block_bytes);
            drop((pass, scratch));
            return self.spill(sample, rows_bytes, cutoff);
        }
        let (mut partitions, read) = partitioned?;
        if let Some(limit) = self.config.limit {
            (partitions, _) = limit::first(partitions, limit);
        }
        Ok(Spilled {
            plan,
            scratch,
            partitions,
            read,
        })
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
            longest_row: sample.longest_row,
            memory_bytes: self.config.memory_bytes,
            workers: workers(),
            devices: (self.config.scratch.len(), self.lanes),
            split_span: spans.max().unwrap_or(0),
            depth: self.config.disk.depth,
            requests: self.requests,
            decoding_bytes: all.rows.memory_bytes(),
            endpoints: 1,
            links: 0,
            longest_partition: None,
            encoding_bytes: self.table.encoding(0).memory_bytes(),
        })
    }
}

/// Partitions between the passes.
struct Spilled {
    plan: TablePlan,
    scratch: Arc<Scratch>,
    partitions: Vec<RowPartition>,
    read: Total,
}

impl Spilled {
    /// Whether it has fewer rows than are wanted, although more were read.
    fn has_too_few(&self, limit: Option<u64>) -> bool {
        let rows = limit::total(&self.partitions).records;
        limit.is_some_and(|limit| rows < limit.min(self.read.records))
    }
}

fn mismatch(read: &dyn fmt::Display, sorted: &dyn fmt::Display) -> JobError {
    JobError::failure(format!(
        "the sorted rows do not match the input (read: {read}; sorted: {sorted}). A device or \
         memory is corrupting data; the output was discarded"
    ))
}

fn no_memory(why: io::Error) -> JobError {
    JobError::failure(format!("cannot allocate memory for blocks ({why})"))
}
