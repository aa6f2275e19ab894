//! `get`: chunks of objects by range requests, one request at a time per worker.
//!
//! A worker is one of MATE-EC2's retrieval threads. Objects take turns, since fewer connections to
//! one object are faster (its selective job assignment), and start over until the time is up. A
//! chunk that MATE-EC2 fetches with N threads is N chunks here; nobody waits for them as one.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tonnage_object::{Client, Settings};
use tonnage_pipeline::{Failure, MemoryNeed, Port, Stage, StageError, StageSpec, WorkerPorts};

use crate::extent::aligned;
use crate::object::request_log::{RequestLog, Window, failure};
use crate::ports::BLOCKS;

/// Gets chunks.
#[derive(Clone, Debug)]
pub struct Get {
    /// The bucket.
    pub store: Arc<Settings>,
    /// The objects' names.
    pub keys: Arc<Vec<String>>,
    /// Chunks of each object.
    pub chunks: usize,
    /// Size of a chunk.
    pub chunk_bytes: usize,
    /// Threads.
    pub workers: usize,
    /// The time that counts.
    pub window: Window,
    /// The next chunk's place.
    pub next: Arc<AtomicUsize>,
    /// Each worker's log.
    pub seen: Arc<Mutex<Vec<RequestLog>>>,
}

impl StageSpec for Get {
    fn kind(&self) -> &'static str {
        "get"
    }

    fn config(&self) -> Value {
        json!({
            "store": *self.store,
            "objects": self.keys.len(),
            "object_bytes": self.chunks * self.chunk_bytes,
            "chunk_bytes": self.chunk_bytes,
            "warm_up_seconds": self.window.warm_up.as_secs_f64(),
        })
    }

    fn input(&self) -> Option<Port> {
        None
    }

    fn output(&self) -> Option<Port> {
        Some(BLOCKS)
    }

    fn workers(&self) -> usize {
        self.workers
    }

    fn memory(&self) -> MemoryNeed {
        MemoryNeed {
            // One for each worker, and one on its way.
            buffers: self.workers + 1,
            buffer_bytes: aligned(self.chunk_bytes),
            private_bytes: 0,
        }
    }

    fn start(&self, worker: usize, _flow: &WorkerPorts) -> Result<Box<dyn Stage>, Failure> {
        Ok(Box::new(Getter {
            client: Client::new(&self.store).map_err(|why| Failure::new(why.to_string()))?,
            requests: Some(RequestLog::new(worker, self.window)),
            get: self.clone(),
        }))
    }
}

struct Getter {
    get: Get,
    client: Client,
    requests: Option<RequestLog>, // until it has ended
}

impl Stage for Getter {
    fn run(&mut self, ports: &mut WorkerPorts) -> Result<(), StageError> {
        let Get {
            keys,
            chunks,
            chunk_bytes,
            ..
        } = &self.get;
        let mut requests = self.requests.take().expect("a worker runs once");
        while !ports.time_is_up() {
            let place = self.get.next.fetch_add(1, Relaxed);
            let mut buffer = ports.buffer()?;
            (buffer.number, buffer.len) = (place % keys.len(), *chunk_bytes);
            buffer.offset = (place / keys.len() % chunks * chunk_bytes) as u64;
            requests.begin();
            let (key, offset) = (&keys[buffer.number], buffer.offset);
            let memory = &mut buffer.slot_mut()[..*chunk_bytes];
            let stopped = || ports.check().is_err();
            let done = self.client.get_range(key, None, offset, memory, stopped);
            requests.end(&done.map_err(|why| failure(&why))?);
            ports.add_moved(*chunk_bytes, 1);
            ports.send(buffer)?;
        }
        requests.close(self.client.counts(), &self.get.seen);
        Ok(())
    }
}
