//! `lend`: chunks to the host program, each in the buffer that it was retrieved into.
//!
//! Nothing is copied: a chunk holds its memory until the host releases it, and then the next chunk
//! is retrieved into it.

use std::sync::Arc;

use serde_json::{Value, json};
use tonnage_pipeline::{Buffer, Failure, Port, Stage, StageError, StageSpec, WorkerPorts};

use crate::host_queue::HostQueue;
use crate::ports::CHUNKS;

/// Lends chunks.
#[derive(Clone, Debug)]
pub struct Lend {
    /// Where they go.
    pub queue: Arc<HostQueue<Buffer>>,
}

impl StageSpec for Lend {
    fn kind(&self) -> &'static str {
        "lend"
    }

    fn config(&self) -> Value {
        json!({})
    }

    fn input(&self) -> Option<Port> {
        Some(CHUNKS)
    }

    fn output(&self) -> Option<Port> {
        None
    }

    fn workers(&self) -> usize {
        1
    }

    fn start(&self, _worker: usize, _flow: &WorkerPorts) -> Result<Box<dyn Stage>, Failure> {
        Ok(Box::new(LendWorker(self.clone())))
    }
}

struct LendWorker(Lend);

impl Stage for LendWorker {
    fn run(&mut self, ports: &mut WorkerPorts) -> Result<(), StageError> {
        let Self(Lend { queue }) = self;
        while let Some(chunk) = ports.receive()? {
            let bytes = chunk.len;
            let passed = queue.put(chunk, bytes, || ports.check().is_err());
            passed.map_err(|_| StageError::Stopped)?;
            ports.add_moved(bytes, 1);
        }
        Ok(())
    }
}
