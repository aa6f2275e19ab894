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
    /// Arrow's own refusal.
    #[error(transparent)]
    Arrow(ArrowError),
}

impl From<ParquetError> for FormatError {
    fn from(why: ParquetError) -> Self {
        Self::Damaged(without_kind(&why.to_string()))
    }
}

impl From<ArrowError> for FormatError {
    fn from(why: ArrowError) -> Self {
        match why {
            ArrowError::ParquetError(why) => Self::Damaged(without_kind(&why)),
            why => Self::Arrow(why),
        }
    }
}

/// What the crate says of Parquet, without the kinds of its errors.
fn without_kind(why: &str) -> String {
    let kinds = ["Parquet error: ", "EOF: ", "External: ", "Arrow: "];
    let stripped = kinds
        .iter()
        .fold(why, |why, kind| why.trim_start_matches(kind));
    stripped.to_owned()
}
