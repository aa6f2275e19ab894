//! Files in folders: which rows of a partition go to one folder, by what their keys begin with.

use std::fmt;

use tonnage_pipeline::StageError;

/// Folders of rows that come in the order of their keys, so that one folder follows another.
pub trait RowFolders: fmt::Debug + Send + Sync {
    /// What the keys of all rows of this one's folder begin with.
    ///
    /// # Errors
    /// When the bytes are no row.
    fn beginning<'r>(&self, row: &'r [u8]) -> Result<&'r [u8], StageError>;

    /// Whether the row is in the folder whose keys begin so.
    fn contains(&self, beginning: &[u8], row: &[u8]) -> bool;

    /// The number of a new file in the row's folder. `place` ascends with the keys in a folder.
    ///
    /// # Errors
    /// When the folder can have no name, or there are too many files.
    fn begin_file(&self, row: &[u8], place: usize) -> Result<usize, StageError>;
}
