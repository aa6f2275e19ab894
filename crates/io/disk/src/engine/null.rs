//! The disk that is not there: shows what a pipeline does if the disk cost nothing.
//!
//! Every transfer is done at once. Writes vanish. Reads leave the memory as it is
//! and say that they filled it: even writing zeros would cost what a fast disk
//! does, and hide what is to be measured.

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
