//! How records become columns.

use crate::tables::input::file_columns::FileColumns;
use arrow_schema::SchemaRef;
use serde::Deserialize;
use tonnage_formats::text::Dialect;
use tonnage_formats::text_columns::{Charset, CsvReader, JsonReader, RecordReader};

/// The byte around fields of CSV.
const QUOTE: u8 = b'"';

/// How records are written.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordKind {
    /// Fields between delimiters.
    Csv {
        /// The byte between fields.
        delimiter: u8,
        /// The record that each file begins with; empty if there is none.
        header: Vec<u8>,
    },
    /// An object a line.
    Json,
}

impl RecordKind {
    /// How fields are written, if there are some.
    pub fn dialect(&self) -> Option<Dialect> {
        match *self {
            Self::Csv { delimiter, .. } => Some(Dialect {
                delimiter,
                quote: Some(QUOTE),
            }),
            Self::Json => None,
        }
    }
}

/// How records become columns.
#[derive(Debug)]
pub struct RecordColumns {
    /// How they are encoded.
    pub charset: Charset,
    /// How they are written.
    pub records: RecordKind,
    /// All columns, in the order of their fields.
    pub file: SchemaRef,
    /// The columns to keep.
    pub kept: SchemaRef,
    /// How these become the table's, for each file, where folders are columns, too.
    pub of_files: Option<Vec<FileColumns>>,
}

impl RecordColumns {
    /// Reads records.
    ///
    /// # Errors
    /// A column whose type the format has no values of.
    pub fn reader(&self) -> Result<Box<dyn RecordReader>, String> {
        Ok(match self.records.dialect() {
            Some(dialect) => Box::new(CsvReader::new(dialect, &self.file, &self.kept)?),
            None => Box::new(JsonReader::new(&self.file, &self.kept)?),
        })
    }
}
