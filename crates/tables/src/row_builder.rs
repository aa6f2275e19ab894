//! Rows from keys and values that are bytes already.

use crate::layout::{LENGTH_BYTES, RowShape};
use crate::writer::Rows;

/// Builds rows one after another.
#[derive(Debug)]
pub struct RowBuilder {
    shape: RowShape,
    bytes: Vec<u8>,
    starts: Vec<u32>,
}

impl RowBuilder {
    /// No rows yet.
    #[must_use]
    pub fn new(shape: RowShape) -> Self {
        Self {
            shape,
            bytes: Vec::new(),
            starts: vec![0],
        }
    }

    /// Adds a row: the key that `push_key` appends, and the value. Its number is part of the key if
    /// rows are numbered.
    ///
    /// # Errors
    /// What `push_key` says; the row is left out then.
    #[inline]
    pub fn push<E>(
        &mut self,
        number: u64,
        value: &[u8],
        push_key: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = self.bytes.len();
        let key = start + self.shape.key_offset();
        self.bytes.resize(key, 0);
        if let Err(why) = push_key(&mut self.bytes) {
            self.bytes.truncate(start);
            return Err(why);
        }
        if self.shape.is_numbered {
            self.bytes.extend_from_slice(&number.to_be_bytes());
        }
        if self.shape.key_bytes.is_none() {
            let bytes = (self.bytes.len() - key) as u32;
            self.bytes[start + LENGTH_BYTES..key].copy_from_slice(&bytes.to_le_bytes());
        }
        self.bytes.extend_from_slice(value);
        let bytes = (self.bytes.len() - start) as u32;
        self.bytes[start..start + LENGTH_BYTES].copy_from_slice(&bytes.to_le_bytes());
        self.starts.push(self.bytes.len() as u32);
        Ok(())
    }

    /// Adds a row that is its own key.
    ///
    /// # Errors
    /// Never.
    #[inline]
    pub fn push_whole<E>(&mut self, row: &[u8], number: u64) -> Result<(), E> {
        self.push(number, &[], |key| {
            key.extend_from_slice(row);
            Ok(())
        })
    }

    /// The rows so far.
    #[must_use]
    pub fn rows(&self) -> Rows<'_> {
        Rows::new(&self.bytes, &self.starts)
    }

    /// Their bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Forgets them.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.starts.truncate(1);
    }
}
