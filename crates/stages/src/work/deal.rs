//! `deal`: deals whole buffers to partitions in turn, unread; the null twin of `partition`.
//!
//! The disk benchmark reads and writes as the sort does, without looking at a record. Like Themis'
//! DiskBench it assigns partitions on the same node.

use serde_json::{Value, json};
use tonnage_pipeline::{Failure, Port, Stage, StageError, StageSpec, WorkerPorts};

use crate::ports::{BLOCKS, RECORDS};

/// Deals buffers to partitions.
#[derive(Clone, Debug)]
pub struct Deal {
    /// Partitions to choose from.
    pub partitions: usize,
    /// Devices that they go to.
    pub lanes: usize,
}

impl StageSpec for Deal {
    fn kind(&self) -> &'static str {
        "deal"
    }

    fn config(&self) -> Value {
        json!({"partitions": self.partitions, "lanes": self.lanes})
    }

    fn input(&self) -> Option<Port> {
        Some(RECORDS)
    }

    fn output(&self) -> Option<Port> {
        Some(BLOCKS)
    }

    fn workers(&self) -> usize {
        1
    }

    fn start(&self, _worker: usize, _flow: &WorkerPorts) -> Result<Box<dyn Stage>, Failure> {
        Ok(Box::new(DealWorker {
            tag: self.clone(),
            next: 0,
        }))
    }
}

struct DealWorker {
    tag: Deal,
    next: usize,
}

impl Stage for DealWorker {
    fn run(&mut self, ports: &mut WorkerPorts) -> Result<(), StageError> {
        while let Some(mut buffer) = ports.receive()? {
            buffer.number = self.next % self.tag.partitions;
            buffer.lane = buffer.number % self.tag.lanes;
            self.next += 1;
            ports.add_moved(buffer.len, 0);
            ports.send(buffer)?;
        }
        Ok(())
    }
}
