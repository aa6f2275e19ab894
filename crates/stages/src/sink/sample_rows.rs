//! `sample_rows`: keys of some rows of splits, and how long rows are.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tonnage_pipeline::{Failure, MemoryNeed, Port, Stage, StageError, StageSpec, WorkerPorts};

use crate::extent::Extent;
use crate::ports::SPLITS;
use crate::work::{RowSource, pieces_of};

/// Samples rows.
#[derive(Clone, Debug)]
pub struct SampleRows {
    /// Makes rows.
    pub source: Arc<dyn RowSource>,
    /// What is read, by the number of the split.
    pub splits: Arc<Vec<Arc<Extent>>>,
    /// The most keys of a split.
    pub keys: usize,
    /// About the most bytes of them.
    pub key_bytes: usize,
    /// Threads.
    pub workers: usize,
    /// What was found.
    pub found: Arc<Mutex<RowSample>>,
}

/// A sample of rows.
#[derive(Clone, Debug, Default)]
pub struct RowSample {
    /// Some keys.
    pub keys: Vec<Vec<u8>>,
    /// Rows that were decoded.
    pub rows: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those of the longest.
    pub longest_row: usize,
    /// The bytes of files that they were decoded from.
    pub read_bytes: u64,
}

impl StageSpec for SampleRows {
    fn kind(&self) -> &'static str {
        "sample_rows"
    }

    fn config(&self) -> Value {
        json!({"splits": self.splits.len(), "keys": self.keys})
    }

    fn input(&self) -> Option<Port> {
        Some(SPLITS)
    }

    fn output(&self) -> Option<Port> {
        None
    }

    fn workers(&self) -> usize {
        self.workers
    }

    fn memory(&self) -> MemoryNeed {
        MemoryNeed {
            private_bytes: self.workers * self.source.memory_bytes(),
            ..MemoryNeed::default()
        }
    }

    fn start(&self, _worker: usize, _flow: &WorkerPorts) -> Result<Box<dyn Stage>, Failure> {
        Ok(Box::new(Sampler(self.clone())))
    }
}

struct Sampler(SampleRows);

impl Stage for Sampler {
    fn run(&mut self, ports: &mut WorkerPorts) -> Result<(), StageError> {
        let SampleRows {
            source,
            splits,
            keys: most,
            key_bytes: most_bytes,
            ..
        } = self.0.clone();
        let shape = source.shape();
        while let Some(buffer) = ports.receive()? {
            let (split, bytes) = (buffer.number, buffer.len);
            let (mut sample, mut held) = (RowSample::default(), 0);
            source.rows(split, pieces_of(buffer, &splits[split]), &mut |rows| {
                for row in rows.iter() {
                    sample.rows += 1;
                    sample.bytes += row.len() as u64;
                    sample.longest_row = sample.longest_row.max(row.len());
                    let key = shape.key(row);
                    held += key.len();
                    sample.keys.push(key.to_vec());
                }
                // Evenly over the split: of twice as many every second one stays.
                while sample.keys.len() > 2 * most || (held > most_bytes && sample.keys.len() > 1) {
                    let mut place = 0;
                    sample.keys.retain(|_| {
                        place += 1;
                        place % 2 == 1
                    });
                    held = sample.keys.iter().map(Vec::len).sum();
                }
                Ok(())
            })?;
            ports.add_moved(bytes, sample.rows as usize);
            let mut found = self.0.found.lock().unwrap_or_else(PoisonError::into_inner);
            found.rows += sample.rows;
            found.bytes += sample.bytes;
            found.longest_row = found.longest_row.max(sample.longest_row);
            found.read_bytes += bytes as u64;
            found.keys.extend(sample.keys);
        }
        Ok(())
    }
}
