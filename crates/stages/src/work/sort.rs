//! `sort`: a partition in memory, in the order of its keys.
//!
//! Each record becomes a 16-byte entry, the first 12 bytes of its key above its place in the
//! buffer, so that sorting compares numbers and touches no record. Entries go first into buckets
//! by the leading bits in which the partition's keys differ, a few hundred entries a bucket, and
//! each bucket is then sorted within the cache. Keys that are longer than 12 bytes and equal so
//! far are compared whole. At the end the records are copied once, in order, into blocks of the
//! output file, and counted as they are copied: the ledger of the sort's output.
//!
//! Equal keys come out in no particular order.

use std::sync::Arc;

use serde_json::{Value, json};
use tonnage_pipeline::{Buffer, Failure, Flow, MemoryNeed, Port, Spec, Stage, StageError};
use tonnage_records::Layout;

use crate::boundaries::prefix;
use crate::extent::Extent;
use crate::ledger::{Ledger, Total};
use crate::{BLOCKS, PARTITIONS};

/// Bits of an entry that hold the place; a partition in memory is below 4 GiB.
const PLACE_BITS: u32 = 32;
/// Key bytes in an entry.
const ENTRY_KEY_BYTES: usize = 12;
/// Entries that a bucket should hold: 8 KiB, a quarter of the smallest first-level cache.
const BUCKET_ENTRIES: usize = 512;
/// Records that are copied before they are counted.
const STRIDE_RECORDS: usize = 128;
/// Bytes of one entry, and of its second copy while buckets are filled.
pub const ENTRY_BYTES: usize = 2 * std::mem::size_of::<u128>();

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
    /// Counts what goes out, by file.
    pub ledger: Arc<Ledger>,
}

impl Sort {
    fn largest_unit_records(&self) -> usize {
        let bytes = self.units.iter().map(|unit| unit.extent.len()).max();
        bytes.unwrap_or(0) / self.layout.record_bytes
    }
}

impl Spec for Sort {
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
            private_bytes: self.workers * self.largest_unit_records() * ENTRY_BYTES,
        }
    }

    fn start(&self, _worker: usize, _flow: &Flow) -> Result<Box<dyn Stage>, Failure> {
        let entries = Vec::with_capacity(self.largest_unit_records());
        let buckets = Vec::with_capacity(self.largest_unit_records());
        Ok(Box::new(Sorter {
            sort: self.clone(),
            entries,
            buckets,
            total: Total::default(),
        }))
    }
}

struct Sorter {
    sort: Sort,
    entries: Vec<u128>,
    buckets: Vec<u128>,
    total: Total,
}

impl Stage for Sorter {
    fn run(&mut self, flow: &mut Flow) -> Result<(), StageError> {
        let units = Arc::clone(&self.sort.units);
        while let Some(buffer) = flow.receive()? {
            let unit = &units[buffer.number];
            self.index(&buffer, &unit.extent);
            if !unit.extent.in_order {
                self.order(&buffer);
            }
            self.gather(&buffer, unit, flow)?;
            flow.moved(unit.extent.len(), self.entries.len());
        }
        Ok(())
    }
}

fn place(entry: u128) -> usize {
    entry as u32 as usize
}

impl Sorter {
    /// An entry for each record of the buffer.
    fn index(&mut self, buffer: &Buffer, extent: &Extent) {
        self.entries.clear();
        let layout = self.sort.layout;
        for payload in extent.places() {
            let records = buffer.slot()[payload.clone()].chunks_exact(layout.record_bytes);
            let places = payload.step_by(layout.record_bytes);
            self.entries
                .extend(records.zip(places).map(|(record, place)| {
                    let key = prefix(layout.key(record));
                    (key >> PLACE_BITS << PLACE_BITS) | place as u128
                }));
        }
    }

    /// Puts the entries into the order of their keys.
    fn order(&mut self, buffer: &Buffer) {
        sort_entries(&mut self.entries, &mut self.buckets);
        let layout = self.sort.layout;
        if layout.key_bytes > ENTRY_KEY_BYTES {
            let rest = |entry: &u128| {
                let record = place(*entry) + layout.key_offset;
                &buffer.slot()[record + ENTRY_KEY_BYTES..record + layout.key_bytes]
            };
            let same_so_far = |a: &u128, b: &u128| a >> PLACE_BITS == b >> PLACE_BITS;
            for equal in self.entries.chunk_by_mut(same_so_far) {
                equal.sort_unstable_by(|a, b| rest(a).cmp(rest(b)));
            }
        }
    }

    /// Copies the records in the entries' order to blocks of the output file.
    ///
    /// In strides: the copies of a stride wait for memory together, and what was copied is counted
    /// where it now lies, in the cache, so that the count is of what will be written.
    fn gather(&mut self, buffer: &Buffer, unit: &Unit, flow: &mut Flow) -> Result<(), StageError> {
        let record_bytes = self.sort.layout.record_bytes;
        let slot = buffer.slot();
        let mut offset = unit.extent.offset;
        let mut block = Self::block(unit, offset, flow)?;
        let mut entries = self.entries.as_slice();
        while !entries.is_empty() {
            let whole = (block.room() / record_bytes)
                .min(STRIDE_RECORDS)
                .min(entries.len());
            let begin = block.len;
            for &entry in &entries[..whole] {
                block.append(&slot[place(entry)..place(entry) + record_bytes]);
            }
            self.total.count(&block.payload()[begin..], record_bytes);
            entries = &entries[whole..];
            if block.room() >= record_bytes || entries.is_empty() {
                continue;
            }
            // The next record lies across the end of this block and the beginning of others.
            let mut rest = &slot[place(entries[0])..place(entries[0]) + record_bytes];
            self.total.count(rest, record_bytes);
            entries = &entries[1..];
            while rest.len() > block.room() || block.room() == 0 {
                let (now, later) = rest.split_at(block.room());
                block.append(now);
                rest = later;
                offset += block.len as u64;
                let next = Self::block(unit, offset, flow)?;
                flow.send(std::mem::replace(&mut block, next))?;
            }
            block.append(rest);
        }
        // Before its last block is on its way: what is written was counted.
        self.sort
            .ledger
            .add(unit.file, &std::mem::take(&mut self.total));
        if block.len > 0 {
            flow.send(block)?;
        }
        Ok(())
    }

    fn block(unit: &Unit, offset: u64, flow: &mut Flow) -> Result<Buffer, StageError> {
        let mut block = flow.buffer()?;
        (block.number, block.lane, block.offset) = (unit.file, unit.lane, offset);
        Ok(block)
    }
}

/// Sorts entries by one pass into buckets and a sort of each; `buckets` is room for a second copy.
fn sort_entries(entries: &mut Vec<u128>, buckets: &mut Vec<u128>) {
    let (Some(&least), Some(&greatest)) = (entries.iter().min(), entries.iter().max()) else {
        return;
    };
    // The bits above `low` where keys differ, at most as many as give buckets of the wanted size.
    let differing = u128::BITS - (least ^ greatest).leading_zeros();
    let wanted = (entries.len() / BUCKET_ENTRIES)
        .next_power_of_two()
        .trailing_zeros();
    let low = differing.saturating_sub(wanted).min(u128::BITS - 1);
    let base = least >> low;
    let bucket_of = |entry: u128| ((entry >> low) - base) as usize;
    let count = bucket_of(greatest) + 1;
    if count < 2 {
        return entries.sort_unstable();
    }
    let mut ends = vec![0_usize; count];
    entries
        .iter()
        .for_each(|&entry| ends[bucket_of(entry)] += 1);
    let mut sum = 0;
    for end in &mut ends {
        sum += std::mem::replace(end, sum);
    }
    buckets.clear();
    buckets.resize(entries.len(), 0);
    for &entry in entries.iter() {
        let next = &mut ends[bucket_of(entry)];
        buckets[*next] = entry;
        *next += 1;
    }
    let mut start = 0;
    for end in ends {
        buckets[start..end].sort_unstable();
        start = end;
    }
    std::mem::swap(entries, buckets);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn buckets_sort_as_a_sort_does(
            entries in prop::collection::vec(any::<u128>(), 0..3000),
            common_bits in 0_u32..128,
        ) {
            let mut entries: Vec<u128> = entries.iter().map(|entry| entry >> common_bits).collect();
            let mut expected = entries.clone();
            expected.sort_unstable();
            sort_entries(&mut entries, &mut Vec::new());
            prop_assert_eq!(entries, expected);
        }
    }
}
