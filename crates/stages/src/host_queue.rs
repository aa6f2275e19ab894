//! A bounded queue between a graph and the host program (Python).
//!
//! It connects a stage (`from_host`, `to_host`, `lend`) with threads outside the run. Like an edge
//! it is bounded in bytes: it accepts an item while less than the bound waits, so one larger item
//! still passes. The producer closes it at the end; either side aborts it when it cannot continue,
//! and then nobody waits any more. A stage also polls whether its run was stopped.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often a waiting stage checks whether its run was stopped.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The queue is of no use any more: the other side has ended, or the run was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aborted;

#[derive(Debug)]
struct QueueState<T> {
    items: VecDeque<(T, usize)>,
    bytes: usize,
    closed: bool, // by the producer
    aborted: bool,
}

/// A queue into a graph or out of it.
#[derive(Debug)]
pub struct HostQueue<T> {
    waiting: Mutex<QueueState<T>>,
    changed: Condvar,
    most_bytes: usize,
}

impl<T> HostQueue<T> {
    /// A queue of so many bytes. Any bound lets one item wait.
    #[must_use]
    pub fn new(most_bytes: usize) -> Self {
        Self {
            waiting: Mutex::new(QueueState {
                items: VecDeque::new(),
                bytes: 0,
                closed: false,
                aborted: false,
            }),
            changed: Condvar::new(),
            most_bytes: most_bytes.max(1),
        }
    }

    /// The bound.
    #[must_use]
    pub fn most_bytes(&self) -> usize {
        self.most_bytes
    }

    /// Puts an item of so many bytes, once there is room.
    ///
    /// # Errors
    /// When the queue was aborted, or the run stopped.
    pub fn put(&self, item: T, bytes: usize, stopped: impl Fn() -> bool) -> Result<(), Aborted> {
        let mut waiting = self.lock();
        while waiting.bytes >= self.most_bytes && !waiting.aborted && !stopped() {
            waiting = self.wait(waiting);
        }
        if waiting.aborted || waiting.closed || stopped() {
            return Err(Aborted);
        }
        waiting.bytes += bytes;
        waiting.items.push_back((item, bytes));
        drop(waiting);
        self.changed.notify_all();
        Ok(())
    }

    /// The oldest item, once there is one; `None` at the end.
    ///
    /// # Errors
    /// When the queue was aborted, or the run stopped.
    pub fn take(&self, stopped: impl Fn() -> bool) -> Result<Option<T>, Aborted> {
        let mut waiting = self.lock();
        while waiting.items.is_empty() && !waiting.closed && !waiting.aborted && !stopped() {
            waiting = self.wait(waiting);
        }
        if waiting.aborted || stopped() {
            return Err(Aborted);
        }
        let taken = waiting.items.pop_front();
        let (item, bytes) = taken.map_or((None, 0), |(item, bytes)| (Some(item), bytes));
        waiting.bytes -= bytes;
        drop(waiting);
        self.changed.notify_all();
        Ok(item)
    }

    /// Whether no more items will come.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let waiting = self.lock();
        waiting.aborted || (waiting.closed && waiting.items.is_empty())
    }

    /// Ends the input; items that wait can still be taken.
    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// Ends the use of the queue and drops what waits.
    pub fn abort(&self) {
        let mut waiting = self.lock();
        waiting.aborted = true;
        waiting.items.clear();
        drop(waiting);
        self.changed.notify_all();
    }

    fn wait<'a>(&self, waiting: MutexGuard<'a, QueueState<T>>) -> MutexGuard<'a, QueueState<T>> {
        let woken = self.changed.wait_timeout(waiting, STOP_POLL_INTERVAL);
        woken.unwrap_or_else(PoisonError::into_inner).0
    }

    fn lock(&self) -> MutexGuard<'_, QueueState<T>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use proptest::prelude::*;

    use super::*;

    const NEVER: fn() -> bool = || false;

    proptest! {
        #[test]
        fn what_is_put_is_taken_in_its_order(
            lengths in prop::collection::vec(0_usize..100, 0..200),
            most_bytes in 0_usize..300,
        ) {
            let queue = HostQueue::new(most_bytes);
            let taken = thread::scope(|scope| {
                scope.spawn(|| {
                    for (number, &bytes) in lengths.iter().enumerate() {
                        queue.put(number, bytes, NEVER).expect("it is open");
                    }
                    queue.close();
                });
                let mut taken = Vec::new();
                while let Some(number) = queue.take(NEVER).expect("it is not shut") {
                    taken.push(number);
                }
                taken
            });
            prop_assert_eq!(taken, (0..lengths.len()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn who_waits_at_a_gate_that_is_shut_waits_no_more() {
        let queue = HostQueue::new(1);
        queue.put("first", 1, NEVER).expect("there is room");
        thread::scope(|scope| {
            let second = scope.spawn(|| queue.put("second", 1, NEVER));
            queue.abort();
            assert_eq!(second.join().expect("no panic"), Err(Aborted));
        });
        assert_eq!(queue.take(NEVER), Err(Aborted));
    }

    #[test]
    fn who_is_stopped_waits_no_more() {
        let queue = HostQueue::<()>::new(1);
        assert_eq!(queue.take(|| true), Err(Aborted));
        assert_eq!(queue.put((), 1, || true), Err(Aborted));
    }
}
