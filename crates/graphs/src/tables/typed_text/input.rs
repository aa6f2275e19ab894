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
use crate::tables::input::table_file::TableFile;
use crate::tables::table_format::SplitRows;
use crate::tables::text::inputs::TextInputs;
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
}

impl TypedText {
    /// Opens text.
    ///
    /// # Errors
    /// A file with another header, or columns that text cannot have.
    pub fn open(config: &TypedTextConfig, files: &[TableFile]) -> Result<Self, JobError> {
        let refuse = |why: String| setting_error("schema", why);
        let file = read_schema(&config.schema).map_err(|why| refuse(why.to_string()))?;
        let kept = match &config.columns {
            None => file.clone(),
            Some(names) => {
                let places: Result<Vec<usize>, _> =
                    names.iter().map(|name| file.index_of(name)).collect();
                let kept = places.and_then(|places| file.project(&places));
                kept.map_err(|why| setting_error("columns", why.to_string()))?
            }
        };
        let columns = RecordColumns {
            charset: Charset::new(config.upper_half.as_deref()),
            records: config.records.clone(),
            file: Arc::new(file),
            kept: Arc::new(kept),
        };
        columns.reader().map_err(refuse)?;
        let header = match &config.records {
            RecordKind::Csv { header, .. } => header.clone(),
            RecordKind::Json => Vec::new(),
        };
        let quoting = config.records.dialect();
        let inputs = TextInputs::open(&whole_records(files, config.quote())?)?;
        inputs.check_headers(&header)?;
        Ok(Self {
            inputs,
            format: RecordFormat { quoting, header },
            columns: Arc::new(columns),
        })
    }
}

impl ColumnInput for TypedText {
    fn schema(&self) -> &SchemaRef {
        &self.columns.kept
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
