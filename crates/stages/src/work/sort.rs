//! `sort`: a partition in memory, by key.
//!
//! Each record becomes an 8-byte entry: 32 bits of its key above its place in the buffer, so that
//! sorting compares numbers and touches no record. A sample of the keys tells which 32 bits: the
//! first in which the partition's keys differ. Entries are distributed to buckets by their leading
//! bits, some dozens per bucket, and each bucket is sorted within the cache. Records with equal
//! bits get entries of the next bits in which they differ, and so on (MSD radix sort). At the end
//! the records are copied once, in order, into blocks of the output file, and counted as they are
//! copied.
//!
//! The sort is not stable.

use std::sync::Arc;

use serde_json::{Value, json};
use tonnage_pipeline::{
    Buffer, Failure, MemoryNeed, Port, Stage, StageError, StageSpec, WorkerPorts, WriteCombiner,
};
use tonnage_records::Layout;

use crate::boundaries::prefix;
use crate::extent::Extent;
use crate::ports::{BLOCKS, PARTITIONS};
use crate::totals::{Total, Totals};

/// Bits of an entry that hold the place; a partition in memory is below 4 GiB.
const PLACE_BITS: u32 = 32;
/// Entries per bucket: 454,000 random entries then take 22 ns each; with 16 or 512 per bucket it is
/// 30 ns (two cores of an AMD EPYC).
const BUCKET_ENTRIES: usize = 64;
/// Most buckets: the cache lines being filled fit into a second-level cache.
const BUCKETS_AT_MOST: usize = 1 << 14;
/// One record in so many is sampled to choose the bits of keys.
const SAMPLE_STRIDE: usize = 64;
/// So few records with equal bits are compared by their whole keys.
const FEW: usize = 32;
/// Bytes of records that are copied before they are counted.
const STRIDE_BYTES: usize = 12 << 10;
/// Records are prefetched so many ahead.
const AHEAD: usize = 12;
/// Bytes of one entry, and of its copy while buckets are filled.
pub const ENTRY_BYTES: usize = 2 * size_of::<u64>();

/// Memory that a worker needs in addition to entries and blocks.
#[must_use]
pub fn stride_memory(record_bytes: usize) -> usize {
    let stride = stride_bytes(record_bytes);
    stride + WriteCombiner::memory(1, stride)
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
            stride: Vec::with_capacity(stride),
            combiner: WriteCombiner::new(1, stride),
            total: Total::default(),
        }))
    }
}

struct Sorter {
    sort: Sort,
    entries: Vec<u64>,
    buckets: Vec<u64>,
    stride: Vec<u8>,
    combiner: WriteCombiner,
    total: Total,
}

impl Stage for Sorter {
    fn run(&mut self, ports: &mut WorkerPorts) -> Result<(), StageError> {
        let units = Arc::clone(&self.sort.units);
        while let Some(buffer) = ports.receive()? {
            let unit = &units[buffer.number];
            self.index(&buffer, &unit.extent);
            if !unit.extent.in_order {
                self.order(&buffer);
            }
            self.gather(&buffer, unit, ports)?;
            ports.add_moved(unit.extent.len(), self.entries.len());
        }
        Ok(())
    }
}

fn place(entry: u64) -> usize {
    entry as u32 as usize
}

/// The 32 bits of keys that make entries: a key's distance from the least one, in units of the
/// power of two for which the greatest distance has 32 bits.
#[derive(Clone, Copy, Debug)]
struct Scale {
    least: u128,
    shift: u32,
}

impl Scale {
    /// For keys with these prefixes; `None` if all are equal.
    fn of(mut prefixes: impl Iterator<Item = u128>) -> Option<Self> {
        let first = prefixes.next()?;
        let (least, greatest) = prefixes.fold((first, first), |(least, greatest), prefix| {
            (least.min(prefix), greatest.max(prefix))
        });
        let bits = u128::BITS - (greatest - least).leading_zeros();
        (bits > 0).then_some(Self {
            least,
            shift: bits.saturating_sub(u64::BITS - PLACE_BITS),
        })
    }

    /// For keys of which these are a sample: others may be a little smaller or greater.
    fn about(prefixes: impl Iterator<Item = u128>) -> Self {
        let sampled = Self::of(prefixes).unwrap_or(Self { least: 0, shift: 0 });
        Self {
            least: sampled.least.saturating_sub(1 << (sampled.shift + 28)),
            shift: sampled.shift + 1,
        }
    }

    /// The entry of a record at this place.
    #[inline]
    fn entry(self, prefix: u128, place: usize) -> u64 {
        let steps = prefix.saturating_sub(self.least) >> self.shift;
        let bits = u32::try_from(steps).unwrap_or(u32::MAX); // Beyond what was sampled.
        (u64::from(bits) << PLACE_BITS) | place as u64
    }
}

impl Sorter {
    /// Makes an entry for each record of the buffer.
    fn index(&mut self, buffer: &Buffer, extent: &Extent) {
        self.entries.clear();
        let (slot, layout) = (buffer.slot(), self.sort.layout);
        let prefix_at =
            |place: usize| prefix(layout.key(&slot[place..place + layout.record_bytes]));
        let sampled = extent
            .places()
            .flat_map(|payload| payload.step_by(SAMPLE_STRIDE * layout.record_bytes));
        let scale = Scale::about(sampled.map(prefix_at));
        for payload in extent.places() {
            let records = slot[payload.clone()].chunks_exact(layout.record_bytes);
            let places = payload.step_by(layout.record_bytes);
            self.entries.extend(
                records
                    .zip(places)
                    .map(|(record, place)| scale.entry(prefix(layout.key(record)), place)),
            );
        }
    }

    /// Sorts the entries by key.
    fn order(&mut self, buffer: &Buffer) {
        let (slot, layout) = (buffer.slot(), self.sort.layout);
        let key = |entry: u64| layout.key(&slot[place(entry)..place(entry) + layout.record_bytes]);
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
            self.stride.clear();
            for (number, &entry) in entries[..whole].iter().enumerate() {
                if let Some(&next) = entries.get(number + AHEAD) {
                    buffer.prefetch(place(next)..place(next) + record_bytes);
                }
                self.stride
                    .extend_from_slice(&slot[place(entry)..place(entry) + record_bytes]);
            }
            self.total.count(&self.stride, record_bytes);
            self.combiner.append(0, &self.stride, &mut block);
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

/// Sorts entries by key; entries with equal bits by the bits that follow.
fn order<'a>(entries: &mut [u64], buckets: &mut Vec<u64>, key: &impl Fn(u64) -> &'a [u8]) {
    sort_entries(entries, buckets);
    for alike in entries.chunk_by_mut(|a, b| a >> PLACE_BITS == b >> PLACE_BITS) {
        if alike.len() > FEW {
            match Scale::of(alike.iter().map(|&entry| prefix(key(entry)))) {
                Some(scale) => {
                    for entry in &mut *alike {
                        *entry = scale.entry(prefix(key(*entry)), place(*entry));
                    }
                    order(alike, buckets, key);
                }
                None if rest(key(alike[0])).is_empty() => (),
                None => alike.sort_unstable_by(|&a, &b| rest(key(a)).cmp(rest(key(b)))),
            }
        } else if alike.len() > 1 {
            alike.sort_unstable_by(|&a, &b| key(a).cmp(key(b)));
        }
    }
}

/// The bytes of a key behind its prefix.
fn rest(key: &[u8]) -> &[u8] {
    key.get(size_of::<u128>()..).unwrap_or_default()
}

/// Distributes entries to buckets and sorts each; `buckets` is scratch memory.
fn sort_entries(entries: &mut [u64], buckets: &mut Vec<u64>) {
    let (Some(&least), Some(&greatest)) = (entries.iter().min(), entries.iter().max()) else {
        return;
    };
    // The bits above `low` where entries differ, but only as many as give buckets of the wanted
    // size.
    let differing = u64::BITS - (least ^ greatest).leading_zeros();
    let wanted = (entries.len() / BUCKET_ENTRIES)
        .next_power_of_two()
        .min(BUCKETS_AT_MOST)
        .trailing_zeros();
    let low = differing.saturating_sub(wanted).min(u64::BITS - 1);
    let base = least >> low;
    let bucket_of = |entry: u64| ((entry >> low) - base) as usize;
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
    for &entry in &*entries {
        let next = &mut ends[bucket_of(entry)];
        buckets[*next] = entry;
        *next += 1;
    }
    let mut start = 0;
    for end in ends {
        buckets[start..end].sort_unstable();
        start = end;
    }
    entries.copy_from_slice(buckets);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn buckets_sort_as_a_sort_does(
            entries in prop::collection::vec(any::<u64>(), 0..3000),
            common_bits in 0_u32..64,
        ) {
            let mut entries: Vec<u64> = entries.iter().map(|entry| entry >> common_bits).collect();
            let mut expected = entries.clone();
            expected.sort_unstable();
            sort_entries(&mut entries, &mut Vec::new());
            prop_assert_eq!(entries, expected);
        }

        #[test]
        fn entries_are_in_the_order_of_their_keys(
            key_bytes in 1_usize..24,
            bytes in prop::collection::vec(any::<u8>(), 24..6000),
            alphabet in prop::sample::select(vec![1_u8, 2, 3, 7, 255]),
            common in 0_usize..20,
        ) {
                        // Keys with a common prefix, and some without.
            let mut bytes: Vec<u8> = bytes.iter().map(|byte| byte % alphabet).collect();
            let many = bytes.len() / key_bytes * key_bytes;
            let most = bytes[..many].chunks_exact_mut(key_bytes).enumerate();
            for (_, key) in most.filter(|(number, _)| number % 17 != 3) {
                let end = common.min(key_bytes);
                key[..end].fill(9);
            }
            let key = |entry: u64| &bytes[place(entry)..place(entry) + key_bytes];
            let places = || (0..many).step_by(key_bytes);
            let scale = Scale::about(places().step_by(5).map(|at| prefix(key(at as u64))));
            let mut entries: Vec<u64> =
                places().map(|at| scale.entry(prefix(key(at as u64)), at)).collect();
            order(&mut entries, &mut Vec::new(), &key);
            let keys: Vec<&[u8]> = entries.iter().map(|&entry| key(entry)).collect();
            prop_assert!(keys.is_sorted());
            let mut left: Vec<usize> = entries.iter().map(|&entry| place(entry)).collect();
            left.sort_unstable();
            prop_assert!(left.into_iter().eq(places()));
        }
    }
}
