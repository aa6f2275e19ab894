//! One block of memory for the graphs of a job, which run one after another.
//!
//! All buffers of a run are slots of one anonymous mapping. Its size is the job's budget, it can be
//! registered with a ring, and pages touched by one graph serve the next. The mapping consists of
//! whole huge pages: a sort touches its partition in key order, which is random to the page tables,
//! and a device splits a transfer out of small pages into several requests, which halves the rate
//! at queue depth 1.
#![allow(unsafe_code)] // The edge to the kernel's memory: mmap, madvise, munmap.

use std::io;

/// Alignment of the arena and of every slot: what direct I/O needs on the devices we know.
pub const ALIGNMENT: usize = 4096;

/// Size of a huge page on most machines.
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
        // One huge page more; what lies before and after the whole ones is unmapped again.
        let spacious = mapped + HUGE_PAGE;
        // SAFETY: an anonymous private mapping at an address that the kernel chooses touches no
        // memory of anyone else.
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
        // SAFETY: the unmapped ranges lie within the new mapping, outside of what is kept. The
        // advice may be refused, which costs speed only.
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

    /// Returns the pages from `offset` on to the kernel; their content is lost.
    ///
    /// No slot in use may lie there.
    pub(crate) fn release_from(&self, offset: usize) {
        let offset = offset.next_multiple_of(ALIGNMENT);
        if offset < self.bytes {
            // SAFETY: the range lies within the mapping, and no slot in use lies in it; its pages
            // read as zeros from now on. The advice may be refused, which costs memory only.
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
        // SAFETY: `map` mapped the range, and every slot keeps the arena alive, so nobody uses it
        // any more.
        unsafe { libc::munmap(self.start as *mut libc::c_void, self.mapped) };
    }
}
