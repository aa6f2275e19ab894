//! Divides a memory budget among the stages of the sort.
//!
//! Pass one needs one open block per partition and worker. Pass two needs whole partitions: one
//! being read per device, one being sorted per worker, one waiting. The number of partitions
//! balances both needs, with blocks that keep pass one's writes long. If the input is too large for
//! both, first partitions grow up to what pass two can hold, then blocks shrink; partitions that
//! are still too large are repartitioned.

use serde::{Deserialize, Serialize};
use tonnage_disk::Disk;
use tonnage_stages::extent::{ALIGNMENT, Piece, aligned};
use tonnage_stages::work::{ENTRY_BYTES, combiner_memory, stride_memory};

use crate::error::{JobError, setting_error};
use crate::inputs::extent_stride;

/// Size of a record where the core does not know records and counts none.
pub(crate) const UNCOUNTED: usize = usize::MAX;

/// The longest extent of an input file: four transfers of the usual size.
const EXTENT_BYTES: usize = 4 << 20;
/// The longest range of an object. Each request is paid for, however long it is; S3's guidance is
/// ranges of 8 to 16 MB ("Performance guidelines for Amazon S3"), and one that is sent again costs
/// its whole length.
const RANGE_BYTES: usize = 16 << 20;
/// The longest block of an output file: one transfer.
const OUTPUT_BLOCK_BYTES: usize = 1 << 20;
/// Parts of an object. Stores reject shorter ones (except the last). A put costs twelve times as
/// much as a get at S3, so parts are longer than ranges.
pub(crate) const PART_BYTES: [usize; 2] = [5 << 20, 64 << 20];
/// Parts that an object may have. A sort's output file fits in memory, so it is below 4 GiB and has
/// far fewer.
pub(crate) const MOST_PARTS: u64 = 10_000;
/// Parts of an output that is too short for as many of the longest ones as there are requests.
pub(crate) const SHORT_PART_BYTES: usize = 16 << 20;
/// Blocks of partitions. Longer ones hold back more data at the end of pass one; shorter ones cost
/// seeks. Partitions grow before blocks shrink below the second size; the third is the minimum.
const BLOCK_BYTES: [usize; 3] = [512 << 10, 64 << 10, 16 << 10];
/// What is remembered of a block in scratch: its place while pass one runs, a `Piece` then.
pub(crate) const INDEX_BYTES: usize = size_of::<Piece>();
/// Most attempts to find memory for the index: blocks become shorter, and so more, with less.
const INDEX_ROUNDS: usize = 12;
/// The smallest partition worth a file.
const PARTITION_BYTES: u64 = 1 << 20;
/// Partitions are planned at this share of what fits, since a sample's quantiles vary.
const FILL: f64 = 0.75;
/// Blocks on their way to a disk, in units of its queue depth: one in flight, the others waiting,
/// since open blocks of random keys fill in bursts of tens. There are as many on their way to other
/// nodes: a sender is held up by the peer that got more than the others lately.
const SPARE_QUEUES: usize = 4;
/// Longer records are mistakes; a partition in memory could not hold several.
const RECORD_BYTES_AT_MOST: usize = 1 << 30;
/// Shares of the memory. Pass one: an eighth for extents, an eighth for blocks on their way, half
/// for open blocks. Pass two: an eighth for output blocks, the rest for partitions. On a cluster
/// both passes use another eighth for what they receive.
const EIGHTH: usize = 8;

/// Sizes and numbers for both passes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// Memory for each pass, without the index.
    pub memory_bytes: usize,
    /// Memory for the index of blocks in scratch.
    pub index_bytes: usize,
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
    /// Devices of input, scratch and output; each concurrent request to an object store counts as
    /// one.
    pub devices: (usize, usize, usize),
    /// Whether input comes from an object store, so that its extents are ranges of objects.
    #[serde(default)]
    pub downloads: bool,
    /// Whether the output goes to an object store, so that its blocks are parts of objects.
    #[serde(default)]
    pub uploads: bool,
    /// Nodes, each with as much to sort and as many partitions.
    #[serde(default = "one")]
    pub endpoints: usize,
    /// Connections from each node to each other.
    #[serde(default = "one")]
    pub connections: usize,
}

fn one() -> usize {
    1
}

impl Plan {
    /// Divides the memory.
    ///
    /// # Errors
    /// When the memory is too small for any division, with the size that suffices.
    pub fn new(shape: &Shape, disk: &Disk) -> Result<Self, JobError> {
        // Longer blocks have a shorter index, but partitions are fewer. Where partitions cannot fit
        // at any length, and so are partitioned again, the longest blocks are best.
        let [longest, .., shortest] = BLOCK_BYTES;
        let lengths = std::iter::successors(Some(shortest), |last| Some(2 * last));
        let lengths: Vec<usize> = lengths.take_while(|&length| length <= longest).collect();
        let found = |shape: &Shape| {
            let plan = |&shortest: &usize| Self::with_index(shape, disk, shortest);
            let mut fitting = lengths
                .iter()
                .filter_map(plan)
                .filter(|plan| plan.fits(shape));
            fitting.next().or_else(|| plan(&longest))
        };
        if let Some(plan) = found(shape) {
            return Ok(plan);
        }
        Self::divide(shape, disk, shortest)?;
        // Without the index it would be enough.
        let more = |memory_bytes: &usize| Shape {
            memory_bytes: *memory_bytes,
            ..*shape
        };
        let mut larger = std::iter::successors(Some(shape.memory_bytes), |last| {
            last.checked_add(shape.memory_bytes / 4)
        });
        let enough = larger.find(|memory| found(&more(memory)).is_some());
        Err(setting_error(
            "memory",
            format!(
                "{} bytes are not enough for the index of {} bytes in blocks; use at least {}MiB",
                shape.memory_bytes,
                shape.bytes,
                enough.unwrap_or(usize::MAX).div_ceil(1 << 20)
            ),
        ))
    }

    /// A division that leaves memory for the index of its blocks.
    fn with_index(shape: &Shape, disk: &Disk, shortest_block: usize) -> Option<Self> {
        let mut index_bytes = 0;
        for _ in 0..INDEX_ROUNDS {
            let rest = Shape {
                memory_bytes: shape.memory_bytes.checked_sub(index_bytes)?,
                ..*shape
            };
            let plan = Self::divide(&rest, disk, shortest_block).ok()?;
            let needed = plan.index_for(shape.bytes, shape.endpoints);
            if needed <= index_bytes {
                return Some(Self {
                    index_bytes,
                    ..plan
                });
            }
            index_bytes = needed.next_multiple_of(ALIGNMENT);
        }
        None
    }

    /// Whether partitions fit into memory on average.
    fn fits(&self, shape: &Shape) -> bool {
        shape.bytes / self.partitions as u64 <= self.slot_bytes as u64
    }

    /// Whether partitions fit into memory, and blocks are as long as devices like.
    #[must_use]
    pub fn has_long_blocks(&self, shape: &Shape) -> bool {
        self.fits(shape) && self.block_bytes == BLOCK_BYTES[0]
    }

    /// Memory for the index of so many bytes: blocks are full, but two of each worker and partition.
    fn index_for(&self, bytes: u64, endpoints: usize) -> usize {
        let full = usize::try_from(bytes / self.block_bytes as u64).unwrap_or(usize::MAX);
        let short = 2 * self.workers * endpoints * self.partitions;
        full.saturating_add(short).saturating_mul(INDEX_BYTES)
    }

    fn divide(shape: &Shape, disk: &Disk, shortest_block: usize) -> Result<Self, JobError> {
        let Shape {
            bytes,
            record_bytes,
            memory_bytes,
            workers,
            devices,
            downloads,
            uploads,
            endpoints,
            connections,
        } = *shape;
        let (inputs, scratches, outputs) = devices;
        if record_bytes > RECORD_BYTES_AT_MOST {
            return Err(setting_error(
                "record_bytes",
                format!("{record_bytes} is too large; the limit is {RECORD_BYTES_AT_MOST}"),
            ));
        }
        let eighth = memory_bytes / EIGHTH;
        let least = aligned(record_bytes); // No buffer is shorter than a record.
        // Buffers of at most `longest` bytes in an eighth of the memory: as long as `few` of them
        // allow, and as many as keep the devices' queues full.
        let divide = |longest: usize, few: usize, queues: usize| {
            let length = (eighth / few / ALIGNMENT * ALIGNMENT).clamp(least, longest.max(least));
            let in_hand = (disk.depth * disk.transfer_bytes).div_ceil(length) + 1;
            let number = (queues * in_hand + workers + 2)
                .min(eighth / length)
                .max(few);
            (length, number)
        };
        let longest_extent = match downloads {
            true => requested(bytes, inputs, RANGE_BYTES, EXTENT_BYTES),
            false => EXTENT_BYTES,
        };
        let few = inputs + workers + 1;
        let (length, mut extent_buffers) = divide(longest_extent, few, inputs);
        if downloads {
            // A request has one until its range is there, and others wait for a worker each.
            extent_buffers = extent_buffers.min(few + workers);
        }
        let extent_bytes = extent_stride(record_bytes, length.saturating_sub(ALIGNMENT));
        let extents = extent_buffers * (aligned(extent_bytes) + ALIGNMENT);
        if endpoints == 0 {
            return Err(setting_error("endpoints", "there must be at least 1"));
        }
        let links = (endpoints - 1) * connections;
        // So many blocks are in flight on connections, within an eighth of the memory, as well.
        let longest = |lanes: usize| match links {
            0 => usize::MAX,
            _ => eighth / (links + lanes) / ALIGNMENT * ALIGNMENT,
        };
        let (output_block_bytes, output_blocks) = if uploads {
            // One that each worker fills, and one in flight per request.
            let wanted = workers + outputs;
            let [shortest, longest] = PART_BYTES.map(|bytes| bytes.max(least));
            let longest = requested(bytes, outputs, longest, SHORT_PART_BYTES).max(shortest);
            let length = (eighth / wanted / ALIGNMENT * ALIGNMENT).clamp(shortest, longest);
            (length, wanted.min(eighth / length).max(workers + 1))
        } else {
            let longest = OUTPUT_BLOCK_BYTES.min(longest(outputs));
            divide(longest, workers + outputs, outputs)
        };
        // Uploads have no replicas.
        let copied = match uploads {
            true => 0,
            false => received(output_blocks, links, outputs) * output_block_bytes,
        };

        let slots = scratches + workers + 1;
        let per_byte = slots as f64 + (workers * ENTRY_BYTES) as f64 / record_bytes as f64;
        let strides = workers * stride_memory(record_bytes);
        let output = output_blocks * output_block_bytes + copied + strides;
        let room = memory_bytes.saturating_sub(output);
        let slot_bytes = ((room as f64 / per_byte) as usize).min(u32::MAX as usize);
        let slot_bytes = slot_bytes / ALIGNMENT * ALIGNMENT;

        let open = memory_bytes / 2;
        // Blocks of every node's partitions are open here.
        let opened = workers * endpoints;
        let most = |block: usize| (open / (opened * block.max(least))).max(1) as u64;
        let fits = ((slot_bytes as f64 * FILL) as u64).max(1);
        // Open blocks for every partition need as much memory as partitions in all slots. Less of
        // both is better: memory that a job touches for the first time costs the kernel, and a
        // hypervisor more, and small partitions keep pass two's devices busy early and late.
        let even = slots as f64 * bytes as f64 * (opened * BLOCK_BYTES[0]) as f64;
        let even = (even.sqrt() / slots as f64) as u64;
        let wanted = bytes.div_ceil(even.max(PARTITION_BYTES).min(fits));
        let needed = bytes.div_ceil(fits).min(most(shortest_block));
        let partitions = wanted
            .min(most(BLOCK_BYTES[1].max(shortest_block)).max(needed))
            .max(1) as usize;
        let block_bytes = (open / (opened * partitions) / ALIGNMENT * ALIGNMENT)
            .min(longest(scratches))
            .clamp(least, BLOCK_BYTES[0].max(least));
        let spare_blocks = ((scratches + links) * SPARE_QUEUES * disk.depth)
            .min(eighth / block_bytes)
            .max(scratches);

        let on_their_way = spare_blocks + received(spare_blocks, links, scratches);
        let combined = opened * partitions * combiner_memory(record_bytes);
        let pass_one = extents + (opened * partitions + on_their_way) * block_bytes + combined;
        let pass_two = output + (least as f64 * per_byte) as usize;
        let need = pass_one.max(pass_two);
        if need > memory_bytes {
            return Err(setting_error(
                "memory",
                format!(
                    "{memory_bytes} bytes are not enough for records of {record_bytes} bytes, {} \
                     directories and {workers} workers; use at least {}MiB",
                    inputs + scratches + outputs,
                    // Shares grow with the memory, so the need fits into twice as much at most.
                    (2 * need).div_ceil(1 << 20)
                ),
            ));
        }
        Ok(Self {
            memory_bytes,
            index_bytes: 0,
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
        })
    }
}

/// The length of requests that move so many bytes: the longest, but shorter ones (down to `short`)
/// where there would be fewer than may be under way at once.
pub(crate) fn requested(bytes: u64, at_once: usize, longest: usize, short: usize) -> usize {
    let each = usize::try_from(bytes / at_once.max(1) as u64).unwrap_or(usize::MAX);
    longest.min(each.max(short)) / ALIGNMENT * ALIGNMENT
}

/// Buffers for what other nodes send: as many on their way to the disk as for local blocks, and at
/// least one for each connection and each device.
#[must_use]
pub fn buffers_of_receive(buffers: usize, links: usize, lanes: usize) -> usize {
    buffers.max(links + lanes)
}

fn received(buffers: usize, links: usize, lanes: usize) -> usize {
    match links {
        0 => 0,
        _ => buffers_of_receive(buffers, links, lanes),
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
            endpoints in 1_usize..40, connections in 1_usize..5,
            downloads in any::<bool>(), uploads in any::<bool>(),
        ) {
            let devices = (inputs, scratches, outputs);
            let shape = Shape {
                bytes, record_bytes, memory_bytes, workers, devices, downloads, uploads, endpoints,
                connections,
            };
            let links = (endpoints - 1) * connections;
            if let Ok(plan) = Plan::new(&shape, &Disk::default()) {
                let reading = plan.extent_buffers * (aligned(plan.extent_bytes) + ALIGNMENT);
                let on_their_way = plan.spare_blocks + received(plan.spare_blocks, links, scratches);
                let open = plan.workers * endpoints * plan.partitions + on_their_way;
                let combined =
                    plan.workers * endpoints * plan.partitions * combiner_memory(record_bytes);
                prop_assert!(plan.memory_bytes + plan.index_bytes <= memory_bytes);
                let memory_bytes = plan.memory_bytes;
                prop_assert!(reading + open * plan.block_bytes + combined <= memory_bytes);
                let entries = plan.workers * (plan.slot_bytes / record_bytes) * ENTRY_BYTES
                    + plan.workers * stride_memory(record_bytes);
                let copied = if uploads { 0 } else { received(plan.output_blocks, links, outputs) };
                let pass_two = plan.slots * plan.slot_bytes + entries
                    + (plan.output_blocks + copied) * plan.output_block_bytes;
                prop_assert!(pass_two <= memory_bytes);
                prop_assert!(plan.block_bytes >= record_bytes);
                prop_assert!(plan.slot_bytes >= record_bytes);
                prop_assert!(!uploads || plan.output_block_bytes >= PART_BYTES[0]);
                prop_assert!(plan.output_blocks > workers);
            }
        }

        #[test]
        fn what_can_read_files_can_read_objects(
            bytes in 0_u64..20_000_000_000_000,
            record_bytes in 1_usize..20_000,
            memory_bytes in (1_usize << 20)..(8 << 30),
            workers in 1_usize..64, inputs in 1_usize..40, endpoints in 1_usize..40,
        ) {
            let of_files = Shape {
                record_bytes, endpoints, devices: (inputs, 1, 1),
                ..of_objects(bytes, memory_bytes, workers)
            };
            let of_files = Shape { downloads: false, uploads: false, ..of_files };
            let of_objects = Shape { downloads: true, ..of_files };
            let disk = Disk::default();
            prop_assert_eq!(Plan::new(&of_files, &disk).is_ok(), Plan::new(&of_objects, &disk).is_ok());
        }

        #[test]
        fn the_usual_sizes_have_a_plan(gigabytes in 0_u64..1_000, workers in 1_usize..32) {
            let shape = Shape {
                bytes: gigabytes * 1_000_000_000,
                record_bytes: 100,
                memory_bytes: 1 << 30,
                workers,
                devices: (1, 1, 1),
                downloads: false,
                uploads: false,
                endpoints: 1,
                connections: 1,
            };
            let plan = Plan::new(&shape, &Disk::default()).expect("a plan");
            prop_assert!(plan.block_bytes >= BLOCK_BYTES[2], "{plan:?}");
        }
    }

    /// From objects to objects, with 16 requests at once.
    fn of_objects(bytes: u64, memory_bytes: usize, workers: usize) -> Shape {
        Shape {
            bytes,
            record_bytes: 100,
            memory_bytes,
            workers,
            devices: (16, 1, 16),
            downloads: true,
            uploads: true,
            endpoints: 1,
            connections: 1,
        }
    }

    /// Mebibytes of a range and of a part, rounded.
    fn request_mib(shape: &Shape) -> [f64; 2] {
        let plan = Plan::new(shape, &Disk::default()).expect("a plan");
        [plan.extent_bytes, plan.output_block_bytes]
            .map(|bytes| (bytes as f64 / 104_857.6).round() / 10.0)
    }

    #[test]
    fn requests_are_as_long_as_memory_allows() {
        let large = 1 << 36; // so large that requests are as long as they get
        assert_eq!(request_mib(&of_objects(large, 64 << 30, 16)), [15.9, 64.0]);
        assert_eq!(request_mib(&of_objects(large, 8 << 30, 4)), [15.9, 51.2]);
        assert_eq!(request_mib(&of_objects(large, 1 << 30, 1)), [7.0, 7.5]);
        assert_eq!(request_mib(&of_objects(large, 768 << 20, 2)), [5.0, 5.3]);
    }

    #[test]
    fn no_more_ranges_are_held_than_are_under_way_or_awaited() {
        let shape = of_objects(1 << 40, 64 << 30, 4);
        let plan = Plan::new(&shape, &Disk::default()).expect("a plan");
        assert_eq!(plan.extent_buffers, 16 + 1 + 2 * 4);
    }

    #[test]
    fn more_requests_at_once_are_shorter() {
        let mut shape = of_objects(1 << 40, 64 << 30, 16);
        shape.devices = (1024, 1, 1024);
        assert_eq!(request_mib(&shape), [7.8, 7.9]);
    }

    #[test]
    fn files_are_read_and_written_as_ever() {
        let mut shape = of_objects(1 << 40, 64 << 30, 16);
        (shape.downloads, shape.uploads, shape.devices) = (false, false, (1, 1, 1));
        assert_eq!(request_mib(&shape), [3.9, 1.0]);
    }

    #[test]
    fn the_index_of_blocks_is_within_memory() {
        let plan = |gigabytes: u64, memory_bytes| {
            let mut shape = of_objects(gigabytes << 30, memory_bytes, 2);
            (shape.downloads, shape.uploads, shape.devices) = (false, false, (1, 1, 1));
            Plan::new(&shape, &Disk::default())
        };
        let fits =
            |plan: &Plan, bytes: u64| bytes / plan.partitions as u64 <= plan.slot_bytes as u64;
        let large = plan(1000, 4 << 30).expect("a plan");
        assert!(large.index_bytes >= (1000 << 30) / large.block_bytes * INDEX_BYTES);
        assert!(fits(&large, 1000 << 30), "{large:?}");
        // Too much for two passes: few long blocks.
        let again = plan(1000, 1 << 30).expect("a plan");
        assert_eq!(again.block_bytes, BLOCK_BYTES[0]);
        assert!(!fits(&again, 1000 << 30));
        let refused = plan(100_000, 1 << 30).expect_err("refused").to_string();
        assert!(refused.contains("index"), "{refused}");
    }

    #[test]
    fn a_short_input_is_requested_all_at_once() {
        assert_eq!(
            request_mib(&of_objects(160 << 20, 8 << 30, 4)),
            [10.0, 16.0]
        );
        assert_eq!(request_mib(&of_objects(10 << 20, 8 << 30, 4)), [3.9, 16.0]);
        assert_eq!(
            request_mib(&of_objects(320 << 20, 8 << 30, 4)),
            [15.9, 20.0]
        );
    }
}
