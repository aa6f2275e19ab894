//! `partition`: copies each record to the open block of its partition.
//!
//! Input is counted here. Work proceeds in strides that stay in the cache: count, look up, copy.

use std::sync::Arc;

use serde_json::{Value, json};
use tonnage_pipeline::{
    Failure, MemoryNeed, Pool, Port, Stage, StageError, StageSpec, WorkerPorts, WriteCombiner,
};

use crate::boundaries::Boundaries;
use crate::ports::{BLOCKS, RECORDS};
use crate::totals::{Total, Totals};
use crate::work::open_blocks::OpenBlocks;

/// Records that are counted and looked up before they are copied.
const STRIDE_RECORDS: usize = 256;

/// Longer records bypass the combiner: most of their cache lines are full anyway.
const COMBINED_BYTES: usize = 256;

/// Memory that a worker needs for each partition in addition to its block.
#[must_use]
pub fn combiner_memory(record_bytes: usize) -> usize {
    match record_bytes {
        0..=COMBINED_BYTES => WriteCombiner::memory(1, record_bytes),
        _ => 0,
    }
}

/// Partitions records.
#[derive(Clone, Debug)]
pub struct Partition {
    /// Where partitions begin and end.
    pub boundaries: Arc<Boundaries>,
    /// Number of the first partition.
    pub first_number: usize,
    /// Size of a record.
    pub record_bytes: usize,
    /// The lane of each partition, a device or a connection; `None` for a partition that is not
    /// wanted, since an earlier round has collected it.
    pub lanes: Arc<Vec<Option<usize>>>,
    /// Threads.
    pub workers: usize,
    /// Size of a block.
    pub block_bytes: usize,
    /// Blocks beyond the open ones, on their way to the disk.
    pub spare_blocks: usize,
    /// Where blocks are filled, if they may outlive the pass.
    pub lasting: Option<Arc<Pool>>,
    /// Counts the input.
    pub totals: Arc<Totals>,
}

impl Partition {
    fn lane_count(&self) -> usize {
        self.lanes.iter().flatten().count()
    }
}

impl StageSpec for Partition {
    fn kind(&self) -> &'static str {
        "partition"
    }

    fn config(&self) -> Value {
        json!({
            "partitions": self.boundaries.partitions(),
            "first_number": self.first_number,
            "record_bytes": self.record_bytes,
            "wanted": self.lane_count(),
            "block_bytes": self.block_bytes,
            "spare_blocks": self.spare_blocks,
        })
    }

    fn input(&self) -> Option<Port> {
        Some(RECORDS)
    }

    fn output(&self) -> Option<Port> {
        Some(BLOCKS)
    }

    fn workers(&self) -> usize {
        self.workers
    }

    fn memory(&self) -> MemoryNeed {
        let open = self.workers * self.lane_count();
        let buffers = match self.lasting {
            Some(_) => 0,
            None => open + self.spare_blocks,
        };
        MemoryNeed {
            buffers,
            buffer_bytes: self.block_bytes,
            private_bytes: self.workers
                * self.boundaries.partitions()
                * combiner_memory(self.record_bytes),
        }
    }

    fn lasting_pool(&self) -> Option<Arc<Pool>> {
        self.lasting.clone()
    }

    fn start(&self, worker: usize, _flow: &WorkerPorts) -> Result<Box<dyn Stage>, Failure> {
        let of = (worker, self.workers);
        let blocks = OpenBlocks::new(self.first_number, &self.lanes, self.block_bytes, of);
        Ok(Box::new(Partitioner {
            blocks: match self.record_bytes <= COMBINED_BYTES {
                true => blocks.combining(self.record_bytes),
                false => blocks,
            },
            partition: self.clone(),
            total: Total::default(),
        }))
    }
}

struct Partitioner {
    partition: Partition,
    blocks: OpenBlocks,
    total: Total,
}

impl Stage for Partitioner {
    fn run(&mut self, ports: &mut WorkerPorts) -> Result<(), StageError> {
        let record_bytes = self.partition.record_bytes;
        let boundaries = Arc::clone(&self.partition.boundaries);
        let mut numbers = [0_u32; STRIDE_RECORDS];
        while let Some(buffer) = ports.receive()? {
            for stride in buffer.payload().chunks(STRIDE_RECORDS * record_bytes) {
                self.total.count(stride, record_bytes);
                let records = stride.chunks_exact(record_bytes);
                for (number, record) in numbers.iter_mut().zip(records.clone()) {
                    *number = boundaries.partition_of(record) as u32;
                }
                for (number, record) in numbers.iter().zip(records) {
                    self.blocks.append(*number as usize, record, ports)?;
                }
            }
            ports.add_moved(buffer.len, buffer.len / record_bytes);
        }
        self.blocks.send_all(ports)?;
        self.partition.totals.add(0, &self.total);
        Ok(())
    }
}
