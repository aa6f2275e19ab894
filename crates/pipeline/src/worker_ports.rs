//! A worker's view of its run: its input, output, pool and probe.
//!
//! All waiting happens here, so that every wait is counted and ends when the run is stopped.

use std::sync::Arc;
use std::time::Instant;

use crate::buffer::{Buffer, Pool};
use crate::edge::{Edge, PollResult};
use crate::error::StageError;
use crate::probe::{Probe, WorkerState};
use crate::run_handle::RunHandle;

/// One worker's connections to the run.
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

    /// The memory of this stage's buffers, address and length: its own pool if it makes buffers,
    /// else the memory of the whole run, since its buffers come from anywhere.
    #[must_use]
    pub fn region(&self) -> (usize, usize) {
        match &self.pool {
            Some(pool) => pool.region(),
            None => self.region,
        }
    }

    /// The next buffer, or `None` at the end of the input. Waiting counts as starved.
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

    /// The next buffer, if one is queued.
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

    /// Sends a buffer to the next stage. Waiting for room counts as blocked.
    ///
    /// # Errors
    /// When the run is stopped.
    ///
    /// # Panics
    /// In a sink, which has nowhere to send to.
    pub fn send(&mut self, buffer: Buffer) -> Result<(), StageError> {
        self.check()?;
        let edge = self.output.as_ref().expect("a sink cannot send");
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

    /// Counts bytes and records that this worker has processed.
    pub fn add_moved(&self, bytes: usize, records: usize) {
        self.probe.add_moved(bytes, records);
    }

    /// Records the queue depth of the worker's device.
    pub fn depth(&self, depth: usize) {
        self.probe.depth(depth);
    }

    /// Whether a source should end now, although it has more. Not before it has moved something:
    /// on a busy machine a short time can end before the first block, and nothing has no rate.
    #[must_use]
    pub fn time_is_up(&self) -> bool {
        self.deadline
            .is_some_and(|deadline| self.probe.has_moved() && Instant::now() >= deadline)
    }

    /// Returns an error if the run is stopped; for a stage that waits for nothing here.
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
