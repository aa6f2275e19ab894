//! A column of a batch, built value by value; those of lists, structs and maps have builders of their
//! own.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, NullArray, make_array};
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBuffer, NullBufferBuilder};
use arrow_cast::cast;
use arrow_data::ArrayData;
use arrow_schema::DataType;

use crate::column::Shape;
use crate::error::TableError;

/// Builds a column.
#[derive(Debug)]
pub struct ColumnBuilder {
    data_type: DataType,
    nulls: NullBufferBuilder,
    values: Built,
    rows: usize,
}

#[derive(Debug)]
enum Built {
    Fixed(usize, Vec<u8>),
    Bits(BooleanBufferBuilder),
    Bytes(Vec<i64>, Vec<u8>),
    Null,
}

impl ColumnBuilder {
    /// Builds a column of values that are not nested, for about so many rows.
    pub fn new(data_type: &DataType, rows: usize) -> Self {
        let values = match Shape::of(data_type) {
            Some(Shape::Fixed(width)) => Built::Fixed(width, Vec::with_capacity(width * rows)),
            Some(Shape::Bits) => Built::Bits(BooleanBufferBuilder::new(rows)),
            Some(Shape::Bytes) => {
                let mut offsets = Vec::with_capacity(rows + 1);
                offsets.push(0);
                Built::Bytes(offsets, Vec::new())
            }
            Some(Shape::Nested | Shape::Struct | Shape::Null) | None => Built::Null,
        };
        Self {
            data_type: data_type.clone(),
            nulls: NullBufferBuilder::new(rows),
            values,
            rows: 0,
        }
    }

    /// Adds a null.
    #[inline]
    pub fn push_null(&mut self) {
        self.nulls.append_null();
        self.rows += 1;
        match &mut self.values {
            Built::Fixed(width, values) => values.resize(values.len() + *width, 0),
            Built::Bits(bits) => bits.append(false),
            Built::Bytes(offsets, data) => offsets.push(data.len() as i64),
            Built::Null => (),
        }
    }

    /// Adds nulls.
    pub fn push_nulls(&mut self, count: usize) {
        (0..count).for_each(|_| self.push_null());
    }

    /// Adds a value of the column's width.
    #[inline]
    pub fn push_fixed(&mut self, value: &[u8]) {
        if let Built::Fixed(_, values) = &mut self.values {
            values.extend_from_slice(value);
            self.nulls.append_non_null();
            self.rows += 1;
        }
    }

    /// Adds so many values of the column's width.
    #[inline]
    pub fn extend_fixed(&mut self, all: &[u8], count: usize) {
        if let Built::Fixed(_, values) = &mut self.values {
            values.extend_from_slice(all);
            self.nulls.append_n_non_nulls(count);
            self.rows += count;
        }
    }

    /// Adds values of the column's width, or nulls.
    #[inline]
    pub fn push_all<const W: usize>(&mut self, all: impl Iterator<Item = Option<[u8; W]>>) {
        let Built::Fixed(_, values) = &mut self.values else {
            return;
        };
        values.reserve(W * all.size_hint().0);
        let mut present = 0;
        for value in all {
            values.extend_from_slice(&value.unwrap_or([0; W]));
            self.rows += 1;
            match value {
                Some(_) => present += 1,
                None => {
                    self.nulls.append_n_non_nulls(std::mem::take(&mut present));
                    self.nulls.append_null();
                }
            }
        }
        self.nulls.append_n_non_nulls(present);
    }

    /// Adds a bit.
    #[inline]
    pub fn push_bit(&mut self, value: bool) {
        if let Built::Bits(bits) = &mut self.values {
            bits.append(value);
            self.nulls.append_non_null();
            self.rows += 1;
        }
    }

    /// Adds a value of bytes.
    #[inline]
    pub fn push_bytes(&mut self, value: &[u8]) {
        self.extend_bytes(value, 0);
        self.end_bytes();
    }

    /// Continues a value of bytes, each combined with `inverted` by exclusive or.
    #[inline]
    pub fn extend_bytes(&mut self, part: &[u8], inverted: u8) {
        if let Built::Bytes(_, data) = &mut self.values {
            match inverted {
                0 => data.extend_from_slice(part),
                _ => data.extend(part.iter().map(|byte| byte ^ inverted)),
            }
        }
    }

    /// Ends a value of bytes.
    #[inline]
    pub fn end_bytes(&mut self) {
        if let Built::Bytes(offsets, data) = &mut self.values {
            offsets.push(data.len() as i64);
            self.nulls.append_non_null();
            self.rows += 1;
        }
    }

    /// The column, and an empty builder for the next.
    ///
    /// # Errors
    /// When the values are none of its type.
    pub fn finish(&mut self) -> Result<ArrayRef, TableError> {
        let rows = std::mem::take(&mut self.rows);
        let next = Self::new(&self.data_type, rows);
        let Self {
            data_type,
            mut nulls,
            values,
            ..
        } = std::mem::replace(self, next);
        let nulls = nulls.finish();
        Ok(match values {
            Built::Fixed(_, values) => {
                // A dictionary's values first.
                let plain = plain(&data_type);
                let data = ArrayData::builder(plain)
                    .len(rows)
                    .nulls(nulls)
                    .add_buffer(Buffer::from_vec(values))
                    .align_buffers(true)
                    .build()?;
                as_type(make_array(data), &data_type)?
            }
            Built::Bits(mut bits) => {
                let array = Arc::new(BooleanArray::new(bits.finish(), nulls)) as ArrayRef;
                as_type(array, &data_type)?
            }
            Built::Bytes(offsets, data) => {
                let plain = plain(&data_type);
                let array = bytes_array(&plain, rows, offsets, data, nulls)?;
                as_type(array, &data_type)?
            }
            Built::Null => Arc::new(NullArray::new(rows)),
        })
    }
}

/// The type of a dictionary's values, or the type itself.
fn plain(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Dictionary(_, values) => values.as_ref().clone(),
        other => other.clone(),
    }
}

fn as_type(array: ArrayRef, data_type: &DataType) -> Result<ArrayRef, TableError> {
    match array.data_type() == data_type {
        true => Ok(array),
        false => Ok(cast(&array, data_type)?),
    }
}

/// An array of bytes or strings, of any of their types.
fn bytes_array(
    data_type: &DataType,
    rows: usize,
    offsets: Vec<i64>,
    data: Vec<u8>,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, TableError> {
    use DataType as T;
    let large = matches!(data_type, T::LargeUtf8 | T::LargeBinary);
    let built = match data_type {
        T::Utf8View => T::Utf8,
        T::BinaryView => T::Binary,
        other => other.clone(),
    };
    let offsets = match large {
        true => Buffer::from_vec(offsets),
        false => {
            if i32::try_from(data.len()).is_err() {
                return Err(TableError::Damaged(
                    "a batch has more than 2 GiB in a column",
                ));
            }
            let short = offsets.into_iter().map(|offset| offset as i32);
            Buffer::from_vec(short.collect::<Vec<i32>>())
        }
    };
    let array = ArrayData::builder(built)
        .len(rows)
        .nulls(nulls)
        .add_buffer(offsets)
        .add_buffer(Buffer::from_vec(data))
        .build()?;
    as_type(make_array(array), data_type)
}
