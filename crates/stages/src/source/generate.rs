//! `generate`: generated records, the null twin of `read`.
//!
//! Workers take the next chunk of a list. `Fresh` content is the sort benchmark's record N,
//! computed for each buffer. `Reused` content is computed once per slot of the pool and sent again
//! and again, so that the stages behind are measured and not the generator.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use serde::Serialize;
use serde_json::{Value, json};
use tonnage_pipeline::{Failure, MemoryNeed, Port, Stage, StageError, StageSpec, WorkerPorts};
use tonnage_records::Generator;

/// Size of the generated records (the sort benchmark's).
const GENERATED_BYTES: usize = 100;

/// The content of one buffer.
#[derive(Clone, Copy, Debug)]
pub struct Chunk {
    /// File or partition.
    pub number: usize,
    /// Offset in it.
    pub offset: u64,
    /// Payload bytes.
    pub len: usize,
    /// Device that it goes to.
    pub lane: usize,
    /// Number of its first record, counted from the generator's start.
    pub first_record: u64,
}

/// How buffers are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Record N for every N.
    Fresh,
    /// The same bytes again.
    Reused,
    /// The same bytes, and all chunks again and again, until the run's time is up.
    Endless,
}

/// Generates records.
#[derive(Clone, Debug)]
pub struct Generate {
    /// Which records.
    pub generator: Arc<Generator>,
    /// How buffers are filled.
    pub content: Content,
    /// What to generate.
    pub chunks: Arc<Vec<Chunk>>,
    /// The port that it gives.
    pub gives: Port,
    /// Size of a record, for counting.
    pub record_bytes: usize,
    /// Threads.
    pub workers: usize,
    /// Whether each worker generates the chunks of its own lane only, so that a full lane does not
    /// hold up the others; else all lanes take turns.
    pub lanes_apart: bool,
    /// Buffers of its own.
    pub buffers: usize,
    /// Size of each; at least the largest chunk.
    pub buffer_bytes: usize,
    /// The next chunk's place in the list.
    pub next: Arc<AtomicUsize>,
}

impl StageSpec for Generate {
    fn kind(&self) -> &'static str {
        "generate"
    }

    fn config(&self) -> Value {
        json!({
            "content": self.content,
            "record_bytes": self.record_bytes,
            "chunks": self.chunks.len(),
            "lanes_apart": self.lanes_apart,
            "bytes": self.chunks.iter().map(|chunk| chunk.len as u64).sum::<u64>(),
            "buffers": self.buffers,
            "buffer_bytes": self.buffer_bytes,
        })
    }

    fn input(&self) -> Option<Port> {
        None
    }

    fn output(&self) -> Option<Port> {
        Some(self.gives)
    }

    fn workers(&self) -> usize {
        self.workers
    }

    fn memory(&self) -> MemoryNeed {
        MemoryNeed {
            buffers: self.buffers,
            buffer_bytes: self.buffer_bytes,
            private_bytes: 0,
        }
    }

    fn start(&self, worker: usize, _flow: &WorkerPorts) -> Result<Box<dyn Stage>, Failure> {
        let mut generate = self.clone();
        if self.lanes_apart {
            let own = self.chunks.iter().filter(|chunk| chunk.lane == worker);
            generate.chunks = Arc::new(own.copied().collect());
            generate.next = Arc::default();
        }
        Ok(Box::new(GenerateWorker {
            generate,
            filled: HashSet::new(),
        }))
    }
}

struct GenerateWorker {
    generate: Generate,
    filled: HashSet<usize>, // slots that hold records already, by address
}

impl Stage for GenerateWorker {
    fn run(&mut self, ports: &mut WorkerPorts) -> Result<(), StageError> {
        let chunks = Arc::clone(&self.generate.chunks);
        while !ports.time_is_up() && !chunks.is_empty() {
            let place = self.generate.next.fetch_add(1, Relaxed);
            if place >= chunks.len() && self.generate.content != Content::Endless {
                break;
            }
            let chunk = chunks[place % chunks.len()];
            let mut buffer = ports.buffer()?;
            let fresh = self.generate.content == Content::Fresh;
            if fresh {
                let payload = &mut buffer.slot_mut()[..chunk.len];
                self.generate.generator.fill(chunk.first_record, payload);
            } else if self.filled.insert(buffer.slot().as_ptr() as usize) {
                // As many whole records as fit; the rest stays zero.
                let whole = buffer.capacity() / GENERATED_BYTES * GENERATED_BYTES;
                self.generate
                    .generator
                    .fill(chunk.first_record, &mut buffer.slot_mut()[..whole]);
            }
            (buffer.head, buffer.len) = (0, chunk.len);
            (buffer.number, buffer.offset, buffer.lane) = (chunk.number, chunk.offset, chunk.lane);
            ports.add_moved(chunk.len, chunk.len / self.generate.record_bytes);
            ports.send(buffer)?;
        }
        Ok(())
    }
}
