//! A pool of threads with blocking reads and writes, where there is no io_uring.
//!
//! There are as many threads as the depth, so each transfer has one, and one queue of work under
//! one lock. At a thousand transfers a second that lock costs nothing.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};

use crate::engine::{Backend, Outcome};
use crate::transfer::Transfer;

pub(crate) struct Threads {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// There is work, or there will never be any again.
    work: Condvar,
    /// There is an outcome.
    done: Condvar,
}

#[derive(Default)]
struct State {
    work: VecDeque<(usize, Transfer)>,
    ready: VecDeque<Outcome>,
    /// Started and not yet ready.
    under_way: usize,
    closing: bool,
}

impl Threads {
    pub fn new(depth: usize) -> io::Result<Threads> {
        let mut pool = Threads {
            shared: Arc::default(),
            workers: Vec::with_capacity(depth),
        };
        for _ in 0..depth {
            let shared = pool.shared.clone();
            let builder = thread::Builder::new().name("tonnage-disk".to_owned());
            pool.workers.push(builder.spawn(move || shared.work())?);
        }
        Ok(pool)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .expect("no worker panics while it holds the lock")
    }

    /// The life of one thread.
    fn work(&self) {
        let mut state = self.lock();
        loop {
            if let Some((slot, transfer)) = state.work.pop_front() {
                drop(state);
                let result = transfer.perform();
                state = self.lock();
                state.ready.push_back((slot, result));
                state.under_way -= 1;
                self.done.notify_one();
            } else if state.closing {
                return;
            } else {
                state = self
                    .work
                    .wait(state)
                    .expect("no worker panics while it holds the lock");
            }
        }
    }
}

impl Backend for Threads {
    fn start(&mut self, slot: usize, transfer: Transfer) {
        let mut state = self.shared.lock();
        state.work.push_back((slot, transfer));
        state.under_way += 1;
        self.shared.work.notify_one();
    }

    fn submit(&mut self) {}

    fn wait(&mut self) {
        let mut state = self.shared.lock();
        while state.ready.is_empty() && state.under_way > 0 {
            state = self
                .shared
                .done
                .wait(state)
                .expect("no worker panics while it holds the lock");
        }
    }

    fn take(&mut self) -> Option<Outcome> {
        self.shared.lock().ready.pop_front()
    }

    fn engine(&self) -> &'static str {
        "threads"
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.work.notify_all();
        for worker in self.workers.drain(..) {
            // A panicked worker has printed its message already.
            let _ = worker.join();
        }
    }
}
