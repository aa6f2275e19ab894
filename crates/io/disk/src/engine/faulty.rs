//! Injects faults into another engine.
//!
//! It sits below the scheduler, so tests exercise the code that continues short transfers, retries
//! and waits in production. A short transfer really moves only a part, and the rest of the range is
//! not touched. On a direct file it moves up to the next aligned byte but reports fewer, so that it
//! can end anywhere.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use crate::engine::{Backend, Outcome};
use crate::error::Operation;
use crate::faults::{Effect, Fault, Injector, OperationInfo};
use crate::queue::Direction;
use crate::transfer::Transfer;

pub(crate) struct Faulty {
    inner: Box<dyn Backend>,
    injector: Injector,
    /// Faults of the transfers that the inner engine has.
    under_way: HashMap<usize, InFlight>,
    stalled: Vec<(Instant, usize, Transfer)>,
    ready: VecDeque<Outcome>,
}

struct InFlight {
    asked: Transfer,
    /// Reports no more than this.
    at_most: usize,
    corrupt: Option<u64>,
}

impl Faulty {
    pub fn new(inner: Box<dyn Backend>, injector: Injector) -> Faulty {
        Faulty {
            inner,
            injector,
            under_way: HashMap::new(),
            stalled: Vec::new(),
            ready: VecDeque::new(),
        }
    }

    fn pass_on(&mut self, slot: usize, transfer: Transfer, fault: Option<Fault>) {
        let mut passed = transfer.clone();
        let mut under_way = InFlight {
            at_most: transfer.len,
            asked: transfer,
            corrupt: None,
        };
        match fault {
            Some(Fault {
                effect: Effect::Short,
                draw,
            }) if passed.len > 1 => {
                under_way.at_most = 1 + draw as usize % (passed.len - 1);
                passed.len = if passed.cached() {
                    under_way.at_most
                } else {
                    under_way.at_most.next_multiple_of(passed.file.alignment())
                };
            }
            Some(Fault {
                effect: Effect::Corrupt,
                draw,
            }) => under_way.corrupt = Some(draw),
            _ => {}
        }
        self.under_way.insert(slot, under_way);
        self.inner.start(slot, passed);
    }

    /// Starts transfers whose stall is over.
    fn release(&mut self) {
        let now = Instant::now();
        let due = self
            .stalled
            .extract_if(.., |(until, ..)| *until <= now)
            .collect::<Vec<_>>();
        for (_, slot, transfer) in due {
            self.pass_on(slot, transfer, None);
        }
    }
}

impl Backend for Faulty {
    fn start(&mut self, slot: usize, transfer: Transfer) {
        let fault = self.injector.fault(&OperationInfo {
            operation: operation(&transfer),
            path: transfer.file.path(),
            offset: Some(transfer.offset),
            len: transfer.len as u64,
            attempt: transfer.attempt,
        });
        match fault {
            Some(Fault {
                effect: Effect::Error { errno },
                ..
            }) => {
                self.injector
                    .not_moved(operation(&transfer), transfer.len as u64);
                self.ready
                    .push_back((slot, Err(io::Error::from_raw_os_error(errno))));
            }
            Some(Fault {
                effect: Effect::Stall { milliseconds },
                ..
            }) => {
                let until = Instant::now() + Duration::from_millis(milliseconds);
                self.stalled.push((until, slot, transfer));
            }
            fault => self.pass_on(slot, transfer, fault),
        }
    }

    fn submit(&mut self) {
        self.release();
        self.inner.submit();
    }

    fn wait(&mut self) {
        self.release();
        if self.ready.is_empty() && self.under_way.is_empty() {
            let first = self.stalled.iter().map(|(until, ..)| *until).min();
            if let Some(until) = first {
                thread::sleep(until.saturating_duration_since(Instant::now()));
                self.release();
            }
        }
        if self.ready.is_empty() {
            self.inner.wait()
        } else {
            self.inner.submit()
        }
    }

    fn take(&mut self) -> Option<Outcome> {
        if let Some(outcome) = self.ready.pop_front() {
            return Some(outcome);
        }
        let (slot, result) = self.inner.take()?;
        let InFlight {
            asked,
            at_most,
            corrupt,
        } = self
            .under_way
            .remove(&slot)
            .expect("an outcome is of a transfer under way");
        let result = result.map(|moved| moved.min(at_most));
        let moved = *result.as_ref().unwrap_or(&0);
        self.injector
            .not_moved(operation(&asked), (asked.len - moved) as u64);
        if let Some(draw) = corrupt
            && asked.direction == Direction::Read
            && moved > 0
        {
            let byte = asked.pointer.add((draw >> 3) as usize % moved);
            // SAFETY: one of the bytes just read, which lie in the memory of the
            // request; the engine is done with them and the scheduler does not know yet.
            unsafe { *byte.0 ^= 1 << (draw & 7) };
        }
        Some((slot, result))
    }

    fn engine(&self) -> &'static str {
        self.inner.engine()
    }

    fn registered(&self) -> bool {
        self.inner.registered()
    }
}

fn operation(transfer: &Transfer) -> Operation {
    match transfer.direction {
        Direction::Read => Operation::Read,
        Direction::Write | Direction::WriteDurably => Operation::Write,
    }
}
