//! Parts of a buffer, so that several workers fill one buffer at once.
//!
//! Several requests fetch a chunk of an object straight to its final place (MATE-EC2's threaded
//! retrieval). The worker that finishes last gets the whole buffer back.
#![allow(unsafe_code)] // Disjoint slices of one slot, owned by several threads.

use std::sync::Arc;

use crate::buffer::Buffer;

/// A range of a buffer's slot that one worker owns.
#[derive(Debug)]
pub struct BufferPart {
    whole: Arc<Buffer>,
    start: usize,
    len: usize,
}

impl BufferPart {
    /// Divides a buffer's payload into parts of `len` bytes; the last may be shorter.
    ///
    /// # Panics
    /// When `len` is 0, or the payload does not fit into the slot: bugs of the caller.
    #[must_use]
    pub fn divide(mut whole: Buffer, len: usize) -> Vec<Self> {
        assert!(len > 0, "a part has a byte at least");
        let (head, bytes) = (whole.head, whole.len);
        let start = whole.slot_mut()[head..head + bytes].as_mut_ptr() as usize;
        let whole = Arc::new(whole);
        (0..bytes)
            .step_by(len)
            .map(|at| Self {
                whole: Arc::clone(&whole),
                start: start + at,
                len: len.min(bytes - at),
            })
            .collect()
    }

    /// Its memory.
    #[must_use]
    pub fn memory(&mut self) -> &mut [u8] {
        // SAFETY: parts do not overlap, nobody reads the buffer while a part of it exists, and
        // `whole` keeps the slot.
        unsafe { std::slice::from_raw_parts_mut(self.start as *mut u8, self.len) }
    }

    /// Ends the use of the part; gives the buffer if it was the last part.
    #[must_use]
    pub fn join(self) -> Option<Buffer> {
        Arc::into_inner(self.whole)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use proptest::prelude::*;

    use super::*;
    use crate::arena::{ALIGNMENT, Arena};
    use crate::buffer::Pool;

    proptest! {
        #[test]
        fn all_fill_their_part_and_one_has_the_whole(
            head in 0..ALIGNMENT, bytes in 1..3 * ALIGNMENT, len in 1..3 * ALIGNMENT,
        ) {
            let arena = Arc::new(Arena::map(4 * ALIGNMENT).expect("memory"));
            let pool = Pool::carve(&arena, 0, 1, 4 * ALIGNMENT);
            let mut buffer = pool.take().expect("a slot");
            (buffer.head, buffer.len, buffer.number) = (head, bytes, 7);
            let parts = BufferPart::divide(buffer, len);
            prop_assert_eq!(parts.len(), bytes.div_ceil(len));
            let wholes = thread::scope(|scope| {
                let fill = |(number, mut part): (usize, BufferPart)| {
                    part.memory().fill(number as u8);
                    part.join()
                };
                let threads: Vec<_> = parts
                    .into_iter()
                    .enumerate()
                    .map(|one| scope.spawn(move || fill(one)))
                    .collect();
                let joined = threads.into_iter().filter_map(|one| one.join().expect("no panic"));
                joined.collect::<Vec<_>>()
            });
            prop_assert_eq!(wholes.len(), 1);
            let expected: Vec<u8> = (0..bytes).map(|at| (at / len) as u8).collect();
            prop_assert_eq!((wholes[0].payload(), wholes[0].number), (&expected[..], 7));
            prop_assert!(pool.take().is_none());
            drop(wholes);
            prop_assert!(pool.take().is_some());
        }
    }
}
