//! Pools of equal slots, and the buffers that own one slot each.
//!
//! A stage that makes buffers has its own pool, so an upstream stage can never take the memory that
//! a downstream stage needs: a chain of private pools cannot deadlock. A buffer returns its slot
//! when it is dropped, wherever that happens.
#![allow(unsafe_code)] // The one place where arena memory becomes slices.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::arena::{ALIGNMENT, Arena};
use crate::quiet_condvar::QuietCondvar;

/// Equal slots of one arena.
#[derive(Debug)]
pub struct Pool {
    _arena: Arc<Arena>, // keeps the slots mapped
    start: usize,
    bytes: usize,
    slot_bytes: usize,
    free: Mutex<Vec<usize>>, // addresses of free slots
    returned: QuietCondvar,
}

impl Pool {
    /// Carves `slots` slots of `slot_bytes` each from `arena`, beginning `at` bytes into it.
    ///
    /// # Panics
    /// When the slots do not fit into the arena or would not be aligned: a bug of the caller.
    #[must_use]
    pub fn carve(arena: &Arc<Arena>, at: usize, slots: usize, slot_bytes: usize) -> Arc<Self> {
        assert!(at.is_multiple_of(ALIGNMENT) && slot_bytes.is_multiple_of(ALIGNMENT));
        assert!(
            at + slots * slot_bytes <= arena.bytes(),
            "the pool does not fit into its arena"
        );
        let first = arena.start() + at;
        let free = (0..slots)
            .rev()
            .map(|slot| first + slot * slot_bytes)
            .collect();
        Arc::new(Self {
            _arena: Arc::clone(arena),
            start: first,
            bytes: slots * slot_bytes,
            slot_bytes,
            free: Mutex::new(free),
            returned: QuietCondvar::default(),
        })
    }

    /// Address and length of all slots together.
    #[must_use]
    pub fn region(&self) -> (usize, usize) {
        (self.start, self.bytes)
    }

    /// An empty buffer, or `None` when every slot is in use.
    #[must_use]
    pub fn take(self: &Arc<Self>) -> Option<Buffer> {
        let start = self.lock().pop()?;
        Some(Buffer::at(start, self))
    }

    /// An empty buffer as soon as one is free; `None` once `stopped` returns true.
    pub fn wait(self: &Arc<Self>, stopped: impl Fn() -> bool) -> Option<Buffer> {
        let mut free = self.lock();
        loop {
            if stopped() {
                return None;
            }
            if let Some(start) = free.pop() {
                return Some(Buffer::at(start, self));
            }
            free = self.returned.wait(free);
        }
    }

    /// Wakes all waiters, so that they check `stopped` again.
    pub fn wake(&self) {
        self.returned.signal_all(self.lock());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<usize>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A slot of memory and the description of its payload. One worker owns it at a time.
pub struct Buffer {
    start: usize,
    pool: Arc<Pool>,
    /// Where the payload begins in the slot (direct reads begin at an aligned offset before it).
    pub head: usize,
    /// Payload length in bytes.
    pub len: usize,
    /// The device or peer that the buffer belongs to; routed edges choose the queue by it.
    pub lane: usize,
    /// Number of the partition, run or file that the payload belongs to.
    pub number: usize,
    /// Where the payload begins in its file or stream, in bytes.
    pub offset: u64,
    /// Number of the peer that sent it; 0 if it did not come over the network.
    pub peer: usize,
    /// Whether it is the last of a file whose length was not known before.
    pub is_last: bool,
}

impl Buffer {
    fn at(start: usize, pool: &Arc<Pool>) -> Self {
        Self {
            start,
            pool: Arc::clone(pool),
            head: 0,
            len: 0,
            lane: 0,
            number: 0,
            offset: 0,
            peer: 0,
            is_last: false,
        }
    }

    /// Bytes that the slot can hold.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.pool.slot_bytes
    }

    /// The payload.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.slot()[self.head..self.head + self.len]
    }

    /// The whole slot, read only.
    #[must_use]
    pub fn slot(&self) -> &[u8] {
        // SAFETY: the slot lies in the arena that the pool keeps alive, was zeroed by the kernel,
        // and is owned by this buffer alone until drop.
        unsafe { std::slice::from_raw_parts(self.start as *const u8, self.pool.slot_bytes) }
    }

    /// The whole slot.
    #[must_use]
    pub fn slot_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `slot`; `&mut self` makes the borrow exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start as *mut u8, self.pool.slot_bytes) }
    }

    /// Appends `bytes` to the payload.
    ///
    /// # Panics
    /// When they do not fit: a bug of the caller.
    #[inline]
    pub fn append(&mut self, bytes: &[u8]) {
        let end = self.head + self.len;
        self.slot_mut()[end..end + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// Prefetches the first and the last cache line of a part of the slot. Prefetching the lines
    /// between, too, was measured for records of 100 bytes and was no faster.
    #[inline]
    pub fn prefetch(&self, part: std::ops::Range<usize>) {
        debug_assert!(part.end <= self.capacity());
        #[cfg(target_arch = "x86_64")]
        for at in [part.start, part.end.saturating_sub(1)] {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: every x86-64 processor has it, and a prefetch of any address is harmless.
            unsafe { _mm_prefetch::<_MM_HINT_T0>((self.start + at) as *const i8) };
        }
    }

    /// Bytes that can still be appended.
    #[inline]
    #[must_use]
    pub fn room(&self) -> usize {
        self.capacity() - self.head - self.len
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut free = self.pool.lock();
        free.push(self.start);
        self.pool.returned.signal_one(free);
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("head", &self.head)
            .field("len", &self.len)
            .field("lane", &self.lane)
            .field("number", &self.number)
            .field("offset", &self.offset)
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_come_back() {
        let arena = Arc::new(Arena::map(8 * ALIGNMENT).expect("memory"));
        let pool = Pool::carve(&arena, ALIGNMENT, 2, 2 * ALIGNMENT);
        let mut first = pool.take().expect("a slot");
        let second = pool.take().expect("a slot");
        assert!(pool.take().is_none());
        first.append(b"abc");
        assert_eq!(first.payload(), b"abc");
        assert_eq!(second.payload(), b"");
        drop(second);
        assert!(pool.take().is_some());
        assert!(pool.wait(|| true).is_none());
    }

    #[test]
    #[should_panic(expected = "does not fit")]
    fn a_pool_stays_inside_its_arena() {
        let arena = Arc::new(Arena::map(ALIGNMENT).expect("memory"));
        let _pool = Pool::carve(&arena, 0, 2, ALIGNMENT);
    }
}
