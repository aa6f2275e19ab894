//! `from_host`: blocks that the host program made, each for a partition.
//!
//! They arrive through a queue. Waiting for it is like waiting for a device, so it counts as busy:
//! the host is the bottleneck then. FinishedCallback blocks are counted; the core does not know their content.

use std::sync::Arc;

use serde_json::{Value, json};
use tonnage_pipeline::{Failure, MemoryNeed, Port, Stage, StageError, StageSpec, WorkerPorts};

use crate::host_queue::HostQueue;
use crate::ports::BLOCKS;
use crate::totals::{Total, Totals};

/// A block from the host: its partition and its bytes.
pub type HostBlock = (usize, Vec<u8>);

/// Takes blocks from the host.
#[derive(Clone, Debug)]
pub struct FromHost {
    /// Where they arrive.
    pub queue: Arc<HostQueue<HostBlock>>,
    /// The lane of each partition, a device or a connection; `None` for a partition that is not
    /// wanted.
    pub lanes: Arc<Vec<Option<usize>>>,
    /// Buffers of its own.
    pub buffers: usize,
    /// Size of each; at least the largest block.
    pub buffer_bytes: usize,
    /// Counts what arrives, wanted or not.
    pub totals: Arc<Totals>,
}

impl StageSpec for FromHost {
    fn kind(&self) -> &'static str {
        "from_host"
    }

    fn config(&self) -> Value {
        json!({
            "partitions": self.lanes.len(),
            "wanted": self.lanes.iter().flatten().count(),
            "waiting_bytes": self.queue.most_bytes(),
            "buffers": self.buffers,
            "buffer_bytes": self.buffer_bytes,
        })
    }

    fn input(&self) -> Option<Port> {
        None
    }

    fn output(&self) -> Option<Port> {
        Some(BLOCKS)
    }

    fn workers(&self) -> usize {
        1 // It only copies.
    }

    fn memory(&self) -> MemoryNeed {
        MemoryNeed {
            buffers: self.buffers,
            buffer_bytes: self.buffer_bytes,
            // What the queue holds, and one more item that may exceed the room left.
            private_bytes: self.queue.most_bytes() + self.buffer_bytes,
        }
    }

    fn start(&self, _worker: usize, _flow: &WorkerPorts) -> Result<Box<dyn Stage>, Failure> {
        Ok(Box::new(FromHostWorker(self.clone())))
    }
}

struct FromHostWorker(FromHost);

impl Stage for FromHostWorker {
    fn run(&mut self, ports: &mut WorkerPorts) -> Result<(), StageError> {
        let FromHostWorker(from_host) = self;
        loop {
            let next = from_host.queue.take(|| ports.check().is_err());
            let Some((partition, block)) = next.map_err(|_| StageError::Stopped)? else {
                return Ok(());
            };
            let mut total = Total::default();
            if block.len() > from_host.buffer_bytes {
                let (len, most) = (block.len(), from_host.buffer_bytes);
                let what = format!("a block has {len} bytes; the limit is {most}");
                return Err(Failure::new(what).into());
            }
            let lane = from_host.lanes.get(partition).copied().ok_or_else(|| {
                let partitions = from_host.lanes.len();
                Failure::new(format!(
                    "a block is for partition {partition}, but there are only {partitions} partitions"
                ))
            })?;
            if block.is_empty() {
                continue;
            }
            total.count(&block, block.len());
            from_host.totals.add(partition, &total);
            ports.add_moved(block.len(), 0);
            if let Some(lane) = lane {
                let mut buffer = ports.buffer()?;
                (buffer.number, buffer.lane) = (partition, lane);
                buffer.append(&block);
                ports.send(buffer)?;
            }
        }
    }
}
