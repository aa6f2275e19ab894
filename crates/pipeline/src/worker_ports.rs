//! What a worker sees of its run: its input, its output, its pool, its probe.
//!
//! Waiting happens here and nowhere else, so that every wait is counted and every wait ends when
//! the run is stopped.

use std::sync::Arc;
use std::time::Instant;

use crate::buffer::{Buffer, Pool};
use crate::edge::{Edge, PollResult};
use crate::error::StageError;
use crate::probe::{Probe, WorkerState};
use crate::run_handle::RunHandle;

/// One worker's side of the run.
#[derive(Debug)]
pub struct WorkerPorts {
    pub(crate) worker: usize,
    pub(crate) input: Option<Arc<Edge>>,
    pub(crate) output: Option<Arc<Edge>>,
    pub(crate) pool: Option<Arc<Pool>>,
    pub(crate) region: (usize, usize),
    pub(crate) probe: Arc<Probe>,
    pub(crate) handle: RunHandle,
    pub(crate) deadline: Option<Instant>,
    pub(crate) input_ended: bool,
}

impl WorkerPorts {
    /// Number of this worker within its stage.
    #[must_use]
    pub fn worker(&self) -> usize {
        self.worker
    }

    /// The memory that this stage's buffers lie in, address and length: its own pool if it makes
    /// buffers, else all of the run's, since they come from anywhere.
    #[must_use]
    pub fn region(&self) -> (usize, usize) {
        match &self.pool {
            Some(pool) => pool.region(),
            None => self.region,
        }
    }

    /// The next buffer, or `None` when the input has ended. Waiting counts as starved.
    ///
    /// # Errors
    /// When the run is stopped.
    pub fn receive(&mut self) -> Result<Option<Buffer>, StageError> {
        let polled = self.poll()?;
        if polled.is_some() || self.input_ended {
            return Ok(polled);
        }
        let Some(edge) = &self.input else {
            return Ok(None);
        };
        self.probe.enter(WorkerState::Starved);
        let received = edge.receive(self.worker, || self.handle.is_stopped());
        self.probe.enter(WorkerState::Busy);
        self.note(received)
    }

    /// The next buffer if one waits already.
    ///
    /// # Errors
    /// When the run is stopped.
    pub fn poll(&mut self) -> Result<Option<Buffer>, StageError> {
        let Some(edge) = &self.input else {
            return Ok(None);
        };
        let received = edge.poll(self.worker);
        self.note(received)
    }

    fn note(&mut self, received: PollResult) -> Result<Option<Buffer>, StageError> {
        self.check()?;
        match received {
            PollResult::Buffer(buffer) => Ok(Some(buffer)),
            PollResult::Empty => Ok(None),
            PollResult::Ended => {
                self.input_ended = true;
                Ok(None)
            }
        }
    }

    /// Hands a buffer on. Waiting for room counts as blocked.
    ///
    /// # Errors
    /// When the run is stopped.
    ///
    /// # Panics
    /// In a sink, which has nowhere to send to.
    pub fn send(&mut self, buffer: Buffer) -> Result<(), StageError> {
        self.check()?;
        let edge = self.output.as_ref().expect("a sink sends nothing");
        let full = edge.is_full(buffer.lane);
        if full {
            self.probe.enter(WorkerState::Blocked);
        }
        let sent = edge.send(buffer, || self.handle.is_stopped());
        if full {
            self.probe.enter(WorkerState::Busy);
        }
        sent.map_err(|_| StageError::Stopped)
    }

    /// An empty buffer of the stage's own pool. Waiting for one counts as blocked.
    ///
    /// # Errors
    /// When the run is stopped.
    ///
    /// # Panics
    /// When the stage declared no pool.
    pub fn buffer(&mut self) -> Result<Buffer, StageError> {
        if let Some(buffer) = self.try_buffer()? {
            return Ok(buffer);
        }
        let pool = self.pool.as_ref().expect("the stage declared no pool");
        self.probe.enter(WorkerState::Blocked);
        let buffer = pool.wait(|| self.handle.is_stopped());
        self.probe.enter(WorkerState::Busy);
        buffer.ok_or(StageError::Stopped)
    }

    /// An empty buffer of the stage's own pool if one is free.
    ///
    /// # Errors
    /// When the run is stopped.
    ///
    /// # Panics
    /// When the stage declared no pool.
    pub fn try_buffer(&mut self) -> Result<Option<Buffer>, StageError> {
        self.check()?;
        Ok(self
            .pool
            .as_ref()
            .expect("the stage declared no pool")
            .take())
    }

    /// Counts what this worker has dealt with.
    pub fn moved(&self, bytes: usize, records: usize) {
        self.probe.moved(bytes, records);
    }

    /// Notes how many operations the worker's device has in hand.
    pub fn depth(&self, depth: usize) {
        self.probe.depth(depth);
    }

    /// Whether a source should end now, though it could go on.
    #[must_use]
    pub fn time_is_up(&self) -> bool {
        self.deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Whether to go on, for a stage that waits for nothing here.
    ///
    /// # Errors
    /// When the run is stopped.
    pub fn check(&self) -> Result<(), StageError> {
        if self.handle.is_stopped() {
            Err(StageError::Stopped)
        } else {
            Ok(())
        }
    }
}
