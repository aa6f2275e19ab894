//! What pass two sorts: the units that partitions are, and which files these become at most.

use std::collections::HashMap;
use std::sync::Arc;

use tonnage_stages::extent::Extent;
use tonnage_stages::totals::Total;
use tonnage_stages::work::RowUnit;

use super::joined_files::JoinedFiles;
use super::row_partition::RowPartition;

/// Units, and what is known of their files before there is a row.
#[derive(Default)]
pub struct SortUnits {
    /// The units, in the order of keys.
    pub units: Vec<RowUnit>,
    /// The partition that each is of, as its place among `partitions`.
    pub partition_of: Vec<usize>,
    /// The partitions.
    pub partitions: Vec<PartitionUnits>,
    /// The files, in the order of keys; with folders, those of each folder.
    pub files: Vec<PartitionFile>,
}

/// The units of a partition.
#[derive(Debug, Default)]
pub struct PartitionUnits {
    /// How many units there are.
    pub units: usize,
    /// Bytes of its rows.
    pub bytes: u64,
    /// Rows that are in no unit, since they are not wanted.
    pub others: Total,
    files: usize,
}

/// A file that rows may come to.
#[derive(Clone, Copy, Debug)]
pub struct PartitionFile {
    /// Number of its partition, the first one if they are joined.
    pub partition: usize,
    /// Which of the partition's files it is; none if there is one at most.
    pub place: Option<usize>,
}

impl SortUnits {
    /// Partitions whose files have about `file_bytes` of rows at most, and are joined up to
    /// `joined_bytes`; 0 if they are not joined.
    pub fn new(partitions: Vec<RowPartition>, file_bytes: u64, joined_bytes: u64) -> Self {
        let mut sorted = Self::default();
        let mut place_of: HashMap<usize, usize> = HashMap::new();
        let mut joined = JoinedFiles::default();
        for RowPartition {
            spilled,
            quota,
            others,
            ..
        } in partitions
        {
            let bytes: u64 = spilled.blocks.iter().map(|block| block.len as u64).sum();
            if bytes == 0 {
                continue;
            }
            let most_files = quota.as_ref().map_or(u64::MAX, |quota| quota.rows());
            let files = bytes.div_ceil(file_bytes.max(1));
            let files = files.min(most_files).max(1) as usize;
            let continues = joined.continues(bytes, files, joined_bytes);
            let number = spilled.number;
            let place = *place_of.entry(number).or_insert_with(|| {
                sorted.partitions.push(PartitionUnits::default());
                sorted.partitions.len() - 1
            });
            let partition = &mut sorted.partitions[place];
            let new_files = if continues { 0 } else { files };
            sorted
                .files
                .extend((0..new_files).map(|place| PartitionFile {
                    partition: number,
                    place: Some(partition.files + place),
                }));
            partition.add(bytes, new_files, &others);
            sorted.partition_of.push(place);
            sorted.units.push(RowUnit {
                extent: Arc::new(spilled.into_extent(sorted.units.len())),
                first_file: sorted.files.len() - files,
                files,
                continues,
                quota,
            });
        }
        for file in &mut sorted.files {
            if sorted.partitions[place_of[&file.partition]].files == 1 {
                file.place = None;
            }
        }
        sorted
    }

    /// What is read of each.
    pub fn extents(&self) -> Vec<Arc<Extent>> {
        let units = self.units.iter();
        units.map(|unit| Arc::clone(&unit.extent)).collect()
    }
}

impl PartitionUnits {
    fn add(&mut self, bytes: u64, files: usize, others: &Total) {
        self.units += 1;
        self.bytes += bytes + others.bytes;
        self.files += files;
        self.others.add(others);
    }
}
