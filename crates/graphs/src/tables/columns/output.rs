//! How columns are written: the formats of the output.

use std::sync::Arc;

use ::parquet::basic::Compression;
use serde::Deserialize;
use tonnage_formats::parquet::Output;
use tonnage_formats::text_columns::{CsvPrinter, JsonPrinter, RecordPrinter};
use tonnage_formats::{FormatError, arrow_ipc, parquet};
use tonnage_stages::work::RowEncoding;
use tonnage_tables::ColumnOrder;

use crate::error::{JobError, setting_error};
use crate::tables::columns::arrow_files::ArrowFiles;
use crate::tables::columns::output_columns::OutputColumns;
use crate::tables::columns::parquet_files::ParquetFiles;
use crate::tables::columns::printed_files::PrintedFiles;
use crate::tables::compression::{CompressionConfig, TextCodec};
use crate::tables::text::text_file::file_of;

/// A format that columns are written in.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputFormat {
    /// Parquet.
    Parquet,
    /// Arrow IPC.
    Arrow,
    /// CSV.
    Csv {
        /// The byte between fields.
        delimiter: u8,
        /// Whether files begin with the columns' names.
        header: bool,
    },
    /// JSON lines.
    Json,
}

/// Files of columns.
#[derive(Clone, Copy, Debug)]
pub struct ColumnFiles {
    /// Their format.
    pub format: OutputFormat,
    /// How they are compressed; by default as the format usually is.
    pub compression: Option<CompressionConfig>,
    /// How many of the first columns of the order are folders, and not in the files.
    pub folder_columns: usize,
}

/// Writes columns.
pub struct ColumnOutput {
    columns: OutputColumns,
    format: Format,
}

enum Format {
    Parquet(Arc<Output>),
    Arrow(Option<arrow_ipc::Codec>),
    Text {
        printer: Arc<dyn RecordPrinter>,
        suffix: &'static str,
        compression: Option<TextCodec>,
    },
}

impl ColumnOutput {
    /// Writes these columns of rows, which are in this order in a file.
    ///
    /// # Errors
    /// A column or a codec that the format cannot have.
    pub fn new(
        files: ColumnFiles,
        columns: OutputColumns,
        order: &[ColumnOrder],
    ) -> Result<Self, JobError> {
        let schema = columns.schema();
        let refuse = |why: String| setting_error("output_format", why);
        let compression = files.compression;
        let text = |printer: Arc<dyn RecordPrinter>, suffix| {
            let compression = compression.map(CompressionConfig::of_text).transpose()?;
            Ok::<_, JobError>(Format::Text {
                printer,
                suffix,
                compression: compression.flatten(),
            })
        };
        let format = match files.format {
            OutputFormat::Parquet => {
                let sorting: Vec<(String, bool, bool)> = order
                    .iter()
                    .map(|column| (column.name.clone(), column.descending, column.nulls_first))
                    .collect();
                let codec = compression.map(CompressionConfig::of_parquet).transpose()?;
                let output = Output::new(schema, codec.unwrap_or(Compression::SNAPPY), &sorting)
                    .map_err(|why| setting_error("output", why.to_string()))?;
                Format::Parquet(Arc::new(output))
            }
            OutputFormat::Arrow => {
                let codec = compression.map(CompressionConfig::of_arrow).transpose()?;
                Format::Arrow(codec.flatten())
            }
            OutputFormat::Csv { delimiter, header } => {
                let suffix = if delimiter == b'\t' { ".tsv" } else { ".csv" };
                let printer = CsvPrinter::new(schema, delimiter, header).map_err(refuse)?;
                text(Arc::new(printer), suffix)?
            }
            OutputFormat::Json => {
                let printer = JsonPrinter::new(schema).map_err(refuse)?;
                text(Arc::new(printer), ".jsonl")?
            }
        };
        Ok(Self { columns, format })
    }

    /// How rows become files, whose row groups have `group_bytes`.
    pub fn encoding(&self, group_bytes: usize) -> Arc<dyn RowEncoding> {
        let columns = self.columns.clone();
        match &self.format {
            Format::Parquet(output) => Arc::new(ParquetFiles {
                output: Arc::clone(output),
                columns,
                group_bytes,
            }),
            &Format::Arrow(codec) => Arc::new(ArrowFiles {
                codec,
                columns,
                group_bytes,
            }),
            Format::Text {
                printer,
                compression,
                ..
            } => Arc::new(PrintedFiles {
                compression: *compression,
                printer: Arc::clone(printer),
                columns,
                group_bytes,
            }),
        }
    }

    /// Whether files may be shorter than their rows: Parquet has dictionaries, whatever its codec.
    pub fn is_compressed(&self) -> bool {
        match &self.format {
            Format::Parquet(_) => true,
            Format::Arrow(codec) => codec.is_some(),
            Format::Text { compression, .. } => compression.is_some(),
        }
    }

    /// How names of files end.
    pub fn suffix(&self) -> String {
        match &self.format {
            Format::Parquet(_) => ".parquet".to_owned(),
            Format::Arrow(_) => ".arrow".to_owned(),
            Format::Text {
                suffix,
                compression,
                ..
            } => TextCodec::suffix(suffix, *compression),
        }
    }

    /// A file without rows.
    pub fn empty_file(&self) -> Result<Vec<u8>, FormatError> {
        match &self.format {
            Format::Parquet(output) => {
                let mut file = parquet::FileWriter::new(output, Vec::new())?;
                file.finish()?;
                Ok(std::mem::take(file.inner_mut()))
            }
            &Format::Arrow(codec) => {
                let schema = self.columns.schema();
                let mut file = arrow_ipc::FileWriter::new(schema, codec, Vec::new())?;
                file.finish()?;
                Ok(std::mem::take(file.inner_mut()))
            }
            Format::Text {
                printer,
                compression,
                ..
            } => file_of(&printer.beginning(), *compression),
        }
    }
}
