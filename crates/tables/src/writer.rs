//! Rows of batches as bytes.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;

use crate::column::{ByteValues, Column, Shape, Values, with_bytes};
use crate::error::TableError;
use crate::layout::{LENGTH_BYTES, NUMBER_BYTES, RowLayout, fixed_bytes};
use crate::nested_writer::write_range;

/// The longest row.
const LONGEST_ROW: u64 = 1 << 31;
/// Rows that are written at once, and their bytes, about: they stay in the cache.
const STRIDE_ROWS: usize = 512;
const STRIDE_BYTES: u64 = 512 << 10;

/// Writes rows of batches.
#[derive(Debug)]
pub struct RowWriter {
    layout: Arc<RowLayout>,
    columns: Vec<Column>,
    rows: Vec<u8>,
    stride_rows: usize,
    starts: Vec<u32>,
    cursors: Vec<u32>,
    lengths: Vec<u64>,
    nested: Vec<NestedValues>,
}

/// Values of a nested column, written before their lengths are needed.
#[derive(Debug, Default)]
struct NestedValues {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// Rows, end to end.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    bytes: &'a [u8],
    starts: &'a [u32],
}

impl<'a> Rows<'a> {
    /// Rows that begin at each of `starts`, of which the last is their end.
    ///
    /// # Panics
    /// Without any start: a bug of the caller.
    #[must_use]
    pub fn new(bytes: &'a [u8], starts: &'a [u32]) -> Self {
        assert!(!starts.is_empty(), "rows have an end");
        Self { bytes, starts }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Each row.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let bytes = self.bytes;
        let ends = self.starts[1..].iter();
        let pairs = self.starts.iter().zip(ends);
        pairs.map(move |(&start, &end)| &bytes[start as usize..end as usize])
    }
}

impl RowWriter {
    /// Writes rows of this layout.
    #[must_use]
    pub fn new(layout: &Arc<RowLayout>) -> Self {
        let nested = |value: &&crate::layout::ValueField| value.shape == Shape::Nested;
        let nested = layout.values.iter().filter(nested).count();
        Self {
            layout: Arc::clone(layout),
            columns: Vec::new(),
            rows: Vec::new(),
            stride_rows: STRIDE_ROWS,
            starts: Vec::new(),
            cursors: Vec::new(),
            lengths: Vec::new(),
            nested: (0..nested).map(|_| NestedValues::default()).collect(),
        }
    }

    /// Opens a batch with the layout's columns, of the layout's types.
    ///
    /// # Errors
    /// When a dictionary has no such value.
    pub fn open(&mut self, batch: &RecordBatch) -> Result<(), TableError> {
        self.columns = Column::open_all(batch.columns())?;
        Ok(())
    }

    /// The first rows of this range of the open batch, as many as are written at once, at least one;
    /// the first has this number.
    ///
    /// # Errors
    /// When a row is too long.
    pub fn write(&mut self, range: Range<usize>, number: u64) -> Result<Rows<'_>, TableError> {
        let first = range.start;
        let range = self.write_nested(first..range.end.min(first + self.stride_rows));
        self.place(&range)?;
        // Of long rows no more are looked at than will have room.
        self.stride_rows = (2 * (self.starts.len() - 1)).min(STRIDE_ROWS);
        let layout = Arc::clone(&self.layout);
        self.set_cursors(layout.shape().key_offset());
        for key in &layout.keys {
            let column = &self.columns[key.column];
            key.write(column, first, &mut self.rows, &mut self.cursors);
        }
        if layout.shape().is_numbered {
            for (number, cursor) in (number..).zip(&mut self.cursors) {
                let place = &mut self.rows[*cursor as usize..][..NUMBER_BYTES];
                place.copy_from_slice(&number.to_be_bytes());
                *cursor += NUMBER_BYTES as u32;
            }
        }
        if layout.shape().key_bytes.is_none() {
            for (start, cursor) in self.starts.iter().zip(&self.cursors) {
                let bytes = cursor - start - 2 * LENGTH_BYTES as u32;
                let place = &mut self.rows[*start as usize + LENGTH_BYTES..][..LENGTH_BYTES];
                place.copy_from_slice(&bytes.to_le_bytes());
            }
        }
        self.write_nulls(first);
        self.write_values(first);
        Ok(Rows {
            bytes: &self.rows,
            starts: &self.starts,
        })
    }

    /// Writes the values of nested columns, whose lengths are not known before, and gives the rows
    /// for which there was room.
    fn write_nested(&mut self, mut range: Range<usize>) -> Range<usize> {
        let columns = self
            .layout
            .values
            .iter()
            .map(|value| &self.columns[value.column]);
        let nested = columns.filter(|column| matches!(column.values, Values::Nested(_)));
        for (written, column) in self.nested.iter_mut().zip(nested) {
            written.bytes.clear();
            written.ends.clear();
            for row in range.clone() {
                if !column.is_null(row) {
                    write_range(column, row, 1, &mut written.bytes);
                }
                written.ends.push(written.bytes.len());
                if written.bytes.len() as u64 >= STRIDE_BYTES {
                    range.end = row + 1;
                    break;
                }
            }
        }
        range
    }

    /// Gives each row its place, as long as there is room, and writes its length there.
    fn place(&mut self, range: &Range<usize>) -> Result<(), TableError> {
        let layout = &self.layout;
        let fixed = layout.shape().key_offset()
            + if layout.shape().is_numbered {
                NUMBER_BYTES
            } else {
                0
            }
            + layout.null_bytes
            + layout.fixed_bytes;
        self.lengths.clear();
        self.lengths.resize(range.len(), fixed as u64);
        for key in &layout.keys {
            key.add_lengths(&self.columns[key.column], range.start, &mut self.lengths);
        }
        let mut nested = self.nested.iter();
        for value in &layout.values {
            let column = &self.columns[value.column];
            let rows = (range.start..).zip(&mut self.lengths);
            match value.shape {
                Shape::Bytes => with_bytes!(&column.values, values => {
                    for (row, length) in rows {
                        if !column.is_null(row) {
                            *length += (LENGTH_BYTES + values.get(row).len()) as u64;
                        }
                    }
                }),
                Shape::Nested => {
                    let written = nested.next().expect("one for each nested column");
                    let mut begin = 0;
                    for ((row, length), &end) in rows.zip(&written.ends) {
                        if !column.is_null(row) {
                            *length += (LENGTH_BYTES + end - begin) as u64;
                        }
                        begin = end;
                    }
                }
                _ => (),
            }
        }
        self.starts.clear();
        self.starts.push(0);
        let mut end = 0;
        for (row, &bytes) in self.lengths.iter().enumerate() {
            end += bytes;
            if end >= LONGEST_ROW {
                return Err(TableError::LongRow { row, bytes });
            }
            self.starts.push(end as u32);
            if end >= STRIDE_BYTES {
                break;
            }
        }
        self.lengths.truncate(self.starts.len() - 1);
        self.rows.resize(end as usize, 0);
        for (start, bytes) in self.starts.iter().zip(&self.lengths) {
            let place = &mut self.rows[*start as usize..][..LENGTH_BYTES];
            place.copy_from_slice(&(*bytes as u32).to_le_bytes());
        }
        Ok(())
    }

    /// Sets each cursor so many bytes behind its row's beginning.
    fn set_cursors(&mut self, offset: usize) {
        let starts = &self.starts[..self.starts.len() - 1];
        self.cursors.clear();
        self.cursors
            .extend(starts.iter().map(|start| start + offset as u32));
    }

    /// Writes a bit for each value that is null; cursors move behind them.
    fn write_nulls(&mut self, first: usize) {
        let bytes = self.layout.null_bytes;
        for cursor in &self.cursors {
            self.rows[*cursor as usize..][..bytes].fill(0);
        }
        for (place, value) in self.layout.values.iter().enumerate() {
            let column = &self.columns[value.column];
            if column.nulls.is_none() {
                continue;
            }
            for (row, cursor) in (first..).zip(&self.cursors) {
                if column.is_null(row) {
                    self.rows[*cursor as usize + place / 8] |= 1 << (place % 8);
                }
            }
        }
        self.cursors
            .iter_mut()
            .for_each(|cursor| *cursor += bytes as u32);
    }

    /// Writes the values behind the nulls.
    fn write_values(&mut self, first: usize) {
        let mut offset = 0;
        let mut nested = self.nested.iter();
        let (rows, cursors) = (&mut self.rows, &mut self.cursors);
        let mut is_behind_fixed = false;
        for value in &self.layout.values {
            let column = &self.columns[value.column];
            if let Some(bytes) = fixed_bytes(value.shape) {
                write_fixed(column, first, rows, cursors, offset);
                offset += bytes;
                continue;
            }
            if !is_behind_fixed {
                cursors
                    .iter_mut()
                    .for_each(|cursor| *cursor += offset as u32);
                is_behind_fixed = true;
            }
            if let Values::Nested(_) = &column.values {
                let written = nested.next().expect("one for each nested column");
                let mut begin = 0;
                for ((row, cursor), &end) in (first..).zip(&mut *cursors).zip(&written.ends) {
                    if !column.is_null(row) {
                        write_bytes(&written.bytes[begin..end], rows, cursor);
                    }
                    begin = end;
                }
            } else {
                with_bytes!(&column.values, values => {
                    for (row, cursor) in (first..).zip(&mut *cursors) {
                        if !column.is_null(row) {
                            write_bytes(values.get(row), rows, cursor);
                        }
                    }
                });
            }
        }
    }
}

#[inline]
fn write_bytes(value: &[u8], rows: &mut [u8], cursor: &mut u32) {
    let place = &mut rows[*cursor as usize..][..LENGTH_BYTES + value.len()];
    place[..LENGTH_BYTES].copy_from_slice(&(value.len() as u32).to_le_bytes());
    place[LENGTH_BYTES..].copy_from_slice(value);
    *cursor += place.len() as u32;
}

/// Writes values of one size, so many bytes behind each cursor.
fn write_fixed(column: &Column, first: usize, rows: &mut [u8], cursors: &[u32], offset: usize) {
    match &column.values {
        Values::Bits(bits) => {
            for (row, cursor) in (first..).zip(cursors) {
                rows[*cursor as usize + offset] = u8::from(bits.value(row));
            }
        }
        Values::Fixed(width, values) => match width {
            1 => write_width::<1>(values, first, rows, cursors, offset),
            2 => write_width::<2>(values, first, rows, cursors, offset),
            4 => write_width::<4>(values, first, rows, cursors, offset),
            8 => write_width::<8>(values, first, rows, cursors, offset),
            16 => write_width::<16>(values, first, rows, cursors, offset),
            &width => {
                for (row, cursor) in (first..).zip(cursors) {
                    let place = &mut rows[*cursor as usize + offset..][..width];
                    place.copy_from_slice(&values[row * width..][..width]);
                }
            }
        },
        _ => (),
    }
}

fn write_width<const W: usize>(
    values: &[u8],
    first: usize,
    rows: &mut [u8],
    cursors: &[u32],
    offset: usize,
) {
    let (values, _) = values.as_chunks::<W>();
    for (value, cursor) in values[first..].iter().zip(cursors) {
        rows[*cursor as usize + offset..][..W].copy_from_slice(value);
    }
}
