//! A column of a batch, opened for copying values row by row.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    BinaryViewType, ByteArrayType, ByteViewType, GenericBinaryType, GenericStringType,
    StringViewType,
};
use arrow_array::{Array, ArrayRef, GenericByteArray, GenericByteViewArray, OffsetSizeTrait};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_cast::cast;
use arrow_schema::DataType;

use crate::error::TableError;

/// How values of a type lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// So many bytes each.
    Fixed(usize),
    /// A bit each.
    Bits,
    /// Any number of bytes each.
    Bytes,
    /// Lists and maps, and structs in them.
    Nested,
    /// A struct, whose fields are columns of their own.
    Struct,
    /// Null in every row.
    Null,
}

impl Shape {
    /// The shape of a column's type, or `None` if rows cannot hold it.
    pub fn of_column(data_type: &DataType) -> Option<Self> {
        let shape = Self::of(data_type)?;
        Some(match data_type {
            DataType::Struct(_) => Self::Struct,
            _ => shape,
        })
    }

    /// The shape of a type, or `None` if rows cannot hold it. A dictionary has its values' shape.
    pub fn of(data_type: &DataType) -> Option<Self> {
        use DataType as T;
        Some(match data_type {
            T::Null => Self::Null,
            T::Boolean => Self::Bits,
            T::Utf8 | T::LargeUtf8 | T::Utf8View | T::Binary | T::LargeBinary | T::BinaryView => {
                Self::Bytes
            }
            T::FixedSizeBinary(width) => Self::Fixed(usize::try_from(*width).ok()?),
            T::Dictionary(_, values) => match Self::of(values)? {
                Self::Nested | Self::Struct | Self::Null => return None,
                shape => shape,
            },
            T::List(item) | T::LargeList(item) | T::FixedSizeList(item, _) | T::Map(item, _) => {
                Self::of(item.data_type()).map(|_| Self::Nested)?
            }
            T::Struct(fields) => {
                for field in fields {
                    Self::of(field.data_type())?;
                }
                Self::Nested
            }
            other => Self::Fixed(other.primitive_width()?),
        })
    }
}

/// The values of a column. Null rows have values, too, of no meaning.
#[derive(Debug)]
pub struct Column {
    /// Which rows are null; `None` if none is.
    pub nulls: Option<NullBuffer>,
    /// The values.
    pub values: Values,
}

/// Values by shape.
#[derive(Debug)]
pub enum Values {
    /// Of a width, end to end.
    Fixed(usize, Buffer),
    /// Bits.
    Bits(BooleanBuffer),
    /// Bytes with 32-bit offsets.
    Bytes(OffsetBuffer<i32>, Buffer),
    /// Bytes with 64-bit offsets.
    LargeBytes(OffsetBuffer<i64>, Buffer),
    /// Views of bytes.
    Views(ScalarBuffer<u128>, Vec<Buffer>),
    /// Lists, structs and maps.
    Nested(Items),
    /// Nulls.
    Null,
}

/// What nested values consist of.
#[derive(Debug)]
pub enum Items {
    /// Lists and maps: where each begins, and the items of all.
    Lists(OffsetBuffer<i64>, Box<Column>),
    /// Lists of a length.
    FixedSizeLists(usize, Box<Column>),
    /// The fields of structs.
    Structs(Vec<Column>),
}

impl Column {
    /// Opens the columns of a table, and behind them those of structs' fields, as layouts count
    /// them. A field is null where its struct is.
    ///
    /// # Errors
    /// When a dictionary has no such value.
    pub fn open_all(table: &[ArrayRef]) -> Result<Vec<Self>, TableError> {
        let mut arrays: Vec<(ArrayRef, Option<NullBuffer>)> = table
            .iter()
            .map(|array| (Arc::clone(array), None))
            .collect();
        let mut columns = Vec::with_capacity(arrays.len());
        while let Some((array, outer)) = arrays.get(columns.len()).cloned() {
            let mut column = match array.as_struct_opt() {
                Some(_) => Self {
                    nulls: nulls_of(&array),
                    values: Values::Null,
                },
                None => Self::open(&array)?,
            };
            column.nulls = NullBuffer::union(outer.as_ref(), column.nulls.as_ref());
            if let Some(structs) = array.as_struct_opt() {
                let fields = structs.columns().iter();
                arrays.extend(fields.map(|field| (Arc::clone(field), column.nulls.clone())));
            }
            columns.push(column);
        }
        Ok(columns)
    }

    /// Opens a column whose type has a [`Shape`]. Dictionaries are decoded, those of bytes as views:
    /// however often a long value comes, it is in memory once.
    ///
    /// # Errors
    /// When a dictionary has no such value.
    pub fn open(array: &ArrayRef) -> Result<Self, TableError> {
        use DataType as T;
        let nulls = nulls_of(array);
        let values = match array.data_type() {
            T::Dictionary(_, values) => {
                let plain = match values.as_ref() {
                    T::Utf8 | T::LargeUtf8 => &T::Utf8View,
                    T::Binary | T::LargeBinary => &T::BinaryView,
                    other => other,
                };
                return Self::open(&cast(array, plain)?);
            }
            T::Null => Values::Null,
            T::Boolean => Values::Bits(array.as_boolean().values().clone()),
            T::Utf8 => bytes::<GenericStringType<i32>>(array.as_bytes()),
            T::Binary => bytes::<GenericBinaryType<i32>>(array.as_bytes()),
            T::LargeUtf8 => large_bytes::<GenericStringType<i64>>(array.as_bytes()),
            T::LargeBinary => large_bytes::<GenericBinaryType<i64>>(array.as_bytes()),
            T::Utf8View => views::<StringViewType>(array.as_byte_view()),
            T::BinaryView => views::<BinaryViewType>(array.as_byte_view()),
            T::List(_) => {
                let lists = array.as_list::<i32>();
                lists_of(lists.offsets(), lists.values())?
            }
            T::LargeList(_) => {
                let lists = array.as_list::<i64>();
                lists_of(lists.offsets(), lists.values())?
            }
            T::Map(_, _) => {
                let map = array.as_map();
                let entries: ArrayRef = Arc::new(map.entries().clone());
                lists_of(map.offsets(), &entries)?
            }
            T::FixedSizeList(_, len) => {
                let items = Self::open(array.as_fixed_size_list().values())?;
                Values::Nested(Items::FixedSizeLists(*len as usize, Box::new(items)))
            }
            T::Struct(_) => {
                let fields = array.as_struct().columns().iter().map(Self::open);
                Values::Nested(Items::Structs(fields.collect::<Result<_, _>>()?))
            }
            other => {
                let width = match Shape::of(other) {
                    Some(Shape::Fixed(width)) => width,
                    _ => return Err(TableError::Damaged("a column has another type")),
                };
                let data = array.to_data();
                let from = data.offset() * width;
                let all = &data.buffers()[0];
                Values::Fixed(width, all.slice_with_length(from, data.len() * width))
            }
        };
        Ok(Self { nulls, values })
    }

    /// Whether the row is null.
    #[inline]
    pub fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }
}

fn nulls_of(array: &ArrayRef) -> Option<NullBuffer> {
    let nulls = array.nulls();
    nulls.filter(|nulls| nulls.null_count() > 0).cloned()
}

fn lists_of<O: OffsetSizeTrait>(
    offsets: &OffsetBuffer<O>,
    items: &ArrayRef,
) -> Result<Values, TableError> {
    let long: ScalarBuffer<i64> = offsets.iter().map(|at| at.as_usize() as i64).collect();
    let items = Box::new(Column::open(items)?);
    Ok(Values::Nested(Items::Lists(OffsetBuffer::new(long), items)))
}

fn bytes<T: ByteArrayType<Offset = i32>>(array: &GenericByteArray<T>) -> Values {
    Values::Bytes(array.offsets().clone(), array.values().clone())
}

fn large_bytes<T: ByteArrayType<Offset = i64>>(array: &GenericByteArray<T>) -> Values {
    Values::LargeBytes(array.offsets().clone(), array.values().clone())
}

fn views<T: ByteViewType>(array: &GenericByteViewArray<T>) -> Values {
    Values::Views(array.views().clone(), array.data_buffers().to_vec())
}

/// Any values of bytes.
pub trait ByteValues {
    /// The bytes of a row.
    fn get(&self, row: usize) -> &[u8];

    /// Whether any of these rows may have a zero: one search is faster than one for each.
    fn may_have_zero(&self, rows: Range<usize>) -> bool;
}

/// Bytes with offsets.
pub struct Offsets<'a, O: OffsetSizeTrait>(pub &'a OffsetBuffer<O>, pub &'a [u8]);

impl<O: OffsetSizeTrait> ByteValues for Offsets<'_, O> {
    #[inline]
    fn get(&self, row: usize) -> &[u8] {
        &self.1[self.0[row].as_usize()..self.0[row + 1].as_usize()]
    }

    fn may_have_zero(&self, rows: Range<usize>) -> bool {
        let all = self.0[rows.start].as_usize()..self.0[rows.end].as_usize();
        memchr::memchr(0, &self.1[all]).is_some()
    }
}

/// Bytes with views: the length in the first 4 bytes; short values follow, long ones are in a
/// buffer.
pub struct Viewed<'a>(pub &'a ScalarBuffer<u128>, pub &'a [Buffer]);

impl ByteValues for Viewed<'_> {
    #[inline]
    fn get(&self, row: usize) -> &[u8] {
        let view = &self.0.inner().as_slice()[16 * row..][..16];
        let number =
            |at: usize| u32::from_le_bytes([view[at], view[at + 1], view[at + 2], view[at + 3]]);
        let len = number(0) as usize;
        if len <= 12 {
            return &view[4..4 + len];
        }
        &self.1[number(8) as usize].as_slice()[number(12) as usize..][..len]
    }

    fn may_have_zero(&self, _rows: Range<usize>) -> bool {
        true
    }
}

/// Calls `$body` with `$values` as [`ByteValues`] of the column's own kind.
macro_rules! with_bytes {
    ($column:expr, $values:ident => $body:expr) => {
        match $column {
            $crate::column::Values::Bytes(offsets, data) => {
                let $values = $crate::column::Offsets(offsets, data);
                $body
            }
            $crate::column::Values::LargeBytes(offsets, data) => {
                let $values = $crate::column::Offsets(offsets, data);
                $body
            }
            $crate::column::Values::Views(views, buffers) => {
                let $values = $crate::column::Viewed(views, buffers);
                $body
            }
            _ => unreachable!("the layout knows these values as bytes"),
        }
    };
}
pub(crate) use with_bytes;
