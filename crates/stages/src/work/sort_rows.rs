//! `sort_rows`: a partition of rows in memory, by key, encoded into files.
//!
//! The blocks of a partition hold whole rows of any length. Each becomes an entry, a number;
//! sorted entries tell the order of the rows, which an encoder takes one after another. What all
//! keys of the partition begin with is left out of the entries: addresses and paths differ only
//! behind it. Rows are counted by their hashes as they leave.
//!
//! A partition becomes one file, or several of about the same number of rows; with folders, one or
//! several in each folder that it has rows of. A file begins with the first row that is not left
//! out. Partitions that continue a file come to one worker, which keeps it open between them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use tonnage_pipeline::{
    Buffer, Failure, MemoryNeed, Port, Routing, Stage, StageError, StageSpec, WorkerPorts,
};
use tonnage_tables::RowShape;

use crate::extent::Extent;
use crate::ports::{BLOCKS, PARTITIONS};
use crate::totals::Total;
use crate::work::RowFiles;
use crate::work::entries::{ENTRY_BYTES, index, order, place};
use crate::work::file_blocks::SharedPorts;
use crate::work::row_encoding::{FilePlace, FileWriter, RowEncoding};

/// Rows are prefetched so many ahead.
const AHEAD: usize = 12;
/// Bytes of a row that are prefetched.
const AHEAD_BYTES: usize = 128;
/// Rows of each block that are sampled to choose the bits of keys.
const SAMPLED_ROWS: usize = 8;
/// Rows that are encoded at once, and their bytes, about: they stay in the cache.
const STRIDE_ROWS: usize = 256;
const STRIDE_BYTES: usize = 1 << 20;

/// A partition that is sorted in one go.
#[derive(Clone, Debug)]
pub struct RowUnit {
    /// Where it is read from.
    pub extent: Arc<Extent>,
    /// Place of its first file among all.
    pub first_file: usize,
    /// How many files it becomes, at most; with folders, how many if they were all in one.
    pub files: usize,
    /// Whether its first file has the place of the unit before, which has the same lane.
    pub continues: bool,
    /// How many of its rows are wanted, if not all.
    pub quota: Option<Arc<Quota>>,
}

/// Rows that may still be taken, of one partition, or of several whose keys are all equal.
#[derive(Debug)]
pub struct Quota(AtomicU64);

impl Quota {
    /// So many rows.
    #[must_use]
    pub fn new(rows: u64) -> Self {
        Self(AtomicU64::new(rows))
    }

    /// How many there are.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Takes up to so many rows; gives how many there were.
    fn take(&self, rows: usize) -> usize {
        let take = |left: u64| Some(left.saturating_sub(rows as u64));
        let before = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        before.map_or(0, |left| left.min(rows as u64) as usize)
    }
}

/// Sorts partitions of rows.
#[derive(Clone, Debug)]
pub struct SortRows {
    /// Partitions by number.
    pub units: Arc<Vec<RowUnit>>,
    /// Where the keys are.
    pub shape: RowShape,
    /// Whether of rows with equal keys only the first is kept.
    pub is_unique: bool,
    /// How rows become files.
    pub encoding: Arc<dyn RowEncoding>,
    /// The files, which count the rows.
    pub files: Arc<dyn RowFiles>,
    /// The most rows in a partition.
    pub most_rows: usize,
    /// Threads.
    pub workers: usize,
    /// Devices of the output; files alternate between them.
    pub lanes: usize,
    /// Output blocks of its own.
    pub buffers: usize,
    /// Size of each.
    pub buffer_bytes: usize,
}

impl StageSpec for SortRows {
    fn kind(&self) -> &'static str {
        "sort_rows"
    }

    fn config(&self) -> Value {
        json!({
            "units": self.units.len(),
            "files": self.units.iter().map(|unit| unit.files).sum::<usize>(),
            "is_unique": self.is_unique,
            "buffers": self.buffers,
            "buffer_bytes": self.buffer_bytes,
        })
    }

    fn input(&self) -> Option<Port> {
        Some(PARTITIONS)
    }

    fn output(&self) -> Option<Port> {
        Some(BLOCKS)
    }

    fn workers(&self) -> usize {
        self.workers
    }

    fn routing(&self) -> Routing {
        match self.units.iter().any(|unit| unit.continues) {
            true => Routing::ByLane,
            false => Routing::Any,
        }
    }

    fn inbox_bytes(&self) -> usize {
        1 // One partition may wait; memory allows no more.
    }

    fn memory(&self) -> MemoryNeed {
        let worker = self.most_rows * ENTRY_BYTES + self.encoding.memory_bytes();
        MemoryNeed {
            buffers: self.buffers,
            buffer_bytes: self.buffer_bytes,
            private_bytes: self.workers * worker,
        }
    }

    fn start(&self, _worker: usize, _flow: &WorkerPorts) -> Result<Box<dyn Stage>, Failure> {
        Ok(Box::new(RowSorter {
            sort: self.clone(),
            entries: Vec::with_capacity(self.most_rows),
            buckets: Vec::with_capacity(self.most_rows),
        }))
    }
}

struct RowSorter {
    sort: SortRows,
    entries: Vec<u64>,
    buckets: Vec<u64>,
}

impl Stage for RowSorter {
    fn run(&mut self, ports: &mut WorkerPorts) -> Result<(), StageError> {
        let sort = self.sort.clone();
        let (units, ports) = (&sort.units, SharedPorts::new(ports));
        let mut writer = FileWriter {
            files: sort.files.as_ref(),
            encoding: sort.encoding.as_ref(),
            lanes: sort.lanes,
            ports: &ports,
            open: None,
        };
        let (mut continued, mut early) = (None, BTreeMap::new());
        while let Some(buffer) = next(units, continued, &mut early, &ports)? {
            let unit = &units[buffer.number];
            let skip = self.index(&buffer, &unit.extent)?;
            if !unit.extent.in_order {
                let (slot, shape) = (buffer.slot(), sort.shape);
                let key = |entry: u64| &shape.key(&slot[place(entry)..])[skip..];
                order(&mut self.entries, &mut self.buckets, &key);
            }
            self.encode(&buffer, unit, &mut writer)?;
            let following = Some(buffer.number + 1);
            continued =
                following.filter(|&next| units.get(next).is_some_and(|unit| unit.continues));
            if continued.is_none() {
                writer.end()?;
            }
            sort.files.end_unit(buffer.number)?;
            let (bytes, rows) = (unit.extent.len(), self.entries.len());
            ports.lock().add_moved(bytes, rows);
        }
        Ok(())
    }
}

/// The next unit: the one that continues the last one's file, or one that continues none. Others may
/// have come before it, since a device need not answer in order.
fn next(
    units: &[RowUnit],
    continued: Option<usize>,
    early: &mut BTreeMap<usize, Buffer>,
    ports: &SharedPorts<'_>,
) -> Result<Option<Buffer>, StageError> {
    let is_next = |&number: &usize| match continued {
        Some(next) => number == next,
        None => !units[number].continues,
    };
    loop {
        let number = early.keys().copied().find(is_next);
        if let Some(unit) = number.and_then(|number| early.remove(&number)) {
            return Ok(Some(unit));
        }
        let Some(unit) = ports.lock().receive()? else {
            return Ok(None);
        };
        early.insert(unit.number, unit);
    }
}

impl RowSorter {
    /// Makes an entry for each row of the buffer; gives how many bytes all keys begin with.
    fn index(&mut self, buffer: &Buffer, extent: &Extent) -> Result<usize, StageError> {
        let (slot, shape) = (buffer.slot(), self.sort.shape);
        let mut sampled = Vec::new();
        for payload in extent.places() {
            for row in RowsOf(&slot[payload]).take(SAMPLED_ROWS) {
                sampled.push(shape.key(row?));
            }
        }
        index(&mut self.entries, &sampled, || {
            extent.places().flat_map(|payload| {
                let mut at = payload.start;
                RowsOf(&slot[payload]).map(move |row| {
                    let row = row?;
                    let place = at;
                    at += row.len();
                    Ok::<_, StageError>((place, shape.key(row)))
                })
            })
        })
    }

    /// Encodes the rows in the entries' order.
    fn encode(
        &self,
        buffer: &Buffer,
        unit: &RowUnit,
        writer: &mut FileWriter<'_>,
    ) -> Result<(), StageError> {
        let (slot, files) = (buffer.slot(), writer.files);
        let count = match &unit.quota {
            Some(quota) => quota.take(self.entries.len()),
            None => self.entries.len(),
        };
        let mut beyond = Total::default();
        for &entry in &self.entries[count..] {
            beyond.count_row(row_at(slot, entry));
        }
        files.count(buffer.number, None, &beyond, &beyond);
        let (mut begin, mut last) = (0, None);
        while begin < count {
            let folder = files.folder(row_at(slot, self.entries[begin]))?;
            let is_inside = |&entry: &u64| files.is_in(folder, row_at(slot, entry));
            let end = begin + self.entries[begin..count].partition_point(is_inside).max(1);
            let parts = ((end - begin) * unit.files).div_ceil(count);
            for (place, range) in (unit.first_file..).zip(divided(begin..end, parts)) {
                let unit = buffer.number;
                let file = FilePlace {
                    unit,
                    place,
                    folder,
                };
                writer.turn_to(file)?;
                self.encode_rows(buffer, range, &mut last, file, writer)?;
            }
            begin = end;
        }
        Ok(())
    }

    /// Encodes the rows of some entries into a file; `last` is the order of the row before.
    fn encode_rows<'b>(
        &self,
        buffer: &'b Buffer,
        entries: Range<usize>,
        last: &mut Option<&'b [u8]>,
        file: FilePlace<'_>,
        writer: &mut FileWriter<'_>,
    ) -> Result<(), StageError> {
        let (slot, shape) = (buffer.slot(), self.sort.shape);
        let (mut sorted, mut left_out) = (Total::default(), Total::default());
        let mut rows: Vec<&[u8]> = Vec::with_capacity(STRIDE_ROWS);
        let mut bytes = 0;
        for at in entries {
            if let Some(&next) = self.entries.get(at + AHEAD) {
                let next = place(next);
                buffer.prefetch(next..(next + AHEAD_BYTES).min(slot.len()));
            }
            let row = row_at(slot, self.entries[at]);
            sorted.count_row(row);
            if self.sort.is_unique {
                let key = shape.order_of(shape.key(row));
                if last.replace(key) == Some(key) {
                    left_out.count_row(row);
                    continue;
                }
            }
            rows.push(row);
            bytes += row.len();
            if rows.len() == STRIDE_ROWS || bytes >= STRIDE_BYTES {
                writer.push(file, &rows)?;
                rows.clear();
                bytes = 0;
            }
        }
        writer.push(file, &rows)?;
        // Before the last block leaves: then the file may be finished at any time.
        let (unit, number) = (file.unit, writer.number());
        writer.files.count(unit, number, &sorted, &left_out);
        Ok(())
    }
}

/// The row of an entry.
#[inline]
fn row_at(slot: &[u8], entry: u64) -> &[u8] {
    let at = place(entry);
    let bytes = RowShape::row_bytes(&slot[at..]).unwrap_or_default();
    &slot[at..at + bytes]
}

/// A range in so many parts of about the same length.
fn divided(range: Range<usize>, parts: usize) -> impl Iterator<Item = Range<usize>> {
    let at = move |part: usize| range.start + range.len() * part / parts;
    (0..parts).map(move |part| at(part)..at(part + 1))
}

/// The rows of a block, one after another.
struct RowsOf<'a>(&'a [u8]);

impl<'a> Iterator for RowsOf<'a> {
    type Item = Result<&'a [u8], Failure>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let bytes = RowShape::row_bytes(self.0).filter(|&bytes| bytes > 0);
        let Some((row, rest)) = bytes.and_then(|bytes| self.0.split_at_checked(bytes)) else {
            self.0 = &[];
            return Some(Err(damaged()));
        };
        self.0 = rest;
        Some(Ok(row))
    }
}

fn damaged() -> Failure {
    Failure::new("a block in scratch has no whole rows: a device or memory is corrupting data")
}
