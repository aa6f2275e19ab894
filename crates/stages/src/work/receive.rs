//! `receive`: blocks from the endpoints that send them, one thread a connection.
//!
//! Ends when every peer has said that no more will come.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tonnage_net::Incoming;
use tonnage_pipeline::{Failure, Flow, MemoryNeed, Port, Spec, Stage, StageError};

use crate::work::send::failure;
use crate::{BLOCKS, WIRE};

/// Receives blocks.
#[derive(Clone, Debug)]
pub struct Receive {
    /// The connections, each taken by its worker.
    pub links: Arc<Vec<Mutex<Option<Incoming>>>>,
    /// Size of a record, for counting.
    pub record_bytes: usize,
    /// Buffers of its own.
    pub buffers: usize,
    /// Size of each; at least the largest block.
    pub buffer_bytes: usize,
}

impl Spec for Receive {
    fn kind(&self) -> &'static str {
        "receive"
    }

    fn config(&self) -> Value {
        json!({
            "connections": self.links.len(),
            "record_bytes": self.record_bytes,
            "buffers": self.buffers,
            "buffer_bytes": self.buffer_bytes,
        })
    }

    fn input(&self) -> Option<Port> {
        Some(WIRE)
    }

    fn output(&self) -> Option<Port> {
        Some(BLOCKS)
    }

    fn workers(&self) -> usize {
        self.links.len()
    }

    fn memory(&self) -> MemoryNeed {
        MemoryNeed {
            buffers: self.buffers,
            buffer_bytes: self.buffer_bytes,
            private_bytes: 0,
        }
    }

    fn start(&self, worker: usize, _flow: &Flow) -> Result<Box<dyn Stage>, Failure> {
        let mut place = self.links[worker]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let link = place.take();
        Ok(Box::new(Receiver {
            record_bytes: self.record_bytes,
            link: link.ok_or_else(|| Failure::new("a connection serves one run"))?,
        }))
    }
}

struct Receiver {
    record_bytes: usize,
    link: Incoming,
}

impl Stage for Receiver {
    fn run(&mut self, flow: &mut Flow) -> Result<(), StageError> {
        loop {
            let mut buffer = flow.buffer()?;
            let stopped = || flow.check().is_err();
            let head = self.link.receive(buffer.slot_mut(), stopped);
            let Some(head) = head.map_err(|why| failure(&why))? else {
                return Ok(());
            };
            buffer.len = head.len as usize;
            buffer.number = head.number as usize;
            buffer.offset = head.offset;
            buffer.lane = self.link.peer();
            flow.moved(buffer.len, buffer.len / self.record_bytes);
            flow.send(buffer)?;
        }
    }
}
