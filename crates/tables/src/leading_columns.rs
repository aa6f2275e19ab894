//! The first columns of keys: rows that have the same values in them follow one another in a sort.

use std::sync::Arc;

use arrow_array::ArrayRef;

use crate::builder::ColumnBuilder;
use crate::error::TableError;
use crate::layout::RowLayout;

/// Some of the first columns of the keys of rows.
#[derive(Clone, Debug)]
pub struct LeadingColumns {
    layout: Arc<RowLayout>,
    count: usize,
}

impl LeadingColumns {
    /// So many columns of the keys of this layout, which are ascending and no floats.
    #[must_use]
    pub fn new(layout: &Arc<RowLayout>, count: usize) -> Self {
        Self {
            layout: Arc::clone(layout),
            count,
        }
    }

    /// Their places in the table.
    #[must_use]
    pub fn places(&self) -> Vec<usize> {
        let keys = self.layout.keys[..self.count].iter();
        keys.map(|key| key.column).collect()
    }

    /// The part of a row's key that has their values.
    ///
    /// # Errors
    /// When the bytes are no row.
    pub fn beginning<'r>(&self, row: &'r [u8]) -> Result<&'r [u8], TableError> {
        let (end, _) = self.read(row)?;
        Ok(&row[self.layout.shape().key_offset()..end])
    }

    /// Whether a row has the values of which this is the part of a key.
    #[inline]
    #[must_use]
    pub fn have(&self, beginning: &[u8], row: &[u8]) -> bool {
        let behind = self.layout.shape().key(row).strip_prefix(beginning);
        // Behind 255 a value continues; another column begins with no such byte.
        behind.is_some_and(|behind| behind.first() != Some(&u8::MAX))
    }

    /// Their values in a row, an array of one for each column.
    ///
    /// # Errors
    /// When the bytes are no row.
    pub fn values(&self, row: &[u8]) -> Result<Vec<ArrayRef>, TableError> {
        let (_, mut columns) = self.read(row)?;
        columns.iter_mut().map(ColumnBuilder::finish).collect()
    }

    /// Where their part of the key ends, and their values.
    fn read(&self, row: &[u8]) -> Result<(usize, Vec<ColumnBuilder>), TableError> {
        let shape = self.layout.shape();
        let begin = shape.key_offset();
        let end = begin + shape.order_of(shape.key(row)).len();
        let mut cursors = [begin as u32];
        let mut columns = Vec::with_capacity(self.count);
        for key in &self.layout.keys[..self.count] {
            let mut column = ColumnBuilder::new(&self.layout.types[key.column], 1);
            key.read(&[row], &mut cursors, &[end as u32], &mut column)?;
            columns.push(column);
        }
        Ok((cursors[0] as usize, columns))
    }
}
