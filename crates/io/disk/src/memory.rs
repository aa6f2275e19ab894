//! Memory that the kernel may write to while nobody else uses it.
//!
//! A queue owns the memory of a request from submission to completion, so the borrow checker keeps
//! everyone else away. The compiler cannot see that the bytes stay in place when their owner moves
//! into the queue; [`Memory`] promises that.

/// A buffer whose address does not change while it is owned.
///
/// # Safety
///
/// For as long as the value exists, wherever it is moved to:
///
/// - `as_mut_ptr` returns the same address, and `capacity` the same number;
/// - the `capacity` bytes from there are mapped, initialised and writable, and
///   the pointer may be used to access all of them, from any thread;
/// - nothing else reads or writes those bytes unless through this value;
/// - the bytes are freed, unmapped or lent out again only when it is dropped.
pub unsafe trait Memory: Send + 'static {
    /// The address of the first byte.
    fn as_mut_ptr(&mut self) -> *mut u8;

    /// How many bytes may be accessed from there.
    fn capacity(&self) -> usize;
}

/// A range of addresses that a ring may register with the kernel: the arena of the buffers. It has
/// to stay mapped while a queue made with it exists; otherwise transfers go to the old pages.
///
/// Huge pages are best (`madvise(MADV_HUGEPAGE)` before the first touch). A disk accepts only so
/// many pieces of memory in one request, often 254 or fewer, and a megabyte of small pages is 256
/// pieces, which the kernel sends as two requests. On such a disk huge pages doubled the measured
/// throughput of reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Address of the first byte.
    pub start: usize,
    /// Length in bytes.
    pub len: usize,
}

impl Region {
    /// Whether all of `len` bytes at address `start` lie within.
    pub(crate) fn holds(&self, start: usize, len: usize) -> bool {
        start >= self.start && start - self.start + len <= self.len
    }
}

/// An address within the memory of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pointer(pub *mut u8);

// SAFETY: it points into a `Memory`, whose bytes may be accessed from any thread;
// the scheduler owns that memory for as long as the pointer is used.
unsafe impl Send for Pointer {}

impl Pointer {
    /// The address `bytes` further on.
    pub fn add(self, bytes: usize) -> Pointer {
        // `wrapping_add`, so that no promise about bounds has to be made here:
        // the scheduler checks them when a request is submitted.
        Pointer(self.0.wrapping_add(bytes))
    }
}
