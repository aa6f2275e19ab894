//! One block of memory for the graphs of a job, which run one after another.
//!
//! All buffers of a run are slots of one anonymous mapping: its size is the job's budget, it can
//! be registered with a ring, pages that one graph touched serve the next, and it is given back
//! whole. Huge pages are asked for, and the mapping made of whole ones: a sort touches its
//! partition in key order, which is random order to the page tables, and a device takes a transfer
//! out of small pages in several requests, which halves the rate of one at a time.
#![allow(unsafe_code)] // The edge to the kernel's memory: mmap, madvise, munmap.

use std::io;

/// Alignment of the arena and of every slot in it: what direct I/O asks for on any device we know.
pub const ALIGNMENT: usize = 4096;

/// What a huge page is on most machines.
const HUGE_PAGE: usize = 2 << 20;

/// A private anonymous mapping, unmapped on drop.
#[derive(Debug)]
pub struct Arena {
    start: usize,
    bytes: usize,
    mapped: usize, // bytes, in whole huge pages
}

impl Arena {
    /// Maps `bytes` (rounded up to the alignment) of zeroed memory; no page is touched yet.
    ///
    /// # Errors
    /// The kernel's refusal, usually `ENOMEM`.
    pub fn map(bytes: usize) -> io::Result<Self> {
        let bytes = bytes.next_multiple_of(ALIGNMENT).max(ALIGNMENT);
        let mapped = bytes.next_multiple_of(HUGE_PAGE);
        // One more, of which the kernel is given back what lies before and after whole ones.
        let spacious = mapped + HUGE_PAGE;
        // SAFETY: an anonymous private mapping at an address of the kernel's choice touches no
        // memory that anyone else owns.
        let found = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                spacious,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if found == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = (found as usize).next_multiple_of(HUGE_PAGE);
        let before = start - found as usize;
        // SAFETY: what is unmapped lies within the mapping just made, before and after what is
        // kept. The advice is no more than that: a refusal costs speed, so no result is needed.
        unsafe {
            if before > 0 {
                libc::munmap(found, before);
            }
            if before < HUGE_PAGE {
                libc::munmap((start + mapped) as *mut libc::c_void, HUGE_PAGE - before);
            }
            libc::madvise(start as *mut libc::c_void, mapped, libc::MADV_HUGEPAGE);
        }
        Ok(Self {
            start,
            bytes,
            mapped,
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
        unsafe { libc::munmap(self.start as *mut libc::c_void, self.mapped) };
    }
}
