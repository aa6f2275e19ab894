//! One block of memory for the graphs of a job, which run one after another.
//!
//! All buffers of a run are slots of one anonymous mapping: its size is the job's budget, it can
//! be registered with a ring, pages that one graph touched serve the next, and it is given back whole. Huge pages are asked for, since a
//! sort touches its partition in key order, which is random order to the page tables.
#![allow(unsafe_code)] // The edge to the kernel's memory: mmap, madvise, munmap.

use std::io;

/// Alignment of the arena and of every slot in it: what direct I/O asks for on any device we know.
pub const ALIGNMENT: usize = 4096;

/// A private anonymous mapping, unmapped on drop.
#[derive(Debug)]
pub struct Arena {
    start: usize,
    bytes: usize,
}

impl Arena {
    /// Maps `bytes` (rounded up to the alignment) of zeroed memory; no page is touched yet.
    ///
    /// # Errors
    /// The kernel's refusal, usually `ENOMEM`.
    pub fn map(bytes: usize) -> io::Result<Self> {
        let bytes = bytes.next_multiple_of(ALIGNMENT).max(ALIGNMENT);
        // SAFETY: an anonymous private mapping at an address of the kernel's choice touches no
        // memory that anyone else owns.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the range is the mapping just made. Advice only: a refusal costs speed, so the
        // result is not needed.
        unsafe { libc::madvise(start, bytes, libc::MADV_HUGEPAGE) };
        Ok(Self {
            start: start as usize,
            bytes,
        })
    }

    /// Gives the kernel back the pages from `offset` on, whose content is lost.
    ///
    /// The caller sees to it that no slot in use lies there.
    pub(crate) fn release_from(&self, offset: usize) {
        let offset = offset.next_multiple_of(ALIGNMENT);
        if offset < self.bytes {
            // SAFETY: the range lies within the mapping; its pages read as zeros from now on, and
            // no slot in use lies there. Advice only: a refusal costs memory, not correctness.
            unsafe {
                let start = (self.start + offset) as *mut libc::c_void;
                libc::madvise(start, self.bytes - offset, libc::MADV_DONTNEED);
            }
        }
    }

    /// Address of the first byte.
    #[must_use]
    pub fn start(&self) -> usize {
        self.start
    }

    /// Length of the mapping in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `map` and every slot holds the arena alive, so nobody
        // looks at it any more.
        unsafe { libc::munmap(self.start as *mut libc::c_void, self.bytes) };
    }
}
