//! The CRC-32 of records by carry-less multiplication.
//!
//! A record is a polynomial; its CRC is the remainder of a division by another one. Sixteen bytes
//! are folded into the next sixteen, which keeps the remainder (Gopal et al., "Fast CRC Computation
//! for Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009, bit-reflected). Records of a
//! few blocks overlap in the processor by themselves. Leading zeros change nothing, so a record's
//! first block is padded with them.
#![allow(unsafe_code)] // These instructions are not on every processor.

use std::arch::x86_64::*;

/// Shorter records are not handled here.
pub const LEAST_BYTES: usize = 2 * BLOCK_BYTES;

const BLOCK_BYTES: usize = 16;
/// Remainders of x^(128+32) and x^(128-32), for a block and the next (Gopal et al., table 1,
/// reflected).
const FOLD: (i64, i64) = (0x1_7519_97d0, 0x0_ccaa_009e);
/// Remainder of x^64.
const FOLD_HALF: i64 = 0x1_63cd_6124;
/// The polynomial, and x^64 divided by it.
const POLYNOMIAL: (i64, i64) = (0x1_db71_0641, 0x1_f701_1641);

/// Shuffles that move bytes to the end or the beginning of a block: source places, and 128 for a
/// zero.
static SHIFTS: [u8; 3 * BLOCK_BYTES] = {
    let mut shifts = [128; 3 * BLOCK_BYTES];
    let mut place = 0;
    while place < BLOCK_BYTES {
        shifts[BLOCK_BYTES + place] = place as u8;
        place += 1;
    }
    shifts
};

/// Whether this processor has the instructions.
pub fn is_possible() -> bool {
    is_x86_feature_detected!("pclmulqdq")
        && is_x86_feature_detected!("ssse3")
        && is_x86_feature_detected!("sse4.1")
}

/// The sum of the CRC-32 of each record of `record_bytes` bytes.
#[target_feature(enable = "pclmulqdq,ssse3,sse4.1")]
pub fn checksum(records: &[u8], record_bytes: usize) -> u128 {
    let records = records.chunks_exact(record_bytes);
    records.map(|record| u128::from(crc32(record))).sum()
}

#[inline]
#[target_feature(enable = "pclmulqdq,ssse3,sse4.1")]
fn crc32(record: &[u8]) -> u32 {
    let inverted = _mm_set_epi32(0, 0, 0, !0); // As is the first word of every record.
    let lead = record.len() % BLOCK_BYTES;
    let first = _mm_xor_si128(load(record), inverted);
    let to_end = load(&SHIFTS[lead..]);
    let to_begin = load(&SHIFTS[BLOCK_BYTES + lead..]);
    let rest = &record[lead..];
    let next = _mm_xor_si128(load(rest), _mm_shuffle_epi8(inverted, to_begin));
    let mut folded = fold(_mm_shuffle_epi8(first, to_end), next);
    for block in rest[BLOCK_BYTES..].chunks_exact(BLOCK_BYTES) {
        folded = fold(folded, load(block));
    }
    reduce(folded)
}

#[inline]
#[target_feature(enable = "pclmulqdq,ssse3,sse4.1")]
fn load(bytes: &[u8]) -> __m128i {
    let block: &[u8; BLOCK_BYTES] = bytes.first_chunk().expect("a block");
    // SAFETY: so many bytes are there, wherever they begin.
    unsafe { _mm_loadu_si128(block.as_ptr().cast()) }
}

/// Folds the blocks so far into the next one.
#[inline]
#[target_feature(enable = "pclmulqdq,ssse3,sse4.1")]
fn fold(folded: __m128i, block: __m128i) -> __m128i {
    let keys = _mm_set_epi64x(FOLD.1, FOLD.0);
    let low = _mm_clmulepi64_si128(folded, keys, 0x00);
    let high = _mm_clmulepi64_si128(folded, keys, 0x11);
    _mm_xor_si128(block, _mm_xor_si128(low, high))
}

/// The remainder of a block: its halves folded, then Barrett's reduction.
#[inline]
#[target_feature(enable = "pclmulqdq,ssse3,sse4.1")]
fn reduce(block: __m128i) -> u32 {
    let word = _mm_set_epi32(0, 0, 0, !0);
    let keys = _mm_set_epi64x(FOLD.1, FOLD.0);
    let half = _mm_xor_si128(
        _mm_clmulepi64_si128(block, keys, 0x10),
        _mm_srli_si128(block, 8),
    );
    let keys = _mm_set_epi64x(0, FOLD_HALF);
    let rest = _mm_xor_si128(
        _mm_clmulepi64_si128(_mm_and_si128(half, word), keys, 0x00),
        _mm_srli_si128(half, 4),
    );
    let keys = _mm_set_epi64x(POLYNOMIAL.1, POLYNOMIAL.0);
    let times = _mm_clmulepi64_si128(_mm_and_si128(rest, word), keys, 0x10);
    let whole = _mm_clmulepi64_si128(_mm_and_si128(times, word), keys, 0x00);
    !(_mm_extract_epi32(_mm_xor_si128(rest, whole), 1) as u32)
}
