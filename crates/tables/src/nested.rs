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

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, GenericListArray, OffsetSizeTrait};
use arrow_buffer::OffsetBuffer;
use arrow_cast::cast;
use arrow_schema::DataType;

use crate::column::{ByteValues, Column, Values, with_bytes};

/// Writes rows of a column.
pub fn write_range(array: &ArrayRef, first: usize, rows: usize, out: &mut Vec<u8>) {
    let is_null = |row| array.is_null(row);
    if (first..first + rows).any(is_null) {
        out.push(1);
        for group in (first..first + rows).collect::<Vec<_>>().chunks(8) {
            let bits = group.iter().enumerate();
            out.push(bits.fold(0, |byte, (place, &row)| {
                byte | (u8::from(is_null(row)) << place)
            }));
        }
    } else {
        out.push(0);
    }
    match array.data_type() {
        DataType::List(_) => write_lists(array.as_list::<i32>(), first, rows, out),
        DataType::LargeList(_) => write_lists(array.as_list::<i64>(), first, rows, out),
        DataType::FixedSizeList(_, len) => {
            let len = *len as usize;
            let items = array.as_fixed_size_list().values();
            write_range(items, first * len, rows * len, out);
        }
        DataType::Map(_, _) => {
            let map = array.as_map();
            let entries: ArrayRef = Arc::new(map.entries().clone());
            write_items(map.offsets(), &entries, first, rows, out);
        }
        DataType::Struct(_) => {
            for field in array.as_struct().columns() {
                write_range(field, first, rows, out);
            }
        }
        DataType::Dictionary(_, values) => {
            let plain = cast(array, values).expect("a dictionary has its values");
            write_values(&Column::open(&plain), first, rows, out);
        }
        _ => write_values(&Column::open(array), first, rows, out),
    }
}

fn write_lists<O: OffsetSizeTrait>(
    lists: &GenericListArray<O>,
    first: usize,
    rows: usize,
    out: &mut Vec<u8>,
) {
    write_items(lists.offsets(), lists.values(), first, rows, out);
}

fn write_items<O: OffsetSizeTrait>(
    offsets: &OffsetBuffer<O>,
    items: &ArrayRef,
    first: usize,
    rows: usize,
    out: &mut Vec<u8>,
) {
    let ends = offsets[first..=first + rows].windows(2);
    for pair in ends {
        push_length(pair[1].as_usize() - pair[0].as_usize(), out);
    }
    let begin = offsets[first].as_usize();
    write_range(items, begin, offsets[first + rows].as_usize() - begin, out);
}

fn push_length(length: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&(length as u32).to_le_bytes());
}

fn write_values(column: &Column, first: usize, rows: usize, out: &mut Vec<u8>) {
    match &column.values {
        Values::Fixed(width, values) => {
            out.extend_from_slice(&values[first * width..(first + rows) * width]);
        }
        Values::Bits(bits) => {
            out.extend((first..first + rows).map(|row| u8::from(bits.value(row))))
        }
        Values::Null => (),
        Values::Nested(_) => unreachable!("`write_range` has written it"),
        bytes => with_bytes!(bytes, values => {
            (first..first + rows).for_each(|row| push_length(values.get(row).len(), out));
            (first..first + rows).for_each(|row| out.extend_from_slice(values.get(row)));
        }),
    }
}
