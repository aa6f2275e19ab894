//! Binary records: ten pieces of ten bytes, each the high 80 bits of one of the record's ten
//! pseudo-random numbers under a mask of its own.
//!
//! The first mask is zero, so the key is the high 80 bits of the record's own number.

use super::random::Window;
use super::record::Record;

/// The mask of each piece.
const MASKS: Window = [
    0,
    0xF0E8_E4E2_E1D8_D4D2_D1CC,
    0xCAC9_C6C5_C3B8_B4B2_B1AC,
    0xAAA9_A6A5_A39C_9A99_9695,
    0x938E_8D8B_8778_7472_716C,
    0x6A69_6665_635C_5A59_5655,
    0x534E_4D4B_473C_3A39_3635,
    0x332E_2D2B_271E_1D1B_170F,
    0xC8C4_C2C1_9894_9291_8CE0,
    0x170F_332E_2D2B_271E_1D1B,
];

/// Writes a record.
#[inline]
pub(super) fn write(record: &mut Record, _number: u128, window: &Window) {
    let (pieces, _) = record.as_chunks_mut::<10>();
    for ((piece, random), mask) in pieces.iter_mut().zip(window).zip(MASKS) {
        let bytes = (random ^ (mask << 48)).to_be_bytes();
        piece.copy_from_slice(&bytes[..10]);
    }
}
