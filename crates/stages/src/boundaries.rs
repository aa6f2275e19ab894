//! Partition boundaries: which partition a key belongs to.
//!
//! Boundaries are quantiles of sampled keys, so partitions are even for any distribution. A key
//! that is so frequent that it covers several quantiles gets partitions of its own, between
//! boundaries "from this key on" and the boundary "after this key". These need no sorting: a sort
//! only copies them. Which of the key's partitions a record goes to depends on the rest of the
//! record alone, so every node decides alike.
//!
//! Lookup: the first 16 bytes of the key, as a number, index a table by their distance from the
//! least boundary. The table leaves a few candidates for a binary search, and is small enough to
//! stay in the cache with the records. Longer keys that equal a boundary in 16 bytes are compared
//! in full.

use serde::{Deserialize, Serialize};
use tonnage_records::Layout;

/// Table entries for each boundary, about.
const PLACES_PER_BOUND: usize = 8;

/// The beginning of a partition: its first key, or the last key before it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bound {
    #[serde(with = "digits")]
    key: Vec<u8>,
    after: bool, // keys greater than `key` instead of those not less
}

/// Bytes as hexadecimal digits.
mod digits {
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;

    pub fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
        to.serialize_str(&digits.collect::<String>())
    }

    pub fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Vec<u8>, D::Error> {
        let digits = String::deserialize(from)?;
        let byte = |at: usize| {
            digits
                .get(at..at + 2)
                .and_then(|two| u8::from_str_radix(two, 16).ok())
        };
        (0..digits.len())
            .step_by(2)
            .map(|at| {
                byte(at).ok_or_else(|| {
                    D::Error::custom("a key must be an even number of hexadecimal digits")
                })
            })
            .collect()
    }
}

/// Where partitions begin and end.
#[derive(Clone, Debug)]
pub struct Boundaries {
    bounds: Vec<Bound>,
    prefixes: Vec<u128>,
    least: u128,     // of the prefixes
    shift: u32,      // how far apart places of the table are, as a power of two
    table: Vec<u32>, // by place: how many bounds have a smaller one
    single: Vec<bool>,
    shares: Vec<u32>, // how many partitions up to this one are of its key alone
    key_offset: usize,
    key_bytes: usize,
    record_bytes: usize,
}

impl Boundaries {
    /// Boundaries of at most `partitions` even partitions, from sampled `keys` laid end to end.
    ///
    /// Fewer come out where the sample is small.
    #[must_use]
    pub fn from_sample(keys: &[u8], layout: &Layout, partitions: usize) -> Self {
        let mut sorted: Vec<&[u8]> = keys.chunks_exact(layout.key_bytes).collect();
        sorted.sort_unstable();
        let mut bounds: Vec<Bound> = Vec::new();
        let quantile = |place: usize| sorted[place * sorted.len() / partitions];
        for place in 1..if sorted.is_empty() { 1 } else { partitions } {
            let key = quantile(place);
            let bound = Bound {
                key: key.to_vec(),
                after: false,
            };
            if bounds.last().is_none_or(|last| *last < bound) {
                bounds.push(bound);
            } else if bounds.last().is_some_and(|last| last.after) {
                bounds.insert(bounds.len() - 1, bound);
            } else {
                bounds.push(Bound {
                    key: key.to_vec(),
                    after: true,
                });
            }
        }
        Self::new(bounds, layout)
    }

    /// Boundaries that another node chose.
    #[must_use]
    pub fn new(bounds: Vec<Bound>, layout: &Layout) -> Self {
        let prefixes: Vec<u128> = bounds.iter().map(|bound| prefix(&bound.key)).collect();
        let (least, greatest) = match &prefixes[..] {
            [least, .., greatest] => (*least, *greatest),
            [only] => (*only, *only),
            [] => (0, 0),
        };
        let places = (PLACES_PER_BOUND * bounds.len()).next_power_of_two();
        let bits = u128::BITS - (greatest - least).leading_zeros();
        let shift = bits.saturating_sub(places.trailing_zeros());
        let mut table = vec![0_u32; places + 1];
        for &prefix in &prefixes {
            table[place_of(prefix, least, shift, places) + 1] += 1;
        }
        for value in 1..table.len() {
            table[value] += table[value - 1];
        }
        let mut single = vec![false; bounds.len() + 1];
        for (place, pair) in bounds.windows(2).enumerate() {
            single[place + 1] = pair[0].key == pair[1].key;
        }
        let mut shares = vec![0; bounds.len() + 1];
        for place in 1..bounds.len() {
            if single[place] {
                shares[place] = shares[place - 1] + 1;
            }
        }
        let Layout {
            record_bytes,
            key_offset,
            key_bytes,
        } = *layout;
        Self {
            shares,
            bounds,
            prefixes,
            least,
            shift,
            table,
            single,
            key_offset,
            key_bytes,
            record_bytes,
        }
    }

    /// What another node needs to build the same boundaries.
    #[must_use]
    pub fn bounds(&self) -> &[Bound] {
        &self.bounds
    }

    /// How many partitions there are.
    #[must_use]
    pub fn partitions(&self) -> usize {
        self.bounds.len() + 1
    }

    /// Whether all keys of this partition are equal.
    #[must_use]
    pub fn is_single(&self, partition: usize) -> bool {
        self.single[partition]
    }

    /// The partition of a record: the number of boundaries that its key has reached.
    #[inline]
    #[must_use]
    pub fn partition_of(&self, record: &[u8]) -> usize {
        debug_assert_eq!(record.len(), self.record_bytes);
        let key = &record[self.key_offset..self.key_offset + self.key_bytes];
        let wanted = prefix(key);
        let place = place_of(wanted, self.least, self.shift, self.table.len() - 1);
        let (low, high) = (self.table[place] as usize, self.table[place + 1] as usize);
        let mut at = low + self.prefixes[low..high].partition_point(|&bound| bound < wanted);
        // Boundaries with the same prefix are compared in full.
        if at < high && self.prefixes[at] == wanted {
            let same = self.prefixes[at..high].partition_point(|&bound| bound == wanted);
            at += self.bounds[at..at + same].partition_point(|bound| bound.is_reached_by(key));
        }
        match self.shares[at] {
            0 | 1 => at,
            shares => at - self.share_of(record, shares),
        }
    }

    /// Chooses one of a frequent key's partitions by the record's bytes outside the key: FNV-1a
    /// over words instead of bytes, since such records are many.
    #[cold]
    fn share_of(&self, record: &[u8], shares: u32) -> usize {
        let (before, rest) = record.split_at(self.key_offset);
        let mixed = mix(mix(0xcbf2_9ce4_8422_2325, before), &rest[self.key_bytes..]);
        (((mixed >> 32) * u64::from(shares)) >> 32) as usize
    }
}

/// Table entry of a prefix. A prefix below the least boundary has the first entry; one above the
/// greatest has the last or an earlier one.
#[inline]
fn place_of(prefix: u128, least: u128, shift: u32, places: usize) -> usize {
    let place = prefix.saturating_sub(least) >> shift;
    usize::try_from(place).map_or(places - 1, |place| place.min(places - 1))
}

fn mix(mixed: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let words = words.iter().chain([&last]);
    words.fold(mixed, |mixed, &word| {
        let mixed = (mixed ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 32) // A product's high bits depend on all others, its low bits do not.
    })
}

impl Bound {
    fn is_reached_by(&self, key: &[u8]) -> bool {
        if self.after {
            key > self.key.as_slice()
        } else {
            key >= self.key.as_slice()
        }
    }
}

/// The first 16 bytes of a key as a number that sorts alike; shorter keys are padded with zeros.
#[inline]
#[must_use]
pub fn prefix(key: &[u8]) -> u128 {
    if let Some(first) = key.first_chunk::<16>() {
        return u128::from_be_bytes(*first);
    }
    if let (Some(first), Some(last)) = (key.first_chunk::<8>(), key.last_chunk::<8>()) {
        // 8 to 15 bytes: two overlapping words.
        let missing = 8 * (16 - key.len());
        let last = u128::from(u64::from_be_bytes(*last)) << missing;
        return (u128::from(u64::from_be_bytes(*first)) << 64) | last;
    }
    let short = key
        .iter()
        .fold(0_u128, |number, &byte| (number << 8) | u128::from(byte));
    if key.is_empty() {
        0
    } else {
        short << (8 * (16 - key.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn layout(key_bytes: usize) -> Layout {
        Layout::new(key_bytes + 3, 1, key_bytes).expect("a layout")
    }

    fn record(key: &[u8]) -> Vec<u8> {
        [&[7], key, &[9, 9]].concat()
    }

    proptest! {
        #[test]
        fn a_prefix_orders_as_its_key(a in prop::collection::vec(0_u8..4, 1..20), b in prop::collection::vec(0_u8..4, 1..20)) {
            let len = a.len().min(b.len());
            let (a, b) = (&a[..len], &b[..len]);
            let first = len.min(16);
            prop_assert_eq!(prefix(a).cmp(&prefix(b)), a[..first].cmp(&b[..first]));
        }

        #[test]
        fn partitions_are_ranges_of_keys(
            key_bytes in 1_usize..20,
            bytes in prop::collection::vec(0_u8..3, 20..400),
            partitions in 1_usize..12,
        ) {
            let layout = layout(key_bytes);
            let mut keys: Vec<&[u8]> = bytes.chunks_exact(key_bytes).collect();
            let boundaries = Boundaries::from_sample(&keys.concat(), &layout, partitions);
            keys.sort_unstable();
            let numbers: Vec<usize> =
                keys.iter().map(|key| boundaries.partition_of(&record(key))).collect();
            prop_assert!(numbers.is_sorted());
            prop_assert!(numbers.iter().all(|&number| number < boundaries.partitions()));
            for (pair, number) in keys.windows(2).zip(numbers.windows(2)) {
                if pair[0] == pair[1] {
                    prop_assert_eq!(number[0], number[1]); // Of the same record, that is.
                } else if number[0] == number[1] {
                    prop_assert!(!boundaries.is_single(number[0]));
                }
            }
        }
    }

    #[test]
    fn a_frequent_key_has_its_own_partition() {
        let layout = layout(2);
        let keys = [
            [1, 1],
            [5, 5],
            [5, 5],
            [5, 5],
            [5, 5],
            [5, 5],
            [9, 9],
            [9, 8],
        ]
        .concat();
        let boundaries = Boundaries::from_sample(&keys, &layout, 4);
        let number = boundaries.partition_of(&record(&[5, 5]));
        assert!(boundaries.is_single(number));
        assert_ne!(boundaries.partition_of(&record(&[5, 6])), number);
        assert_ne!(boundaries.partition_of(&record(&[5, 4])), number);
    }

    #[test]
    fn a_key_that_is_most_of_all_has_several_partitions_and_they_are_even() {
        let layout = Layout::new(12, 2, 4).expect("a layout");
        let keys = [
            [1, 1, 1, 1],
            [5, 5, 5, 5],
            [5, 5, 5, 5],
            [5, 5, 5, 5],
            [9, 9, 9, 9],
        ];
        let boundaries = Boundaries::from_sample(&keys.concat(), &layout, 20);
        let mut counts = vec![0; boundaries.partitions()];
        for number in 0_u32..11_000 {
            let rest = number.to_le_bytes();
            let record = [&rest[..2], &[5; 4], &rest, &[0; 2]].concat();
            counts[boundaries.partition_of(&record)] += 1;
        }
        let own: Vec<usize> = (0..counts.len())
            .filter(|&place| counts[place] > 0)
            .collect();
        assert_eq!(own.len(), 11, "{counts:?}");
        assert!(own.iter().all(|&place| boundaries.is_single(place)));
        assert!(own.windows(2).all(|pair| pair[0] + 1 == pair[1]));
        assert!(
            own.iter()
                .all(|&place| (500..2000).contains(&counts[place])),
            "{counts:?}"
        );
        for (key, place) in [([5, 5, 5, 4], own[0] - 1), ([5, 5, 5, 6], own[10] + 1)] {
            let record = [&[0; 2][..], &key, &[0; 6]].concat();
            assert_eq!(boundaries.partition_of(&record), place);
        }
    }

    #[test]
    fn no_sample_is_one_partition() {
        let boundaries = Boundaries::from_sample(&[], &layout(3), 8);
        assert_eq!(boundaries.partitions(), 1);
        assert_eq!(boundaries.partition_of(&record(&[255, 255, 255])), 0);
    }
}
