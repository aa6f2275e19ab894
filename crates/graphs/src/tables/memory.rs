//! Divides a memory budget among the stages of a table sort.
//!
//! Pass one holds splits that are read and decoded, and an open block for each worker and
//! partition. Pass two holds whole partitions: one each worker sorts, and one that is read for it;
//! in addition entries, a row group that is being encoded, and blocks of output. Where all
//! rows fit into what neither pass needs, their blocks stay there; where a part does, a part of the
//! blocks may.

use serde::{Deserialize, Serialize};

use crate::error::{JobError, setting_error};
use crate::memory_plan::{INDEX_BYTES, PART_BYTES, SHORT_PART_BYTES, buffers_of_receive};

const ALIGNMENT: usize = 4096;
/// Blocks: as long as a device likes, and the shortest; one that has a longer row is as long as that.
const BLOCK_BYTES: [usize; 2] = [256 << 10, 16 << 10];
/// Copies of a row while it is decoded or encoded, which count where a row is longer than blocks are
/// otherwise.
const ROW_COPIES: usize = 4;
/// The fewest partitions: those of a partition that is divided again.
const FEWEST_PARTITIONS: usize = 3;
/// The longest split.
const SPLIT_BYTES: usize = 16 << 20;
/// Shorter ones are not worth a request of their own.
const SHORT_SPLIT_BYTES: usize = 4 << 20;
/// Blocks of output.
const OUTPUT_BLOCK_BYTES: usize = 1 << 20;
/// How full partitions are planned, since samples miss a little.
const FILL: f64 = 0.7;
/// The longest row group.
const GROUP_BYTES: usize = 64 << 20;
/// Partitions are planned no longer, where memory allows so many: their entries fit into a
/// second-level cache, and memory that is not touched costs nothing.
const PARTITION_BYTES: u64 = 24 << 20;
/// Most attempts to find memory for the index: with less, blocks become shorter, and so more.
const INDEX_ROUNDS: usize = 12;
/// Spare memory holds at least one of so many parts of all rows.
const SPARE_PARTS: usize = 16;
/// Entries and their copy.
const ENTRY_BYTES: usize = 16;

/// Concurrent requests to a store; none if it is not used.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreRequests {
    /// For input.
    pub downloads: usize,
    /// For output.
    pub uploads: usize,
}

/// What the division depends on.
#[derive(Clone, Copy, Debug)]
pub struct TableShape {
    /// About how many bytes all rows have in memory.
    pub rows_bytes: u64,
    /// About how many bytes a row has.
    pub row_bytes: usize,
    /// How many bytes the longest known row has.
    pub longest_row: usize,
    /// The whole budget.
    pub memory_bytes: usize,
    /// Threads.
    pub workers: usize,
    /// Devices of scratch and output.
    pub devices: (usize, usize),
    /// Requests under way on each device.
    pub depth: usize,
    /// Concurrent requests to a store.
    pub requests: StoreRequests,
    /// What a worker needs to decode.
    pub decoding_bytes: usize,
    /// What a worker needs to encode, apart from row groups.
    pub encoding_bytes: usize,
    /// The longest split, with the alignment of its pieces.
    pub split_span: usize,
    /// Nodes that divide rows among partitions together.
    pub endpoints: usize,
    /// Connections to all others.
    pub links: usize,
    /// Bytes of the longest partition, if they are known already.
    pub longest_partition: Option<usize>,
}

/// Bytes of a split, at most about, and how many are in memory at once: more with requests that
/// wait for a store, as long as splits are not short.
#[must_use]
pub fn splits(memory_bytes: usize, workers: usize, downloads: usize) -> (usize, usize) {
    let least = workers + 2;
    let most = least.max(workers + downloads);
    let buffers = (memory_bytes / 4 / SHORT_SPLIT_BYTES).clamp(least, most);
    let bytes = memory_bytes / 4 / buffers / ALIGNMENT * ALIGNMENT;
    (bytes.clamp(ALIGNMENT, SPLIT_BYTES), buffers)
}

/// Size and number of the blocks of files.
fn output_blocks(
    memory_bytes: usize,
    workers: usize,
    outputs: usize,
    depth: usize,
) -> (usize, usize) {
    let bytes = memory_bytes / 16 / (workers + 2 * outputs) / ALIGNMENT * ALIGNMENT;
    let bytes = bytes.clamp(ALIGNMENT, OUTPUT_BLOCK_BYTES);
    let count = (workers + outputs * depth).min(memory_bytes / 16 / bytes);
    (bytes, count.max(workers + outputs))
}

/// Size and number of the parts of objects: one that each worker fills, and those being sent.
fn upload_parts(memory_bytes: usize, workers: usize, uploads: usize) -> (usize, usize) {
    let [shortest, _] = PART_BYTES;
    let bytes = memory_bytes / 4 / (workers + uploads) / ALIGNMENT * ALIGNMENT;
    let bytes = bytes.clamp(shortest, SHORT_PART_BYTES);
    let count = (workers + uploads).min(memory_bytes / 4 / bytes);
    (bytes, count.max(workers + 1))
}

/// How many of the workers decode at once, within half of the memory if that is possible.
#[must_use]
pub fn decoders(memory_bytes: usize, workers: usize, decoding_bytes: usize) -> usize {
    (memory_bytes / 2 / decoding_bytes.max(1)).clamp(1, workers)
}

/// Sizes and numbers for both passes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TablePlan {
    /// Memory for each pass, without the index.
    pub memory_bytes: usize,
    /// Memory for the index of blocks.
    pub index_bytes: usize,
    /// Threads.
    pub workers: usize,
    /// Those of them that decode in pass one: fewer if memory is short.
    pub decoders: usize,
    /// The longest split.
    pub split_bytes: usize,
    /// Splits in memory at once.
    pub split_buffers: usize,
    /// Blocks of partitions.
    pub block_bytes: usize,
    /// Blocks on their way to scratch.
    pub spare_blocks: usize,
    /// Partitions to aim for.
    pub partitions: usize,
    /// Partitions in memory at once in pass two.
    pub slots: usize,
    /// The largest partition that fits.
    pub slot_bytes: usize,
    /// The most rows in a partition.
    pub most_rows: usize,
    /// Bytes of a row group.
    pub group_bytes: usize,
    /// What a worker needs to encode.
    pub encoding_bytes: usize,
    /// Blocks of output files.
    pub output_block_bytes: usize,
    /// How many.
    pub output_blocks: usize,
    /// Memory for all blocks, or 0 if they go to scratch.
    pub blocks_bytes: usize,
    /// Memory for a part of the blocks, if it is cheap.
    pub spare_bytes: usize,
}

impl TablePlan {
    /// Divides the memory.
    ///
    /// # Errors
    /// When it is too small.
    pub fn new(shape: &TableShape) -> Result<Self, JobError> {
        let mut index_bytes = 0;
        for _ in 0..INDEX_ROUNDS {
            let plan = Self::divide(&TableShape {
                memory_bytes: shape.memory_bytes.saturating_sub(index_bytes),
                ..*shape
            })?;
            // Two blocks of each worker and partition are short.
            let full = shape.rows_bytes / shape.endpoints as u64 / plan.block_bytes as u64;
            let full = usize::try_from(full).unwrap_or(usize::MAX);
            let blocks = full.saturating_add(2 * plan.decoders * plan.partitions);
            let needed = blocks.saturating_mul(INDEX_BYTES);
            if needed <= index_bytes {
                return Ok(Self {
                    index_bytes,
                    ..plan
                });
            }
            index_bytes = needed.next_multiple_of(ALIGNMENT);
        }
        let why = format!(
            "{} bytes are not enough for the index of {} bytes in blocks; use more",
            shape.memory_bytes, shape.rows_bytes
        );
        Err(setting_error("memory", why))
    }

    fn divide(shape: &TableShape) -> Result<Self, JobError> {
        let TableShape {
            rows_bytes,
            row_bytes,
            longest_row,
            memory_bytes,
            workers,
            devices: (scratches, outputs),
            depth,
            requests,
            decoding_bytes,
            encoding_bytes,
            split_span,
            endpoints,
            links,
            longest_partition,
        } = *shape;
        let align = |bytes: usize| bytes / ALIGNMENT * ALIGNMENT;
        let row_block = longest_row.next_multiple_of(ALIGNMENT);
        let [long_block, short_block] = BLOCK_BYTES.map(|bytes| bytes.max(row_block));
        let copies_bytes = match longest_row > BLOCK_BYTES[0] {
            true => ROW_COPIES * longest_row,
            false => 0,
        };
        let decoding_bytes = decoding_bytes + copies_bytes;
        let (_, split_buffers) = splits(memory_bytes, workers, requests.downloads);
        let (output_block_bytes, output_blocks) = match requests.uploads {
            0 => output_blocks(memory_bytes, workers, outputs, depth),
            uploads => upload_parts(memory_bytes, workers, uploads),
        };
        // Each worker sorts one, while the next is read for it.
        let slots = workers + workers.max(scratches);
        let group_bytes = (memory_bytes / 16 / workers).min(GROUP_BYTES);
        let encoding_bytes = encoding_bytes + copies_bytes + 2 * group_bytes;
        let for_slots = memory_bytes
            .saturating_sub(output_blocks * output_block_bytes + workers * encoding_bytes)
            .max(ALIGNMENT);
        let slot_bytes = longest_slot(for_slots, slots, workers, row_bytes);
        let fits = ((slot_bytes as f64 * FILL) as u64).max(1);
        let need = |(buffers, decoders)| buffers * split_span + decoders * decoding_bytes;
        let room = memory_bytes.saturating_sub(split_buffers * split_span);
        let usual = (split_buffers, decoders(room, workers, decoding_bytes));
        // The least: a split is decoded while the next is read. Open blocks take the rest.
        let (split_buffers, decoders) = match need(usual) > memory_bytes / 8 * 7 {
            true => (split_buffers.min(2), 1),
            false => usual,
        };
        let one = need((split_buffers, decoders));
        let open = memory_bytes.saturating_sub(one) / 2;
        let most = open / (decoders * short_block).max(1);
        let needed = usize::try_from(rows_bytes.div_ceil(fits)).unwrap_or(usize::MAX);
        // More partitions than are needed have blocks as long as a device likes.
        let spare = open / (decoders * long_block);
        let short = usize::try_from(rows_bytes / PARTITION_BYTES).unwrap_or(usize::MAX);
        let partitions = needed
            .max(short.min(spare))
            .max(2 * workers * endpoints)
            .min(most);
        // Each connection has a block, and what is received as much room as what is spare here.
        let on_wire = if links == 0 { 1 } else { 2 };
        let most_block = align(open / on_wire / (links + scratches));
        let (fewest, shortest) = match row_block > BLOCK_BYTES[1] {
            true => (FEWEST_PARTITIONS, 2 * row_block),
            false => (1, 2 * ALIGNMENT),
        };
        if most < fewest || slot_bytes < shortest || most_block < short_block {
            let why = match longest_row > BLOCK_BYTES[0] {
                true => format!("not enough for rows of up to {longest_row} bytes"),
                false => format!(
                    "not enough: decoding or encoding alone takes {} bytes",
                    one.max(workers * encoding_bytes)
                ),
            };
            let why = format!("{memory_bytes} bytes are {why}; use more");
            return Err(setting_error("memory", why));
        }
        let block_bytes = align(open / (decoders * partitions))
            .min(most_block)
            .clamp(short_block, long_block);
        let spare_blocks = ((scratches + links) * 4 * depth)
            .min(open / on_wire / block_bytes)
            .max(scratches);
        // Twice as long as on average, since samples miss a little; longer ones are divided again.
        let average = usize::try_from(rows_bytes / partitions as u64).unwrap_or(usize::MAX);
        let longest = longest_partition.unwrap_or(average.saturating_mul(2));
        let slot_bytes = slot_bytes.min(align(longest) + block_bytes);
        let most_rows = slot_bytes / row_bytes.max(16) * 2;
        let two = slots * slot_bytes
            + workers * (most_rows * ENTRY_BYTES + encoding_bytes)
            + output_blocks * output_block_bytes;
        // Of each worker and partition two blocks are short, and one is open.
        let others = (3 * decoders * partitions + spare_blocks) * block_bytes;
        let all = usize::try_from(rows_bytes + rows_bytes / 8).unwrap_or(usize::MAX);
        let wanted = all.saturating_add(others);
        let room = memory_bytes.saturating_sub(one.max(two));
        let blocks_bytes = if room >= wanted { wanted } else { 0 };
        let moving = (decoders * partitions + spare_blocks) * block_bytes;
        let spare = memory_bytes.saturating_sub(two.max(one + moving));
        // What a node has written must outlive it, and a small part is not worth its memory.
        let is_worth = endpoints == 1 && spare >= all / SPARE_PARTS;
        let spare_bytes = if blocks_bytes == 0 && is_worth {
            spare
        } else {
            0
        };
        Ok(Self {
            memory_bytes,
            index_bytes: 0,
            workers,
            decoders,
            split_bytes: split_span,
            split_buffers,
            block_bytes,
            spare_blocks,
            partitions,
            slots,
            slot_bytes,
            most_rows,
            group_bytes,
            encoding_bytes,
            output_block_bytes,
            output_blocks,
            blocks_bytes,
            spare_bytes,
        })
    }

    /// The same with pass two for the rows that came, if they are more than sampling told: longer
    /// partitions, as far as memory allows, since pass one has made them.
    #[must_use]
    pub fn for_rows(mut self, rows: u64, bytes: u64) -> Self {
        let row_bytes = usize::try_from(bytes / rows.max(1)).unwrap_or(usize::MAX);
        let others =
            self.output_blocks * self.output_block_bytes + self.workers * self.encoding_bytes;
        let room = self.passes_bytes().saturating_sub(others);
        let longest = longest_slot(room, self.slots, self.workers, row_bytes);
        let average = usize::try_from(bytes / self.partitions as u64).unwrap_or(usize::MAX);
        let wanted = average.saturating_mul(2) / ALIGNMENT * ALIGNMENT + self.block_bytes;
        if wanted > self.slot_bytes && longest > self.slot_bytes {
            self.slot_bytes = wanted.min(longest);
            self.most_rows = self.slot_bytes / row_bytes.max(16) * 2;
        }
        self
    }

    /// Memory for the passes, without blocks that stay in memory.
    #[must_use]
    pub fn passes_bytes(&self) -> usize {
        self.memory_bytes - self.blocks_bytes - self.spare_bytes
    }

    /// How many partitions may be made of one that is divided again: nothing is decoded then, but
    /// blocks that stay in memory are no more than were planned.
    #[must_use]
    pub fn divided_into(&self) -> usize {
        let open = match self.blocks_bytes {
            0 => self.passes_bytes() / 4 / (self.workers * self.block_bytes),
            _ => 0,
        };
        open.max(self.partitions).max(3)
    }

    /// The division of a node in a round of pass one: partitions and their blocks are as on all
    /// nodes, and fewer threads fill them if memory requires it.
    ///
    /// # Errors
    /// When it is too small.
    pub fn of_round(
        shape: &TableShape,
        partitions: usize,
        block_bytes: usize,
    ) -> Result<Self, JobError> {
        let plan = Self::new(shape)?;
        let fewest = shape.devices.0 + buffers_of_receive(0, shape.links, shape.devices.0);
        for decoders in (1..=plan.decoders).rev() {
            let split_buffers = plan.split_buffers.min(decoders + 2);
            let reading = split_buffers * shape.split_span + decoders * shape.decoding_bytes;
            let open = decoders * partitions;
            let room = plan.memory_bytes.saturating_sub(reading) / block_bytes;
            if open + fewest <= room {
                let spare = (room - open - fewest) / 2;
                return Ok(Self {
                    decoders,
                    split_buffers,
                    partitions,
                    block_bytes,
                    spare_blocks: plan.spare_blocks.min(spare).max(shape.devices.0),
                    ..plan
                });
            }
        }
        Err(setting_error(
            "memory",
            format!(
                "{} bytes are not enough for {partitions} blocks of {block_bytes} bytes, as other \
                 nodes have; use more",
                shape.memory_bytes
            ),
        ))
    }

    /// The same with blocks that are no shorter than those of pass one, which hold the longest row.
    #[must_use]
    pub fn with_blocks(self, block_bytes: usize) -> Self {
        let longer = block_bytes.max(self.block_bytes);
        let fewer = |blocks: usize| blocks * self.block_bytes / longer;
        Self {
            partitions: fewer(self.partitions).max(1),
            spare_blocks: fewer(self.spare_blocks).max(1),
            block_bytes: longer,
            ..self
        }
    }

    /// Blocks that are being filled, or on their way to scratch.
    #[must_use]
    pub fn moving_blocks(&self) -> usize {
        self.decoders * self.partitions + self.spare_blocks
    }
}

/// The longest partition of which `slots` have room, with the entries of those being sorted.
fn longest_slot(room: usize, slots: usize, workers: usize, row_bytes: usize) -> usize {
    // Rows shorter than on average have more entries.
    let per_byte = slots as f64 + (2 * workers * ENTRY_BYTES) as f64 / row_bytes.max(16) as f64;
    let bytes = (room as f64 / per_byte) as usize;
    (bytes / ALIGNMENT * ALIGNMENT).min(u32::MAX as usize)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_moves_in_pass_one_fits_into_memory(
            rows_bytes in 0_u64..10_000_000_000_000,
            row_bytes in 1_usize..100_000,
            longest_row in 0_usize..(2 << 20),
            memory_bytes in (8_usize << 20)..(8 << 30),
            workers in 1_usize..64,
            devices in (1_usize..5, 1_usize..5),
            decoding_bytes in 0_usize..(1 << 20),
            endpoints in 1_usize..40,
            connections in 1_usize..7,
            others in (1_usize..2000, 4_usize..64),
        ) {
            let (split_span, _) = splits(memory_bytes, workers, 0);
            let shape = TableShape {
                rows_bytes, row_bytes, longest_row, memory_bytes, workers, devices, decoding_bytes,
                split_span,
                encoding_bytes: 64 << 10,
                depth: 8, endpoints, links: (endpoints - 1) * connections, longest_partition: None,
                requests: StoreRequests::default(),
            };
            let fits = |plan: &TablePlan| {
                let received = match shape.links {
                    0 => 0,
                    links => buffers_of_receive(plan.spare_blocks, links, devices.0),
                };
                let reading = plan.split_buffers * split_span + plan.decoders * decoding_bytes;
                let moving = plan.moving_blocks() + received;
                reading + moving * plan.block_bytes <= memory_bytes
            };
            if let Ok(plan) = TablePlan::new(&shape) {
                prop_assert!(fits(&plan), "{plan:?}");
            }
            let (partitions, blocks) = others;
            if let Ok(plan) = TablePlan::of_round(&shape, partitions, blocks * ALIGNMENT) {
                prop_assert!(fits(&plan), "{plan:?}");
            }
        }
    }

    #[test]
    fn fewer_threads_decode_where_memory_is_short() {
        let mib = 1 << 20;
        assert_eq!(decoders(64 * mib, 2, 13 * mib), 2);
        assert_eq!(decoders(32 * mib, 2, 13 * mib), 1);
        assert_eq!(decoders(8 * mib, 4, 13 * mib), 1);
        assert_eq!(decoders(8 * mib, 4, 0), 4);
    }
}
