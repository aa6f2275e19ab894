//! The null disk: shows what a pipeline could do if disks cost nothing.
//!
//! Every transfer completes at once. Writes vanish. Reads leave the memory unchanged and claim to
//! have filled it: even writing zeros would cost as much as a fast disk, and hide what is to be
//! measured.

use std::collections::VecDeque;

use crate::engine::{Backend, Outcome};
use crate::queue::Direction;
use crate::transfer::Transfer;

#[derive(Default)]
pub(crate) struct Null {
    ready: VecDeque<Outcome>,
}

impl Backend for Null {
    fn start(&mut self, slot: usize, transfer: Transfer) {
        let left = transfer.file.len().saturating_sub(transfer.offset);
        let moved = match transfer.direction {
            Direction::Read => left.min(transfer.len as u64) as usize,
            Direction::Write | Direction::WriteDurably => transfer.len,
        };
        self.ready.push_back((slot, Ok(moved)));
    }

    fn submit(&mut self) {}

    fn wait(&mut self) {}

    fn take(&mut self) -> Option<Outcome> {
        self.ready.pop_front()
    }

    fn engine(&self) -> &'static str {
        "null"
    }
}
