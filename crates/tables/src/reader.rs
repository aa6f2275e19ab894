//! Batches from rows.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};

use crate::builder::ColumnBuilder;
use crate::column::Shape;
use crate::error::TableError;
use crate::layout::{LENGTH_BYTES, RowLayout, RowShape, fixed_bytes};

/// Rows that are read at once, so that they stay in the cache while columns take turns.
const STRIDE_ROWS: usize = 256;

/// Reads rows into the columns of a batch.
#[derive(Debug)]
pub struct RowReader {
    layout: Arc<RowLayout>,
    columns: Vec<ColumnBuilder>,
    rows: usize,
    cursors: Vec<u32>,
    ends: Vec<u32>,
    stride: Vec<u8>,
    starts: Vec<u32>,
}

impl RowReader {
    /// Reads rows of this layout, about so many in a batch.
    #[must_use]
    pub fn new(layout: &Arc<RowLayout>, rows: usize) -> Self {
        let fields = layout.schema().fields().iter();
        Self {
            columns: fields
                .map(|field| ColumnBuilder::new(field.data_type(), rows))
                .collect(),
            layout: Arc::clone(layout),
            rows: 0,
            cursors: Vec::with_capacity(STRIDE_ROWS),
            ends: Vec::with_capacity(STRIDE_ROWS),
            stride: Vec::new(),
            starts: Vec::with_capacity(STRIDE_ROWS),
        }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// When the bytes are no row of this layout.
    #[inline]
    pub fn push(&mut self, row: &[u8]) -> Result<(), TableError> {
        self.starts.push(self.stride.len() as u32);
        self.stride.extend_from_slice(row);
        self.rows += 1;
        match self.starts.len() == STRIDE_ROWS || self.stride.len() > (1 << 20) {
            true => self.read_stride(),
            false => Ok(()),
        }
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
        self.read_stride()?;
        let columns = self.columns.iter_mut().map(ColumnBuilder::finish);
        let columns: Vec<ArrayRef> = columns.collect::<Result<_, _>>()?;
        let rows = std::mem::take(&mut self.rows);
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let schema = self.layout.schema().clone();
        Ok(RecordBatch::try_new_with_options(
            schema, columns, &options,
        )?)
    }

    fn read_stride(&mut self) -> Result<(), TableError> {
        let layout = Arc::clone(&self.layout);
        let shape = layout.shape();
        self.cursors.clear();
        self.ends.clear();
        for &start in &self.starts {
            let key = shape.key(&self.stride[start as usize..]);
            let begin = start + shape.key_offset() as u32;
            self.cursors.push(begin);
            self.ends.push(begin + shape.order_of(key).len() as u32);
        }
        for key in &layout.keys {
            let column = &mut self.columns[key.column];
            key.read(&self.stride, &mut self.cursors, &self.ends, column)?;
        }
        for (cursor, &start) in self.cursors.iter_mut().zip(&self.starts) {
            let key = shape.key(&self.stride[start as usize..]);
            *cursor = start + (shape.key_offset() + key.len()) as u32;
        }
        self.read_values(&layout)?;
        self.stride.clear();
        self.starts.clear();
        Ok(())
    }

    /// Reads the values behind the keys, where the cursors are.
    fn read_values(&mut self, layout: &RowLayout) -> Result<(), TableError> {
        let nulls = &self.cursors;
        let ends = &mut self.ends; // where values of any size continue
        ends.clear();
        ends.extend(
            nulls
                .iter()
                .map(|at| at + (layout.null_bytes + layout.fixed_bytes) as u32),
        );
        let mut offset = layout.null_bytes;
        for (place, value) in layout.values.iter().enumerate() {
            let column = &mut self.columns[value.column];
            let (byte, bit) = (place / 8, 1_u8 << (place % 8));
            let rows = &self.stride;
            let is_null = |at: &u32| rows[*at as usize + byte] & bit != 0;
            match value.shape {
                Shape::Null => column.push_nulls(nulls.len()),
                Shape::Bits => {
                    for at in nulls {
                        match is_null(at) {
                            true => column.push_null(),
                            false => column.push_bit(rows[*at as usize + offset] == 1),
                        }
                    }
                }
                Shape::Fixed(width) => {
                    for at in nulls {
                        match is_null(at) {
                            true => column.push_null(),
                            false => column.push_fixed(&rows[*at as usize + offset..][..width]),
                        }
                    }
                }
                Shape::Bytes | Shape::Nested => {
                    for (at, end) in nulls.iter().zip(&mut *ends) {
                        if is_null(at) {
                            column.push_null();
                            continue;
                        }
                        let from = *end as usize;
                        let early = TableError::Damaged("a row ends early");
                        let bytes = RowShape::row_bytes(&rows[from..]).ok_or(early)?;
                        let value_bytes = &rows[from + LENGTH_BYTES..][..bytes];
                        match value.shape {
                            Shape::Nested => column.push_nested(value_bytes)?,
                            _ => column.push_bytes(value_bytes)?,
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
