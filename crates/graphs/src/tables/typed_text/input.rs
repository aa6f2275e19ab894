//! Files of text, and the columns that their records have.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use serde::Deserialize;
use tonnage_formats::text_columns::Charset;
use tonnage_formats::types::read_schema;
use tonnage_stages::sink::RowSample;
use tonnage_tables::RowLayout;

use super::record_columns::{RecordColumns, RecordKind};
use super::rows::{TypedRows, TypedSample};
use crate::error::{JobError, setting_error};
use crate::tables::columns::column_table::ColumnInput;
use crate::tables::input::file_columns::FileColumns;
use crate::tables::input::table_file::TableFile;
use crate::tables::input::table_schema::{FileSchema, WantedColumns, common_schema};
use crate::tables::table_format::SplitRows;
use crate::tables::text::inputs::{TextInput, TextInputs};
use crate::tables::text::parts::whole_records;
use crate::tables::text::records::RecordFormat;

/// How text is read.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TypedTextConfig {
    /// Its records.
    records: RecordKind,
    /// All columns, in the order of their fields: a schema's IPC message in Base64.
    schema: String,
    /// The columns to keep, in this order; all by default.
    columns: Option<Vec<String>>,
    /// Types of columns of folders: a schema's IPC message in Base64.
    #[serde(default)]
    folder_schema: Option<String>,
    /// What the bytes from 128 on mean, if they are not UTF-8; U+FFFD is none.
    upper_half: Option<String>,
}

impl TypedTextConfig {
    /// The byte around a field, if it may have quotes.
    pub fn quote(&self) -> Option<u8> {
        self.records.dialect().and_then(|dialect| dialect.quote)
    }
}

/// Files of text with columns.
pub struct TypedText {
    inputs: TextInputs,
    format: RecordFormat,
    columns: Arc<RecordColumns>,
    schema: SchemaRef,
}

/// The columns of the files and those of their folders.
fn joined_schema(
    config: &TypedTextConfig,
    files: &[TableFile],
    file: &SchemaRef,
) -> Result<SchemaRef, JobError> {
    let (columns, types) = (config.columns.as_deref(), config.folder_schema.as_deref());
    let wanted = WantedColumns::new(columns, types, None)?;
    let names: Vec<String> = files.iter().map(TableFile::name).collect();
    let schemas = names.iter().zip(files);
    let schemas: Vec<_> = schemas
        .map(|(name, each)| file_schema(name, each, file))
        .collect();
    common_schema(&schemas, &wanted)
}

fn file_schema<'a>(name: &'a str, file: &'a TableFile, schema: &'a SchemaRef) -> FileSchema<'a> {
    FileSchema {
        name,
        schema,
        folders: &file.folders,
    }
}

impl TypedText {
    /// Opens text.
    ///
    /// # Errors
    /// A file with another header, or columns that text cannot have.
    pub fn open(config: &TypedTextConfig, files: &[TableFile]) -> Result<Self, JobError> {
        let refuse = |why: String| setting_error("schema", why);
        let file = read_schema(&config.schema).map_err(|why| refuse(why.to_string()))?;
        let file = Arc::new(file);
        let refuse_columns = |why: String| setting_error("columns", why);
        let with_folders = files.iter().any(|each| !each.folders.is_empty());
        let schema = match &config.columns {
            _ if with_folders => joined_schema(config, files, &file)?,
            None => Arc::clone(&file),
            Some(names) => {
                let places: Result<Vec<usize>, _> =
                    names.iter().map(|name| file.index_of(name)).collect();
                let kept = places.and_then(|places| file.project(&places));
                Arc::new(kept.map_err(|why| refuse_columns(why.to_string()))?)
            }
        };
        let own = schema.fields().iter();
        let own = own.filter_map(|field| file.index_of(field.name()).ok());
        let kept = file.project(&own.collect::<Vec<_>>());
        let kept = kept.map_err(|why| refuse_columns(why.to_string()))?;
        if kept.fields().is_empty() && with_folders {
            let why = "all of them are folders; keep one that the files have, too";
            return Err(refuse_columns(why.to_owned()));
        }
        let mut columns = RecordColumns {
            charset: Charset::new(config.upper_half.as_deref()),
            records: config.records.clone(),
            file: Arc::clone(&file),
            kept: Arc::new(kept),
            of_files: None,
        };
        columns.reader().map_err(refuse)?;
        let header = match &config.records {
            RecordKind::Csv { header, .. } => header.clone(),
            RecordKind::Json => Vec::new(),
        };
        let quoting = config.records.dialect();
        let inputs = TextInputs::open(&whole_records(files, config.quote())?)?;
        inputs.check_headers(&header)?;
        if with_folders {
            let of_file = |input: &TextInput| {
                let name = input.file.name();
                FileColumns::new(&file_schema(&name, &input.file, &file), &schema)
            };
            let of_files: Result<_, JobError> = inputs.iter().map(of_file).collect();
            columns.of_files = Some(of_files?);
        }
        Ok(Self {
            schema,
            inputs,
            format: RecordFormat { quoting, header },
            columns: Arc::new(columns),
        })
    }
}

impl ColumnInput for TypedText {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn narrowed(&self, _schema: &SchemaRef) -> Result<Option<Self>, JobError> {
        Ok(None) // Text is read whole.
    }

    fn sample(
        &self,
        layout: &Arc<RowLayout>,
        splits: usize,
        bytes: usize,
    ) -> Result<SplitRows, JobError> {
        let Self {
            inputs,
            format,
            columns,
            ..
        } = self;
        let rows = TypedSample::new(inputs, format, columns, layout, (splits, bytes));
        Ok(SplitRows {
            extents: rows.extents(),
            count: None,
            rows: Arc::new(rows),
        })
    }

    fn all(
        &self,
        layout: &Arc<RowLayout>,
        split_bytes: usize,
        row_bytes: usize,
    ) -> Result<SplitRows, JobError> {
        let Self {
            inputs,
            format,
            columns,
            ..
        } = self;
        let rows = TypedRows::new(inputs, format, columns, layout, (split_bytes, row_bytes));
        Ok(SplitRows {
            extents: rows.extents(),
            count: None,
            rows: Arc::new(rows),
        })
    }

    fn rows_bytes(&self, sample: &RowSample) -> u64 {
        self.inputs.scaled(sample.bytes, sample.read_bytes)
    }

    fn least_bytes(&self, rows_bytes: u64) -> u64 {
        self.inputs.least_bytes(rows_bytes)
    }

    fn rows(&self) -> Option<u64> {
        None
    }
}
