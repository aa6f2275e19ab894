//! Lists, structs and maps as bytes.
//!
//! A value is a range of its column with one row; a range is written level by level, so that the
//! children of a list are copied together:
//!
//! ```text
//!   range     1 and a bit for each row, or 0 if no row is null, then by shape:
//!     fixed     the values
//!     bits      a byte for each
//!     bytes     their lengths, then all bytes
//!     lists     their lengths, then the range of all items
//!     structs   the range of each field
//! ```

use crate::column::{ByteValues, Column, Items, Values, with_bytes};

/// Writes rows of a column.
pub fn write_range(column: &Column, first: usize, rows: usize, out: &mut Vec<u8>) {
    let range = first..first + rows;
    match &column.nulls {
        Some(nulls) if range.clone().any(|row| nulls.is_null(row)) => {
            out.push(1);
            for begin in range.clone().step_by(8) {
                let end = (begin + 8).min(range.end);
                let bits = (begin..end).map(|row| u8::from(nulls.is_null(row)));
                out.push(bits.rev().fold(0, |byte, bit| (byte << 1) | bit));
            }
        }
        _ => out.push(0),
    }
    match &column.values {
        Values::Fixed(width, values) => {
            out.extend_from_slice(&values[first * width..(first + rows) * width]);
        }
        Values::Bits(bits) => out.extend(range.map(|row| u8::from(bits.value(row)))),
        Values::Null => (),
        Values::Nested(Items::Lists(offsets, items)) => {
            let lengths = offsets[first..=first + rows].windows(2);
            lengths.for_each(|pair| push_length((pair[1] - pair[0]) as usize, out));
            let [begin, end] = [first, first + rows].map(|row| offsets[row] as usize);
            write_range(items, begin, end - begin, out);
        }
        Values::Nested(Items::FixedSizeLists(len, items)) => {
            write_range(items, first * len, rows * len, out);
        }
        Values::Nested(Items::Structs(fields)) => {
            fields
                .iter()
                .for_each(|field| write_range(field, first, rows, out));
        }
        bytes => with_bytes!(bytes, values => {
            range.clone().for_each(|row| push_length(values.get(row).len(), out));
            range.for_each(|row| out.extend_from_slice(values.get(row)));
        }),
    }
}

fn push_length(length: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&(length as u32).to_le_bytes());
}
