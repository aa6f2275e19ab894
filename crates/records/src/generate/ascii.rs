//! ASCII records: a key of ten printable characters, the record's number in hexadecimal, a filler
//! from the low 52 bits of the record's pseudo-random number, and a line end.

use super::random::Window;
use super::record::Record;

/// Bytes in a key.
const KEY_BYTES: usize = 10;
/// The printable characters are these many from the space on.
const PRINTABLE: u64 = 95;
const HEXADECIMAL: &[u8; 16] = b"0123456789ABCDEF";

/// Writes a record.
#[inline]
pub(super) fn write(record: &mut Record, number: u128, window: &Window) {
    let random = window[0];
    record[..10].copy_from_slice(&key(random));
    record[10..12].copy_from_slice(b"  ");
    for (digits, byte) in record[12..44]
        .as_chunks_mut()
        .0
        .iter_mut()
        .zip(number.to_be_bytes())
    {
        *digits = [digit(byte >> 4), digit(byte)];
    }
    record[44..46].copy_from_slice(b"  ");
    for (place, digits) in record[46..98].as_chunks_mut().0.iter_mut().enumerate() {
        *digits = [digit((random >> (48 - 4 * place)) as u8); 4];
    }
    record[98..].copy_from_slice(b"\r\n");
}

/// The key made from a pseudo-random number: base-95 digits, lowest first, eight of its high half
/// and two of its low half.
#[inline]
pub(super) const fn key(random: u128) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    let mut rest = (random >> 64) as u64;
    let mut place = 0;
    while place < KEY_BYTES {
        if place == 8 {
            rest = random as u64;
        }
        key[place] = b' ' + (rest % PRINTABLE) as u8;
        rest /= PRINTABLE;
        place += 1;
    }
    key
}

/// The hexadecimal digit of the low four bits.
#[inline]
fn digit(byte: u8) -> u8 {
    HEXADECIMAL[usize::from(byte & 0xF)]
}
