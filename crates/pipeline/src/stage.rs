//! What a stage is (its [`StageSpec`]) and what one of its workers does (its [`Stage`]).

use serde_json::Value;

use crate::edge::Routing;
use crate::error::{Failure, StageError};
use crate::worker_ports::WorkerPorts;

/// What flows along an edge, by name: the same name on both ends or the graph is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port(pub &'static str);

/// Memory that a stage needs for itself, declared before the run and counted against its budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryNeed {
    /// Buffers in the stage's own pool.
    pub buffers: usize,
    /// Size of each.
    pub buffer_bytes: usize,
    /// What all its workers together hold beside buffers (indexes, tables).
    pub private_bytes: usize,
}

impl MemoryNeed {
    /// All of it.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.buffers * self.buffer_bytes + self.private_bytes
    }
}

/// A stage as a value: enough to compare, check, draw and start it.
pub trait StageSpec: Send + Sync {
    /// The kind of stage, which is the name of the file it is written in.
    fn kind(&self) -> &'static str;
    /// Its settings, and how much it has to do; not the data itself (which files, which keys).
    fn config(&self) -> Value;
    /// What it takes; `None` for a source.
    fn input(&self) -> Option<Port>;
    /// What it gives; `None` for a sink.
    fn output(&self) -> Option<Port>;
    /// How many workers run it.
    fn workers(&self) -> usize;
    /// How they share the input.
    fn routing(&self) -> Routing {
        Routing::Any
    }
    /// Bytes that may wait before each of its queues.
    fn inbox_bytes(&self) -> usize {
        16 << 20
    }
    /// Memory of its own.
    fn memory(&self) -> MemoryNeed {
        MemoryNeed::default()
    }
    /// Makes worker number `worker`; called on the worker's own thread.
    ///
    /// # Errors
    /// What keeps it from starting.
    fn start(&self, worker: usize, ports: &WorkerPorts) -> Result<Box<dyn Stage>, Failure>;
}

/// One worker of a stage: runs until its input has ended, on one thread.
pub trait Stage {
    /// Does the work. Returning `Ok` means that everything received was dealt with.
    ///
    /// # Errors
    /// [`StageError::Stopped`] passed on from `flow`, or the stage's own failure.
    fn run(&mut self, ports: &mut WorkerPorts) -> Result<(), StageError>;
}
