//! Partition boundaries: which partition a record belongs to.
//!
//! Boundaries are quantiles of sampled keys, so partitions are even for any distribution. A key
//! that is so frequent that it covers several quantiles gets partitions of its own, between
//! boundaries "from this key on" and the boundary "after this key". These need no sorting: a sort
//! only copies them. Which of the key's partitions a record goes to depends on the rest of the
//! record alone, so every node decides alike.

mod key_ranges;
mod prefix;

use tonnage_records::Layout;

pub use key_ranges::{Bound, KeyRanges};
pub use prefix::{Beginning, prefix};

/// Where partitions of records begin and end.
#[derive(Clone, Debug)]
pub struct Boundaries {
    ranges: KeyRanges,
    layout: Layout,
}

impl Boundaries {
    /// Boundaries of at most `partitions` even partitions, from sampled `keys` laid end to end.
    ///
    /// Fewer come out where the sample is small.
    #[must_use]
    pub fn from_sample(keys: &[u8], layout: &Layout, partitions: usize) -> Self {
        let keys = keys.chunks_exact(layout.key_bytes).collect();
        Self {
            ranges: KeyRanges::from_sample(keys, partitions),
            layout: *layout,
        }
    }

    /// Boundaries that another node chose.
    #[must_use]
    pub fn new(bounds: Vec<Bound>, layout: &Layout) -> Self {
        Self {
            ranges: KeyRanges::new(bounds),
            layout: *layout,
        }
    }

    /// What another node needs to build the same boundaries.
    #[must_use]
    pub fn bounds(&self) -> &[Bound] {
        self.ranges.bounds()
    }

    /// How many partitions there are.
    #[must_use]
    pub fn partitions(&self) -> usize {
        self.ranges.len()
    }

    /// Whether all keys of this partition are equal.
    #[must_use]
    pub fn is_single(&self, partition: usize) -> bool {
        self.ranges.is_single(partition)
    }

    /// The partition of a record: the number of boundaries that its key has reached.
    #[inline]
    #[must_use]
    pub fn partition_of(&self, record: &[u8]) -> usize {
        let Layout {
            record_bytes,
            key_offset,
            key_bytes,
        } = self.layout;
        debug_assert_eq!(record.len(), record_bytes);
        let key = &record[key_offset..key_offset + key_bytes];
        let rest = (&record[..key_offset], &record[key_offset + key_bytes..]);
        self.ranges.range_of(key, rest)
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
