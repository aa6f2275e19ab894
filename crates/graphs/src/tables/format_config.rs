//! Formats of tables, as they are configured.

use std::sync::Arc;

use serde::Deserialize;
use tonnage_tables::ColumnOrder;

use crate::error::JobError;
use crate::tables::columns::column_file::ColumnFormat;
use crate::tables::columns::column_table::ColumnTable;
use crate::tables::columns::output::{ColumnFiles, OutputFormat};
use crate::tables::compression::CompressionConfig;
use crate::tables::input::table::Table;
use crate::tables::input::table_file::TableFile;
use crate::tables::input::table_schema::WantedColumns;
use crate::tables::table_format::TableFormat;
use crate::tables::text::text_table::{self, TextConfig};
use crate::tables::typed_text::input::{TypedText, TypedTextConfig};

/// A format, and what the rows of its files are sorted by.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FormatConfig {
    /// Columns.
    Columns {
        /// The format of the input.
        input: ColumnFormat,
        /// The format of the output.
        output: OutputFormat,
        /// The order.
        order: Vec<ColumnOrder>,
        /// The columns to keep, in this order; all by default.
        #[serde(default)]
        columns: Option<Vec<String>>,
        /// Columns that are read as these types: a schema's IPC message in Base64.
        #[serde(default)]
        schema: Option<String>,
        /// All columns, where they are known already, since these are not all files.
        #[serde(default)]
        known_schema: Option<String>,
        /// How files are compressed; Parquet with Snappy by default, others not.
        #[serde(default)]
        compression: Option<CompressionConfig>,
        /// How many of the first columns of the order are folders.
        #[serde(default)]
        folder_columns: usize,
    },
    /// Lines, or records of fields, which are kept as they are.
    Text(TextConfig),
    /// Records of text as columns.
    TypedText {
        /// How they are read.
        input: TypedTextConfig,
        /// The format of the output.
        output: OutputFormat,
        /// The order.
        order: Vec<ColumnOrder>,
        /// How files are compressed; by default as their format usually is.
        #[serde(default)]
        compression: Option<CompressionConfig>,
        /// How many of the first columns of the order are folders.
        #[serde(default)]
        folder_columns: usize,
    },
}

impl FormatConfig {
    /// The byte around what may have newlines, if there is one.
    #[must_use]
    pub fn quote(&self) -> Option<u8> {
        match self {
            Self::Columns { .. } => None,
            Self::Text(text) => text.quote(),
            Self::TypedText { input, .. } => input.quote(),
        }
    }
}

/// Opens the input.
///
/// # Errors
/// When it cannot be read, or has no such columns.
pub fn open(
    config: &FormatConfig,
    files: &[TableFile],
    is_stable: bool,
) -> Result<Box<dyn TableFormat>, JobError> {
    match config {
        FormatConfig::Columns {
            input,
            output,
            order,
            columns,
            schema,
            known_schema,
            compression,
            folder_columns,
        } => {
            let output = ColumnFiles {
                format: *output,
                compression: *compression,
                folder_columns: *folder_columns,
            };
            let (schema, known) = (schema.as_deref(), known_schema.as_deref());
            let wanted = WantedColumns::new(columns.as_deref(), schema, known)?;
            let table = Arc::new(Table::open(*input, files, &wanted)?);
            let table = ColumnTable::new(table, output, order, is_stable)?;
            Ok(Box::new(table))
        }
        FormatConfig::Text(text) => text_table::open(text, files, is_stable),
        FormatConfig::TypedText {
            input,
            output,
            order,
            compression,
            folder_columns,
        } => {
            let output = ColumnFiles {
                format: *output,
                compression: *compression,
                folder_columns: *folder_columns,
            };
            let text = TypedText::open(input, files)?;
            Ok(Box::new(ColumnTable::new(text, output, order, is_stable)?))
        }
    }
}
