//! `hand`: chunks to whoever takes them, each in the buffer that it was retrieved into.
//!
//! Nothing is copied: a chunk holds its memory until whoever took it lets go of it, and the next one
//! is retrieved into that.

use std::sync::Arc;

use serde_json::{Value, json};
use tonnage_pipeline::{Buffer, Failure, Flow, Port, Spec, Stage, StageError};

use crate::CHUNKS;
use crate::gate::Gate;

/// Hands chunks over.
#[derive(Clone, Debug)]
pub struct Hand {
    /// Where they go out.
    pub gate: Arc<Gate<Buffer>>,
}

impl Spec for Hand {
    fn kind(&self) -> &'static str {
        "hand"
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

    fn start(&self, _worker: usize, _flow: &Flow) -> Result<Box<dyn Stage>, Failure> {
        Ok(Box::new(Handing(self.clone())))
    }
}

struct Handing(Hand);

impl Stage for Handing {
    fn run(&mut self, flow: &mut Flow) -> Result<(), StageError> {
        let Self(Hand { gate }) = self;
        while let Some(chunk) = flow.receive()? {
            let bytes = chunk.len;
            let passed = gate.put(chunk, bytes, || flow.check().is_err());
            passed.map_err(|_| StageError::Stopped)?;
            flow.moved(bytes, 1);
        }
        Ok(())
    }
}
