//! `taken`: partitions that what is not the core takes, as they were read: the twin of `given`.
//!
//! They leave through a gate, each in its buffer, whose memory is the pool's again when it was copied.
//! What goes is counted block by block, as it was when it came.

use std::sync::Arc;

use serde_json::{Value, json};
use tonnage_pipeline::{Buffer, Failure, Flow, Port, Spec, Stage, StageError};

use crate::PARTITIONS;
use crate::extent::Extent;
use crate::gate::Gate;
use crate::ledger::{Ledger, Total};

/// Blocks of one partition, as they were read.
#[derive(Debug)]
pub struct TakenBlocks {
    /// Which partition.
    pub partition: usize,
    /// Blocks, their bytes and the sum of their CRC-32s, as they were read.
    pub total: Total,
    extent: Arc<Extent>,
    buffer: Buffer,
}

impl TakenBlocks {
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

/// Lets partitions be taken.
#[derive(Clone, Debug)]
pub struct Taken {
    /// What comes, by the number of its buffer: its partition, and where its blocks lie.
    pub portions: Arc<Vec<(usize, Arc<Extent>)>>,
    /// Where they go out.
    pub gate: Arc<Gate<TakenBlocks>>,
    /// Counts what goes, by partition.
    pub ledger: Arc<Ledger>,
}

impl Spec for Taken {
    fn kind(&self) -> &'static str {
        "taken"
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

    fn start(&self, _worker: usize, _flow: &Flow) -> Result<Box<dyn Stage>, Failure> {
        Ok(Box::new(Taking(self.clone())))
    }
}

struct Taking(Taken);

impl Stage for Taking {
    fn run(&mut self, flow: &mut Flow) -> Result<(), StageError> {
        let Taking(taken) = self;
        while let Some(buffer) = flow.receive()? {
            let (partition, extent) = taken.portions[buffer.number].clone();
            let mut total = Total::default();
            extent
                .payloads(&buffer)
                .for_each(|block| total.count(block, block.len()));
            let blocks = TakenBlocks {
                partition,
                total,
                extent,
                buffer,
            };
            let bytes = blocks.bytes();
            let passed = taken.gate.put(blocks, bytes, || flow.check().is_err());
            passed.map_err(|_| StageError::Stopped)?;
            taken.ledger.add(partition, &total);
            flow.moved(bytes, 0);
        }
        Ok(())
    }
}
