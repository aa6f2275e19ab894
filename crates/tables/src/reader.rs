//! Batches from rows.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};

use crate::column::Shape;
use crate::error::TableError;
use crate::layout::{LENGTH_BYTES, RowLayout, RowShape, fixed_bytes};
use crate::table_builder::{self, TableColumn};

/// Reads rows into the columns of a batch.
#[derive(Debug)]
pub struct RowReader {
    layout: Arc<RowLayout>,
    columns: Vec<TableColumn>,
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
                .map(|data_type| TableColumn::new(data_type, rows))
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
            if let TableColumn::Plain(column) = &mut self.columns[key.column] {
                key.read(rows, &mut self.cursors, &self.ends, column)?;
            }
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
        let columns = table_builder::finish(&mut self.columns, &self.layout.structs)?;
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
            let (byte, bit) = (place / 8, 1_u8 << (place % 8));
            let is_null = |values: &[u8]| values[byte] & bit != 0;
            let of_any_size = places.clone().zip(rows).zip(&mut *ends);
            let of_any_size = of_any_size.map(|((values, row), end)| match is_null(values) {
                true => Ok(None),
                false => next_value(row, end).map(Some),
            });
            let column = match &mut self.columns[value.column] {
                TableColumn::Structs(column) => {
                    places
                        .clone()
                        .for_each(|values| column.push(is_null(values)));
                    continue;
                }
                TableColumn::Nested(column) => {
                    for value in of_any_size {
                        match value? {
                            None => column.push_null(),
                            Some(value) => column.push(value)?,
                        }
                    }
                    continue;
                }
                TableColumn::Plain(column) => column,
            };
            match value.shape {
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
                Shape::Bytes => {
                    for value in of_any_size {
                        match value? {
                            None => column.push_null(),
                            Some(value) => column.push_bytes(value),
                        }
                    }
                }
                Shape::Nested | Shape::Struct | Shape::Null => column.push_nulls(rows.len()),
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

/// The value of any size at this place of a row, which moves behind it.
#[inline]
fn next_value<'a>(row: &&'a [u8], place: &mut u32) -> Result<&'a [u8], TableError> {
    let from = &row[*place as usize..];
    let bytes = RowShape::row_bytes(from).ok_or_else(ended_early)?;
    *place += (LENGTH_BYTES + bytes) as u32;
    Ok(&from[LENGTH_BYTES..][..bytes])
}

#[cold]
fn ended_early() -> TableError {
    TableError::Damaged("a row ends early")
}
