//! `discard`: takes everything and keeps nothing, the null twin of `write`.

use serde_json::{Value, json};
use tonnage_pipeline::{Failure, Flow, Port, Spec, Stage, StageError};

/// Discards what comes.
#[derive(Clone, Debug)]
pub struct Discard {
    /// What it takes.
    pub takes: Port,
}

impl Spec for Discard {
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

    fn start(&self, _worker: usize, _flow: &Flow) -> Result<Box<dyn Stage>, Failure> {
        Ok(Box::new(Discarding))
    }
}

struct Discarding;

impl Stage for Discarding {
    fn run(&mut self, flow: &mut Flow) -> Result<(), StageError> {
        while let Some(buffer) = flow.receive()? {
            flow.moved(buffer.len, 0);
        }
        Ok(())
    }
}
