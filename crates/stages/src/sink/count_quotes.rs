//! `count_quotes`: whether splits have an odd number of quotes, so that it is known of each whether it
//! begins within them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tonnage_formats::text::has_odd_quotes;
use tonnage_pipeline::{Failure, Port, Stage, StageError, StageSpec, WorkerPorts};

use crate::extent::Extent;
use crate::ports::SPLITS;

/// Counts quotes.
#[derive(Clone, Debug)]
pub struct CountQuotes {
    /// The quote.
    pub quote: u8,
    /// What is read, by the number of the extent.
    pub extents: Arc<Vec<Arc<Extent>>>,
    /// Threads.
    pub workers: usize,
    /// Whether there is an odd number of quotes in each extent that was read.
    pub odd: Arc<Mutex<BTreeMap<usize, bool>>>,
}

impl StageSpec for CountQuotes {
    fn kind(&self) -> &'static str {
        "count_quotes"
    }

    fn config(&self) -> Value {
        json!({"extents": self.extents.len()})
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

    fn start(&self, _worker: usize, _flow: &WorkerPorts) -> Result<Box<dyn Stage>, Failure> {
        Ok(Box::new(Counter(self.clone())))
    }
}

struct Counter(CountQuotes);

impl Stage for Counter {
    fn run(&mut self, ports: &mut WorkerPorts) -> Result<(), StageError> {
        let CountQuotes {
            quote,
            extents,
            odd,
            ..
        } = &self.0;
        while let Some(buffer) = ports.receive()? {
            let slot = buffer.slot();
            let is_odd = extents[buffer.number]
                .places()
                .fold(false, |is_odd, place| {
                    is_odd ^ has_odd_quotes(&slot[place], *quote)
                });
            ports.add_moved(buffer.len, 1);
            let mut odd = odd.lock().unwrap_or_else(PoisonError::into_inner);
            odd.insert(buffer.number, is_odd);
        }
        Ok(())
    }
}
