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
    Arrow(ArrowError),
}

impl From<ParquetError> for FormatError {
    fn from(why: ParquetError) -> Self {
        no_parquet(&why.to_string())
    }
}

impl From<ArrowError> for FormatError {
    fn from(why: ArrowError) -> Self {
        match why {
            ArrowError::ParquetError(why) => no_parquet(&why),
            why => Self::Arrow(why),
        }
    }
}

/// What a reader of Parquet says, without the kinds of its errors.
fn no_parquet(why: &str) -> FormatError {
    let kinds = ["Parquet error: ", "EOF: ", "External: ", "Arrow: "];
    let why = kinds
        .iter()
        .fold(why, |why, kind| why.trim_start_matches(kind));
    FormatError::Damaged(format!(
        "it is no Parquet file, or damaged, or encrypted: {why}"
    ))
}
