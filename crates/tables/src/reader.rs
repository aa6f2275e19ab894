//! Batches from rows.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};

use crate::builder::ColumnBuilder;
use crate::column::Shape;
use crate::error::TableError;
use crate::layout::{LENGTH_BYTES, RowLayout, RowShape, fixed_bytes};

/// Reads rows into the columns of a batch.
#[derive(Debug)]
pub struct RowReader {
    layout: Arc<RowLayout>,
    columns: Vec<ColumnBuilder>,
    rows: usize,
    cursors: Vec<u32>, // in each row
    ends: Vec<u32>,
}

impl RowReader {
    /// Reads rows of this layout, about so many in a batch.
    #[must_use]
    pub fn new(layout: &Arc<RowLayout>, rows: usize) -> Self {
        let columns = layout.types.iter();
        Self {
            columns: columns
                .map(|data_type| ColumnBuilder::of_column(data_type, rows))
                .collect(),
            layout: Arc::clone(layout),
            rows: 0,
            cursors: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Adds rows: few enough to stay in the cache while columns take turns.
    ///
    /// # Errors
    /// When the bytes are no rows of this layout.
    pub fn push(&mut self, rows: &[&[u8]]) -> Result<(), TableError> {
        let layout = Arc::clone(&self.layout);
        let shape = layout.shape();
        let begin = shape.key_offset() as u32;
        self.rows += rows.len();
        self.cursors.clear();
        self.cursors.resize(rows.len(), begin);
        let order_bytes = |row: &&[u8]| shape.order_of(shape.key(row)).len() as u32;
        self.ends.clear();
        self.ends
            .extend(rows.iter().map(|row| begin + order_bytes(row)));
        for key in &layout.keys {
            let column = &mut self.columns[key.column];
            key.read(rows, &mut self.cursors, &self.ends, column)?;
        }
        for (cursor, row) in self.cursors.iter_mut().zip(rows) {
            *cursor = begin + shape.key(row).len() as u32;
        }
        self.read_values(&layout, rows)
    }

    /// Rows so far.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The batch of all rows so far; the next begins empty.
    ///
    /// # Errors
    /// When the bytes were no rows of this layout.
    pub fn finish(&mut self) -> Result<RecordBatch, TableError> {
        // Places are in order of depth, so the last ones are fields of the last struct.
        let structs = &self.layout.structs;
        let is_struct = |place| structs.iter().any(|each| each.column == place);
        let mut columns: Vec<Option<ArrayRef>> = Vec::with_capacity(self.columns.len());
        for (place, column) in self.columns.iter_mut().enumerate() {
            columns.push(match is_struct(place) {
                true => None,
                false => Some(column.finish()?),
            });
        }
        for each in structs.iter().rev() {
            let fields = columns.drain(each.fields.clone()).flatten().collect();
            columns[each.column] = Some(self.columns[each.column].finish_structs(fields)?);
        }
        let columns: Vec<ArrayRef> = columns.into_iter().flatten().collect();
        let rows = std::mem::take(&mut self.rows);
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = self.layout.schema().clone();
        Ok(RecordBatch::try_new_with_options(
            schema, columns, &options,
        )?)
    }

    /// Reads the values behind the keys, where the cursors are.
    fn read_values(&mut self, layout: &RowLayout, rows: &[&[u8]]) -> Result<(), TableError> {
        let places = rows.iter().zip(&self.cursors);
        let places = places.map(|(row, at)| &row[*at as usize..]);
        let fixed = (layout.null_bytes + layout.fixed_bytes) as u32;
        let ends = &mut self.ends; // where values of any size continue
        ends.clear();
        ends.extend(self.cursors.iter().map(|at| at + fixed));
        let mut offset = layout.null_bytes;
        for (place, value) in layout.values.iter().enumerate() {
            let column = &mut self.columns[value.column];
            let (byte, bit) = (place / 8, 1_u8 << (place % 8));
            let is_null = |values: &[u8]| values[byte] & bit != 0;
            match value.shape {
                Shape::Null => column.push_nulls(rows.len()),
                Shape::Struct => {
                    for values in places.clone() {
                        match is_null(values) {
                            true => column.push_null(),
                            false => column.push_struct(),
                        }
                    }
                }
                Shape::Bits => {
                    for values in places.clone() {
                        match is_null(values) {
                            true => column.push_null(),
                            false => column.push_bit(values[offset] == 1),
                        }
                    }
                }
                Shape::Fixed(width) => {
                    let values = places.clone().map(|values| match is_null(values) {
                        true => None,
                        false => Some(&values[offset..]),
                    });
                    match width {
                        1 => column.push_all::<1>(values.map(first)),
                        2 => column.push_all::<2>(values.map(first)),
                        4 => column.push_all::<4>(values.map(first)),
                        8 => column.push_all::<8>(values.map(first)),
                        16 => column.push_all::<16>(values.map(first)),
                        _ => values.for_each(|value| match value {
                            Some(value) => column.push_fixed(&value[..width]),
                            None => column.push_null(),
                        }),
                    }
                }
                Shape::Bytes | Shape::Nested => {
                    for ((values, row), end) in places.clone().zip(rows).zip(&mut *ends) {
                        if is_null(values) {
                            column.push_null();
                            continue;
                        }
                        let from = &row[*end as usize..];
                        let bytes = RowShape::row_bytes(from).ok_or_else(ended_early)?;
                        let value_bytes = &from[LENGTH_BYTES..][..bytes];
                        match value.shape {
                            Shape::Nested => column.push_nested(value_bytes)?,
                            _ => column.push_bytes(value_bytes),
                        }
                        *end += (LENGTH_BYTES + bytes) as u32;
                    }
                }
            }
            offset += fixed_bytes(value.shape).unwrap_or(0);
        }
        Ok(())
    }
}

/// The first bytes of a value.
#[inline]
fn first<const W: usize>(value: Option<&[u8]>) -> Option<[u8; W]> {
    value.map(|value| *value.first_chunk().expect("a row has its values"))
}

#[cold]
fn ended_early() -> TableError {
    TableError::Damaged("a row ends early")
}
