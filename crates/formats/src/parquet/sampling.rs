//! Whether values repeat, or become shorter when they are compressed: by the first rows.

use std::collections::HashSet;

use arrow_array::{Array, ArrayRef};

use crate::value_bytes::ValueBytes;

/// Rows that are looked at.
const SAMPLED_ROWS: usize = 4096;
/// Bytes that are compressed at most.
const SAMPLED_BYTES: usize = 64 << 10;

/// Whether most of the first values have come before, so that a dictionary pays.
pub fn repeats(array: &ArrayRef) -> bool {
    let Some(values) = first_values(array) else {
        return true; // as the writer does by itself
    };
    let values = values.present();
    let distinct: HashSet<&[u8]> = values.iter().copied().collect();
    2 * distinct.len() <= values.len()
}

/// Whether the first values become a twentieth shorter at least.
pub fn is_compressible(array: &ArrayRef) -> bool {
    let Some(values) = first_values(array) else {
        return true;
    };
    let mut plain: Vec<u8> = values.present().concat();
    plain.truncate(SAMPLED_BYTES);
    match snap::raw::Encoder::new().compress_vec(&plain) {
        Ok(compressed) => 20 * compressed.len() <= 19 * plain.len(),
        Err(_) => true,
    }
}

fn first_values(array: &ArrayRef) -> Option<ValueBytes> {
    ValueBytes::of(&array.slice(0, array.len().min(SAMPLED_ROWS)))
}
