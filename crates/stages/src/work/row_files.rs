//! The files that rows are sorted into: each begins with its first row, so none is without rows.

use std::fmt;

use tonnage_pipeline::StageError;

use crate::totals::Total;

/// Files of rows that come in the order of their keys, so that one folder follows another.
pub trait RowFiles: fmt::Debug + Send + Sync {
    /// What the keys of all rows in this one's folder begin with; nothing if there are no folders.
    ///
    /// # Errors
    /// When the bytes are no row.
    fn folder<'r>(&self, row: &'r [u8]) -> Result<&'r [u8], StageError>;

    /// Whether the row is in the folder whose keys begin so.
    fn is_in(&self, folder: &[u8], row: &[u8]) -> bool;

    /// The number of a new file of a unit, in the row's folder. Its place ascends with the keys.
    ///
    /// # Errors
    /// When the folder can have no name, or there are too many files.
    fn begin(&self, unit: usize, place: usize, row: &[u8]) -> Result<usize, StageError>;

    /// Counts rows of a unit that a file has, or no file, and those of them that were left out.
    fn count(&self, unit: usize, file: Option<usize>, rows: &Total, left_out: &Total);

    /// All rows of the unit are counted; its files have left, but for one that is continued.
    ///
    /// # Errors
    /// What is done then may fail.
    fn end_unit(&self, unit: usize) -> Result<(), StageError>;
}
