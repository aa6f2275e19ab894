//! Hashes of keys: which partition a key belongs to where order does not matter.
//!
//! Eight bytes at a time are mixed into a row's hash by a multiplication and a shift, then the
//! length, so a key of several columns is hashed column by column. The hash is the same on every
//! machine, since the nodes of a job have to agree. It is not keyed: an adversary can fill one
//! partition with keys of his choice.

/// An odd number with random-looking bits (the fraction of the golden ratio).
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes one value of each row into the row's hash: row i has the bytes `offsets[i]` to
/// `offsets[i + 1]` of `data`.
///
/// `None` if an offset lies outside `data` or decreases, or if there is not one more offset than
/// there are rows.
pub fn mix_rows(hashes: &mut [u64], offsets: &[u64], data: &[u8]) -> Option<()> {
    if offsets.len() != hashes.len() + 1 {
        return None;
    }
    for (hash, ends) in hashes.iter_mut().zip(offsets.windows(2)) {
        let value = data.get(usize::try_from(ends[0]).ok()?..usize::try_from(ends[1]).ok()?)?;
        *hash = mixed(*hash, value);
    }
    Some(())
}

fn mixed(hash: u64, value: &[u8]) -> u64 {
    let (words, rest) = value.as_chunks::<8>();
    let hash = words
        .iter()
        .fold(hash, |hash, word| step(hash, u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    step(step(hash, u64::from_le_bytes(last)), value.len() as u64)
}

/// One round of splitmix64's finisher.
const fn step(hash: u64, word: u64) -> u64 {
    let mut mixed = (hash ^ word).wrapping_add(MULTIPLIER);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Multipliers of a row's words: the outputs of splitmix64 from 0 on.
const MULTIPLIERS: [u64; 16] = {
    let mut multipliers = [0; 16];
    let mut place = 0;
    while place < 16 {
        multipliers[place] = step(place as u64, 0) | 1;
        place += 1;
    }
    multipliers
};

/// The hash of one row among millions, whose sum tells whether rows were lost or changed.
///
/// Words are multiplied on their own and added (Lemire and Kaser, "Strongly universal string
/// hashing is fast", 2014), so that the multiplications overlap; the last round makes a sum of
/// rows differ where two rows exchange a word.
#[inline]
#[must_use]
pub fn of_row(row: &[u8]) -> u64 {
    let mut hash = row.len() as u64;
    let (words, rest) = row.as_chunks::<8>();
    for words in words.chunks(MULTIPLIERS.len()) {
        let products = words.iter().zip(&MULTIPLIERS);
        let sum = products.fold(0_u64, |sum, (word, multiplier)| {
            sum.wrapping_add(u64::from_le_bytes(*word).wrapping_mul(*multiplier))
        });
        hash = hash.rotate_left(23) ^ sum;
    }
    step(hash, last_word(row, rest))
}

/// The bytes behind a row's whole words, as a word; read from its last eight bytes, if it has so
/// many, since a copy of a few bytes takes as long as the rest of the row.
#[inline]
fn last_word(row: &[u8], rest: &[u8]) -> u64 {
    match (row.last_chunk::<8>(), rest.len()) {
        (Some(_), 0) => 0,
        (Some(last), bytes) => u64::from_le_bytes(*last) >> (64 - 8 * bytes),
        (None, _) => rest
            .iter()
            .rev()
            .fold(0, |word, &byte| (word << 8) | u64::from(byte)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn hashes(seed: u64, values: &[Vec<u8>]) -> Vec<u64> {
        let mut offsets = vec![0];
        for value in values {
            offsets.push(offsets[offsets.len() - 1] + value.len() as u64);
        }
        let mut hashes = vec![seed; values.len()];
        mix_rows(&mut hashes, &offsets, &values.concat()).expect("offsets that fit");
        hashes
    }

    proptest! {
        #[test]
        fn a_hash_depends_on_its_own_value_alone(
            values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..50),
            seed in any::<u64>(),
        ) {
            let together = hashes(seed, &values);
            for (value, hash) in values.iter().zip(&together) {
                prop_assert_eq!(hashes(seed, std::slice::from_ref(value))[0], *hash);
            }
            let kinds: HashSet<&Vec<u8>> = values.iter().collect();
            prop_assert_eq!(kinds.len(), together.iter().collect::<HashSet<_>>().len());
        }
    }

    /// Nodes of different versions have to agree.
    #[test]
    fn hashes_stay_as_they_are() {
        let values: Vec<Vec<u8>> = vec![b"".to_vec(), b"tonnage".to_vec(), vec![0; 8], vec![0; 9]];
        let expected = [
            0xa706_dd2f_4d19_7e6f,
            0xe384_e858_a833_67a3,
            0xbd44_9c3f_7eb5_0d12,
            0x2eb0_1919_5396_d20b,
        ];
        assert_eq!(hashes(0, &values), expected);
    }

    #[test]
    fn keys_in_a_row_fill_partitions_evenly() {
        let values: Vec<Vec<u8>> = (0_u64..64_000).map(|n| n.to_le_bytes().to_vec()).collect();
        let mut counts = [0_usize; 64];
        for hash in hashes(1, &values) {
            counts[(hash % 64) as usize] += 1;
        }
        // A thousand each, and six deviations.
        assert!(
            counts.iter().all(|count| (810..=1190).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn offsets_that_do_not_fit_are_refused() {
        for offsets in [&[0, 4][..], &[2, 1], &[0], &[0, 1, 2]] {
            assert_eq!(mix_rows(&mut [0], offsets, b"abc"), None, "{offsets:?}");
        }
    }
}
