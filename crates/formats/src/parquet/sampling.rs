//! Whether values repeat, or become shorter when they are compressed: by the first rows.

use std::collections::HashSet;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_cast::cast;
use arrow_schema::DataType;

/// Rows that are looked at.
const SAMPLED_ROWS: usize = 4096;
/// Bytes that are compressed at most.
const SAMPLED_BYTES: usize = 64 << 10;

/// Whether most of the first values have come before, so that a dictionary pays.
pub fn repeats(array: &ArrayRef) -> bool {
    let rows = array.len().min(SAMPLED_ROWS);
    let Some(values) = values(&array.slice(0, rows)) else {
        return true; // as the writer does by itself
    };
    let mut seen = HashSet::with_capacity(rows);
    let count = values.len();
    let distinct = values
        .iter()
        .filter(|value| seen.insert(value.as_slice()))
        .count();
    2 * distinct <= count
}

/// Whether the first values become a twentieth shorter at least.
pub fn is_compressible(array: &ArrayRef) -> bool {
    let rows = array.len().min(SAMPLED_ROWS);
    let Some(values) = values(&array.slice(0, rows)) else {
        return true;
    };
    let mut plain: Vec<u8> = values.concat();
    plain.truncate(SAMPLED_BYTES);
    match snap::raw::Encoder::new().compress_vec(&plain) {
        Ok(compressed) => 20 * compressed.len() <= 19 * plain.len(),
        Err(_) => true,
    }
}

/// The bytes of each value that is not null; none for types that have no plain bytes.
fn values(array: &ArrayRef) -> Option<Vec<Vec<u8>>> {
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
