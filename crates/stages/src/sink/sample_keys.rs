//! `sample_keys`: the keys of sampled records, concatenated, to choose partition boundaries by.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tonnage_pipeline::{Failure, Port, Stage, StageError, StageSpec, WorkerPorts};
use tonnage_records::Layout;

use crate::ports::RECORDS;

/// Collects keys.
#[derive(Clone, Debug)]
pub struct SampleKeys {
    /// Where the key is.
    pub layout: Layout,
    /// Where the keys are collected.
    pub found: Arc<Mutex<Vec<u8>>>,
}

impl StageSpec for SampleKeys {
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

    fn start(&self, _worker: usize, _flow: &WorkerPorts) -> Result<Box<dyn Stage>, Failure> {
        Ok(Box::new(SampleKeysWorker(self.clone())))
    }
}

struct SampleKeysWorker(SampleKeys);

impl Stage for SampleKeysWorker {
    fn run(&mut self, ports: &mut WorkerPorts) -> Result<(), StageError> {
        let layout = self.0.layout;
        while let Some(buffer) = ports.receive()? {
            let mut found = self.0.found.lock().unwrap_or_else(PoisonError::into_inner);
            for record in buffer.payload().chunks_exact(layout.record_bytes) {
                found.extend_from_slice(layout.key(record));
            }
            ports.add_moved(buffer.len, buffer.len / layout.record_bytes);
        }
        Ok(())
    }
}
