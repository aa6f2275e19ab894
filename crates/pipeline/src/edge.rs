//! An edge: queues of buffers between two stages, bounded in bytes.
//!
//! There is one queue for all workers of the next stage, or one per worker where buffers are routed
//! by lane. A queue accepts a buffer while it holds less than the bound, so one buffer larger than
//! the bound still passes. A lock is taken once per buffer, and buffers are large.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::buffer::Buffer;
use crate::quiet_condvar::QuietCondvar;

/// How the workers of a stage share its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routing {
    /// Any worker takes the next buffer.
    Any,
    /// Buffers go to worker `lane % workers`, so each device has its own worker.
    ByLane,
}

/// Result of polling a queue.
#[derive(Debug)]
pub enum PollResult {
    /// The next buffer.
    Buffer(Buffer),
    /// Nothing waits now, more may come.
    Empty,
    /// Nothing will come any more.
    Ended,
}

#[derive(Debug, Default)]
struct QueueState {
    buffers: VecDeque<Buffer>,
    bytes: usize,
    producers: usize,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: Mutex<QueueState>,
    filled: QuietCondvar,
    emptied: QuietCondvar,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The oldest buffer, or the end of input; else returns the guard, to wait with.
    fn pop<'a>(
        &self,
        mut waiting: MutexGuard<'a, QueueState>,
    ) -> Result<PollResult, MutexGuard<'a, QueueState>> {
        match waiting.buffers.pop_front() {
            Some(buffer) => {
                waiting.bytes -= buffer.len;
                self.emptied.signal_all(waiting);
                Ok(PollResult::Buffer(buffer))
            }
            None if waiting.producers == 0 => Ok(PollResult::Ended),
            None => Err(waiting),
        }
    }
}

/// Queues between two stages.
#[derive(Debug)]
pub struct Edge {
    queues: Vec<Queue>,
    limit_bytes: usize,
}

impl Edge {
    /// An edge from `producers` workers to `consumers` workers. Any bound lets one buffer wait.
    pub fn new(producers: usize, consumers: usize, routing: Routing, limit_bytes: usize) -> Self {
        let queues = match routing {
            Routing::Any => 1,
            Routing::ByLane => consumers,
        };
        let queue = || Queue {
            waiting: Mutex::new(QueueState {
                producers,
                ..QueueState::default()
            }),
            ..Queue::default()
        };
        Self {
            queues: (0..queues).map(|_| queue()).collect(),
            limit_bytes: limit_bytes.max(1),
        }
    }

    /// Queues a buffer once there is room; returns the buffer if `stopped`.
    pub fn send(&self, buffer: Buffer, stopped: impl Fn() -> bool) -> Result<(), Buffer> {
        let queue = &self.queues[buffer.lane % self.queues.len()];
        let mut waiting = queue.lock();
        while waiting.bytes >= self.limit_bytes {
            if stopped() {
                return Err(buffer);
            }
            waiting = queue.emptied.wait(waiting);
        }
        waiting.bytes += buffer.len;
        waiting.buffers.push_back(buffer);
        queue.filled.signal_one(waiting);
        Ok(())
    }

    /// Whether sending a buffer of this lane would block.
    pub fn is_full(&self, lane: usize) -> bool {
        self.queues[lane % self.queues.len()].lock().bytes >= self.limit_bytes
    }

    /// The next buffer for `worker`, if one waits.
    pub fn poll(&self, worker: usize) -> PollResult {
        let queue = &self.queues[worker % self.queues.len()];
        match queue.pop(queue.lock()) {
            Ok(received) => received,
            Err(_) => PollResult::Empty,
        }
    }

    /// The next buffer for `worker`, once there is one; gives up if `stopped`.
    pub fn receive(&self, worker: usize, stopped: impl Fn() -> bool) -> PollResult {
        let queue = &self.queues[worker % self.queues.len()];
        let mut waiting = queue.lock();
        loop {
            if stopped() {
                return PollResult::Empty;
            }
            match queue.pop(waiting) {
                Ok(received) => return received,
                Err(again) => waiting = queue.filled.wait(again),
            }
        }
    }

    /// One producer has ended.
    pub fn close_one(&self) {
        for queue in &self.queues {
            let mut waiting = queue.lock();
            waiting.producers -= 1;
            queue.filled.signal_all(waiting);
        }
    }

    /// Wakes all waiters, so that they check `stopped` again.
    pub fn wake(&self) {
        for queue in &self.queues {
            queue.filled.signal_all(queue.lock());
            queue.emptied.signal_all(queue.lock());
        }
    }
}
