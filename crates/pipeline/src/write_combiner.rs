//! Write combining: small writes to many buffers are collected in the cache and leave it as whole
//! cache lines.
//!
//! A store to a line that is not in the cache first reads the line from memory. Copying short
//! records to the ends of many buffers does little else. So each buffer gets a few cache-resident
//! lines here; full lines go to the buffer by non-temporal stores, which need no read (Wassenberg
//! and Sanders, "Engineering a Multi-core Radix Sort", Euro-Par 2011, section 3.1).
#![allow(unsafe_code)] // Stores past the caches have no safe form.

use crate::buffer::Buffer;

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;
/// Lines written to a buffer at once: enough for the memory to combine them, few enough that the
/// lines of many hundred buffers stay in the cache.
const LINES: usize = 8;

#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line([u8; LINE_BYTES]);

/// Cached lines for a number of places; each place serves one buffer at a time.
pub struct WriteCombiner {
    lines: Vec<Line>,
    held: Vec<usize>, // bytes at each place
    place_lines: usize,
}

impl WriteCombiner {
    /// So many places, for pieces of at most `piece_bytes` bytes.
    #[must_use]
    pub fn new(places: usize, piece_bytes: usize) -> Self {
        let place_lines = place_lines(piece_bytes);
        Self {
            lines: vec![Line([0; LINE_BYTES]); places * place_lines],
            held: vec![0; places],
            place_lines,
        }
    }

    /// Bytes of memory for so many places.
    #[must_use]
    pub fn memory(places: usize, piece_bytes: usize) -> usize {
        places * (place_lines(piece_bytes) * LINE_BYTES + std::mem::size_of::<usize>())
    }

    /// Bytes of a place that its buffer does not have yet.
    #[inline]
    #[must_use]
    pub fn staged_bytes(&self, place: usize) -> usize {
        self.held[place]
    }

    /// Appends a piece to a place; it reaches the buffer now or at a later call.
    ///
    /// # Panics
    /// When the piece is longer than announced, or does not fit into the buffer: a bug of the
    /// caller.
    #[inline]
    pub fn append(&mut self, place: usize, piece: &[u8], to: &mut Buffer) {
        self.fill(place, piece.len(), to, |room| room.copy_from_slice(piece));
    }

    /// As `append`, for a piece of so many bytes that is made in place.
    ///
    /// # Panics
    /// As `append`.
    #[inline]
    pub fn fill(
        &mut self,
        place: usize,
        len: usize,
        to: &mut Buffer,
        make: impl FnOnce(&mut [u8]),
    ) {
        let held = self.held[place];
        let all = held + len;
        make(&mut self.bytes(place)[held..all]);
        self.held[place] = all;
        if all >= LINES * LINE_BYTES {
            self.hand_on(place, to);
        }
    }

    /// Writes the rest of a place to its buffer; only then may others read the buffer.
    pub fn flush(&mut self, place: usize, to: &mut Buffer) {
        let held = std::mem::take(&mut self.held[place]);
        to.append(&self.bytes(place)[..held]);
        settle();
    }

    /// Writes the whole lines to the buffer.
    fn hand_on(&mut self, place: usize, to: &mut Buffer) {
        let held = self.held[place];
        let whole = held / LINE_BYTES;
        let first = place * self.place_lines;
        let end = to.head + to.len;
        let room = &mut to.slot_mut()[end..end + whole * LINE_BYTES];
        stream(&self.lines[first..first + whole], room);
        to.len += whole * LINE_BYTES;
        self.bytes(place).copy_within(whole * LINE_BYTES..held, 0);
        self.held[place] = held - whole * LINE_BYTES;
    }

    #[inline]
    fn bytes(&mut self, place: usize) -> &mut [u8] {
        let lines = &mut self.lines[place * self.place_lines..][..self.place_lines];
        // SAFETY: a `Line` is LINE_BYTES bytes without gaps, and any bytes are a valid `Line`.
        unsafe {
            std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), lines.len() * LINE_BYTES)
        }
    }
}

impl Drop for WriteCombiner {
    /// Buffers that were not flushed may be filled by others from now on.
    fn drop(&mut self) {
        settle();
    }
}

/// Orders non-temporal stores before later ones, as other threads see them.
fn settle() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every such processor has it.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Room for what is written at once, less a byte, and one piece.
fn place_lines(piece_bytes: usize) -> usize {
    LINES + piece_bytes.div_ceil(LINE_BYTES)
}

/// Copies lines by non-temporal stores.
fn stream(lines: &[Line], to: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{__m128i, _mm_load_si128, _mm_stream_si128};
        assert_eq!(to.len(), lines.len() * LINE_BYTES);
        if to.as_ptr().align_offset(LINE_BYTES) == 0 {
            let from = lines.as_ptr().cast::<__m128i>();
            let to = to.as_mut_ptr().cast::<__m128i>();
            for at in 0..lines.len() * LINE_BYTES / size_of::<__m128i>() {
                // SAFETY: every x86-64 processor has them; both slices have the same length, which
                // is a multiple of 16, and both begin at a cache line.
                unsafe { _mm_stream_si128(to.add(at), _mm_load_si128(from.add(at))) };
            }
            return;
        }
    }
    for (line, to) in lines.iter().zip(to.chunks_exact_mut(LINE_BYTES)) {
        to.copy_from_slice(&line.0);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::arena::{ALIGNMENT, Arena};
    use crate::buffer::Pool;

    proptest! {
        #[test]
        fn buffers_have_all_pieces_in_order(
            pieces in prop::collection::vec((0_usize..3, 0_usize..300), 0..200),
            begin in prop::sample::select(vec![0_usize, 1, 63, 64, 99]),
        ) {
            let room = 300 * 200 / ALIGNMENT * ALIGNMENT + 2 * ALIGNMENT;
            let arena = Arc::new(Arena::map(3 * room).expect("memory"));
            let pool = Pool::carve(&arena, 0, 3, room);
            let mut buffers: Vec<Buffer> = (0..3).filter_map(|_| pool.take()).collect();
            let mut expected = vec![Vec::new(); 3];
            for (buffer, expected) in buffers.iter_mut().zip(&mut expected) {
                // Wherever it begins, at a line or not.
                expected.resize(begin, 1);
                buffer.append(expected);
            }
            let mut combiner = WriteCombiner::new(3, 300);
            for (number, &(place, len)) in pieces.iter().enumerate() {
                let piece = vec![number as u8; len];
                combiner.append(place, &piece, &mut buffers[place]);
                expected[place].extend(piece);
                prop_assert_eq!(buffers[place].len + combiner.staged_bytes(place), expected[place].len());
            }
            for place in 0..3 {
                combiner.flush(place, &mut buffers[place]);
                prop_assert_eq!(buffers[place].payload(), &expected[place][..]);
            }
        }
    }
}
