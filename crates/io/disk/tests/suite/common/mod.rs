//! Memory for tests: blocks of an aligned arena.

#![allow(
    unsafe_code,
    reason = "memory by address, as a program that uses the crate has it"
)]
#![allow(dead_code, reason = "not everybody who includes this needs all of it")]

use std::alloc::{Layout, alloc, dealloc};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tonnage_disk::{Memory, Region};

/// Aligned for any direct file.
const ALIGNMENT: usize = 4096;

/// What arenas are made of, if the kernel has such pages: see [`Region`].
const LARGE_PAGE: usize = 2 << 20;

/// Memory that blocks are cut from, never to be used twice.
pub struct Arena {
    start: usize,
    layout: Layout,
    used: AtomicUsize,
}

impl Arena {
    pub fn new(bytes: usize) -> Arc<Arena> {
        let bytes = bytes.max(1).next_multiple_of(LARGE_PAGE);
        let layout = Layout::from_size_align(bytes, LARGE_PAGE).unwrap();
        // SAFETY: the layout is not empty; the bytes are set before anybody reads them.
        let start = unsafe {
            let start = alloc(layout);
            assert!(!start.is_null(), "no memory");
            libc::madvise(start.cast(), bytes, libc::MADV_HUGEPAGE);
            start.write_bytes(0, bytes);
            start.expose_provenance()
        };
        Arc::new(Arena {
            start,
            layout,
            used: AtomicUsize::new(0),
        })
    }

    pub fn region(&self) -> Region {
        Region {
            start: self.start,
            len: self.layout.size(),
        }
    }

    pub fn block(self: &Arc<Self>, len: usize) -> Block {
        let at = self
            .used
            .fetch_add(len.next_multiple_of(ALIGNMENT), Ordering::Relaxed);
        assert!(at + len <= self.layout.size(), "the arena is used up");
        Block {
            start: self.start + at,
            len,
            _arena: self.clone(),
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout; every block holds the arena.
        unsafe {
            dealloc(
                std::ptr::with_exposed_provenance_mut(self.start),
                self.layout,
            )
        };
    }
}

/// A part of an arena that nobody else has.
pub struct Block {
    start: usize,
    len: usize,
    /// Keeps the bytes.
    _arena: Arc<Arena>,
}

impl Block {
    /// A block of an arena of its own.
    pub fn new(len: usize) -> Block {
        Arena::new(len).block(len)
    }
}

// SAFETY: the bytes are initialised, belong to this block alone and stay where they
// are until the last block drops the arena.
unsafe impl Memory for Block {
    fn as_mut_ptr(&mut self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.start)
    }

    fn capacity(&self) -> usize {
        self.len
    }
}

impl Deref for Block {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: initialised, and the block's alone.
        unsafe {
            std::slice::from_raw_parts(std::ptr::with_exposed_provenance(self.start), self.len)
        }
    }
}

impl DerefMut for Block {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: initialised, and the block's alone.
        unsafe { std::slice::from_raw_parts_mut(self.as_mut_ptr(), self.len) }
    }
}
