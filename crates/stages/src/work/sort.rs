//! `sort`: a partition in memory, by key.
//!
//! Each record becomes an entry, a number; sorted entries tell the order of the records, which are
//! copied once, in order, into blocks of the output file, and counted as they are copied.
//!
//! The sort is not stable.

use std::convert::Infallible;
use std::sync::Arc;

use serde_json::{Value, json};
use tonnage_pipeline::{
    Buffer, Failure, MemoryNeed, Port, Stage, StageError, StageSpec, WorkerPorts, WriteCombiner,
};
use tonnage_records::Layout;

use crate::extent::Extent;
use crate::ports::{BLOCKS, PARTITIONS};
use crate::totals::{Total, Totals};
use crate::work::entries::{ENTRY_BYTES, index, order, place};

/// One record in so many is sampled to choose the bits of keys.
const SAMPLE_STRIDE: usize = 64;
/// Bytes of records that are copied before they are counted.
const STRIDE_BYTES: usize = 12 << 10;
/// Records are prefetched so many ahead.
const AHEAD: usize = 12;
/// Memory that a worker needs in addition to entries and blocks.
#[must_use]
pub fn stride_memory(record_bytes: usize) -> usize {
    WriteCombiner::memory(1, stride_bytes(record_bytes))
}

fn stride_bytes(record_bytes: usize) -> usize {
    (STRIDE_BYTES / record_bytes).max(1) * record_bytes
}

/// A partition, or a part of one, that is sorted in one go.
#[derive(Clone, Debug)]
pub struct Unit {
    /// Where it is read from; its `offset` is where its records begin in the output file.
    pub extent: Arc<Extent>,
    /// Number of its output file.
    pub file: usize,
    /// Device of its output file.
    pub lane: usize,
}

/// Sorts partitions.
#[derive(Clone, Debug)]
pub struct Sort {
    /// Partitions by number.
    pub units: Arc<Vec<Unit>>,
    /// Where the key is.
    pub layout: Layout,
    /// Threads.
    pub workers: usize,
    /// Output blocks of its own.
    pub buffers: usize,
    /// Size of each.
    pub buffer_bytes: usize,
    /// Counts what leaves, by file.
    pub totals: Arc<Totals>,
}

impl Sort {
    fn largest_unit_records(&self) -> usize {
        let bytes = self.units.iter().map(|unit| unit.extent.len()).max();
        bytes.unwrap_or(0) / self.layout.record_bytes
    }
}

impl StageSpec for Sort {
    fn kind(&self) -> &'static str {
        "sort"
    }

    fn config(&self) -> Value {
        json!({
            "units": self.units.len(),
            "layout": self.layout,
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

    fn inbox_bytes(&self) -> usize {
        1 // One partition may wait; memory allows no more.
    }

    fn memory(&self) -> MemoryNeed {
        MemoryNeed {
            buffers: self.buffers,
            buffer_bytes: self.buffer_bytes,
            private_bytes: self.workers
                * (self.largest_unit_records() * ENTRY_BYTES
                    + stride_memory(self.layout.record_bytes)),
        }
    }

    fn start(&self, _worker: usize, _flow: &WorkerPorts) -> Result<Box<dyn Stage>, Failure> {
        let stride = stride_bytes(self.layout.record_bytes);
        let entries = Vec::with_capacity(self.largest_unit_records());
        let buckets = Vec::with_capacity(self.largest_unit_records());
        Ok(Box::new(Sorter {
            sort: self.clone(),
            entries,
            buckets,
            combiner: WriteCombiner::new(1, stride),
            total: Total::default(),
        }))
    }
}

struct Sorter {
    sort: Sort,
    entries: Vec<u64>,
    buckets: Vec<u64>,
    combiner: WriteCombiner,
    total: Total,
}

impl Stage for Sorter {
    fn run(&mut self, ports: &mut WorkerPorts) -> Result<(), StageError> {
        let units = Arc::clone(&self.sort.units);
        while let Some(buffer) = ports.receive()? {
            let unit = &units[buffer.number];
            let skip = self.index(&buffer, &unit.extent);
            if !unit.extent.in_order {
                self.order(&buffer, skip);
            }
            self.gather(&buffer, unit, ports)?;
            ports.add_moved(unit.extent.len(), self.entries.len());
        }
        Ok(())
    }
}

impl Sorter {
    /// Makes an entry for each record of the buffer; gives how many bytes all keys begin with.
    fn index(&mut self, buffer: &Buffer, extent: &Extent) -> usize {
        self.entries.clear();
        let (slot, layout) = (buffer.slot(), self.sort.layout);
        let keys = || {
            extent.places().flat_map(|payload| {
                let records = slot[payload.clone()].chunks_exact(layout.record_bytes);
                let places = payload.step_by(layout.record_bytes);
                places.zip(records.map(|record| layout.key(record)))
            })
        };
        let sampled: Vec<&[u8]> = keys().step_by(SAMPLE_STRIDE).map(|(_, key)| key).collect();
        let Ok(skip) = index(&mut self.entries, &sampled, || {
            keys().map(Ok::<_, Infallible>)
        });
        skip
    }

    /// Sorts the entries by key; the first `skip` bytes of all keys are equal.
    fn order(&mut self, buffer: &Buffer, skip: usize) {
        let (slot, layout) = (buffer.slot(), self.sort.layout);
        let key = |entry: u64| {
            let record = &slot[place(entry)..place(entry) + layout.record_bytes];
            &layout.key(record)[skip..]
        };
        order(&mut self.entries, &mut self.buckets, &key);
    }

    /// Copies the records in the entries' order to blocks of the output file.
    ///
    /// In strides that stay in the cache: the loads of a stride overlap, and records are counted
    /// before they leave the cache for their block.
    fn gather(
        &mut self,
        buffer: &Buffer,
        unit: &Unit,
        ports: &mut WorkerPorts,
    ) -> Result<(), StageError> {
        let record_bytes = self.sort.layout.record_bytes;
        let slot = buffer.slot();
        let mut offset = unit.extent.offset;
        let mut block = Self::block(unit, offset, ports)?;
        let mut entries = self.entries.as_slice();
        while !entries.is_empty() {
            let room = block.room() - self.combiner.staged_bytes(0);
            let stride = stride_bytes(record_bytes) / record_bytes;
            let whole = (room / record_bytes).min(stride).min(entries.len());
            let len = whole * record_bytes;
            self.combiner.fill(0, len, &mut block, |records| {
                for (number, record) in records.chunks_exact_mut(record_bytes).enumerate() {
                    if let Some(&next) = entries.get(number + AHEAD) {
                        buffer.prefetch(place(next)..place(next) + record_bytes);
                    }
                    let at = place(entries[number]);
                    record.copy_from_slice(&slot[at..at + record_bytes]);
                }
                self.total.count(records, record_bytes);
            });
            entries = &entries[whole..];
            let mut room = room - whole * record_bytes;
            if room >= record_bytes || entries.is_empty() {
                continue;
            }
            // The next record spans the end of this block and the beginning of others.
            let mut rest = &slot[place(entries[0])..place(entries[0]) + record_bytes];
            self.total.count(rest, record_bytes);
            entries = &entries[1..];
            while rest.len() > room || room == 0 {
                let (now, later) = rest.split_at(room);
                self.combiner.append(0, now, &mut block);
                self.combiner.flush(0, &mut block);
                rest = later;
                offset += block.len as u64;
                let next = Self::block(unit, offset, ports)?;
                ports.send(std::mem::replace(&mut block, next))?;
                room = block.room();
            }
            self.combiner.append(0, rest, &mut block);
        }
        self.combiner.flush(0, &mut block);
        // Counted before the last block is sent: whatever is written was counted.
        self.sort
            .totals
            .add(unit.file, &std::mem::take(&mut self.total));
        if block.len > 0 {
            ports.send(block)?;
        }
        Ok(())
    }

    fn block(unit: &Unit, offset: u64, ports: &mut WorkerPorts) -> Result<Buffer, StageError> {
        let mut block = ports.buffer()?;
        (block.number, block.lane, block.offset) = (unit.file, unit.lane, offset);
        Ok(block)
    }
}
