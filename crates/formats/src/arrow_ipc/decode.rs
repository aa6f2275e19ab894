//! Batches of a split.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch, RecordBatchOptions, make_array, new_empty_array};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_schema::DataType;
use arrow_select::concat::concat;

use super::places::{ArrayPlace, BufferPlace};
use super::split::{Part, Projection, Split};
use crate::error::FormatError;
use crate::read_at::{Pieces, ReadAt};

/// Decodes a split, batch by batch.
pub struct Decoder<'a> {
    arrays: ArrayDecoder,
    projection: &'a Projection,
    parts: std::slice::Iter<'a, Part>,
    /// The part that is being given, and the next of its rows.
    batch: Option<(RecordBatch, usize)>,
    batch_rows: usize,
}

impl<'a> Decoder<'a> {
    /// Batches of at most `batch_rows` from the bytes of a split's ranges.
    ///
    /// # Errors
    /// When the bytes are no dictionaries of these columns.
    pub fn new(
        split: &'a Split,
        projection: &'a Projection,
        pieces: Pieces,
        batch_rows: usize,
    ) -> Result<Self, FormatError> {
        let mut arrays = ArrayDecoder {
            pieces,
            dictionaries: HashMap::new(),
        };
        for dictionary in projection.dictionaries.iter() {
            let mut values = arrays.array(&dictionary.values)?;
            if let Some(before) = arrays.dictionaries.get(&dictionary.id) {
                let parts = [make_array(before.clone()), make_array(values)];
                values = concat(&[&parts[0], &parts[1]])?.to_data();
            }
            arrays.dictionaries.insert(dictionary.id, values);
        }
        Ok(Self {
            arrays,
            projection,
            parts: split.parts.iter(),
            batch: None,
            batch_rows,
        })
    }

    fn decode(&self, part: &Part) -> Result<RecordBatch, FormatError> {
        let places = self.projection.locate(part, &self.arrays.pieces)?;
        let columns = places.iter();
        let columns = columns.map(|place| Ok(make_array(self.arrays.array(place)?)));
        let columns = columns.collect::<Result<_, FormatError>>()?;
        let rows = (part.rows.end - part.rows.start) as usize;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = Arc::clone(&self.projection.schema);
        Ok(RecordBatch::try_new_with_options(
            schema, columns, &options,
        )?)
    }
}

impl Iterator for Decoder<'_> {
    type Item = Result<RecordBatch, FormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (batch, at) = match self.batch.take() {
            Some(batch) => batch,
            None => {
                let part = self.parts.next()?;
                match self.decode(part) {
                    Ok(batch) => (batch, 0),
                    Err(why) => return Some(Err(why)),
                }
            }
        };
        let rows = self.batch_rows.min(batch.num_rows() - at);
        let now = batch.slice(at, rows);
        if at + rows < batch.num_rows() {
            self.batch = Some((batch, at + rows));
        }
        Some(Ok(now))
    }
}

/// Makes arrays of ranges in memory.
struct ArrayDecoder {
    pieces: Pieces,
    dictionaries: HashMap<i64, ArrayData>,
}

impl ArrayDecoder {
    fn array(&self, place: &ArrayPlace) -> Result<ArrayData, FormatError> {
        if place.rows == 0 {
            return Ok(new_empty_array(&place.data_type).to_data());
        }
        let buffers = place.buffers.iter().map(|buffer| self.buffer(buffer));
        let mut buffers: Vec<Buffer> = buffers.collect::<Result<_, _>>()?;
        if place.base != 0 {
            buffers[0] = rebased(&buffers[0], &place.data_type, place.base);
        }
        let children = place.children.iter().map(|child| self.array(child));
        let mut children: Vec<ArrayData> = children.collect::<Result<_, _>>()?;
        if let DataType::Dictionary(_, values) = &place.data_type {
            let found = place.dictionary.and_then(|id| self.dictionaries.get(&id));
            // A dictionary may be missing if all values are null.
            children.push(match found {
                Some(values) => values.clone(),
                None => new_empty_array(values).to_data(),
            });
        }
        let nulls = place.nulls.as_ref().map(|nulls| self.buffer(nulls));
        let array = ArrayData::builder(place.data_type.clone())
            .len(place.rows)
            .buffers(buffers)
            .child_data(children)
            .null_bit_buffer(nulls.transpose()?)
            .align_buffers(true)
            .build()?;
        Ok(array)
    }

    fn buffer(&self, place: &BufferPlace) -> Result<Buffer, FormatError> {
        if place.range.is_empty() {
            return Ok(Buffer::default());
        }
        let bytes = self.pieces.read(place.range.clone())?;
        match place.codec {
            Some(codec) => codec.decode(&bytes, place.bytes as usize),
            None => Ok(Buffer::from(bytes)),
        }
    }
}

/// Offsets from `base` on.
fn rebased(offsets: &Buffer, data_type: &DataType, base: u64) -> Buffer {
    match data_type {
        DataType::LargeUtf8 | DataType::LargeBinary | DataType::LargeList(_) => {
            let (offsets, _) = offsets.as_slice().as_chunks();
            let offsets = offsets.iter().map(|offset| i64::from_le_bytes(*offset));
            // Offsets that do not ascend become negative, and are refused with the array.
            Buffer::from_iter(offsets.map(|offset| offset.wrapping_sub(base as i64)))
        }
        _ => {
            let (offsets, _) = offsets.as_slice().as_chunks();
            let offsets = offsets.iter().map(|offset| i32::from_le_bytes(*offset));
            Buffer::from_iter(offsets.map(|offset| offset.wrapping_sub(base as i32)))
        }
    }
}
