//! Why a file cannot be read or written.

use std::io;

use arrow_schema::ArrowError;
use parquet::errors::ParquetError;

/// Why a file cannot be read or written; the caller adds the file's name.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// What the device or the store says.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is no file of its format, or a damaged one.
    #[error("{0}")]
    Damaged(String),
    /// More memory is needed than there is.
    #[error("{what} needs {needs} bytes of memory at once, and may have {has}; use more memory")]
    Memory {
        /// What needs it.
        what: String,
        /// How much.
        needs: u64,
        /// How much there is.
        has: u64,
    },
    /// Arrow's own refusal.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
}

impl From<ParquetError> for FormatError {
    fn from(why: ParquetError) -> Self {
        Self::Damaged(why.to_string())
    }
}
