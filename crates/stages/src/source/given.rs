//! `given`: blocks that what is not the core has made, each for a partition.
//!
//! They come through a gate. Waiting there is waiting for a device, so it counts as work: who gives
//! them is what limits the job then. What came is counted here, whole blocks: the core knows nothing
//! of what is in them.

use std::sync::Arc;

use serde_json::{Value, json};
use tonnage_pipeline::{Failure, Flow, MemoryNeed, Port, Spec, Stage, StageError};

use crate::BLOCKS;
use crate::gate::Gate;
use crate::ledger::{Ledger, Total};

/// A block that is given: its partition, and what it holds.
pub type GivenBlock = (usize, Vec<u8>);

/// Takes blocks that are given.
#[derive(Clone, Debug)]
pub struct Given {
    /// Where they come in.
    pub gate: Arc<Gate<GivenBlock>>,
    /// The lane that each partition goes to, a device or a connection; `None` for one that is not
    /// wanted.
    pub lanes: Arc<Vec<Option<usize>>>,
    /// Buffers of its own.
    pub buffers: usize,
    /// Size of each; at least the largest block.
    pub buffer_bytes: usize,
    /// Counts what came in, wanted or not.
    pub ledger: Arc<Ledger>,
}

impl Spec for Given {
    fn kind(&self) -> &'static str {
        "given"
    }

    fn config(&self) -> Value {
        json!({
            "partitions": self.lanes.len(),
            "wanted": self.lanes.iter().flatten().count(),
            "waiting_bytes": self.gate.most_bytes(),
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
        1 // It copies, nothing else.
    }

    fn memory(&self) -> MemoryNeed {
        MemoryNeed {
            buffers: self.buffers,
            buffer_bytes: self.buffer_bytes,
            // What waits before the gate, and one more that may be longer than what is left there.
            private_bytes: self.gate.most_bytes() + self.buffer_bytes,
        }
    }

    fn start(&self, _worker: usize, _flow: &Flow) -> Result<Box<dyn Stage>, Failure> {
        Ok(Box::new(Giving(self.clone())))
    }
}

struct Giving(Given);

impl Stage for Giving {
    fn run(&mut self, flow: &mut Flow) -> Result<(), StageError> {
        let Giving(given) = self;
        loop {
            let next = given.gate.take(|| flow.check().is_err());
            let Some((partition, block)) = next.map_err(|_| StageError::Stopped)? else {
                return Ok(());
            };
            let mut total = Total::default();
            if block.len() > given.buffer_bytes {
                let (len, most) = (block.len(), given.buffer_bytes);
                let what = format!("a block of {len} bytes was given, {most} is the most");
                return Err(Failure::new(what).into());
            }
            let lane = given.lanes.get(partition).copied().ok_or_else(|| {
                let partitions = given.lanes.len();
                Failure::new(format!(
                    "partition {partition} was given, there are {partitions}"
                ))
            })?;
            if block.is_empty() {
                continue;
            }
            total.count(&block, block.len());
            given.ledger.add(partition, &total);
            flow.moved(block.len(), 0);
            if let Some(lane) = lane {
                let mut buffer = flow.buffer()?;
                (buffer.number, buffer.lane) = (partition, lane);
                buffer.append(&block);
                flow.send(buffer)?;
            }
        }
    }
}
