//! A column of a batch, built value by value.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    ArrayRef, BooleanArray, FixedSizeListArray, GenericListArray, MapArray, NullArray, StructArray,
    make_array,
};
use arrow_buffer::{
    BooleanBufferBuilder, Buffer, NullBuffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer,
};
use arrow_cast::cast;
use arrow_data::ArrayData;
use arrow_schema::{DataType, FieldRef, Fields};

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
    Nested(NestedBuilder),
    Null,
}

impl ColumnBuilder {
    /// Builds a column of a table, or of a field of its structs, for about so many rows.
    pub fn of_column(data_type: &DataType, rows: usize) -> Self {
        match Shape::of_column(data_type) {
            Some(Shape::Struct) => Self {
                data_type: data_type.clone(),
                nulls: NullBufferBuilder::new(rows),
                values: Built::Null,
                rows: 0,
            },
            _ => Self::new(data_type, rows),
        }
    }

    /// Builds a column of a type that has a [`Shape`], for about so many rows.
    pub fn new(data_type: &DataType, rows: usize) -> Self {
        let values = match Shape::of(data_type) {
            Some(Shape::Fixed(width)) => Built::Fixed(width, Vec::with_capacity(width * rows)),
            Some(Shape::Bits) => Built::Bits(BooleanBufferBuilder::new(rows)),
            Some(Shape::Bytes) => {
                let mut offsets = Vec::with_capacity(rows + 1);
                offsets.push(0);
                Built::Bytes(offsets, Vec::new())
            }
            Some(Shape::Nested) => Built::Nested(NestedBuilder::new(data_type)),
            Some(Shape::Struct | Shape::Null) | None => Built::Null,
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
            Built::Nested(nested) => nested.push_null(),
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

    /// Adds a list, struct or map as `nested` wrote it.
    ///
    /// # Errors
    /// When the bytes are none.
    pub fn push_nested(&mut self, value: &[u8]) -> Result<(), TableError> {
        if let Built::Nested(nested) = &mut self.values {
            nested.push(value)?;
            self.nulls.append_non_null();
            self.rows += 1;
        }
        Ok(())
    }

    /// Adds a struct; its fields are columns of their own.
    #[inline]
    pub fn push_struct(&mut self) {
        self.nulls.append_non_null();
        self.rows += 1;
    }

    /// The column of structs with these fields, and an empty builder for the next.
    ///
    /// # Errors
    /// When the fields are none of its type.
    pub fn finish_structs(&mut self, fields: Vec<ArrayRef>) -> Result<ArrayRef, TableError> {
        let (rows, nulls) = (std::mem::take(&mut self.rows), self.nulls.finish());
        match &self.data_type {
            DataType::Struct(names) => Ok(Arc::new(StructArray::try_new_with_length(
                names.clone(),
                fields,
                nulls,
                rows,
            )?)),
            _ => Err(TableError::Damaged("a column has no fields")),
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
            Built::Nested(mut nested) => nested.finish(nulls)?,
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

/// Builds a column of lists, structs or maps.
#[derive(Debug)]
pub struct NestedBuilder {
    data_type: DataType,
    rows: usize,
    items: Items,
}

#[derive(Debug)]
enum Items {
    Lists(Vec<i64>, Box<Range>),
    FixedSizeLists(usize, Box<Range>),
    Structs(Vec<Range>),
}

/// Builds a column from ranges.
#[derive(Debug)]
struct Range {
    nulls: NullBufferBuilder,
    built: RangeValues,
}

#[derive(Debug)]
enum RangeValues {
    Plain(ColumnBuilder, Shape),
    Nested(NestedBuilder),
}

/// What is left of a value while it is read.
struct Remaining<'a>(&'a [u8]);

impl<'a> Remaining<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], TableError> {
        let cut = self.0.split_at_checked(bytes);
        let (taken, left) = cut.ok_or(TableError::Damaged("a nested value ends early"))?;
        self.0 = left;
        Ok(taken)
    }

    fn lengths(&mut self, count: usize) -> Result<impl Iterator<Item = usize> + 'a, TableError> {
        let lengths = self.take(4 * count)?.as_chunks::<4>().0.iter();
        Ok(lengths.map(|bytes| u32::from_le_bytes(*bytes) as usize))
    }
}

impl NestedBuilder {
    /// Builds a column of a type with the shape [`Shape::Nested`].
    pub fn new(data_type: &DataType) -> Self {
        let items = match data_type {
            DataType::List(item) | DataType::LargeList(item) | DataType::Map(item, _) => {
                Items::Lists(vec![0], Box::new(Range::new(item)))
            }
            DataType::FixedSizeList(item, len) => {
                Items::FixedSizeLists(*len as usize, Box::new(Range::new(item)))
            }
            DataType::Struct(fields) => Items::Structs(fields.iter().map(Range::new).collect()),
            _ => Items::Structs(Vec::new()),
        };
        Self {
            data_type: data_type.clone(),
            rows: 0,
            items,
        }
    }

    /// Adds a row that is null.
    pub fn push_null(&mut self) {
        self.rows += 1;
        match &mut self.items {
            Items::Lists(ends, _) => ends.push(*ends.last().expect("begins with 0")),
            Items::FixedSizeLists(len, items) => items.push_nulls(*len),
            Items::Structs(fields) => fields.iter_mut().for_each(|field| field.push_nulls(1)),
        }
    }

    /// Adds a row: the bytes of a range of one row that is not null.
    ///
    /// # Errors
    /// When the bytes are none.
    pub fn push(&mut self, value: &[u8]) -> Result<(), TableError> {
        let mut left = Remaining(value);
        left.take(1)?; // no nulls
        self.push_rows(1, &mut left)?;
        match left.0.is_empty() {
            true => Ok(()),
            false => Err(TableError::Damaged(
                "a nested value has more bytes than values",
            )),
        }
    }

    /// Adds rows of a range, whose nulls were read.
    fn push_rows(&mut self, rows: usize, left: &mut Remaining<'_>) -> Result<(), TableError> {
        self.rows += rows;
        match &mut self.items {
            Items::Lists(ends, items) => {
                let begin = *ends.last().expect("begins with 0");
                let mut end = begin;
                for length in left.lengths(rows)? {
                    end += length as i64;
                    ends.push(end);
                }
                items.push((end - begin) as usize, left)
            }
            Items::FixedSizeLists(len, items) => items.push(rows * *len, left),
            Items::Structs(fields) => fields
                .iter_mut()
                .try_for_each(|field| field.push(rows, left)),
        }
    }

    /// The column, and an empty builder for the next.
    ///
    /// # Errors
    /// When the values are none of its type.
    pub fn finish(&mut self, nulls: Option<NullBuffer>) -> Result<ArrayRef, TableError> {
        let next = Self::new(&self.data_type);
        let Self {
            data_type,
            rows,
            items,
            ..
        } = std::mem::replace(self, next);
        Ok(match (items, &data_type) {
            (Items::Lists(ends, mut items), DataType::LargeList(item)) => {
                let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
                let items = items.finish()?;
                Arc::new(GenericListArray::<i64>::try_new(
                    item.clone(),
                    offsets,
                    items,
                    nulls,
                )?)
            }
            (Items::Lists(ends, mut items), DataType::List(item)) => {
                let items = items.finish()?;
                let offsets = short_offsets(ends)?;
                Arc::new(GenericListArray::<i32>::try_new(
                    item.clone(),
                    offsets,
                    items,
                    nulls,
                )?)
            }
            (Items::Lists(ends, mut items), DataType::Map(item, sorted)) => {
                let entries = items.finish()?.as_struct().clone();
                let offsets = short_offsets(ends)?;
                Arc::new(MapArray::try_new(
                    item.clone(),
                    offsets,
                    entries,
                    nulls,
                    *sorted,
                )?)
            }
            (Items::FixedSizeLists(len, mut items), DataType::FixedSizeList(item, _)) => {
                let items = items.finish()?;
                let (item, len) = (item.clone(), len as i32);
                Arc::new(FixedSizeListArray::try_new_with_length(
                    item, len, items, nulls, rows,
                )?)
            }
            (Items::Structs(mut fields), DataType::Struct(names)) => {
                structs(names, &mut fields, nulls, rows)?
            }
            _ => return Err(TableError::Damaged("a column is not nested")),
        })
    }
}

fn structs(
    names: &Fields,
    fields: &mut [Range],
    nulls: Option<NullBuffer>,
    rows: usize,
) -> Result<ArrayRef, TableError> {
    let fields: Result<Vec<ArrayRef>, _> = fields.iter_mut().map(Range::finish).collect();
    let built = StructArray::try_new_with_length(names.clone(), fields?, nulls, rows)?;
    Ok(Arc::new(built))
}

fn short_offsets(ends: Vec<i64>) -> Result<OffsetBuffer<i32>, TableError> {
    let short: Result<Vec<i32>, _> = ends.into_iter().map(i32::try_from).collect();
    let long = |_| TableError::Damaged("a batch has more than 2^31 items in a column");
    Ok(OffsetBuffer::new(ScalarBuffer::from(short.map_err(long)?)))
}

impl Range {
    fn new(item: &FieldRef) -> Self {
        let built = match Shape::of(item.data_type()) {
            Some(Shape::Nested) | None => RangeValues::Nested(NestedBuilder::new(item.data_type())),
            Some(shape) => RangeValues::Plain(ColumnBuilder::new(item.data_type(), 0), shape),
        };
        Self {
            nulls: NullBufferBuilder::new(0),
            built,
        }
    }

    fn push_nulls(&mut self, rows: usize) {
        match &mut self.built {
            RangeValues::Plain(column, _) => column.push_nulls(rows),
            RangeValues::Nested(nested) => {
                self.nulls.append_n_nulls(rows);
                (0..rows).for_each(|_| nested.push_null());
            }
        }
    }

    fn push(&mut self, rows: usize, left: &mut Remaining<'_>) -> Result<(), TableError> {
        let nulls = match left.take(1)? {
            [0] => None,
            _ => Some(left.take(rows.div_ceil(8))?),
        };
        let is_null = |row: usize| nulls.is_some_and(|bits| bits[row / 8] >> (row % 8) & 1 == 1);
        match &mut self.built {
            RangeValues::Nested(nested) => {
                (0..rows).for_each(|row| self.nulls.append(!is_null(row)));
                nested.push_rows(rows, left)
            }
            RangeValues::Plain(column, Shape::Fixed(width)) => {
                let values = left.take(rows * *width)?;
                if nulls.is_none() {
                    column.extend_fixed(values, rows);
                    return Ok(());
                }
                for row in 0..rows {
                    match is_null(row) {
                        true => column.push_null(),
                        false => column.push_fixed(&values[row * *width..][..*width]),
                    }
                }
                Ok(())
            }
            RangeValues::Plain(column, Shape::Bits) => {
                for (row, bit) in left.take(rows)?.iter().enumerate() {
                    match is_null(row) {
                        true => column.push_null(),
                        false => column.push_bit(*bit == 1),
                    }
                }
                Ok(())
            }
            RangeValues::Plain(column, Shape::Bytes) => {
                for (row, length) in left.lengths(rows)?.enumerate() {
                    let value = left.take(length)?;
                    match is_null(row) {
                        true => column.push_null(),
                        false => column.push_bytes(value),
                    }
                }
                Ok(())
            }
            RangeValues::Plain(column, _) => {
                column.push_nulls(rows);
                Ok(())
            }
        }
    }

    fn finish(&mut self) -> Result<ArrayRef, TableError> {
        match &mut self.built {
            RangeValues::Plain(column, _) => column.finish(),
            RangeValues::Nested(nested) => nested.finish(self.nulls.finish()),
        }
    }
}
