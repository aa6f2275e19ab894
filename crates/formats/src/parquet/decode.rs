//! Batches of a split.

use arrow_array::RecordBatch;
use bytes::Bytes;
use bytes::buf::{Buf, Reader};
use parquet::arrow::arrow_reader::{
    ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelector,
};
use parquet::basic::Type;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length};

use super::split::{Projection, Split};
use crate::error::FormatError;
use crate::read_at::Pieces;

/// Decoded bytes of a batch.
const BATCH_BYTES: i64 = 8 << 20;

/// Decodes a split, batch by batch.
pub struct Decoder(ParquetRecordBatchReader);

impl Decoder {
    /// Batches of at most `batch_rows`, and of about [`BATCH_BYTES`], from the bytes of a split's
    /// ranges.
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
                .with_batch_size(batch_rows.min(rows_within(split, projection)));
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

/// How many rows have [`BATCH_BYTES`], decoded: in a file repeated values take a bit or two. How long
/// texts are then, files of older writers do not tell.
fn rows_within(split: &Split, projection: &Projection) -> usize {
    let group = split.group.metadata().row_group(0);
    let columns = group.columns().iter().enumerate();
    let read = columns.filter(|(leaf, _)| projection.mask.leaf_included(*leaf));
    let bytes = read.map(|(_, column)| decoded_bytes(column));
    let row_bytes = bytes.fold(0, i64::saturating_add) / group.num_rows().max(1);
    usize::try_from(BATCH_BYTES / row_bytes.max(1)).map_or(1, |rows| rows.max(1))
}

fn decoded_bytes(column: &ColumnChunkMetaData) -> i64 {
    let width = match column.column_type() {
        Type::BOOLEAN => 1,
        Type::INT32 | Type::FLOAT => 4,
        Type::INT64 | Type::DOUBLE => 8,
        Type::INT96 => 12,
        Type::FIXED_LEN_BYTE_ARRAY => i64::from(column.column_descr().type_length()),
        Type::BYTE_ARRAY => 4, // an offset
    };
    let texts = column.unencoded_byte_array_data_bytes().unwrap_or(0);
    let values = column.num_values().saturating_mul(width);
    values.saturating_add(texts).max(column.uncompressed_size())
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
