//! The first rows only: the others are left out as early as it is known that they are others.
//!
//! A sample tells a key that more than so many rows do not exceed, most likely. Pass one drops the
//! rows behind it, and counts those of each partition, so that pass two reads no partition beyond
//! the last row that is wanted.

use std::sync::Arc;

use tonnage_stages::boundaries::KeyRanges;
use tonnage_stages::sink::RowSample;
use tonnage_stages::totals::Total;
use tonnage_stages::work::Quota;

use crate::error::{JobError, setting_error};
use crate::tables::passes::RowPartition;

/// Sampled keys beyond those that are expected, and for each of the square root of these: samples
/// miss a little.
const MARGIN: (usize, f64) = (64, 4.0);

/// A key behind which there are no wanted rows, most likely.
#[derive(Clone, Debug)]
pub struct Cutoff {
    /// The key.
    pub key: Vec<u8>,
    /// Which share of the rows does not exceed it, about.
    pub share: f64,
}

impl Cutoff {
    /// The key for the first `limit` of about `rows` rows, of which `sampled` are keys; `None` if
    /// most of them are wanted.
    pub fn new(sampled: &[Vec<u8>], rows: u64, limit: u64) -> Option<Self> {
        let count = sampled.len();
        let expected = limit as f64 / rows.max(1) as f64 * count as f64;
        let place = (expected + MARGIN.1 * expected.sqrt()) as usize + MARGIN.0;
        if place >= count {
            return None;
        }
        let mut keys: Vec<&[u8]> = sampled.iter().map(Vec::as_slice).collect();
        let (_, key, _) = keys.select_nth_unstable(place);
        Some(Self {
            key: key.to_vec(),
            share: (place + 1) as f64 / count as f64,
        })
    }

    /// `partitions` ranges of the sampled keys that do not exceed it, and one of what does.
    pub fn ranges(&self, sample: &RowSample, partitions: usize) -> KeyRanges {
        let keys = sample.keys.iter().map(Vec::as_slice);
        let wanted = keys.filter(|&key| key <= &self.key[..]).collect();
        KeyRanges::from_sample(wanted, partitions).cut_after(&self.key)
    }
}

/// Refuses a limit where it is not known how many rows come out of those that go in.
///
/// # Errors
/// When there is one, and rows are to be unique.
pub fn check(limit: Option<u64>, is_unique: bool) -> Result<(), JobError> {
    if is_unique && limit.is_some() {
        let why = "with unique, it is not known how many rows the first partitions have; sort \
                   without it, and take the first rows of the output";
        return Err(setting_error("limit", why));
    }
    Ok(())
}

/// The partitions that have the first `limit` rows, and what the others have.
pub fn first(partitions: Vec<RowPartition>, limit: u64) -> (Vec<RowPartition>, Total) {
    let (mut wanted, mut others, mut left) = (Vec::new(), Total::default(), limit);
    for partition in partitions {
        if left == 0 {
            others.add(&partition.rows);
            continue;
        }
        let rows = partition.rows.records;
        let quota = (rows > left).then(|| Arc::new(Quota::new(left)));
        left = left.saturating_sub(rows);
        wanted.push(RowPartition { quota, ..partition });
    }
    (wanted, others)
}

/// What partitions have, or had before they were divided.
pub fn total(partitions: &[RowPartition]) -> Total {
    let mut total = Total::default();
    for partition in partitions {
        total.add(&partition.rows);
        total.add(&partition.others);
    }
    total
}
