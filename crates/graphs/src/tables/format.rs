//! What a sort needs of a format: rows of its files, and files of rows.

use std::sync::Arc;

use ::parquet::basic::Compression;
use arrow_schema::SchemaRef;
use serde::Deserialize;
use tonnage_formats::FormatError;
use tonnage_formats::parquet::Output;
use tonnage_formats::text::{Dialect, FieldKey, FieldKind, TextKeys};
use tonnage_formats::{arrow_ipc, parquet};
use tonnage_stages::extent::Extent;
use tonnage_stages::sink::RowSample;
use tonnage_stages::work::{RowEncoding, RowSource};
use tonnage_tables::{ColumnOrder, RowLayout, RowShape};

use crate::error::{JobError, setting_error};
use crate::tables::columns::arrow_files::ArrowFiles;
use crate::tables::columns::column_file::ColumnFormat;
use crate::tables::columns::column_rows::ColumnRows;
use crate::tables::columns::parquet_files::ParquetFiles;
use crate::tables::input::table::{Table, TableSplit};
use crate::tables::input::table_file::TableFile;
use crate::tables::input::table_schema::WantedColumns;
use crate::tables::text::files::TextFiles;
use crate::tables::text::inputs::TextInputs;
use crate::tables::text::records::RecordFormat;
use crate::tables::text::rows::{TextFormat, TextRows, TextSample};

/// A format, and what the rows of its files are sorted by.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FormatConfig {
    /// Columns.
    Columns {
        /// The format of the input.
        input: ColumnFormat,
        /// The format of the output.
        output: ColumnFormat,
        /// The order.
        order: Vec<ColumnOrder>,
        /// The columns to keep, in this order; all by default.
        #[serde(default)]
        columns: Option<Vec<String>>,
        /// Columns that are read as these types: a schema's IPC message in Base64.
        #[serde(default)]
        schema: Option<String>,
    },
    /// Lines, or records of fields, which are kept as they are.
    Text {
        /// What it is sorted by.
        keys: Vec<FieldConfig>,
        /// The byte between fields.
        delimiter: u8,
        /// The byte around a field, if it may have quotes.
        quote: Option<u8>,
        /// What each file begins with, and what is passed over in each input; empty if there is no
        /// header.
        header: String,
        /// How names of files end.
        suffix: String,
    },
}

/// A field of the key of text.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldConfig {
    place: Option<usize>,
    kind: FieldKindConfig,
    descending: bool,
    nulls_first: bool,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FieldKindConfig {
    Bytes,
    Integer,
    Float,
}

/// Rows, and what is read for each of their splits.
pub struct SplitRows {
    /// The rows.
    pub rows: Arc<dyn RowSource>,
    /// What is read.
    pub extents: Vec<Arc<Extent>>,
}

/// The input as a format reads it, and the output as it writes it.
pub trait TableFormat {
    /// Where the keys of rows are.
    fn shape(&self) -> RowShape;

    /// Some splits of about so many bytes, spread evenly.
    fn sample(&self, splits: usize, bytes: usize) -> Result<SplitRows, JobError>;

    /// All splits, of at most about `split_bytes`; a row has `row_bytes` at most.
    fn all(&self, split_bytes: usize, row_bytes: usize) -> Result<SplitRows, JobError>;

    /// About how many bytes all rows have.
    fn rows_bytes(&self, sample: &RowSample) -> u64;

    /// How many of these bytes, which sampling told, there are at least; less if it could only guess.
    fn least_bytes(&self, rows_bytes: u64) -> u64 {
        rows_bytes
    }

    /// How many rows there are, if the files tell.
    fn rows(&self) -> Option<u64>;

    /// How rows become files, whose row groups have `group_bytes`.
    fn encoding(&self, group_bytes: usize) -> Arc<dyn RowEncoding>;

    /// How names of files end.
    fn suffix(&self) -> String;

    /// A file without rows.
    fn empty_file(&self) -> Result<Vec<u8>, JobError>;
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
        } => {
            let wanted = WantedColumns::new(columns.as_deref(), schema.as_deref())?;
            let table = Table::open(*input, files, &wanted)?;
            Ok(Box::new(ColumnTable::new(
                table, *output, order, is_stable,
            )?))
        }
        FormatConfig::Text {
            keys,
            delimiter,
            quote,
            header,
            suffix,
        } => {
            let inputs = files.iter().map(|file| file.input.clone()).collect();
            let inputs = TextInputs::open(inputs)?;
            inputs.check_headers(header.as_bytes())?;
            let dialect = Dialect {
                delimiter: *delimiter,
                quote: *quote,
            };
            let keys = keys.iter().map(|key| FieldKey {
                place: key.place,
                kind: match key.kind {
                    FieldKindConfig::Bytes => FieldKind::Bytes,
                    FieldKindConfig::Integer => FieldKind::Integer,
                    FieldKindConfig::Float => FieldKind::Float,
                },
                descending: key.descending,
                nulls_first: key.nulls_first,
            });
            let format = TextFormat {
                keys: TextKeys::new(dialect, keys.collect()),
                records: RecordFormat {
                    quote: *quote,
                    header: header.clone().into_bytes(),
                },
                is_stable,
            };
            Ok(Box::new(TextTable {
                inputs,
                format,
                suffix: suffix.clone(),
            }))
        }
    }
}

struct ColumnTable {
    table: Arc<Table>,
    layout: Arc<RowLayout>,
    output: ColumnOutput,
}

/// How files with columns are written.
enum ColumnOutput {
    Parquet(Arc<Output>),
    Arrow,
}

impl ColumnTable {
    fn new(
        table: Table,
        output: ColumnFormat,
        order: &[ColumnOrder],
        is_stable: bool,
    ) -> Result<Self, JobError> {
        let schema = table.schema();
        let layout = RowLayout::new(schema, order, is_stable);
        let layout = layout.map_err(|why| setting_error("by", why.to_string()))?;
        let output = match output {
            ColumnFormat::Parquet => {
                let sorting: Vec<(String, bool, bool)> = order
                    .iter()
                    .map(|column| (column.name.clone(), column.descending, column.nulls_first))
                    .collect();
                let output = Output::new(schema, Compression::SNAPPY, &sorting)
                    .map_err(|why| setting_error("output", why.to_string()))?;
                ColumnOutput::Parquet(Arc::new(output))
            }
            ColumnFormat::Arrow => ColumnOutput::Arrow,
        };
        Ok(Self {
            table: Arc::new(table),
            layout: Arc::new(layout),
            output,
        })
    }

    fn split_rows(&self, splits: Vec<TableSplit>) -> SplitRows {
        let rows = ColumnRows::new(&self.table, &self.layout, splits);
        SplitRows {
            extents: rows.extents(),
            rows: Arc::new(rows),
        }
    }
}

impl TableFormat for ColumnTable {
    fn shape(&self) -> RowShape {
        self.layout.shape()
    }

    fn sample(&self, splits: usize, bytes: usize) -> Result<SplitRows, JobError> {
        Ok(self.split_rows(self.table.sample(splits, bytes as u64)?))
    }

    fn all(&self, split_bytes: usize, _row_bytes: usize) -> Result<SplitRows, JobError> {
        Ok(self.split_rows(self.table.splits(split_bytes as u64)?))
    }

    fn rows_bytes(&self, sample: &RowSample) -> u64 {
        scaled(sample.bytes, self.table.rows(), sample.rows)
    }

    fn rows(&self) -> Option<u64> {
        Some(self.table.rows())
    }

    fn encoding(&self, group_bytes: usize) -> Arc<dyn RowEncoding> {
        let layout = Arc::clone(&self.layout);
        match &self.output {
            ColumnOutput::Parquet(output) => Arc::new(ParquetFiles {
                output: Arc::clone(output),
                layout,
                group_bytes,
            }),
            ColumnOutput::Arrow => Arc::new(ArrowFiles {
                layout,
                group_bytes,
            }),
        }
    }

    fn suffix(&self) -> String {
        let suffix = match self.output {
            ColumnOutput::Parquet(_) => ".parquet",
            ColumnOutput::Arrow => ".arrow",
        };
        suffix.to_owned()
    }

    fn empty_file(&self) -> Result<Vec<u8>, JobError> {
        let file = match &self.output {
            ColumnOutput::Parquet(output) => empty_parquet(output),
            ColumnOutput::Arrow => empty_arrow(self.layout.schema()),
        };
        file.map_err(|why| JobError::failure(why.to_string()))
    }
}

fn empty_parquet(output: &Output) -> Result<Vec<u8>, FormatError> {
    let mut file = parquet::FileWriter::new(output, Vec::new())?;
    file.finish()?;
    Ok(std::mem::take(file.inner_mut()))
}

fn empty_arrow(schema: &SchemaRef) -> Result<Vec<u8>, FormatError> {
    let mut file = arrow_ipc::FileWriter::new(schema, Vec::new())?;
    file.finish()?;
    Ok(std::mem::take(file.inner_mut()))
}

struct TextTable {
    inputs: TextInputs,
    format: TextFormat,
    suffix: String,
}

impl TableFormat for TextTable {
    fn shape(&self) -> RowShape {
        self.format.shape()
    }

    fn sample(&self, splits: usize, bytes: usize) -> Result<SplitRows, JobError> {
        let sample = TextSample::new(&self.inputs, &self.format, splits, bytes);
        Ok(SplitRows {
            extents: sample.extents(),
            rows: Arc::new(sample),
        })
    }

    fn all(&self, split_bytes: usize, row_bytes: usize) -> Result<SplitRows, JobError> {
        let rows = TextRows::new(&self.inputs, &self.format, split_bytes, row_bytes);
        Ok(SplitRows {
            extents: rows.extents(),
            rows: Arc::new(rows),
        })
    }

    fn rows_bytes(&self, sample: &RowSample) -> u64 {
        self.inputs.scaled(sample.bytes, sample.read_bytes)
    }

    fn least_bytes(&self, rows_bytes: u64) -> u64 {
        match self.inputs.has_compressed() {
            true => rows_bytes.min(self.inputs.file_bytes()),
            false => rows_bytes,
        }
    }

    fn rows(&self) -> Option<u64> {
        None
    }

    fn encoding(&self, _group_bytes: usize) -> Arc<dyn RowEncoding> {
        Arc::new(TextFiles {
            shape: self.shape(),
            is_whole_record: self.format.keys.is_whole_record(),
            header: self.format.records.header.clone(),
        })
    }

    fn suffix(&self) -> String {
        self.suffix.clone()
    }

    fn empty_file(&self) -> Result<Vec<u8>, JobError> {
        Ok(self.format.records.header.clone())
    }
}

/// `bytes`, if there is `whole` of what is `part` in a sample.
pub fn scaled(bytes: u64, whole: u64, part: u64) -> u64 {
    match part {
        0 => 0,
        part => (u128::from(bytes) * u128::from(whole) / u128::from(part)) as u64,
    }
}
