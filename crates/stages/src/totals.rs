//! Totals that the stages of a job count, to be compared where streams join.
//!
//! A job is done only if its output equals its input in records, bytes and the sum of the records'
//! CRC-32s (the sort benchmark's checksum), or of the hashes of rows.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tonnage_records::checksum;

use crate::hash;

/// A count of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Total {
    /// Records.
    pub records: u64,
    /// Bytes.
    pub bytes: u64,
    /// Sum of the records' CRC-32s, or of the rows' hashes.
    pub checksum: u128,
}

impl fmt::Display for Total {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (records, bytes, checksum) = (self.records, self.bytes, self.checksum);
        write!(
            to,
            "{records} records, {bytes} bytes, checksum {checksum:x}"
        )
    }
}

impl Total {
    /// Counts whole records of one size.
    pub fn count(&mut self, records: &[u8], record_bytes: usize) {
        self.records += (records.len() / record_bytes) as u64;
        self.bytes += records.len() as u64;
        self.checksum += checksum(records, record_bytes);
    }

    /// Counts a row of any length, by its hash.
    #[inline]
    pub fn count_row(&mut self, row: &[u8]) {
        self.records += 1;
        self.bytes += row.len() as u64;
        self.checksum += u128::from(hash::of_row(row));
    }

    /// Adds another count.
    pub fn add(&mut self, other: &Self) {
        self.records += other.records;
        self.bytes += other.bytes;
        self.checksum += other.checksum;
    }
}

/// Totals that several workers add to, by the number of what is counted.
#[derive(Debug, Default)]
pub struct Totals(Mutex<BTreeMap<usize, Total>>);

impl Totals {
    /// Adds a worker's count.
    pub fn add(&self, number: usize, total: &Total) {
        self.lock().entry(number).or_default().add(total);
    }

    /// The total of one number so far.
    #[must_use]
    pub fn of(&self, number: usize) -> Total {
        self.lock().get(&number).copied().unwrap_or_default()
    }

    /// The sum of all totals so far.
    #[must_use]
    pub fn total(&self) -> Total {
        let mut sum = Total::default();
        self.lock().values().for_each(|total| sum.add(total));
        sum
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, Total>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
