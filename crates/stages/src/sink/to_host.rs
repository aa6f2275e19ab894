//! `to_host`: partitions to the host program, as they were read; the twin of `from_host`.
//!
//! Each leaves through a queue in its buffer, whose memory returns to the pool once the host has
//! copied it. Blocks are counted as they leave, as they were when they arrived.

use std::sync::Arc;

use serde_json::{Value, json};
use tonnage_pipeline::{Buffer, Failure, Port, Stage, StageError, StageSpec, WorkerPorts};

use crate::extent::Extent;
use crate::host_queue::HostQueue;
use crate::ports::PARTITIONS;
use crate::totals::{Total, Totals};

/// Blocks of one partition, as they were read.
#[derive(Debug)]
pub struct PartitionBlocks {
    /// Which partition.
    pub partition: usize,
    /// Number of blocks, their bytes and the sum of their CRC-32s.
    pub total: Total,
    extent: Arc<Extent>,
    buffer: Buffer,
}

impl PartitionBlocks {
    /// Bytes of all blocks.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.extent.len()
    }

    /// Each block.
    pub fn blocks(&self) -> impl Iterator<Item = &[u8]> {
        self.extent.payloads(&self.buffer)
    }
}

/// Gives partitions to the host.
#[derive(Clone, Debug)]
pub struct ToHost {
    /// Partition and extent of each buffer, by the buffer's number.
    pub portions: Arc<Vec<(usize, Arc<Extent>)>>,
    /// Where they go.
    pub queue: Arc<HostQueue<PartitionBlocks>>,
    /// Counts what leaves, by partition.
    pub totals: Arc<Totals>,
}

impl StageSpec for ToHost {
    fn kind(&self) -> &'static str {
        "to_host"
    }

    fn config(&self) -> Value {
        json!({"portions": self.portions.len()})
    }

    fn input(&self) -> Option<Port> {
        Some(PARTITIONS)
    }

    fn output(&self) -> Option<Port> {
        None
    }

    fn workers(&self) -> usize {
        1
    }

    fn inbox_bytes(&self) -> usize {
        1 // What waits holds memory; one may.
    }

    fn start(&self, _worker: usize, _flow: &WorkerPorts) -> Result<Box<dyn Stage>, Failure> {
        Ok(Box::new(ToHostWorker(self.clone())))
    }
}

struct ToHostWorker(ToHost);

impl Stage for ToHostWorker {
    fn run(&mut self, ports: &mut WorkerPorts) -> Result<(), StageError> {
        let ToHostWorker(taken) = self;
        while let Some(buffer) = ports.receive()? {
            let (partition, extent) = taken.portions[buffer.number].clone();
            let mut total = Total::default();
            extent
                .payloads(&buffer)
                .for_each(|block| total.count(block, block.len()));
            let blocks = PartitionBlocks {
                partition,
                total,
                extent,
                buffer,
            };
            let bytes = blocks.bytes();
            let passed = taken.queue.put(blocks, bytes, || ports.check().is_err());
            passed.map_err(|_| StageError::Stopped)?;
            taken.totals.add(partition, &total);
            ports.add_moved(bytes, 0);
        }
        Ok(())
    }
}
