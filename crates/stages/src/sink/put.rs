//! `put`: whole buffers as objects, or as parts of one upload; one request at a time per worker.
//!
//! A buffer's number chooses the object or part. Nothing is copied: a request owns its buffer,
//! which returns to its pool when the last byte was sent.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tonnage_object::{Client, Part, Settings, Upload};
use tonnage_pipeline::{Failure, Port, Stage, StageError, StageSpec, WorkerPorts};

use crate::object::request_log::{RequestLog, Window, failure, payload};
use crate::ports::BLOCKS;

/// Puts buffers.
#[derive(Clone, Debug)]
pub struct Put {
    /// The bucket.
    pub store: Arc<Settings>,
    /// What they become.
    pub put_as: PutAs,
    /// Bytes that may wait.
    pub inbox_bytes: usize,
    /// Threads.
    pub workers: usize,
    /// The time that counts.
    pub window: Window,
    /// Each worker's log.
    pub seen: Arc<Mutex<Vec<RequestLog>>>,
}

/// What buffers become.
#[derive(Clone, Debug)]
pub enum PutAs {
    /// Objects named by this prefix and the buffer's number.
    Objects {
        /// The prefix of their names.
        prefix: String,
    },
    /// Parts of an upload.
    Parts {
        /// The upload.
        upload: Upload,
        /// Parts that were put, by number.
        parts: Arc<Mutex<BTreeMap<usize, Part>>>,
    },
}

impl PutAs {
    /// The name of object `number`.
    #[must_use]
    pub fn key(prefix: &str, number: usize) -> String {
        format!("{prefix}{number:05}")
    }
}

impl StageSpec for Put {
    fn kind(&self) -> &'static str {
        "put"
    }

    fn config(&self) -> Value {
        json!({
            "store": *self.store,
            "put_as": match self.put_as {
                PutAs::Objects { .. } => "objects",
                PutAs::Parts { .. } => "parts",
            },
            "inbox_bytes": self.inbox_bytes,
            "warm_up_seconds": self.window.warm_up.as_secs_f64(),
        })
    }

    fn input(&self) -> Option<Port> {
        Some(BLOCKS)
    }

    fn output(&self) -> Option<Port> {
        None
    }

    fn workers(&self) -> usize {
        self.workers
    }

    fn inbox_bytes(&self) -> usize {
        self.inbox_bytes
    }

    fn start(&self, worker: usize, _flow: &WorkerPorts) -> Result<Box<dyn Stage>, Failure> {
        Ok(Box::new(Putter {
            client: Client::new(&self.store).map_err(|why| Failure::new(why.to_string()))?,
            requests: Some(RequestLog::new(worker, self.window)),
            put: self.clone(),
        }))
    }
}

struct Putter {
    put: Put,
    client: Client,
    requests: Option<RequestLog>, // until it has ended
}

impl Stage for Putter {
    fn run(&mut self, ports: &mut WorkerPorts) -> Result<(), StageError> {
        let mut requests = self.requests.take().expect("a worker runs once");
        while let Some(buffer) = ports.receive()? {
            let (number, len) = (buffer.number, buffer.len);
            let payload = payload(buffer);
            let stopped = || ports.check().is_err();
            requests.begin();
            let done = match &self.put.put_as {
                PutAs::Objects { prefix } => {
                    let key = PutAs::key(prefix, number);
                    self.client.put(&key, payload, stopped)
                }
                PutAs::Parts { upload, parts } => {
                    let put = self.client.put_part(upload, number, payload, stopped);
                    put.map(|(part, done)| {
                        let mut parts = parts.lock().unwrap_or_else(PoisonError::into_inner);
                        parts.insert(number, part);
                        done
                    })
                }
            };
            requests.end(&done.map_err(|why| failure(&why))?);
            ports.add_moved(len, 1);
        }
        requests.close(self.client.counts(), &self.put.seen);
        Ok(())
    }
}
