//! Rows of the columns that records are decoded into, a short batch at a time.

use std::fmt;
use std::sync::Arc;

use tonnage_formats::Pieces;
use tonnage_formats::text_columns::RecordReader;
use tonnage_pipeline::{Failure, StageError};
use tonnage_stages::extent::Extent;
use tonnage_stages::work::{RowSource, TakeRows};
use tonnage_tables::{RowLayout, RowShape, RowWriter};

use super::record_columns::RecordColumns;
use crate::tables::text::file_records::{FileRecords, TextRecord};
use crate::tables::text::inputs::{BYTE_ORDER_MARK, TextInput, TextInputs};
use crate::tables::text::records::{RecordFormat, SampledRecords, TextRecords};

/// Bytes of a batch, and of the text that it was.
const BATCH_BYTES: usize = 128 << 10;
/// Memory of a batch while it grows, of its rows, and of a record that is longer.
const MEMORY_BYTES: usize = 6 * BATCH_BYTES;

/// Rows of all records.
pub struct TypedRows {
    records: TextRecords,
    columns: Arc<RecordColumns>,
    layout: Arc<RowLayout>,
    memory_bytes: usize,
}

impl TypedRows {
    /// Rows of files, in splits of `split_bytes`; a record has `most_bytes` at most.
    pub fn new(
        inputs: &[TextInput],
        format: &RecordFormat,
        columns: &Arc<RecordColumns>,
        layout: &Arc<RowLayout>,
        (split_bytes, most_bytes): (usize, usize),
    ) -> Self {
        Self {
            memory_bytes: MEMORY_BYTES + TextRecords::memory_bytes(inputs, split_bytes),
            records: TextRecords::new(inputs, format, split_bytes, most_bytes),
            columns: Arc::clone(columns),
            layout: Arc::clone(layout),
        }
    }

    /// What each split needs to be read.
    pub fn extents(&self) -> Vec<Arc<Extent>> {
        self.records.extents()
    }
}

impl fmt::Debug for TypedRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("columns of text")
    }
}

impl RowSource for TypedRows {
    fn shape(&self) -> RowShape {
        self.layout.shape()
    }

    fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    fn rows(&self, split: usize, bytes: Pieces, take: TakeRows<'_>) -> Result<(), StageError> {
        let mut batch = Batch::new(&self.columns, &self.layout)?;
        self.records.whole_records(split, bytes, |records| {
            for record in records.iter() {
                records.check_quotes(record)?;
                let pushed = batch.push(&records, record);
                pushed.map_err(|why| records.refusal(record.offset, &why))?;
                batch.give_if_full(&records, take)?;
            }
            // The next ones may be of before these.
            batch.give(&records, take)
        })
    }
}

/// Rows of some records, to see how keys are spread.
pub struct TypedSample {
    records: SampledRecords,
    columns: Arc<RecordColumns>,
    layout: Arc<RowLayout>,
    memory_bytes: usize,
}

impl TypedSample {
    /// Rows of about `count` splits of `bytes`, spread evenly.
    pub fn new(
        inputs: &TextInputs,
        format: &RecordFormat,
        columns: &Arc<RecordColumns>,
        layout: &Arc<RowLayout>,
        (count, bytes): (usize, usize),
    ) -> Self {
        Self {
            memory_bytes: MEMORY_BYTES + TextRecords::memory_bytes(inputs, bytes),
            records: TextRecords::sample(inputs, format, count, bytes),
            columns: Arc::clone(columns),
            layout: Arc::clone(layout),
        }
    }

    /// What each split needs to be read.
    pub fn extents(&self) -> Vec<Arc<Extent>> {
        self.records.extents()
    }
}

impl fmt::Debug for TypedSample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sample of columns of text")
    }
}

impl RowSource for TypedSample {
    fn shape(&self) -> RowShape {
        self.layout.shape()
    }

    fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    fn rows(&self, split: usize, bytes: Pieces, take: TakeRows<'_>) -> Result<(), StageError> {
        let mut batch = Batch::new(&self.columns, &self.layout)?;
        self.records.records_within(split, bytes, |records| {
            for record in records.iter() {
                // Pass one reports what cannot be read, if it is a record at all.
                let _passed_over = batch.push(&records, record);
                batch.give_if_full(&records, take)?;
            }
            batch.give(&records, take)
        })
    }
}

/// Records that are being decoded.
struct Batch<'a> {
    columns: &'a RecordColumns,
    reader: Box<dyn RecordReader>,
    writer: RowWriter,
    /// The number of each row: where it begins in the whole input.
    numbers: Vec<u64>,
    text_bytes: usize,
    row_bytes: usize,
    /// The file that the rows are of.
    file: usize,
}

impl<'a> Batch<'a> {
    fn new(columns: &'a RecordColumns, layout: &Arc<RowLayout>) -> Result<Self, StageError> {
        let reader = columns.reader().map_err(Failure::new)?;
        Ok(Self {
            columns,
            row_bytes: reader.row_bytes(),
            reader,
            writer: RowWriter::new(layout),
            numbers: Vec::new(),
            text_bytes: 0,
            file: 0,
        })
    }

    fn push(
        &mut self,
        records: &FileRecords<'_>,
        TextRecord { offset, bytes, .. }: TextRecord<'_>,
    ) -> Result<(), String> {
        let record = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let record = match offset {
            0 => record.strip_prefix(BYTE_ORDER_MARK).unwrap_or(record),
            _ => record,
        };
        let text = self.columns.charset.to_utf8(record)?;
        if self.reader.push(&text)? {
            self.file = records.file;
            self.numbers.push(records.before + offset);
            self.text_bytes += text.len();
        }
        Ok(())
    }

    fn give_if_full(
        &mut self,
        records: &FileRecords<'_>,
        take: TakeRows<'_>,
    ) -> Result<(), StageError> {
        match self.text_bytes + self.numbers.len() * self.row_bytes >= BATCH_BYTES {
            true => self.give(records, take),
            false => Ok(()),
        }
    }

    /// Gives the rows so far, which are of these records' file.
    fn give(&mut self, records: &FileRecords<'_>, take: TakeRows<'_>) -> Result<(), StageError> {
        if self.numbers.is_empty() {
            return Ok(());
        }
        let fail = |why: String| Failure::new(format!("decoding text: {why}"));
        let batch = self.reader.finish().map_err(|why| fail(why.to_string()))?;
        let batch = match &self.columns.of_files {
            None => batch,
            Some(of_files) => of_files[self.file].arrange(&batch).map_err(|why| {
                let name = records.input.file.name();
                Failure::bad_input(format!("input {name}: {why}"))
            })?,
        };
        let opened = self.writer.open(&batch);
        opened.map_err(|why| fail(why.to_string()))?;
        let mut first = 0;
        while first < self.numbers.len() {
            // Numbers that follow it are less than those of the next rows: no record is empty.
            let rows = self
                .writer
                .write(first..self.numbers.len(), self.numbers[first]);
            let rows = rows.map_err(|why| fail(why.to_string()))?;
            take(rows)?;
            first += rows.len();
        }
        self.numbers.clear();
        self.text_bytes = 0;
        Ok(())
    }
}
