//! The totals of `valsort` 1.5 for a run of records: number, order, duplicate keys, checksum.
//!
//! A record is unordered when its key is less than that of the record before it, and a duplicate
//! when both are equal. A summary keeps the first and last key of its run, so the summaries of
//! adjacent runs merge into that of both. Runs can be summarised in parallel and merged in order,
//! in any grouping (`valsort -o` and `-s` do the same with files).

use std::cmp::Ordering;

use crate::checksum::crc32;
use crate::layout::Layout;

/// The accounts of a run of records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Records in the run.
    pub records: u64,
    /// Records whose key is less than the one before.
    pub unordered: u64,
    /// The index within the run of the first such record.
    pub first_unordered: Option<u64>,
    /// Records whose key equals the one before.
    pub duplicate_keys: u64,
    /// The sum of the CRC-32 of each record.
    pub checksum: u128,
    /// The first record's key; empty in a run of no records.
    pub first_key: Vec<u8>,
    /// The last record's key; empty in a run of no records.
    pub last_key: Vec<u8>,
}

impl Summary {
    /// The summary of no records.
    pub fn empty() -> Summary {
        Summary::default()
    }

    /// The summary of `records`.
    ///
    /// # Panics
    ///
    /// When `records` is not a whole number of records.
    pub fn of(records: &[u8], layout: &Layout) -> Summary {
        let records = records.chunks_exact(layout.record_bytes);
        assert!(records.remainder().is_empty(), "a record is cut short");
        let Some(first) = records.clone().next() else {
            return Summary::empty();
        };

        let first_key = layout.key(first);
        let mut summary = Summary::empty();
        let mut previous_key = first_key;
        for record in records {
            let key = layout.key(record);
            match key.cmp(previous_key) {
                Ordering::Greater => {}
                // The first record meets itself here: taken back below.
                Ordering::Equal => summary.duplicate_keys += 1,
                Ordering::Less => {
                    summary.unordered += 1;
                    summary.first_unordered.get_or_insert(summary.records);
                }
            }
            summary.records += 1;
            summary.checksum += u128::from(crc32(record));
            previous_key = key;
        }
        summary.duplicate_keys -= 1;
        summary.first_key = first_key.to_vec();
        summary.last_key = previous_key.to_vec();
        summary
    }

    /// The summary of this run followed by the `next` one.
    #[must_use]
    pub fn merge(self, next: Summary) -> Summary {
        if self.records == 0 {
            return next;
        }
        if next.records == 0 {
            return self;
        }
        let seam = next.first_key.cmp(&self.last_key);
        Summary {
            records: self.records + next.records,
            unordered: self.unordered + next.unordered + u64::from(seam == Ordering::Less),
            first_unordered: self
                .first_unordered
                .or((seam == Ordering::Less).then_some(self.records))
                .or(next.first_unordered.map(|index| self.records + index)),
            duplicate_keys: self.duplicate_keys
                + next.duplicate_keys
                + u64::from(seam == Ordering::Equal),
            checksum: self.checksum + next.checksum,
            first_key: self.first_key,
            last_key: next.last_key,
        }
    }

    /// The checksum as `valsort` prints it: lower-case hexadecimal without leading zeros.
    pub fn checksum_hex(&self) -> String {
        format!("{:x}", self.checksum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::checksum;
    use crate::generate::{Encoding, Generator};
    use proptest::prelude::*;

    fn layout() -> Layout {
        Layout::new(6, 2, 2).unwrap()
    }

    #[test]
    fn a_run_with_everything_in_it() {
        let records = b"..aa....aa....bb....ab....ac....aa..";
        let summary = Summary::of(records, &layout());
        assert_eq!(
            summary,
            Summary {
                records: 6,
                unordered: 2,
                first_unordered: Some(3),
                duplicate_keys: 1,
                checksum: checksum(records, 6),
                first_key: b"aa".to_vec(),
                last_key: b"aa".to_vec(),
            }
        );
    }

    /// `valsort` 1.5 on the first 10,000 binary records of `gensort -s`.
    #[test]
    fn the_accounts_are_those_of_valsort() {
        let mut records = vec![0; 1_000_000];
        Generator::new(Encoding::Binary, true, 0).fill(0, &mut records);
        let summary = Summary::of(&records, &Layout::SORT_BENCHMARK);
        assert_eq!(
            (summary.records, summary.unordered, summary.duplicate_keys),
            (10_000, 5_015, 0)
        );
        assert_eq!(summary.first_unordered, Some(2));
        assert_eq!(summary.checksum_hex(), "139490c2a1d7");
    }

    #[test]
    fn the_checksum_is_written_as_valsort_writes_it() {
        let hex = |checksum| {
            Summary {
                checksum,
                ..Summary::empty()
            }
            .checksum_hex()
        };
        assert_eq!(hex(0x1392_D240_CA76), "1392d240ca76");
        assert_eq!(hex(1 << 64), "10000000000000000");
        assert_eq!(hex(0), "0");
    }

    #[test]
    #[should_panic(expected = "cut short")]
    fn a_record_cut_short_is_refused() {
        let _ = Summary::of(&[0; 7], &layout());
    }

    /// The accounts by their definition, from the keys laid side by side.
    fn model(records: &[u8]) -> Summary {
        let keys: Vec<&[u8]> = records.chunks(6).map(|record| &record[2..4]).collect();
        let unordered: Vec<usize> = (1..keys.len()).filter(|&i| keys[i] < keys[i - 1]).collect();
        let duplicates = (1..keys.len()).filter(|&i| keys[i] == keys[i - 1]);
        Summary {
            records: keys.len() as u64,
            unordered: unordered.len() as u64,
            first_unordered: unordered.first().map(|&index| index as u64),
            duplicate_keys: duplicates.count() as u64,
            checksum: checksum(records, 6),
            first_key: keys.first().copied().unwrap_or_default().to_vec(),
            last_key: keys.last().copied().unwrap_or_default().to_vec(),
        }
    }

    /// Runs of few distinct keys, so that neighbours are often equal; in order, or not.
    fn any_records() -> impl Strategy<Value = Vec<u8>> {
        let record = (prop::array::uniform2(0u8..3), any::<[u8; 4]>())
            .prop_map(|([a, b], [c, d, e, f])| [c, d, a, b, e, f]);
        (prop::collection::vec(record, 0..40), any::<bool>()).prop_map(|(mut records, sorted)| {
            if sorted {
                records.sort_by_key(|record| [record[2], record[3]]);
            }
            records.concat()
        })
    }

    proptest! {
        #[test]
        fn any_bracketing_of_any_split_is_the_whole(
            records in any_records(),
            cuts in prop::array::uniform2(0usize..=40),
        ) {
            let layout = layout();
            let whole = model(&records);
            prop_assert_eq!(&Summary::of(&records, &layout), &whole);

            let [mut near, mut far] = cuts.map(|cut| (6 * cut).min(records.len()));
            if near > far {
                (near, far) = (far, near);
            }
            let parts = [&records[..near], &records[near..far], &records[far..]];
            let [left, middle, right] = parts.map(|part| Summary::of(part, &layout));
            let [l, m, r] = [&left, &middle, &right].map(Summary::clone);
            prop_assert_eq!(&left.merge(middle).merge(right), &whole);
            prop_assert_eq!(&l.merge(m.merge(r)), &whole);
        }
    }
}
