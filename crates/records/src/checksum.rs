//! The sort benchmark's checksum: the sum of the CRC-32 of every record.
//!
//! The CRC-32 is zlib's (polynomial 0x04C11DB7, reflected, inverted before and after). `valsort`
//! adds the CRCs as 128-bit integers, so the sum does not depend on the order of the records, and
//! sums of parts add up to the sum of the whole.

#[cfg(target_arch = "x86_64")]
use crate::crc_folding;

/// The CRC-32 of one record.
#[inline]
pub fn crc32(record: &[u8]) -> u32 {
    crc32fast::hash(record)
}

/// The sum of the CRC-32 of each record of `record_bytes` bytes.
///
/// # Panics
///
/// When `records` is not a whole number of records.
pub fn checksum(records: &[u8], record_bytes: usize) -> u128 {
    let each = records.chunks_exact(record_bytes);
    assert!(each.remainder().is_empty(), "a record is cut short");
    #[cfg(target_arch = "x86_64")]
    if record_bytes >= crc_folding::LEAST_BYTES && crc_folding::is_possible() {
        // SAFETY: this processor has what it takes.
        #[allow(unsafe_code)]
        return unsafe { crc_folding::checksum(records, record_bytes) };
    }
    each.map(|record| u128::from(crc32(record))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The CRC-32 by its definition, a bit at a time.
    fn crc32_by_bits(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(!0, |crc: u32, &byte| {
            (0..8).fold(crc ^ u32::from(byte), |crc, _| {
                (crc >> 1) ^ (0xEDB8_8320 * (crc & 1))
            })
        })
    }

    #[test]
    fn the_check_value_of_the_crc_catalogue() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    }

    #[test]
    #[should_panic(expected = "cut short")]
    fn a_record_cut_short_is_refused() {
        checksum(&[0; 199], 100);
    }

    proptest! {
        #[test]
        fn every_length_agrees_with_the_definition(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            prop_assert_eq!(crc32(&bytes), crc32_by_bits(&bytes));
        }

        #[test]
        fn the_sum_is_over_the_records(bytes in prop::collection::vec(any::<u8>(), 0..600), record_bytes in 1usize..300) {
            let whole = &bytes[..bytes.len() / record_bytes * record_bytes];
            let sum: u128 = whole.chunks(record_bytes).map(|record| u128::from(crc32_by_bits(record))).sum();
            prop_assert_eq!(checksum(whole, record_bytes), sum);
        }
    }
}
