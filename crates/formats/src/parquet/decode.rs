//! Batches of a split.

use std::ops::Range;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use bytes::Bytes;
use bytes::buf::{Buf, Reader};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelection,
    RowSelector,
};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};

use super::decoding_memory::DecodingMemory;
use super::leaves::leaves;
use super::split::{Projection, Split};
use crate::error::FormatError;
use crate::read_at::Pieces;

/// Batches that are longer than they should be by more are decoded with fewer rows from there on.
const MOST_EXCESS: u64 = 4;

/// Decodes a split, batch by batch.
pub struct Decoder {
    reader: ParquetRecordBatchReader,
    group: ArrowReaderMetadata,
    projection: ProjectionMask,
    pieces: Pieces,
    /// Rows of the row group that are not decoded yet.
    left: Vec<Range<usize>>,
    batch_rows: usize,
    memory: DecodingMemory,
}

impl Decoder {
    /// Batches of at most `batch_rows`, fewer where rows are long, from the bytes of a split's ranges.
    ///
    /// # Errors
    /// When the bytes are no pages of these columns.
    pub fn new(
        split: &Split,
        projection: &Projection,
        pieces: Pieces,
        batch_rows: usize,
    ) -> Result<Self, FormatError> {
        let group = split.group.metadata().row_group(0);
        let memory = DecodingMemory::of_pages(group, &projection.mask, split.most_bytes, &pieces);
        let batch_rows = memory.batch_rows(batch_rows);
        let mut reader = reader(&split.group, &projection.mask, &pieces, batch_rows);
        if !split.decoded.is_empty() {
            reader = reader.with_row_selection(selection(&split.decoded));
        }
        Ok(Self {
            reader: reader.build()?,
            group: split.group.clone(),
            projection: projection.mask.clone(),
            left: match split.decoded.is_empty() {
                true => std::iter::once(split.rows.clone()).collect(),
                false => split.decoded.clone(),
            },
            pieces,
            batch_rows,
            memory,
        })
    }

    /// Memory that decoding takes, about.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.memory.bytes()
    }

    /// Rows are longer than those before: continues with fewer in a batch.
    fn shorten(&mut self, bytes: u64) -> Result<(), FormatError> {
        let rows = self.batch_rows as u64 * self.memory.batch_bytes / bytes;
        self.batch_rows = usize::try_from(rows).unwrap_or(1).max(1);
        let reader = reader(&self.group, &self.projection, &self.pieces, self.batch_rows);
        self.reader = reader.with_row_selection(selection(&self.left)).build()?;
        Ok(())
    }
}

impl Iterator for Decoder {
    type Item = Result<RecordBatch, FormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = match self.reader.next()? {
            Ok(batch) => batch,
            Err(why) => return Some(Err(why.into())),
        };
        let mut rows = batch.num_rows();
        for range in &mut self.left {
            let passed = rows.min(range.len());
            range.start += passed;
            rows -= passed;
        }
        self.left.retain(|range| !range.is_empty());
        let bytes: u64 = batch.columns().iter().map(bytes_of).sum();
        let is_long = bytes > MOST_EXCESS * self.memory.batch_bytes;
        let continues = self.batch_rows > 1 && !self.left.is_empty();
        match is_long && continues {
            true => Some(self.shorten(bytes).map(|()| batch)),
            false => Some(Ok(batch)),
        }
    }
}

/// Bytes of the values of an array, but for dictionaries, which batches share.
fn bytes_of(array: &ArrayRef) -> u64 {
    let bytes = |leaf: &ArrayRef| match leaf.data_type() {
        DataType::Dictionary(keys, _) => keys.primitive_width().map(|width| width * leaf.len()),
        _ => leaf.to_data().get_slice_memory_size().ok(),
    };
    let bytes = leaves(array).iter().filter_map(bytes).sum::<usize>();
    bytes as u64
}

fn reader(
    group: &ArrowReaderMetadata,
    projection: &ProjectionMask,
    pieces: &Pieces,
    batch_rows: usize,
) -> ParquetRecordBatchReaderBuilder<InMemory> {
    let pieces = InMemory(pieces.clone());
    ParquetRecordBatchReaderBuilder::new_with_metadata(pieces, group.clone())
        .with_projection(projection.clone())
        .with_batch_size(batch_rows)
}

fn selection(rows: &[Range<usize>]) -> RowSelection {
    let mut at = 0;
    let selectors = rows.iter().flat_map(|rows| {
        let before = rows.start - std::mem::replace(&mut at, rows.end);
        [RowSelector::skip(before), RowSelector::select(rows.len())]
    });
    selectors.collect::<Vec<_>>().into()
}

/// Ranges in memory, as the reader of pages wants them.
struct InMemory(Pieces);

impl InMemory {
    fn at(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let bytes = self.0.from(start);
        match bytes.len() >= length && !bytes.is_empty() {
            true => Ok(bytes),
            false => Err(ParquetError::EOF(format!(
                "{length} bytes at offset {start} are not in any page of the split"
            ))),
        }
    }
}

impl Length for InMemory {
    fn len(&self) -> u64 {
        u64::MAX // Nobody asks for the end of a split.
    }
}

impl ChunkReader for InMemory {
    type T = Reader<Bytes>;

    fn get_read(&self, start: u64) -> ParquetResult<Reader<Bytes>> {
        Ok(self.at(start, 1)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        Ok(self.at(start, length)?.slice(..length))
    }
}
