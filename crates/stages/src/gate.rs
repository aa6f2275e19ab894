//! A gate: where what is not the core hands something to a graph, or takes it from one.
//!
//! A queue between a stage (`given`, `taken`) and threads that are none of the run's. It is bounded
//! in bytes, as an edge is: it takes what comes when less than that waits, so that one thing that is
//! larger still passes. Who puts closes it when there is no more; whoever sees that the other side
//! has ended shuts it, and nobody waits there any more. A stage is a worker of a run that may be
//! stopped, and it alone asks for that, now and then.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a stage waits before it asks again whether its run was stopped.
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// Nothing passes any more: the other side has ended, or the run was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shut;

#[derive(Debug)]
struct Waiting<T> {
    things: VecDeque<(T, usize)>,
    bytes: usize,
    closed: bool, // by who puts: there is no more
    shut: bool,
}

/// A queue into a graph or out of it.
#[derive(Debug)]
pub struct Gate<T> {
    waiting: Mutex<Waiting<T>>,
    changed: Condvar,
    most_bytes: usize,
}

impl<T> Gate<T> {
    /// A gate before which so many bytes may wait. Any bound lets one thing wait.
    #[must_use]
    pub fn new(most_bytes: usize) -> Self {
        Self {
            waiting: Mutex::new(Waiting {
                things: VecDeque::new(),
                bytes: 0,
                closed: false,
                shut: false,
            }),
            changed: Condvar::new(),
            most_bytes: most_bytes.max(1),
        }
    }

    /// Bytes that may wait.
    #[must_use]
    pub fn most_bytes(&self) -> usize {
        self.most_bytes
    }

    /// Puts something of so many bytes, as soon as there is room.
    ///
    /// # Errors
    /// When nothing passes any more.
    pub fn put(&self, thing: T, bytes: usize, stopped: impl Fn() -> bool) -> Result<(), Shut> {
        let mut waiting = self.lock();
        while waiting.bytes >= self.most_bytes && !waiting.shut && !stopped() {
            waiting = self.wait(waiting);
        }
        if waiting.shut || waiting.closed || stopped() {
            return Err(Shut);
        }
        waiting.bytes += bytes;
        waiting.things.push_back((thing, bytes));
        drop(waiting);
        self.changed.notify_all();
        Ok(())
    }

    /// What has waited longest, as soon as there is anything; `None` when no more will come.
    ///
    /// # Errors
    /// When nothing passes any more.
    pub fn take(&self, stopped: impl Fn() -> bool) -> Result<Option<T>, Shut> {
        let mut waiting = self.lock();
        while waiting.things.is_empty() && !waiting.closed && !waiting.shut && !stopped() {
            waiting = self.wait(waiting);
        }
        if waiting.shut || stopped() {
            return Err(Shut);
        }
        let taken = waiting.things.pop_front();
        let (thing, bytes) = taken.map_or((None, 0), |(thing, bytes)| (Some(thing), bytes));
        waiting.bytes -= bytes;
        drop(waiting);
        self.changed.notify_all();
        Ok(thing)
    }

    /// Whether nothing more will come.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let waiting = self.lock();
        waiting.shut || (waiting.closed && waiting.things.is_empty())
    }

    /// No more will be put; what waits can still be taken.
    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// Nothing passes any more, and what waits is forgotten.
    pub fn shut(&self) {
        let mut waiting = self.lock();
        waiting.shut = true;
        waiting.things.clear();
        drop(waiting);
        self.changed.notify_all();
    }

    fn wait<'a>(&self, waiting: MutexGuard<'a, Waiting<T>>) -> MutexGuard<'a, Waiting<T>> {
        let woken = self.changed.wait_timeout(waiting, ASK_AGAIN);
        woken.unwrap_or_else(PoisonError::into_inner).0
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<T>> {
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
            let gate = Gate::new(most_bytes);
            let taken = thread::scope(|scope| {
                scope.spawn(|| {
                    for (number, &bytes) in lengths.iter().enumerate() {
                        gate.put(number, bytes, NEVER).expect("it is open");
                    }
                    gate.close();
                });
                let mut taken = Vec::new();
                while let Some(number) = gate.take(NEVER).expect("it is not shut") {
                    taken.push(number);
                }
                taken
            });
            prop_assert_eq!(taken, (0..lengths.len()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn who_waits_at_a_gate_that_is_shut_waits_no_more() {
        let gate = Gate::new(1);
        gate.put("first", 1, NEVER).expect("there is room");
        thread::scope(|scope| {
            let second = scope.spawn(|| gate.put("second", 1, NEVER));
            gate.shut();
            assert_eq!(second.join().expect("no panic"), Err(Shut));
        });
        assert_eq!(gate.take(NEVER), Err(Shut));
    }

    #[test]
    fn who_is_stopped_waits_no_more() {
        let gate = Gate::<()>::new(1);
        assert_eq!(gate.take(|| true), Err(Shut));
        assert_eq!(gate.put((), 1, || true), Err(Shut));
    }
}
