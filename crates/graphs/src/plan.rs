//! How a memory budget is divided among the stages of the sort.
//!
//! Pass one wants one open block for each partition and worker; pass two wants whole partitions,
//! one being read for each device, one being sorted by each worker, one waiting. Small partitions
//! keep pass two's devices busy from early on until late; large blocks keep pass one's writes
//! long. Where the input is so large that both cannot be had, partitions grow up to what pass two
//! can hold, then blocks shrink, and what is too large even so is partitioned again.

use serde::{Deserialize, Serialize};
use tonnage_disk::Disk;
use tonnage_stages::extent::{ALIGNMENT, aligned};

use crate::inputs::extent_stride;
use crate::job::JobError;

/// Extents and blocks are at most this long: four transfers of the usual size.
const EXTENT_BYTES: usize = 4 << 20;
/// The longest useful block: a seek costs little beside it.
const BLOCK_BYTES: usize = 1 << 20;
/// The shortest block before partitions are made larger instead.
const BLOCK_BYTES_LEAST: usize = 64 << 10;
/// A partition as pass two likes it: 1/128 of the data within these bounds.
const PARTITION_BYTES: (u64, u64) = (1 << 20, 48 << 20);
/// Partitions are planned at this share of what fits, since a sample's quantiles vary.
const FILL: f64 = 0.75;
/// Bytes that the sort keeps for each record of a partition beside it.
const ENTRY_BYTES: usize = tonnage_stages::work::ENTRY_BYTES;

/// Sizes and numbers for both passes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// Memory for each pass.
    pub memory_bytes: usize,
    /// Threads for partitioning and for sorting.
    pub workers: usize,
    /// Extents of input files.
    pub extent_bytes: usize,
    /// Buffers for them.
    pub extent_buffers: usize,
    /// Blocks of partitions, and of output files.
    pub block_bytes: usize,
    /// Blocks on their way to a disk.
    pub spare_blocks: usize,
    /// Partitions to aim for.
    pub partitions: usize,
    /// Partitions in memory at once in pass two.
    pub slots: usize,
    /// The largest partition (with its alignment) that fits.
    pub slot_bytes: usize,
    /// Blocks of output files.
    pub output_block_bytes: usize,
    /// How many of them.
    pub output_blocks: usize,
}

/// What a plan depends on.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    /// Bytes to sort.
    pub bytes: u64,
    /// Size of a record.
    pub record_bytes: usize,
    /// Memory for the whole graph.
    pub memory_bytes: usize,
    /// Threads for the work stages.
    pub workers: usize,
    /// Devices of input, scratch and output.
    pub devices: (usize, usize, usize),
}

impl Plan {
    /// Divides the memory.
    ///
    /// # Errors
    /// When the memory is too small for any division, saying how much is needed.
    pub fn new(shape: &Shape, disk: &Disk) -> Result<Self, JobError> {
        let Shape { bytes, record_bytes, memory_bytes, workers, devices } = *shape;
        let (inputs, scratches, outputs) = devices;
        // Small budgets get small buffers: an eighth of the memory for each of reading and writing.
        let largest = |share: usize, most: usize| {
            aligned((memory_bytes / share).clamp(ALIGNMENT, most)).max(aligned(record_bytes))
        };
        let in_hand = |buffer: usize| (disk.depth * disk.transfer_bytes).div_ceil(buffer) + 1;
        let extent_bytes = {
            let wanted = largest(16 * (inputs + workers + 4), EXTENT_BYTES);
            extent_stride(record_bytes, wanted)
        };
        let extent_bytes_in_memory = aligned(extent_bytes) + ALIGNMENT;
        let few = memory_bytes / 8 / extent_bytes_in_memory;
        let extent_buffers =
            (inputs * in_hand(extent_bytes) + workers + 2).min(few).max(inputs + workers + 1);
        let output_block_bytes = largest(16 * (workers + 4 * outputs), BLOCK_BYTES);
        let few = memory_bytes / 8 / output_block_bytes;
        let output_blocks =
            (outputs * (disk.depth + 2) + workers).min(few).max(workers + outputs);

        // Pass two: what is left holds partitions, each with room for entries while it is sorted.
        let slots = scratches + workers + 1;
        let left = memory_bytes.saturating_sub(output_blocks * output_block_bytes);
        let per_record = slots as f64 + (workers * ENTRY_BYTES) as f64 / record_bytes as f64;
        let slot_bytes = (left as f64 / per_record) as usize;
        let slot_bytes = slot_bytes.min(u32::MAX as usize) / ALIGNMENT * ALIGNMENT;

        // Pass one: what is left holds the open blocks.
        let spares = |block: usize| (scratches * (disk.depth + 2)).min(memory_bytes / 8 / block).max(scratches);
        let reading = extent_buffers * extent_bytes_in_memory;
        let room = memory_bytes.saturating_sub(reading);
        let least = largest(usize::MAX, BLOCK_BYTES_LEAST).max(aligned(record_bytes)).min(BLOCK_BYTES.max(aligned(record_bytes)));
        let most_partitions = |block: usize| room.saturating_sub(spares(block) * block) / (workers * block);
        let fits = (slot_bytes as f64 * FILL) as u64;
        let wanted = (bytes / 128).clamp(PARTITION_BYTES.0, PARTITION_BYTES.1).min(fits.max(1));
        let partitions = bytes.div_ceil(wanted).clamp(1, 1 << 20) as usize;
        // Fewer, larger partitions before blocks shorter than the least.
        let comfortable = most_partitions(largest(64, BLOCK_BYTES_LEAST).max(least));
        let needed = bytes.div_ceil(fits.max(1)).max(1) as usize;
        let partitions = partitions.min(comfortable.max(needed)).min(most_partitions(least).max(1));
        // Frequent keys may have partitions of their own: leave room for as many again, up to 8.
        let may_be = partitions + partitions.min(8);
        let share = room / (workers * may_be + scratches * (disk.depth + 2));
        let block_bytes = aligned((share / ALIGNMENT * ALIGNMENT).clamp(ALIGNMENT, BLOCK_BYTES))
            .max(aligned(record_bytes));
        let spare_blocks = spares(block_bytes);

        let plan = Self {
            memory_bytes,
            workers,
            extent_bytes,
            extent_buffers,
            block_bytes,
            spare_blocks,
            partitions,
            slots,
            slot_bytes,
            output_block_bytes,
            output_blocks,
        };
        let need = (reading + (workers * 2 + plan.spare_blocks) * plan.block_bytes)
            .max(output_blocks * output_block_bytes + (per_record * aligned(record_bytes) as f64) as usize * 2);
        if need > memory_bytes {
            return Err(JobError::Refused(format!(
                "--memory {memory_bytes} bytes is too small for records of {record_bytes} bytes on \
                 {} devices with {workers} workers: give at least {} MiB",
                inputs + scratches + outputs,
                (2 * need).div_ceil(1 << 20)
            )));
        }
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_plan_keeps_its_memory(
            bytes in 0_u64..20_000_000_000_000,
            record_bytes in 1_usize..20_000,
            memory_bytes in (1_usize << 20)..(8 << 30),
            workers in 1_usize..64,
            inputs in 1_usize..5, scratches in 1_usize..5, outputs in 1_usize..5,
        ) {
            let devices = (inputs, scratches, outputs);
            let shape = Shape { bytes, record_bytes, memory_bytes, workers, devices };
            if let Ok(plan) = Plan::new(&shape, &Disk::default()) {
                let reading = plan.extent_buffers * (aligned(plan.extent_bytes) + ALIGNMENT);
                let open = plan.workers * plan.partitions + plan.spare_blocks;
                prop_assert!(reading + open * plan.block_bytes <= memory_bytes);
                let entries = plan.workers * (plan.slot_bytes / record_bytes) * ENTRY_BYTES;
                let pass_two = plan.slots * plan.slot_bytes + entries
                    + plan.output_blocks * plan.output_block_bytes;
                prop_assert!(pass_two <= memory_bytes);
                prop_assert!(plan.block_bytes >= record_bytes);
                prop_assert!(plan.slot_bytes >= record_bytes);
            }
        }

        #[test]
        fn the_usual_sizes_have_a_plan(gigabytes in 0_u64..10_000, workers in 1_usize..32) {
            let shape = Shape {
                bytes: gigabytes * 1_000_000_000,
                record_bytes: 100,
                memory_bytes: 1 << 30,
                workers,
                devices: (1, 1, 1),
            };
            let plan = Plan::new(&shape, &Disk::default()).expect("a plan");
            prop_assert!(plan.block_bytes >= BLOCK_BYTES_LEAST / 4, "{plan:?}");
        }
    }
}
