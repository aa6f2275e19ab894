//! `summarise`: order, count, duplicate keys and checksum of records, as `valsort` reports them.
//!
//! Any worker summarises a buffer; the summaries of a file are merged in the order of their
//! offsets, so all cores validate one file at once.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tonnage_pipeline::{Failure, Port, Stage, StageError, StageSpec, WorkerPorts};
use tonnage_records::{Layout, Summary};

use crate::ports::RECORDS;

/// Summaries of buffers, each with its file's number and its offset there.
pub type Summaries = Arc<Mutex<Vec<(usize, u64, Summary)>>>;

/// Summarises records.
#[derive(Clone, Debug)]
pub struct Summarise {
    /// Where the key is.
    pub layout: Layout,
    /// Threads.
    pub workers: usize,
    /// Where the summaries go.
    pub found: Summaries,
}

impl StageSpec for Summarise {
    fn kind(&self) -> &'static str {
        "summarise"
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
        self.workers
    }

    fn start(&self, _worker: usize, _flow: &WorkerPorts) -> Result<Box<dyn Stage>, Failure> {
        Ok(Box::new(SummariseWorker(self.clone())))
    }
}

struct SummariseWorker(Summarise);

impl Stage for SummariseWorker {
    fn run(&mut self, ports: &mut WorkerPorts) -> Result<(), StageError> {
        let layout = self.0.layout;
        while let Some(buffer) = ports.receive()? {
            let summary = Summary::of(buffer.payload(), &layout);
            ports.add_moved(buffer.len, buffer.len / layout.record_bytes);
            let mut found = self.0.found.lock().unwrap_or_else(PoisonError::into_inner);
            found.push((buffer.number, buffer.offset, summary));
        }
        Ok(())
    }
}
