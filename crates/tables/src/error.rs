//! What a table cannot do.

use arrow_schema::{ArrowError, DataType};

/// Why a table cannot be sorted as asked. Each message is one line that names the column.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// A column that the table lacks.
    #[error("there is no column {name:?}; the columns are {known}")]
    NoColumn {
        /// The name.
        name: String,
        /// All names.
        known: String,
    },
    /// Values that have no order here.
    #[error(
        "the column {name:?} cannot be a sort key: values of type {data_type} have no order here"
    )]
    Unordered {
        /// The column.
        name: String,
        /// Its type.
        data_type: DataType,
    },
    /// Values that cannot be stored in rows.
    #[error("the column {name:?} cannot be sorted along: its type {data_type} is not supported")]
    Unsupported {
        /// The column.
        name: String,
        /// Its type.
        data_type: DataType,
    },
    /// A row that is longer than rows can be.
    #[error("row {row} of a batch has {bytes} bytes; a row has less than 2 GiB")]
    LongRow {
        /// The row.
        row: usize,
        /// Its length.
        bytes: u64,
    },
    /// Bytes that are no rows of this layout.
    #[error("internal error: {0}")]
    Damaged(&'static str),
    /// Arrow's own refusal.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
}
