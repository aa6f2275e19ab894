//! Memory that the kernel may write to while nobody else looks at it.
//!
//! A queue owns the memory of a request from submission to completion, so the
//! borrow checker sees to it that nobody touches it meanwhile. What the compiler
//! cannot see is that the bytes stay where they are when their owner is moved
//! into the queue; that is the promise of [`Memory`].

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

/// A range of addresses that a ring may register with the kernel: the arena that
/// the buffers lie in. It has to stay mapped while a queue made with it lives,
/// or transfers go to the pages that were there before.
///
/// Best made of large pages (`madvise(MADV_HUGEPAGE)` before it is touched). A disk
/// takes only so many pieces of memory in one request, often 254 or fewer; a megabyte
/// of small pages is 256 pieces, which the kernel then sends as two requests. Measured
/// on such a disk, large pages doubled the throughput of reads.
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
