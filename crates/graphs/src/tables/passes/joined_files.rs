//! Partitions that are joined to a file.
//!
//! Partitions are short, so that their entries fit into a cache; files of their length would be too
//! many. A file takes the partitions that follow one another up to the length that is wanted. All
//! of them are sorted by one worker, so there are a few files for each.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use tonnage_stages::extent::Extent;
use tonnage_stages::work::RowUnit;

/// Files that each worker writes at least, where they are not short: then all end at about the same
/// time.
const FILES_PER_WORKER: u64 = 4;
/// Files below this length are joined in any case: one worker sorts as much in no time.
const SHORT_BYTES: u64 = 16 << 20;

/// How many bytes of rows a file may be joined of, of so many in all.
pub fn joined_bytes(all_bytes: u64, workers: usize, file_bytes: u64) -> u64 {
    let share = all_bytes / (workers as u64 * FILES_PER_WORKER);
    share.max(SHORT_BYTES).min(file_bytes)
}

/// Tells, partition by partition, whether one continues the file of the one before.
#[derive(Debug, Default)]
pub struct JoinedFiles {
    bytes: u64, // of the file so far; 0 if it takes no more
}

impl JoinedFiles {
    /// The next partition has so many bytes, and becomes so many files. A file ends where it is
    /// nearest to the length that is wanted.
    pub fn continues(&mut self, bytes: u64, files: usize, joined_bytes: u64) -> bool {
        let continues = self.bytes > 0 && files == 1 && self.bytes + bytes / 2 <= joined_bytes;
        self.bytes = match (continues, files) {
            (true, _) => self.bytes + bytes,
            (false, 1) => bytes,
            (false, _) => 0,
        };
        continues
    }
}

/// The extents of the units that each worker sorts: all of a file, and about as many bytes.
pub fn lanes(units: &[RowUnit], workers: usize) -> Vec<Vec<Arc<Extent>>> {
    let files: Vec<&[RowUnit]> = units.chunk_by(|_, next| next.continues).collect();
    let workers = workers.min(files.len()).max(1);
    let mut lanes = vec![Vec::new(); workers];
    let mut shortest: BinaryHeap<_> = (0..workers).map(|lane| Reverse((0, lane))).collect();
    for file in files {
        if let Some(Reverse((bytes, lane))) = shortest.pop() {
            let extents = file.iter().map(|unit| &unit.extent);
            let sum: usize = extents.clone().map(|extent| extent.len()).sum();
            lanes[lane].extend(extents.cloned());
            shortest.push(Reverse((bytes + sum, lane)));
        }
    }
    lanes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn unit(number: usize, len: usize, continues: bool) -> RowUnit {
        let piece = tonnage_stages::extent::Piece {
            file: tonnage_stages::extent::FileRef::Path(std::path::Path::new("a").into()),
            offset: 0,
            len,
            crc: None,
        };
        RowUnit {
            extent: Arc::new(Extent {
                number,
                offset: 0,
                in_order: false,
                pieces: vec![piece],
            }),
            first_file: 0,
            files: 1,
            continues,
            quota: None,
        }
    }

    proptest! {
        #[test]
        fn files_have_the_length_and_one_worker_sorts_each(
            partitions in prop::collection::vec((1_u64..100, 1_usize..3), 1..60),
            joined_bytes in 0_u64..300,
            workers in 1_usize..6,
        ) {
            let mut joined = JoinedFiles::default();
            let units: Vec<RowUnit> = (0..)
                .zip(&partitions)
                .map(|(number, &(bytes, files))| {
                    let continues = joined.continues(bytes, files, joined_bytes);
                    unit(number, bytes as usize, continues)
                })
                .collect();
            for file in units.chunk_by(|_, next| next.continues) {
                let mut bytes: Vec<u64> = file.iter().map(|unit| unit.extent.len() as u64).collect();
                let last = bytes.pop().unwrap_or(0) / 2;
                prop_assert!(file.len() == 1 || bytes.iter().sum::<u64>() + last <= joined_bytes);
                prop_assert!(file.len() == 1 || file.iter().all(|unit| partitions[unit.extent.number].1 == 1));
            }
            let lanes = lanes(&units, workers);
            let mut sorted: Vec<usize> = Vec::new();
            for lane in &lanes {
                let numbers: Vec<usize> = lane.iter().map(|extent| extent.number).collect();
                prop_assert!(!numbers.is_empty() && numbers.is_sorted());
                for (place, &number) in numbers.iter().enumerate() {
                    let before = place.checked_sub(1).map(|before| numbers[before]);
                    prop_assert!(!units[number].continues || before == Some(number - 1));
                }
                sorted.extend(numbers);
            }
            sorted.sort_unstable();
            prop_assert!(sorted.into_iter().eq(0..units.len()));
        }
    }
}
