//! `keys`: the keys of sampled records, laid end to end, for choosing partition boundaries.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tonnage_pipeline::{Failure, Flow, Port, Spec, Stage, StageError};
use tonnage_records::Layout;

use crate::RECORDS;

/// Collects keys.
#[derive(Clone, Debug)]
pub struct Keys {
    /// Where the key is.
    pub layout: Layout,
    /// Where the keys go.
    pub found: Arc<Mutex<Vec<u8>>>,
}

impl Spec for Keys {
    fn kind(&self) -> &'static str {
        "keys"
    }

    fn config(&self) -> Value {
        json!({"layout": self.layout})
    }

    fn input(&self) -> Option<Port> {
        Some(RECORDS)
    }

    fn output(&self) -> Option<Port> {
        None
    }

    fn workers(&self) -> usize {
        1
    }

    fn start(&self, _worker: usize, _flow: &Flow) -> Result<Box<dyn Stage>, Failure> {
        Ok(Box::new(Collecting(self.clone())))
    }
}

struct Collecting(Keys);

impl Stage for Collecting {
    fn run(&mut self, flow: &mut Flow) -> Result<(), StageError> {
        let layout = self.0.layout;
        while let Some(buffer) = flow.receive()? {
            let mut found = self.0.found.lock().unwrap_or_else(PoisonError::into_inner);
            for record in buffer.payload().chunks_exact(layout.record_bytes) {
                found.extend_from_slice(layout.key(record));
            }
            flow.moved(buffer.len, buffer.len / layout.record_bytes);
        }
        Ok(())
    }
}
