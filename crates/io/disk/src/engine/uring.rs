//! An io_uring: many transfers with one system call, in memory that the kernel knows beforehand.
//!
//! Each slot has one entry in the ring at a time: the transfer, and after a buffered write the wait
//! for its pages to reach the disk (see `page_cache.rs`).

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use io_uring::{IoUring, Probe, opcode, squeue, types};

use crate::engine::{Backend, Outcome};
use crate::file::DiskFile;
use crate::memory::Region;
use crate::page_cache;
use crate::queue::Direction;
use crate::transfer::{Transfer, flags};

/// The kernel registers no larger piece.
const LARGEST_PIECE: usize = 1 << 30;

pub(crate) struct Uring {
    ring: IoUring,
    /// Registered pieces, by their number.
    pieces: Vec<Region>,
    /// The registered file: the first one that a deferred ring used. The kernel does not look it up
    /// for each transfer, and it stays open as long as the ring.
    file: Option<Arc<DiskFile>>,
    /// Whether a file may still be registered.
    registers: bool,
    slots: Vec<Slot>,
    /// Entries handed over or about to be, and not yet answered.
    in_kernel: usize,
    /// Outcomes that never reached the kernel.
    ready: VecDeque<Outcome>,
}

#[derive(Default)]
struct Slot {
    transfer: Option<Transfer>,
    /// Bytes moved whose pages are being written back.
    written: Option<usize>,
}

impl Uring {
    /// Also returns why memory could not be registered.
    pub fn new(
        depth: usize,
        deferred: bool,
        regions: &[Region],
    ) -> io::Result<(Uring, Option<String>)> {
        let ring =
            build(depth, deferred).map_err(|error| with_call_name("io_uring_setup", &error))?;
        let mut probe = Probe::new();
        ring.submitter()
            .register_probe(&mut probe)
            .map_err(|e| with_call_name("io_uring probe", &e))?;
        if ![
            opcode::Read::CODE,
            opcode::Write::CODE,
            opcode::SyncFileRange::CODE,
        ]
        .into_iter()
        .all(|code| probe.is_supported(code))
        {
            let problem = "io_uring: this kernel's version is too old to read and write";
            return Err(io::Error::new(io::ErrorKind::Unsupported, problem));
        }
        let mut uring = Uring {
            ring,
            pieces: Vec::new(),
            file: None,
            registers: deferred,
            slots: (0..depth).map(|_| Slot::default()).collect(),
            in_kernel: 0,
            ready: VecDeque::new(),
        };
        let refused = uring.register(regions).err();
        Ok((
            uring,
            refused.map(|error| with_call_name("io_uring_register", &error).to_string()),
        ))
    }

    fn register(&mut self, regions: &[Region]) -> io::Result<()> {
        let pieces = regions.iter().flat_map(pieces_of).collect::<Vec<_>>();
        if pieces.is_empty() {
            return Ok(());
        }
        let vectors = pieces
            .iter()
            .map(|piece| libc::iovec {
                iov_base: piece.start as *mut _,
                iov_len: piece.len,
            })
            .collect::<Vec<_>>();
        // SAFETY: the kernel checks that the addresses are mapped and keeps the pages.
        // It writes to them only for transfers, which lie in memory the scheduler owns.
        unsafe { self.ring.submitter().register_buffers(&vectors)? };
        self.pieces = pieces;
        Ok(())
    }

    /// Registers the file of the first transfer.
    fn meet(&mut self, transfer: &Transfer) {
        if !std::mem::take(&mut self.registers) {
            return;
        }
        let Ok(descriptor) = transfer.file.descriptor() else {
            return;
        };
        // Old kernels refuse; it is not needed.
        if self.ring.submitter().register_files(&[descriptor]).is_ok() {
            self.file = Some(Arc::clone(&transfer.file));
        }
    }

    /// The ring entry of a transfer.
    fn entry(&self, transfer: &Transfer) -> io::Result<squeue::Entry> {
        let met = |file: &Arc<DiskFile>| Arc::ptr_eq(file, &transfer.file);
        let (number, how) = if !transfer.unaligned && self.file.as_ref().is_some_and(met) {
            (0, squeue::Flags::FIXED_FILE)
        } else {
            (transfer.descriptor()?, squeue::Flags::empty())
        };
        let file = types::Fd(number);
        let pointer = transfer.pointer.0;
        let len = transfer.len as u32;
        let offset = transfer.offset;
        let within = |piece: &Region| piece.holds(pointer as usize, transfer.len);
        let piece = self
            .pieces
            .iter()
            .position(within)
            .map(|index| index as u16);
        let entry = match (transfer.direction, piece) {
            (Direction::Read, Some(piece)) => opcode::ReadFixed::new(file, pointer, len, piece)
                .offset(offset)
                .build(),
            (Direction::Read, None) => opcode::Read::new(file, pointer, len).offset(offset).build(),
            (write, Some(piece)) => opcode::WriteFixed::new(file, pointer, len, piece)
                .offset(offset)
                .rw_flags(flags(write))
                .build(),
            (write, None) => opcode::Write::new(file, pointer, len)
                .offset(offset)
                .rw_flags(flags(write))
                .build(),
        };
        Ok(entry.flags(how))
    }

    fn push(&mut self, slot: usize, entry: squeue::Entry) {
        let entry = entry.user_data(slot as u64);
        // SAFETY: the memory is owned by the scheduler, and the descriptor kept open by
        // the transfer in the slot, until the entry was answered.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.expect("the ring has room for one entry a slot");
        self.in_kernel += 1;
    }

    /// Enters the kernel, and waits there for so many completions.
    fn enter(&mut self, answers: usize) {
        match self.ring.submit_and_wait(answers) {
            Ok(_) => {}
            // Full for the moment, or a signal: the caller handles what there is and comes back.
            Err(error) if is_transient(&error) => {}
            // The ring is lost while the kernel may still write to memory that a panic
            // would free.
            Err(error) => {
                eprintln!("io_uring_enter: {error}");
                std::process::abort();
            }
        }
    }

    /// The outcome of a completion; `None` if the slot continues.
    fn answered(&mut self, slot: usize, answer: io::Result<usize>) -> Option<Outcome> {
        let Slot { transfer, written } = &mut self.slots[slot];
        let asked = transfer.as_ref().expect("an answer is to a transfer");
        let result = match (written.take(), answer) {
            (Some(moved), answer) => answer
                .or_else(|error| page_cache::written_back(error).map(|()| 0))
                .map(|_| moved),
            (None, Ok(moved)) if moved > 0 && asked.cached() && asked.direction.is_write() => {
                *written = Some(moved);
                let descriptor = asked.descriptor().expect("just used");
                let entry = opcode::SyncFileRange::new(types::Fd(descriptor), moved as u32)
                    .offset(asked.offset)
                    .flags(page_cache::WRITE_BACK)
                    .build();
                self.push(slot, entry);
                return None;
            }
            (None, answer) => answer,
        };
        if let (true, Ok(moved @ 1..), Ok(descriptor)) =
            (asked.cached(), &result, asked.descriptor())
        {
            page_cache::forget(descriptor, asked.offset, *moved);
        }
        *transfer = None;
        Some((slot, result))
    }
}

impl Drop for Uring {
    /// A ring is freed some time after it was closed. Its file should not stay open until then,
    /// since its file system could not be unmounted.
    fn drop(&mut self) {
        if self.file.is_some() {
            let _ = self.ring.submitter().unregister_files();
        }
    }
}

impl Backend for Uring {
    fn start(&mut self, slot: usize, transfer: Transfer) {
        self.meet(&transfer);
        match self.entry(&transfer) {
            Ok(entry) => {
                self.slots[slot].transfer = Some(transfer);
                self.push(slot, entry);
            }
            Err(error) => self.ready.push_back((slot, Err(error))),
        }
    }

    fn submit(&mut self) {
        let entries = self.ring.submission();
        // The second: some completions are delivered only when the thread enters the kernel.
        let needed = !entries.is_empty() || entries.taskrun();
        drop(entries);
        if needed {
            self.enter(0);
        }
    }

    fn wait(&mut self) {
        let answered = !self.ready.is_empty() || !self.ring.completion().is_empty();
        if answered || self.in_kernel == 0 {
            self.submit()
        } else {
            self.enter(1)
        }
    }

    fn take(&mut self) -> Option<Outcome> {
        loop {
            if let Some(outcome) = self.ready.pop_front() {
                return Some(outcome);
            }
            let answer = self.ring.completion().next()?;
            self.in_kernel -= 1;
            let result = match answer.result() {
                error @ ..0 => Err(io::Error::from_raw_os_error(-error)),
                moved => Ok(moved as usize),
            };
            if let Some(outcome) = self.answered(answer.user_data() as usize, result) {
                return Some(outcome);
            }
        }
    }

    fn engine(&self) -> &'static str {
        "io_uring"
    }

    fn registered(&self) -> bool {
        !self.pieces.is_empty()
    }
}

/// A ring that does not interrupt the thread at completions: the thread asks. Older kernels have
/// plain rings.
///
/// A deferred ring handles completions only when its thread waits for them. That costs the least
/// for small transfers, and delays large ones too long. It serves no other thread: queues are not
/// `Send`.
fn build(depth: usize, deferred: bool) -> io::Result<IoUring> {
    let entries = u32::try_from(depth).unwrap_or(u32::MAX);
    let mut bound = IoUring::builder();
    bound.setup_single_issuer().setup_defer_taskrun();
    let mut quiet = IoUring::builder();
    quiet.setup_coop_taskrun().setup_taskrun_flag();
    let preferred = [bound, quiet, IoUring::builder()];
    let skipped = usize::from(!deferred);
    let mut built = preferred[skipped].build(entries);
    for builder in &preferred[skipped + 1..] {
        match &built {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                built = builder.build(entries);
            }
            _ => break,
        }
    }
    built
}

fn pieces_of(region: &Region) -> impl Iterator<Item = Region> {
    let Region { start, len } = *region;
    (0..len).step_by(LARGEST_PIECE).map(move |done| Region {
        start: start + done,
        len: LARGEST_PIECE.min(len - done),
    })
}

/// Adds the name of the call.
pub(crate) fn with_call_name(call: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{call}: {error}"))
}

fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)
    )
}
