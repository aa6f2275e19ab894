//! Where the values of arrays are in a file: of all rows of a batch, or of some.
//!
//! A message names arrays and buffers in the order in which the columns are walked, children behind
//! their parents. Of some rows, each buffer of fixed width has a range of bytes; where values have
//! any length, two offsets that are read from the file tell it. A range of rows begins at a multiple
//! of eight, so that bits begin with a byte.

use std::ops::Range;
use std::slice;

use arrow_schema::{DataType, Field};

use super::codec::{Codec, LENGTH_BYTES, check_ratio, decoded_bytes};
use super::messages::{Batch, damaged};
use crate::error::FormatError;
use crate::read_at::ReadAt;

/// Where a buffer is.
#[derive(Clone, Debug, Default)]
pub struct BufferPlace {
    /// Its bytes in the file.
    pub range: Range<u64>,
    /// How many bytes its values have.
    pub bytes: u64,
    /// How it is compressed.
    pub codec: Option<Codec>,
}

/// Where an array is.
#[derive(Clone, Debug)]
pub struct ArrayPlace {
    /// Its type.
    pub data_type: DataType,
    /// Its rows.
    pub rows: usize,
    /// Which of them are null; `None` if none is.
    pub nulls: Option<BufferPlace>,
    /// Its other buffers.
    pub buffers: Vec<BufferPlace>,
    /// What is subtracted from its offsets: where its values begin.
    pub base: u64,
    /// The arrays within it.
    pub children: Vec<ArrayPlace>,
    /// The dictionary with its values.
    pub dictionary: Option<i64>,
}

impl ArrayPlace {
    /// Gives all buffers to `take`.
    pub fn visit<'a>(&'a self, take: &mut impl FnMut(&'a BufferPlace)) {
        self.nulls.iter().chain(&self.buffers).for_each(&mut *take);
        self.children.iter().for_each(|child| child.visit(take));
    }

    /// Bytes of buffers that any row may need: those that views are of.
    pub fn shared_bytes(&self) -> u64 {
        let of_views = match self.data_type {
            DataType::Utf8View | DataType::BinaryView => &self.buffers[1..],
            _ => &[],
        };
        let of_views = of_views.iter().map(|buffer| buffer.bytes).sum::<u64>();
        of_views + self.children.iter().map(Self::shared_bytes).sum::<u64>()
    }
}

/// Finds the arrays of a batch.
pub struct Locator<'a> {
    file: &'a dyn ReadAt,
    codec: Option<Codec>,
    arrays: slice::Iter<'a, (u64, bool)>,
    buffers: slice::Iter<'a, Range<u64>>,
    views: slice::Iter<'a, usize>,
    /// Whether the array will be read, so that its length is looked up.
    is_read: bool,
}

impl<'a> Locator<'a> {
    /// Begins with the first column.
    pub fn new(file: &'a dyn ReadAt, batch: &'a Batch) -> Self {
        Self {
            file,
            codec: batch.codec,
            arrays: batch.arrays.iter(),
            buffers: batch.buffers.iter(),
            views: batch.views.iter(),
            is_read: true,
        }
    }

    /// Passes over a column.
    pub fn skip(&mut self, field: &Field) -> Result<(), FormatError> {
        self.is_read = false;
        self.next(field, None)?;
        self.is_read = true;
        Ok(())
    }

    /// The next array: all of its rows, or some, if it is not compressed.
    pub fn next(
        &mut self,
        field: &Field,
        part: Option<Range<u64>>,
    ) -> Result<ArrayPlace, FormatError> {
        use DataType as T;
        let Some(&(length, has_nulls)) = self.arrays.next() else {
            return damaged("a batch has fewer arrays than the schema");
        };
        let rows = part.clone().unwrap_or(0..length);
        if rows.end > length {
            return damaged("an array has fewer rows than its offsets say");
        }
        let data_type = field.data_type();
        let mut nulls = None;
        if *data_type != T::Null {
            let buffer = self.next_buffer()?;
            nulls = has_nulls
                .then(|| self.part_of_buffer(&buffer, bits(&rows)))
                .transpose()?;
        }
        let mut place = ArrayPlace {
            data_type: data_type.clone(),
            rows: usize::try_from(rows.end - rows.start).unwrap_or(usize::MAX),
            nulls,
            buffers: Vec::new(),
            base: 0,
            children: Vec::new(),
            dictionary: None,
        };
        match data_type {
            T::Null => {}
            T::Boolean => self.push_buffer(&mut place, bits(&rows))?,
            T::FixedSizeBinary(width) => {
                let width = u64::try_from(*width).unwrap_or(u64::MAX);
                self.push_buffer(&mut place, wide(&rows, width))?;
            }
            T::Dictionary(index, _) => {
                #[expect(deprecated)] // as in arrow-ipc's own reader: nothing else tells it
                let id = field.dict_id();
                place.dictionary = id;
                let width = index.primitive_width().unwrap_or(0) as u64;
                self.push_buffer(&mut place, wide(&rows, width))?;
            }
            T::Utf8 | T::Binary => self.push_bytes(&mut place, 4, &rows, part.is_some())?,
            T::LargeUtf8 | T::LargeBinary => {
                self.push_bytes(&mut place, 8, &rows, part.is_some())?;
            }
            T::Utf8View | T::BinaryView => {
                self.push_buffer(&mut place, wide(&rows, 16))?;
                let Some(&count) = self.views.next() else {
                    return damaged("a batch has fewer views than the schema");
                };
                for _ in 0..count {
                    let buffer = self.next_buffer()?;
                    place.buffers.push(self.whole_buffer(&buffer)?);
                }
            }
            T::List(item) | T::Map(item, _) => {
                self.push_items(&mut place, item, 4, &rows, part.is_some())?;
            }
            T::LargeList(item) => self.push_items(&mut place, item, 8, &rows, part.is_some())?,
            T::FixedSizeList(item, items) => {
                let items = u64::try_from(*items).unwrap_or(u64::MAX);
                let child = part.map(|_| wide(&rows, items));
                place.children.push(self.next(item, child)?);
            }
            T::Struct(fields) => {
                for field in fields {
                    place.children.push(self.next(field, part.clone())?);
                }
            }
            other => match other.primitive_width() {
                Some(width) => self.push_buffer(&mut place, wide(&rows, width as u64))?,
                None => {
                    return Err(FormatError::Damaged(format!(
                        "the column {:?} cannot be read: its type {other} is not supported",
                        field.name()
                    )));
                }
            },
        }
        Ok(place)
    }

    fn push_buffer(
        &mut self,
        place: &mut ArrayPlace,
        bytes: Range<u64>,
    ) -> Result<(), FormatError> {
        let buffer = self.next_buffer()?;
        place.buffers.push(self.part_of_buffer(&buffer, bytes)?);
        Ok(())
    }

    /// Offsets of this width, and the bytes between them.
    fn push_bytes(
        &mut self,
        place: &mut ArrayPlace,
        width: u64,
        rows: &Range<u64>,
        is_part: bool,
    ) -> Result<(), FormatError> {
        let values = self.push_offsets(place, width, rows, is_part)?;
        let buffer = self.next_buffer()?;
        place.base = values.as_ref().map_or(0, |values| values.start);
        place.buffers.push(match values {
            Some(values) => self.part_of_buffer(&buffer, values)?,
            None => self.whole_buffer(&buffer)?,
        });
        Ok(())
    }

    /// Offsets of this width, and the items between them.
    fn push_items(
        &mut self,
        place: &mut ArrayPlace,
        item: &Field,
        width: u64,
        rows: &Range<u64>,
        is_part: bool,
    ) -> Result<(), FormatError> {
        if let DataType::Map(_, _) = place.data_type
            && !matches!(item.data_type(), DataType::Struct(fields) if fields.len() == 2)
        {
            return damaged("a map has other entries than keys and values");
        }
        let items = self.push_offsets(place, width, rows, is_part)?;
        let items = items.map(|items| items.start / 8 * 8..items.end);
        place.base = items.as_ref().map_or(0, |items| items.start);
        place.children.push(self.next(item, items)?);
        Ok(())
    }

    /// Offsets of this width; gives what is between the first and the last, if not all is.
    fn push_offsets(
        &mut self,
        place: &mut ArrayPlace,
        width: u64,
        rows: &Range<u64>,
        is_part: bool,
    ) -> Result<Option<Range<u64>>, FormatError> {
        let buffer = self.next_buffer()?;
        if rows.is_empty() {
            place.buffers.push(BufferPlace::default());
            return Ok(Some(0..0));
        }
        let offsets = wide(&(rows.start..rows.end.saturating_add(1)), width);
        let offsets = self.part_of_buffer(&buffer, offsets)?;
        let ends = match is_part {
            true => {
                let start = self.offset(offsets.range.start, width)?;
                let end = self.offset(offsets.range.end - width, width)?;
                Some(start..end)
            }
            false => None,
        };
        place.buffers.push(offsets);
        match ends {
            Some(ends) if ends.start > ends.end => damaged("offsets do not ascend"),
            ends => Ok(ends),
        }
    }

    /// An offset in the file.
    fn offset(&self, at: u64, width: u64) -> Result<u64, FormatError> {
        let bytes = self.file.read(at..at + width)?;
        let offset = match (bytes.first_chunk::<8>(), bytes.first_chunk::<4>()) {
            (Some(bytes), _) => i64::from_le_bytes(*bytes),
            (None, Some(bytes)) => i32::from_le_bytes(*bytes).into(),
            (None, None) => -1,
        };
        u64::try_from(offset).or_else(|_| damaged("an offset is negative"))
    }

    fn next_buffer(&mut self) -> Result<Range<u64>, FormatError> {
        match self.buffers.next() {
            Some(buffer) => Ok(buffer.clone()),
            None => damaged("a batch has fewer buffers than the schema"),
        }
    }

    /// These bytes of a buffer's values.
    fn part_of_buffer(
        &self,
        buffer: &Range<u64>,
        bytes: Range<u64>,
    ) -> Result<BufferPlace, FormatError> {
        let has = buffer.end - buffer.start;
        match self.codec {
            None if bytes.end > has => damaged("a buffer has fewer values than its array"),
            None => Ok(BufferPlace {
                range: buffer.start + bytes.start..buffer.start + bytes.end,
                bytes: bytes.end - bytes.start,
                codec: None,
            }),
            codec => Ok(BufferPlace {
                range: buffer.clone(),
                bytes: check_ratio(bytes.end, has)?,
                codec,
            }),
        }
    }

    /// All of a buffer's values.
    fn whole_buffer(&self, buffer: &Range<u64>) -> Result<BufferPlace, FormatError> {
        let has = buffer.end - buffer.start;
        let bytes = match self.codec {
            None => has,
            Some(_) if has == 0 || !self.is_read => 0,
            Some(_) => {
                let begin = buffer.start..buffer.start + LENGTH_BYTES.min(has);
                decoded_bytes(&self.file.read(begin)?, has)?
            }
        };
        self.part_of_buffer(buffer, 0..bytes)
    }
}

fn bits(rows: &Range<u64>) -> Range<u64> {
    rows.start / 8..rows.end.div_ceil(8)
}

fn wide(rows: &Range<u64>, width: u64) -> Range<u64> {
    rows.start.saturating_mul(width)..rows.end.saturating_mul(width)
}
