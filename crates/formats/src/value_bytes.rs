//! Values as plain bytes, to tell which are equal.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, LargeBinaryArray};
use arrow_buffer::Buffer;
use arrow_cast::cast;
use arrow_schema::DataType;

/// The values of a column as bytes.
pub(crate) struct ValueBytes {
    array: ArrayRef,
    bytes: Bytes,
}

enum Bytes {
    /// Of a width, end to end.
    Fixed(usize, Buffer),
    /// Of any length.
    Binary(LargeBinaryArray),
}

impl ValueBytes {
    /// None for types that have no plain bytes.
    pub fn of(array: &ArrayRef) -> Option<Self> {
        let bytes = match array.data_type().primitive_width() {
            Some(width) => {
                let data = array.to_data();
                let from = data.offset() * width;
                let all = &data.buffers()[0];
                Bytes::Fixed(width, all.slice_with_length(from, data.len() * width))
            }
            None => {
                let binary = cast(array, &DataType::LargeBinary).ok()?;
                Bytes::Binary(binary.as_binary::<i64>().clone())
            }
        };
        Some(Self {
            array: array.clone(),
            bytes,
        })
    }

    /// Those that are not null.
    pub fn present(&self) -> Vec<&[u8]> {
        let present = (0..self.array.len()).filter(|&row| self.array.is_valid(row));
        match &self.bytes {
            Bytes::Fixed(width, values) => present
                .map(|row| &values.as_slice()[row * width..][..*width])
                .collect(),
            Bytes::Binary(values) => present.map(|row| values.value(row)).collect(),
        }
    }
}
