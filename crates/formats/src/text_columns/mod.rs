//! Columns of text: records of CSV and JSON lines as batches, and batches as records.
//!
//! A value is read exactly or refused: a decimal is not rounded, a time is not cut to its unit, an
//! integer does not wrap, and no field is passed over. `scalars` reads values and `cells` prints
//! them, the same for both formats but for what JSON can say itself.

mod cells;
mod charset;
mod column;
mod csv;
mod decimals;
mod inference;
mod json_printer;
mod json_reader;
pub(crate) mod moments;
mod refusals;
mod scalars;

pub use charset::Charset;
pub use csv::{CsvPrinter, CsvReader};
pub use inference::{infer_csv, record_end};
pub use json_printer::JsonPrinter;
pub use json_reader::JsonReader;
pub use refusals::wrong_fields;

use arrow_array::RecordBatch;

use crate::error::FormatError;

/// Reads records into batches.
pub trait RecordReader: std::fmt::Debug + Send {
    /// Adds a record, which comes without its newline; `false` if it is blank.
    ///
    /// # Errors
    /// Why it cannot be read; it is left out then.
    fn push(&mut self, record: &[u8]) -> Result<bool, String>;

    /// How many rows there are since the last batch.
    fn rows(&self) -> usize;

    /// About how many bytes a row has besides its text.
    fn row_bytes(&self) -> usize;

    /// A batch of these rows.
    ///
    /// # Errors
    /// A bug: columns that are no arrays of their types.
    fn finish(&mut self) -> Result<RecordBatch, FormatError>;
}

/// Prints batches as records.
pub trait RecordPrinter: std::fmt::Debug + Send + Sync {
    /// What a file begins with.
    fn beginning(&self) -> Vec<u8>;

    /// Appends the rows of a batch, each with its newline.
    ///
    /// # Errors
    /// A value that the format has no way to write.
    fn print(&self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), FormatError>;
}
