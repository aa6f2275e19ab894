//! Skewed keys: three records of four start with a prefix that many records share.
//!
//! The prefix hangs on the magnitude of the record's number, so that each doubling of the input
//! brings one more heavy prefix, shared by half the records. How much of the prefix a record takes
//! is drawn from its pseudo-random number: in a binary record 0 to 48 bits, in an ASCII record 0 to
//! 6 characters. `gensort` keeps the prefixes in tables; they are the starts of the plain keys of
//! records 0 to 128.

use super::ascii;
use super::random::Random;
use super::record::Record;

/// Bytes in a prefix.
const PREFIX_BYTES: usize = 6;
const PREFIX_BITS: u32 = 8 * PREFIX_BYTES as u32;
/// A prefix for each magnitude.
const PREFIXES: usize = 129;

/// The prefixes of binary keys, big-endian, in the low 48 bits.
static BINARY: [u64; PREFIXES] = {
    let mut random = Random::of_record(0);
    let mut prefixes = [0; PREFIXES];
    let mut index = 0;
    while index < PREFIXES {
        prefixes[index] = (random.next() >> (u128::BITS - PREFIX_BITS)) as u64;
        index += 1;
    }
    prefixes
};

/// The prefixes of ASCII keys.
static ASCII: [[u8; PREFIX_BYTES]; PREFIXES] = {
    let mut random = Random::of_record(0);
    let mut prefixes = [[0; PREFIX_BYTES]; PREFIXES];
    let mut index = 0;
    while index < PREFIXES {
        let [a, b, c, d, e, f, ..] = ascii::key(random.next());
        prefixes[index] = [a, b, c, d, e, f];
        index += 1;
    }
    prefixes
};

/// Puts the high bits of the prefix over those of a binary record's key.
#[inline]
pub(super) fn binary(record: &mut Record, number: u128, random: u128) {
    let bits = match (random >> 32) as u32 & 0x3F {
        drawn @ 0..=PREFIX_BITS => drawn,
        _ => 0,
    };
    let plain = (random >> (u128::BITS - PREFIX_BITS)) as u64;
    let kept = (1u64 << (PREFIX_BITS - bits)) - 1;
    let skewed = (BINARY[magnitude(number)] & !kept) | (plain & kept);
    record[..PREFIX_BYTES].copy_from_slice(&skewed.to_be_bytes()[8 - PREFIX_BYTES..]);
}

/// Puts the first characters of the prefix over those of an ASCII record's key.
#[inline]
pub(super) fn ascii(record: &mut Record, number: u128, random: u128) {
    let characters = match (random >> 32) as usize & 0x7 {
        drawn @ 0..=PREFIX_BYTES => drawn,
        _ => 0,
    };
    record[..characters].copy_from_slice(&ASCII[magnitude(number)][..characters]);
}

/// The significant bits of a record's number, as `gensort` counts them: it takes any of the four
/// highest bits of either 64-bit half for the highest.
#[inline]
fn magnitude(number: u128) -> usize {
    match u128::BITS - number.leading_zeros() {
        61..=64 => 64,
        125..=128 => 128,
        bits => bits as usize,
    }
}
