//! `discard`: drops every buffer; the null twin of `write`.

use serde_json::{Value, json};
use tonnage_pipeline::{Failure, Port, Stage, StageError, StageSpec, WorkerPorts};

/// Drops buffers.
#[derive(Clone, Debug)]
pub struct Discard {
    /// What it takes.
    pub takes: Port,
}

impl StageSpec for Discard {
    fn kind(&self) -> &'static str {
        "discard"
    }

    fn config(&self) -> Value {
        json!({})
    }

    fn input(&self) -> Option<Port> {
        Some(self.takes)
    }

    fn output(&self) -> Option<Port> {
        None
    }

    fn workers(&self) -> usize {
        1
    }

    fn start(&self, _worker: usize, _flow: &WorkerPorts) -> Result<Box<dyn Stage>, Failure> {
        Ok(Box::new(DiscardWorker))
    }
}

struct DiscardWorker;

impl Stage for DiscardWorker {
    fn run(&mut self, ports: &mut WorkerPorts) -> Result<(), StageError> {
        while let Some(buffer) = ports.receive()? {
            ports.add_moved(buffer.len, 0);
        }
        Ok(())
    }
}
