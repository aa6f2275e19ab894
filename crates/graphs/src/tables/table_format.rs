//! What a sort needs of a format: rows of its files, and files of rows.

use std::sync::Arc;

use tonnage_stages::extent::Extent;
use tonnage_stages::sink::RowSample;
use tonnage_stages::work::{RowEncoding, RowSource};
use tonnage_tables::RowShape;

use crate::error::JobError;
use crate::tables::folders::folder_columns::FolderColumns;

/// Rows, and what is read for each of their splits.
pub struct SplitRows {
    /// The rows.
    pub rows: Arc<dyn RowSource>,
    /// What is read.
    pub extents: Vec<Arc<Extent>>,
    /// How many rows there are, if the files tell.
    pub count: Option<u64>,
}

/// The input as a format reads it, and the output as it writes it.
pub trait TableFormat {
    /// Where the keys of rows are.
    fn shape(&self) -> RowShape;

    /// Some splits of about so many bytes, spread evenly.
    fn sample(&self, splits: usize, bytes: usize) -> Result<SplitRows, JobError>;

    /// The same of more splits with nothing but keys, if keys can be read alone.
    fn sample_keys(&self, _splits: usize, _bytes: usize) -> Result<Option<SplitRows>, JobError> {
        Ok(None)
    }

    /// All splits, of at most about `split_bytes`; a row has `row_bytes` at most.
    fn all(&self, split_bytes: usize, row_bytes: usize) -> Result<SplitRows, JobError>;

    /// About how many bytes all rows have.
    fn rows_bytes(&self, sample: &RowSample) -> u64;

    /// How many of these bytes, which sampling told, there are at least; less if it could only guess.
    fn least_bytes(&self, rows_bytes: u64) -> u64 {
        rows_bytes
    }

    /// How many bytes files of rows with so many have at least, about: compressed ones may be shorter.
    fn least_output_bytes(&self, rows_bytes: u64) -> u64 {
        rows_bytes
    }

    /// How many rows there are, if the files tell; of parts of files about.
    fn rows(&self) -> Option<u64>;

    /// How rows become files, whose row groups have `group_bytes`.
    fn encoding(&self, group_bytes: usize) -> Arc<dyn RowEncoding>;

    /// The columns that the names of folders tell, if files are in folders.
    fn folders(&self) -> Option<&FolderColumns> {
        None
    }

    /// How names of files end.
    fn suffix(&self) -> String;

    /// A file without rows.
    fn empty_file(&self) -> Result<Vec<u8>, JobError>;
}

/// `bytes`, if there is `whole` of what is `part` in a sample.
pub fn scaled(bytes: u64, whole: u64, part: u64) -> u64 {
    match part {
        0 => 0,
        part => (u128::from(bytes) * u128::from(whole) / u128::from(part)) as u64,
    }
}
