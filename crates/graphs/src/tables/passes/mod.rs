//! The passes of a table sort: graph after graph, in one memory, with a report of each.
//!
//! ```text
//!   sample      read -> sample_rows
//!   pass_one    read -> partition_rows -> write
//!               read -> partition_rows -> send -> receive -> write    on a cluster
//!   pass_two    read -> sort_rows -> write
//! ```
//!
//! Shared by the sort on one machine and a node's part on a cluster, as `sort::external_sort` is.

mod divide;
pub mod joined_files;
mod row_partition;
pub mod sort_units;
pub mod spilled_rows;

use std::sync::{Arc, Mutex, PoisonError};

use tonnage_disk::Disk;
use tonnage_pipeline::{Arena, Graph, Node, Port};
use tonnage_stages::boundaries::KeyRanges;
use tonnage_stages::disk::modes::DiskModes;
use tonnage_stages::extent::{Extent, FileRef, aligned};
use tonnage_stages::object::access::ObjectAccess;
use tonnage_stages::object::uploads::Uploads;
use tonnage_stages::output_file::{FilePaths, OnFinished};
use tonnage_stages::ports::{PARTITIONS, SPLITS};
use tonnage_stages::scratch::Scratch;
use tonnage_stages::sink::{RowSample, SampleRows, Target, WriteBlocks};
use tonnage_stages::source::ReadExtents;
use tonnage_stages::totals::{Total, Totals};
use tonnage_stages::work::{PartitionRows, RowEncoding, RowFiles, SortRows};

use crate::cluster::exchange::Exchange;
use crate::error::JobError;
use crate::phases::{Phase, Watch, workers};
use crate::sort::spilled_partition::SpilledPartition;
use crate::tables::memory::{self, TablePlan};
use crate::tables::table_format::{SplitRows, TableFormat};
pub use row_partition::{EqualKeys, RowPartition};
use sort_units::SortUnits;

/// Splits that are sampled for their keys, at least.
pub const SAMPLED_SPLITS: usize = 64;
/// Splits of whole rows that tell how long these are, where keys are sampled alone.
const WHOLE_SPLITS: usize = 8;
/// The most bytes of a sampled split.
const SAMPLED_BYTES: usize = 256 << 10;
/// The longest record of text that is gathered from splits; a row is shorter than a block.
pub const LONGEST_ROW: usize = 1 << 20;
/// Sampled splits in memory at once, for each worker: memory that is not touched costs nothing.
const SAMPLING_BUFFERS: usize = 4;
/// Sampled keys: about as many, or twice as many, of each split.
const SAMPLED_KEYS: usize = 16 << 10;
/// The part of the memory that sampled keys may take.
const KEYS_SHARE: usize = 4;

/// The passes, within one memory.
pub struct TablePasses<'a> {
    /// How rows are read, and files written.
    pub table: &'a dyn TableFormat,
    /// Whether of rows with equal keys only the first is kept.
    pub unique: bool,
    /// How to use the disks.
    pub disk: Disk,
    /// How objects are read.
    pub access: ObjectAccess,
    /// The memory.
    pub memory: Arc<Arena>,
    /// Runs the graphs.
    pub watch: Watch,
    /// Phases so far.
    pub phases: Vec<Phase>,
    /// Bytes that were partitioned again.
    pub repartitioned_bytes: u64,
}

/// Pass one as a value.
pub struct PassOne {
    /// Source.
    pub read: ReadExtents,
    /// Work.
    pub partition: PartitionRows,
    /// On a cluster: to and from the other nodes.
    pub wire: Option<Exchange>,
    /// Sink.
    pub write: WriteBlocks,
}

/// How the files of the output are written.
pub struct FileWriting {
    /// The files.
    pub files: Arc<dyn RowFiles>,
    /// Where they are.
    pub paths: Arc<FilePaths>,
    /// Devices, or requests to a store.
    pub lanes: usize,
    /// Uploads of the files, if they become objects.
    pub uploads: Option<Arc<Uploads>>,
    /// Called when a file is durable.
    pub on_finished: OnFinished,
}

impl PassOne {
    fn graph(&self) -> Graph {
        let mut nodes = vec![
            Node::new("read", self.read.clone()),
            Node::new("partition_rows", self.partition.clone()),
        ];
        nodes.extend(self.wire.iter().flat_map(Exchange::nodes));
        nodes.push(Node::new("write", self.write.clone()));
        Graph::chain(nodes)
    }
}

impl<'a> TablePasses<'a> {
    /// Nothing has run yet.
    pub fn new(
        watch: Watch,
        disk: &Disk,
        table: &'a dyn TableFormat,
        unique: bool,
        memory: Arc<Arena>,
    ) -> Self {
        Self {
            table,
            unique,
            disk: disk.clone(),
            access: ObjectAccess::default(),
            memory,
            watch,
            phases: Vec::new(),
            repartitioned_bytes: 0,
        }
    }

    /// Samples the table in so many places, at least. Where keys can be read alone, whole rows are
    /// read in a few places only: they tell how long rows are.
    ///
    /// # Errors
    /// What fails, or the cancellation.
    pub fn sample(&mut self, splits: usize) -> Result<RowSample, JobError> {
        let Some(keys) = self.table.sample_keys(splits, SAMPLED_BYTES)? else {
            let sampled = self.table.sample(splits, SAMPLED_BYTES)?;
            return self.sample_rows("sample", sampled);
        };
        let sampled = self.table.sample(WHOLE_SPLITS, SAMPLED_BYTES)?;
        let rows = self.sample_rows("sample", sampled)?;
        let keys = self.sample_rows("sample_keys", keys)?.keys;
        Ok(RowSample { keys, ..rows })
    }

    /// Samples rows.
    ///
    /// # Errors
    /// What fails, or the cancellation.
    fn sample_rows(&mut self, name: &str, sampled: SplitRows) -> Result<RowSample, JobError> {
        let SplitRows { rows, extents, .. } = sampled;
        let found = Arc::new(Mutex::new(RowSample::default()));
        let read = self.read(&extents, SAMPLING_BUFFERS * workers(), SPLITS);
        let decoders = memory::decoders(self.memory.bytes(), workers(), rows.memory_bytes());
        let sample = SampleRows {
            source: rows,
            keys: (SAMPLED_KEYS / extents.len().max(1)).max(1),
            key_bytes: self.memory.bytes() / KEYS_SHARE / extents.len().max(1),
            workers: decoders,
            splits: Arc::new(extents),
            found: Arc::clone(&found),
        };
        let modes = Arc::clone(&read.modes);
        let graph = Graph::chain([Node::new("read", read), Node::new("sample_rows", sample)]);
        self.phase(name, &graph, &[&modes])?;
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(std::mem::take(&mut *found))
    }

    fn read(&self, extents: &[Arc<Extent>], buffers: usize, gives: Port) -> ReadExtents {
        let access = self.access.clone();
        ReadExtents {
            gives,
            ..read_splits(&self.disk, access, &self.memory, extents, buffers)
        }
    }

    /// The sampled keys, of which ranges are made.
    pub fn range_keys<'k>(&self, sample: &'k RowSample) -> impl Iterator<Item = &'k [u8]> {
        let (shape, unique) = (self.table.shape(), self.unique);
        sample.keys.iter().map(move |key| match unique {
            true => shape.order_of(key), // Rows with equal keys meet, whatever their numbers.
            false => key.as_slice(),
        })
    }

    /// At most so many ranges of keys, from a sample.
    pub fn ranges(&self, sample: &RowSample, partitions: usize) -> KeyRanges {
        let ranges = KeyRanges::from_sample(self.range_keys(sample).collect(), partitions);
        match self.unique {
            true => ranges
                .undivided()
                .before_numbers(self.table.shape().number_bytes()),
            false => ranges,
        }
    }

    /// Pass one of these splits, to devices of `scratch`.
    pub fn pass_one(
        &self,
        plan: &TablePlan,
        split_rows: SplitRows,
        ranges: KeyRanges,
        scratch: &Arc<Scratch>,
        first_number: usize,
    ) -> PassOne {
        let devices = scratch.devices();
        let SplitRows { rows, extents, .. } = split_rows;
        let read = self.read(&extents, plan.split_buffers, SPLITS);
        let lanes = (0..ranges.len()).map(|place| Some((first_number + place) % devices));
        let partition = PartitionRows {
            source: rows,
            splits: Arc::new(extents),
            ranges: Arc::new(ranges),
            first_number,
            lanes: Arc::new(lanes.collect()),
            workers: plan.decoders,
            block_bytes: plan.block_bytes,
            spare_blocks: plan.spare_blocks,
            lasting: scratch.pool(),
            totals: Arc::new(Totals::default()),
            long_row: Arc::default(),
        };
        let write = WriteBlocks {
            disk: self.disk.clone(),
            target: Target::Scratch(Arc::clone(scratch)),
            lanes: devices,
            record_bytes: 1,
            inbox_bytes: plan.spare_blocks * plan.block_bytes,
            on_finished: OnFinished::default(),
            modes: Arc::new(DiskModes::default()),
        };
        PassOne {
            read,
            partition,
            wire: None,
            write,
        }
    }

    /// Runs pass one; gives the total of the rows.
    ///
    /// # Errors
    /// What fails, or the cancellation.
    pub fn run_pass_one(&mut self, name: &str, pass: &PassOne) -> Result<Total, JobError> {
        self.phase(name, &pass.graph(), &[&pass.read.modes, &pass.write.modes])?;
        Ok(pass.partition.totals.total())
    }

    /// Runs pass one within this machine; gives the partitions, and the total of the rows.
    ///
    /// # Errors
    /// What fails, or the cancellation.
    pub fn partition(
        &mut self,
        name: &str,
        pass: &PassOne,
        scratch: &Scratch,
    ) -> Result<(Vec<RowPartition>, Total), JobError> {
        let read = self.run_pass_one(name, pass)?;
        let PartitionRows {
            ranges,
            first_number,
            lanes,
            totals,
            ..
        } = &pass.partition;
        let is_numbered = self.table.shape().number_bytes() > 0;
        let partition = |(place, lane): (usize, &Option<usize>)| {
            let number = first_number + place;
            let spilled = SpilledPartition {
                number,
                blocks: scratch.take(number),
                lane: (*lane)?,
                in_order: false,
            };
            let keys = EqualKeys::of(ranges.is_single(place), self.unique, is_numbered);
            Some(RowPartition::new(spilled, totals.of(place), keys))
        };
        let partitions = lanes.iter().enumerate().filter_map(partition);
        Ok((partitions.collect(), read))
    }

    /// Sorts each unit into files.
    ///
    /// # Errors
    /// What fails, or the cancellation.
    pub fn pass_two(
        &mut self,
        plan: &TablePlan,
        units: SortUnits,
        encoding: Arc<dyn RowEncoding>,
        writing: FileWriting,
    ) -> Result<(), JobError> {
        let mut read = self.read(&units.extents(), plan.slots, PARTITIONS);
        let units = Arc::new(units.units);
        if units.iter().any(|unit| unit.continues) {
            read.lanes = Arc::new(joined_files::lanes(&units, plan.workers));
        }
        let sort = SortRows {
            units,
            shape: self.table.shape(),
            is_unique: self.unique,
            encoding,
            files: writing.files,
            most_rows: plan.most_rows,
            workers: plan.workers,
            lanes: writing.lanes,
            buffers: plan.output_blocks,
            buffer_bytes: plan.output_block_bytes,
        };
        let write = WriteBlocks {
            disk: self.disk.clone(),
            on_finished: writing.on_finished,
            inbox_bytes: match writing.uploads {
                None => self.disk.depth * plan.output_block_bytes,
                Some(_) => plan.output_block_bytes,
            },
            target: match writing.uploads {
                None => Target::Growing(writing.paths),
                Some(uploads) => Target::Objects(uploads),
            },
            lanes: writing.lanes,
            record_bytes: 1,
            modes: Arc::new(DiskModes::default()),
        };
        let modes = [Arc::clone(&read.modes), Arc::clone(&write.modes)];
        let nodes = [
            Node::new("read", read),
            Node::new("sort_rows", sort),
            Node::new("write", write),
        ];
        self.phase("pass_two", &Graph::chain(nodes), &[&modes[0], &modes[1]])
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

/// Reads extents into at most so many buffers, or as many as half of the memory has.
pub fn read_splits(
    disk: &Disk,
    access: ObjectAccess,
    memory: &Arena,
    extents: &[Arc<Extent>],
    buffers: usize,
) -> ReadExtents {
    let spans = extents.iter().map(|extent| extent.span());
    let largest = spans.max().unwrap_or(0).max(aligned(1));
    let fit = (memory.bytes() / 2 / largest).max(1);
    ReadExtents {
        disk: disk.clone(),
        lanes: Arc::new(lanes(extents)),
        access,
        next: Arc::default(),
        gives: SPLITS,
        record_bytes: 1,
        buffers: buffers.min(fit).min(extents.len().max(1)),
        buffer_bytes: largest,
        modes: Arc::new(DiskModes::default()),
    }
}

/// Extents of files, and those of objects, if there are any: several workers read these.
fn lanes(extents: &[Arc<Extent>]) -> Vec<Vec<Arc<Extent>>> {
    let is_object = |extent: &Arc<Extent>| {
        let first = extent.pieces.first();
        first.is_some_and(|piece| matches!(piece.file, FileRef::Object(_)))
    };
    let (objects, files): (Vec<_>, Vec<_>) = extents.iter().cloned().partition(is_object);
    match (files.is_empty(), objects.is_empty()) {
        (true, false) => vec![objects],
        (_, true) => vec![files],
        (false, false) => vec![files, objects],
    }
}
