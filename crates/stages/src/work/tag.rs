//! `tag`: gives each buffer a partition and passes it on unread, the null twin of `partition`.
//!
//! The disk benchmark reads and writes as the sort does, without looking at a record; like
//! Themis' DiskBench it assigns partitions on the same node, here in turn.

use serde_json::{Value, json};
use tonnage_pipeline::{Failure, Flow, Port, Spec, Stage, StageError};

use crate::{BLOCKS, RECORDS};

/// Tags buffers.
#[derive(Clone, Debug)]
pub struct Tag {
    /// Partitions to choose from.
    pub partitions: usize,
    /// Devices that they go to.
    pub lanes: usize,
}

impl Spec for Tag {
    fn kind(&self) -> &'static str {
        "tag"
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

    fn start(&self, _worker: usize, _flow: &Flow) -> Result<Box<dyn Stage>, Failure> {
        Ok(Box::new(Tagging {
            tag: self.clone(),
            next: 0,
        }))
    }
}

struct Tagging {
    tag: Tag,
    next: usize,
}

impl Stage for Tagging {
    fn run(&mut self, flow: &mut Flow) -> Result<(), StageError> {
        while let Some(mut buffer) = flow.receive()? {
            buffer.number = self.next % self.tag.partitions;
            buffer.lane = buffer.number % self.tag.lanes;
            self.next += 1;
            flow.moved(buffer.len, 0);
            flow.send(buffer)?;
        }
        Ok(())
    }
}
