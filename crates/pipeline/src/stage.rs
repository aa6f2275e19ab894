//! What a stage is (its [`StageSpec`]) and what one of its workers does (its [`Stage`]).

use std::sync::Arc;

use serde_json::Value;

use crate::buffer::Pool;
use crate::edge::Routing;
use crate::error::{Failure, StageError};
use crate::worker_ports::WorkerPorts;

/// What flows along an edge, by name. Both ends must name the same, or the check fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port(pub &'static str);

/// Memory that a stage needs, declared before the run and counted against its budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryNeed {
    /// Buffers in the stage's own pool.
    pub buffers: usize,
    /// Size of each.
    pub buffer_bytes: usize,
    /// Memory of all its workers together in addition to buffers (indexes, tables).
    pub private_bytes: usize,
}

impl MemoryNeed {
    /// The sum.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.buffers * self.buffer_bytes + self.private_bytes
    }
}

/// A stage as a value: enough to compare, check, draw and start it.
pub trait StageSpec: Send + Sync {
    /// The kind of stage.
    fn kind(&self) -> &'static str;
    /// Its settings and the amount of its work, not the data itself (which files, which keys).
    fn config(&self) -> Value;
    /// The port that it takes; `None` for a source.
    fn input(&self) -> Option<Port>;
    /// The port that it gives; `None` for a sink.
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
    /// The pool of its buffers, if they may outlive the run: not a part of the run's memory, nor
    /// counted in `memory`.
    fn lasting_pool(&self) -> Option<Arc<Pool>> {
        None
    }
    /// Makes worker number `worker`; called on the worker's own thread.
    ///
    /// # Errors
    /// Why it cannot start.
    fn start(&self, worker: usize, ports: &WorkerPorts) -> Result<Box<dyn Stage>, Failure>;
}

/// One worker of a stage. It runs on one thread until its input ends.
pub trait Stage {
    /// Does the work. `Ok` means that everything received was processed.
    ///
    /// # Errors
    /// [`StageError::Stopped`] passed on from `flow`, or the stage's own failure.
    fn run(&mut self, ports: &mut WorkerPorts) -> Result<(), StageError>;
}
