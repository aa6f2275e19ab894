//! A column of lists, structs or maps, built from the bytes that `nested_writer` wrote.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, FixedSizeListArray, GenericListArray, MapArray, StructArray};
use arrow_buffer::{NullBuffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, FieldRef, Fields};

use crate::builder::ColumnBuilder;
use crate::column::Shape;
use crate::error::TableError;

/// Builds a column of lists, structs or maps.
#[derive(Debug)]
pub struct NestedBuilder {
    data_type: DataType,
    nulls: NullBufferBuilder,
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
enum Range {
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
            nulls: NullBufferBuilder::new(0),
            rows: 0,
            items,
        }
    }

    /// Adds a row that is null.
    pub fn push_null(&mut self) {
        self.nulls.append_null();
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
        self.push_rows(1, None, &mut left)?;
        match left.0.is_empty() {
            true => Ok(()),
            false => Err(TableError::Damaged(
                "a nested value has more bytes than values",
            )),
        }
    }

    /// Adds rows of a range, whose nulls were read.
    fn push_rows(
        &mut self,
        rows: usize,
        nulls: Option<&[u8]>,
        left: &mut Remaining<'_>,
    ) -> Result<(), TableError> {
        match nulls {
            None => self.nulls.append_n_non_nulls(rows),
            Some(nulls) => (0..rows).for_each(|row| self.nulls.append(!is_null(nulls, row))),
        }
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
    pub fn finish(&mut self) -> Result<ArrayRef, TableError> {
        let next = Self::new(&self.data_type);
        let Self {
            data_type,
            mut nulls,
            rows,
            items,
        } = std::mem::replace(self, next);
        let nulls = nulls.finish();
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

fn is_null(nulls: &[u8], row: usize) -> bool {
    nulls[row / 8] >> (row % 8) & 1 == 1
}

impl Range {
    fn new(item: &FieldRef) -> Self {
        match Shape::of(item.data_type()) {
            Some(Shape::Nested) | None => Self::Nested(NestedBuilder::new(item.data_type())),
            Some(shape) => Self::Plain(ColumnBuilder::new(item.data_type(), 0), shape),
        }
    }

    fn push_nulls(&mut self, rows: usize) {
        match self {
            Self::Plain(column, _) => column.push_nulls(rows),
            Self::Nested(nested) => (0..rows).for_each(|_| nested.push_null()),
        }
    }

    fn push(&mut self, rows: usize, left: &mut Remaining<'_>) -> Result<(), TableError> {
        let nulls = match left.take(1)? {
            [0] => None,
            _ => Some(left.take(rows.div_ceil(8))?),
        };
        let is_null = |row: usize| nulls.is_some_and(|nulls| is_null(nulls, row));
        match self {
            Self::Nested(nested) => nested.push_rows(rows, nulls, left),
            Self::Plain(column, Shape::Fixed(width)) => {
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
            Self::Plain(column, Shape::Bits) => {
                for (row, bit) in left.take(rows)?.iter().enumerate() {
                    match is_null(row) {
                        true => column.push_null(),
                        false => column.push_bit(*bit == 1),
                    }
                }
                Ok(())
            }
            Self::Plain(column, Shape::Bytes) => {
                for (row, length) in left.lengths(rows)?.enumerate() {
                    let value = left.take(length)?;
                    match is_null(row) {
                        true => column.push_null(),
                        false => column.push_bytes(value),
                    }
                }
                Ok(())
            }
            Self::Plain(column, _) => {
                column.push_nulls(rows);
                Ok(())
            }
        }
    }

    fn finish(&mut self) -> Result<ArrayRef, TableError> {
        match self {
            Self::Plain(column, _) => column.finish(),
            Self::Nested(nested) => nested.finish(),
        }
    }
}
