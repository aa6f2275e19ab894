//! Batches of a split.

use arrow_array::RecordBatch;
use bytes::Bytes;
use bytes::buf::{Buf, Reader};
use parquet::arrow::arrow_reader::{
    ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelector,
};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};

use super::split::{Projection, Split};
use crate::error::FormatError;
use crate::read_at::Pieces;

/// Decodes a split, batch by batch.
pub struct Decoder(ParquetRecordBatchReader);

impl Decoder {
    /// Batches of at most `batch_rows` from the bytes of a split's ranges.
    ///
    /// # Errors
    /// When the bytes are no pages of these columns.
    pub fn new(
        split: &Split,
        projection: &Projection,
        pieces: Pieces,
        batch_rows: usize,
    ) -> Result<Self, FormatError> {
        let group = split.group.clone();
        let mut reader =
            ParquetRecordBatchReaderBuilder::new_with_metadata(InMemory(pieces), group)
                .with_projection(projection.mask.clone())
                .with_batch_size(batch_rows);
        if !split.decoded.is_empty() {
            let mut at = 0;
            let selection = split.decoded.iter().flat_map(|rows| {
                let before = rows.start - std::mem::replace(&mut at, rows.end);
                [RowSelector::skip(before), RowSelector::select(rows.len())]
            });
            reader = reader.with_row_selection(selection.collect::<Vec<_>>().into());
        }
        Ok(Self(reader.build()?))
    }
}

impl Iterator for Decoder {
    type Item = Result<RecordBatch, FormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next()?.map_err(FormatError::from))
    }
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
