//! Text that is kept as it is: its configuration, its rows and its files.

use std::sync::Arc;

use serde::Deserialize;
use tonnage_formats::text::{Dialect, FieldKey, FieldKind, TextKeys};
use tonnage_stages::sink::RowSample;
use tonnage_stages::work::RowEncoding;
use tonnage_tables::RowShape;

use crate::error::JobError;
use crate::tables::input::table_file::TableFile;
use crate::tables::table_format::{SplitRows, TableFormat};
use crate::tables::text::files::TextFiles;
use crate::tables::text::inputs::TextInputs;
use crate::tables::text::parts::whole_records;
use crate::tables::text::records::RecordFormat;
use crate::tables::text::rows::{TextFormat, TextRows, TextSample};

/// How text is read, and what it is sorted by.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextConfig {
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
}

/// A field of the key of text.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FieldConfig {
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

/// Opens text.
///
/// # Errors
/// A file with another header.
pub fn open(
    config: &TextConfig,
    files: &[TableFile],
    is_stable: bool,
) -> Result<Box<dyn TableFormat>, JobError> {
    let inputs = TextInputs::open(&whole_records(files, config.quote)?)?;
    inputs.check_headers(config.header.as_bytes())?;
    let dialect = Dialect {
        delimiter: config.delimiter,
        quote: config.quote,
    };
    let keys = config.keys.iter().map(|key| FieldKey {
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
            quote: config.quote,
            header: config.header.clone().into_bytes(),
        },
        is_stable,
    };
    Ok(Box::new(TextTable {
        inputs,
        format,
        suffix: config.suffix.clone(),
    }))
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
            count: None,
            rows: Arc::new(sample),
        })
    }

    fn all(&self, split_bytes: usize, row_bytes: usize) -> Result<SplitRows, JobError> {
        let rows = TextRows::new(&self.inputs, &self.format, split_bytes, row_bytes);
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
