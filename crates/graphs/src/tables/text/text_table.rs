//! Text that is kept as it is: its configuration, its rows and its files.

use std::sync::Arc;

use arrow_schema::TimeUnit;
use serde::Deserialize;
use tonnage_formats::text::{
    Dialect, FieldKey, FieldKind, JsonKey, JsonKeys, RecordKeys, TextKeys,
};
use tonnage_stages::sink::RowSample;
use tonnage_stages::work::RowEncoding;
use tonnage_tables::RowShape;

use crate::error::JobError;
use crate::tables::compression::{CompressionConfig, TextCodec};
use crate::tables::input::table_file::TableFile;
use crate::tables::table_format::{SplitRows, TableFormat};
use crate::tables::text::files::TextFiles;
use crate::tables::text::inputs::TextInputs;
use crate::tables::text::parts::whole_records;
use crate::tables::text::records::RecordFormat;
use crate::tables::text::rows::{TextFormat, TextRows, TextSample};
use crate::tables::text::text_file;

/// How text is read, and what it is sorted by.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextConfig {
    /// What it is sorted by.
    keys: Vec<FieldConfig>,
    /// The byte between fields; blanks without one.
    delimiter: Option<u8>,
    /// The byte around a field, if it may have quotes.
    quote: Option<u8>,
    /// What each file begins with, and what is passed over in each input; empty if there is no
    /// header.
    header: String,
    /// How many fields each record has, if that is known.
    #[serde(default)]
    columns: Option<usize>,
    /// How names of files end.
    suffix: String,
    /// How files are compressed, if they are.
    #[serde(default)]
    compression: Option<CompressionConfig>,
}

/// A field of the key of text.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FieldConfig {
    /// What it is called.
    name: String,
    /// Its place in the record, or its path in an object; the whole record without either.
    place: Option<usize>,
    #[serde(default)]
    path: Option<Vec<String>>,
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
    Decimal,
    Boolean,
    Date,
    Time,
    Timestamp {
        /// Whether values have fractions of seconds.
        has_fractions: bool,
        has_zone: bool,
    },
}

impl FieldKindConfig {
    fn kind(self) -> FieldKind {
        match self {
            Self::Bytes => FieldKind::Bytes,
            Self::Integer => FieldKind::Integer,
            Self::Float => FieldKind::Float,
            Self::Decimal => FieldKind::Decimal,
            Self::Boolean => FieldKind::Boolean,
            Self::Date => FieldKind::Date,
            Self::Time => FieldKind::Time,
            Self::Timestamp {
                has_fractions,
                has_zone,
            } => FieldKind::Timestamp {
                unit: match has_fractions {
                    true => TimeUnit::Nanosecond,
                    false => TimeUnit::Second,
                },
                has_zone,
            },
        }
    }
}

impl TextConfig {
    /// The byte around a field, if it may have quotes.
    pub fn quote(&self) -> Option<u8> {
        self.quote
    }

    fn record_keys(&self) -> RecordKeys {
        let members = self.keys.iter().map(|key| {
            Some(JsonKey {
                path: key.path.clone()?,
                kind: key.kind.kind(),
                descending: key.descending,
                nulls_first: key.nulls_first,
            })
        });
        if let Some(members) = members.collect() {
            return RecordKeys::Json(JsonKeys::new(members));
        }
        let fields = self.keys.iter().map(|key| FieldKey {
            place: key.place,
            kind: key.kind.kind(),
            descending: key.descending,
            nulls_first: key.nulls_first,
        });
        RecordKeys::Fields(TextKeys::new(self.dialect(), fields.collect()))
    }

    fn dialect(&self) -> Option<Dialect> {
        let quote = self.quote;
        self.delimiter.map(|delimiter| Dialect { delimiter, quote })
    }
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
    let format = TextFormat {
        keys: config.record_keys(),
        names: config.keys.iter().map(|key| key.name.clone()).collect(),
        records: RecordFormat {
            quoting: config.dialect().filter(|dialect| dialect.quote.is_some()),
            header: config.header.clone().into_bytes(),
        },
        columns: config.columns,
        is_stable,
    };
    let compression = config
        .compression
        .map(CompressionConfig::of_text)
        .transpose()?;
    Ok(Box::new(TextTable {
        compression: compression.flatten(),
        inputs,
        format,
        suffix: config.suffix.clone(),
    }))
}

struct TextTable {
    inputs: TextInputs,
    format: TextFormat,
    suffix: String,
    compression: Option<TextCodec>,
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
            compression: self.compression,
        })
    }

    fn least_output_bytes(&self, rows_bytes: u64) -> u64 {
        match self.compression {
            None => rows_bytes,
            Some(_) => 0,
        }
    }

    fn suffix(&self) -> String {
        TextCodec::suffix(&self.suffix, self.compression)
    }

    fn empty_file(&self) -> Result<Vec<u8>, JobError> {
        let file = text_file::file_of(&self.format.records.header, self.compression);
        file.map_err(|why| JobError::failure(why.to_string()))
    }
}
