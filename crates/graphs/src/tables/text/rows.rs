//! Rows of text files: each record as it is, behind its key.

use std::sync::Arc;

use tonnage_formats::Pieces;
use tonnage_formats::text::{KeyError, KeyScratch, RecordKeys, beginning_of};
use tonnage_formats::text_columns::wrong_fields;
use tonnage_pipeline::StageError;
use tonnage_stages::extent::Extent;
use tonnage_stages::work::{RowSource, TakeRows};
use tonnage_tables::{RowBuilder, RowShape};

use crate::tables::text::file_records::{FileRecords, TextRecord};
use crate::tables::text::inputs::{BYTE_ORDER_MARK, TextInput, TextInputs};
use crate::tables::text::records::{RecordFormat, SampledRecords, TextRecords};

/// Bytes of rows that are given at once, so that they stay in the cache.
const STRIDE_BYTES: usize = 64 << 10;

/// How text becomes rows.
#[derive(Clone, Debug)]
pub struct TextFormat {
    /// Makes the keys.
    pub keys: RecordKeys,
    /// The names of the columns of the key.
    pub names: Vec<String>,
    /// How files are divided.
    pub records: RecordFormat,
    /// How many fields each record has, if that is known.
    pub columns: Option<usize>,
    /// Whether rows with equal keys keep their order.
    pub is_stable: bool,
}

impl TextFormat {
    /// Where the keys of rows are.
    #[must_use]
    pub fn shape(&self) -> RowShape {
        // Records that are equal as a whole have no order.
        let is_stable = self.is_stable && !self.keys.is_whole_record();
        RowShape::new(self.keys.key_bytes(), is_stable)
    }
}

/// Rows of all records.
#[derive(Debug)]
pub struct TextRows {
    records: TextRecords,
    keys: RecordKeys,
    names: Vec<String>,
    columns: Option<usize>,
    shape: RowShape,
    memory_bytes: usize,
}

impl TextRows {
    /// Rows of files, in splits of `split_bytes`; a record has `most_bytes` at most.
    pub fn new(
        inputs: &[TextInput],
        format: &TextFormat,
        split_bytes: usize,
        most_bytes: usize,
    ) -> Self {
        Self {
            memory_bytes: 4 * STRIDE_BYTES + TextRecords::memory_bytes(inputs, split_bytes),
            records: TextRecords::new(inputs, &format.records, split_bytes, most_bytes),
            keys: format.keys.clone(),
            names: format.names.clone(),
            columns: format.columns,
            shape: format.shape(),
        }
    }

    /// What each split needs to be read.
    pub fn extents(&self) -> Vec<Arc<Extent>> {
        self.records.extents()
    }

    fn rows_of(&self, records: FileRecords<'_>, take: TakeRows<'_>) -> Result<(), StageError> {
        let mut rows = RowBuilder::new(self.shape);
        let mut scratch = KeyScratch::default();
        for each in records.iter() {
            records.check_quotes(each)?;
            let (offset, record) = (each.offset, self.without_mark(each));
            let content = record.strip_suffix(b"\n").unwrap_or(record);
            let number = records.before + offset;
            let pushed = match self.keys.is_whole_record() {
                true => rows.push_whole(content, number),
                false => {
                    let content = content.strip_suffix(b"\r").unwrap_or(content);
                    if self.is_blank(content) {
                        continue;
                    }
                    self.check_fields(&records, offset, content)?;
                    rows.push(number, record, |key| {
                        self.keys.push(content, &mut scratch, key)
                    })
                }
            };
            pushed.map_err(|why| records.refusal(offset, &self.refusal(why)))?;
            if rows.bytes() >= STRIDE_BYTES {
                take(rows.rows())?;
                rows.clear();
            }
        }
        take(rows.rows())
    }

    /// A record without the mark that a file may begin with; lines are any bytes, and keep it.
    fn without_mark<'a>(&self, TextRecord { offset, bytes, .. }: TextRecord<'a>) -> &'a [u8] {
        let is_line = self.columns.is_none() && matches!(self.keys, RecordKeys::Fields(_));
        match offset == 0 && !is_line {
            true => bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes),
            false => bytes,
        }
    }

    /// Whether it is no record: one of several columns has a delimiter.
    fn is_blank(&self, content: &[u8]) -> bool {
        content.is_empty() && self.columns.is_some_and(|columns| columns > 1)
    }

    /// Refuses a record with more or fewer fields than there are columns.
    fn check_fields(
        &self,
        records: &FileRecords<'_>,
        offset: u64,
        content: &[u8],
    ) -> Result<(), StageError> {
        let (Some(columns), Some(dialect)) = (self.columns, records.quoting) else {
            return Ok(());
        };
        match dialect.count_fields(content) {
            fields if fields == columns => Ok(()),
            fields => Err(records.refusal(offset, &wrong_fields(fields, columns))),
        }
    }

    /// What is wrong with a record that has no key.
    fn refusal(&self, why: KeyError) -> String {
        match why {
            KeyError::Value {
                number,
                kind,
                value,
            } => format!(
                "has {} in column {:?}, which is no {}; correct it, or specify the column's type \
                 in the schema",
                beginning_of(&value),
                self.names[number],
                kind.name()
            ),
            KeyError::Record(why) => why,
        }
    }
}

impl RowSource for TextRows {
    fn shape(&self) -> RowShape {
        self.shape
    }

    fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    fn rows(&self, split: usize, bytes: Pieces, take: TakeRows<'_>) -> Result<(), StageError> {
        self.records
            .whole_records(split, bytes, |records| self.rows_of(records, take))
    }
}

/// Rows of some records, to see how keys are spread.
#[derive(Debug)]
pub struct TextSample {
    records: SampledRecords,
    keys: RecordKeys,
    shape: RowShape,
    memory_bytes: usize,
}

impl TextSample {
    /// Rows of about `count` splits of `bytes`, spread evenly.
    pub fn new(inputs: &TextInputs, format: &TextFormat, count: usize, bytes: usize) -> Self {
        Self {
            memory_bytes: 4 * STRIDE_BYTES + TextRecords::memory_bytes(inputs, bytes),
            records: TextRecords::sample(inputs, &format.records, count, bytes),
            keys: format.keys.clone(),
            shape: format.shape(),
        }
    }

    /// What each split needs to be read.
    pub fn extents(&self) -> Vec<Arc<Extent>> {
        self.records.extents()
    }
}

impl RowSource for TextSample {
    fn shape(&self) -> RowShape {
        self.shape
    }

    fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    fn rows(&self, split: usize, bytes: Pieces, take: TakeRows<'_>) -> Result<(), StageError> {
        self.records.records_within(split, bytes, |records| {
            let (mut rows, mut scratch) = (RowBuilder::new(self.shape), KeyScratch::default());
            for TextRecord { bytes: record, .. } in records.iter() {
                let content = record.strip_suffix(b"\n").unwrap_or(record);
                let content = content.strip_suffix(b"\r").unwrap_or(content);
                let _passed_over = match self.keys.is_whole_record() {
                    true => rows.push_whole(content, 0),
                    false => rows.push(0, record, |key| self.keys.push(content, &mut scratch, key)),
                };
            }
            take(rows.rows())
        })
    }
}
