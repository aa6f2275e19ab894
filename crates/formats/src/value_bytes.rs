//! Values as plain bytes, to tell which are equal.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_cast::cast;
use arrow_schema::DataType;

/// The bytes of each value that is not null; none for types that have no plain bytes.
pub(crate) fn value_bytes(array: &ArrayRef) -> Option<Vec<Vec<u8>>> {
    let present = (0..array.len()).filter(|&row| array.is_valid(row));
    if let Some(width) = array.data_type().primitive_width() {
        let data = array.to_data();
        let bytes = data.buffers()[0].as_slice();
        let at = |row: usize| (data.offset() + row) * width;
        return Some(
            present
                .map(|row| bytes[at(row)..at(row) + width].to_vec())
                .collect(),
        );
    }
    let binary = cast(array, &DataType::LargeBinary).ok()?;
    let binary = binary.as_binary::<i64>();
    Some(present.map(|row| binary.value(row).to_vec()).collect())
}
