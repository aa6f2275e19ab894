//! Blocking reads and writes in the calling thread, one at a time. For benchmarks of programs with
//! blocking I/O, which have a worker per concurrent transfer.

use std::collections::VecDeque;

use crate::engine::{Backend, Outcome};
use crate::transfer::Transfer;

#[derive(Default)]
pub(crate) struct Blocking {
    started: VecDeque<(usize, Transfer)>,
    ready: VecDeque<Outcome>,
}

impl Backend for Blocking {
    fn start(&mut self, slot: usize, transfer: Transfer) {
        self.started.push_back((slot, transfer));
    }

    fn submit(&mut self) {}

    fn wait(&mut self) {
        if let (true, Some((slot, transfer))) = (self.ready.is_empty(), self.started.pop_front()) {
            self.ready.push_back((slot, transfer.perform()));
        }
    }

    fn take(&mut self) -> Option<Outcome> {
        self.ready.pop_front()
    }

    fn engine(&self) -> &'static str {
        "blocking"
    }
}
