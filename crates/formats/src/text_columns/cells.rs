//! The values of a column, opened to be printed row by row.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int64Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, Decimal256Array, Float32Array, Float64Array,
    Int64Array, LargeBinaryArray, LargeStringArray, UInt64Array,
};
use arrow_buffer::{NullBuffer, i256};
use arrow_cast::cast;
use arrow_schema::{DataType, TimeUnit};

use super::scalars::Scalar;
use super::{decimals, moments};
use crate::error::FormatError;

/// A column.
pub struct Cells {
    nulls: Option<NullBuffer>,
    /// The values. Null rows have values, too, of no meaning.
    pub values: CellValues,
}

/// Values by how they are printed.
pub enum CellValues {
    /// Nothing but nulls.
    Null,
    /// Truths.
    Bits(BooleanArray),
    /// Whole numbers with a sign, and what is counted: days, units of time.
    Counts(Scalar, Int64Array),
    /// Whole numbers without a sign.
    Unsigned(UInt64Array),
    /// Short floats.
    Float32(Float32Array),
    /// Floats.
    Float64(Float64Array),
    /// Decimals, and their places behind the point.
    Decimal128(i8, Decimal128Array),
    /// Long decimals.
    Decimal256(i8, Decimal256Array),
    /// Text.
    Text(LargeStringArray),
    /// Bytes.
    Bytes(LargeBinaryArray),
    /// Where each list begins and ends, and the items of all.
    Lists(Vec<usize>, Box<Cells>),
    /// Maps, as lists of keys and of values.
    Maps(Vec<usize>, Box<Cells>, Box<Cells>),
    /// Fields with their names.
    Structs(Vec<(String, Cells)>),
}

/// Whether values of a type have text, nested ones as JSON does.
pub fn has_text(data_type: &DataType) -> bool {
    use DataType as T;
    match data_type {
        T::Null | T::Boolean | T::Utf8 | T::LargeUtf8 | T::Utf8View => true,
        T::Binary | T::LargeBinary | T::BinaryView | T::FixedSizeBinary(_) => true,
        T::Dictionary(_, values) => has_text(values),
        T::List(item) | T::LargeList(item) | T::FixedSizeList(item, _) | T::Map(item, _) => {
            has_text(item.data_type())
        }
        T::Struct(fields) => fields.iter().all(|field| has_text(field.data_type())),
        other => Scalar::of(other).is_some(),
    }
}

impl Cells {
    /// Opens a column whose type has text.
    ///
    /// # Errors
    /// A type without text.
    pub fn open(array: &ArrayRef) -> Result<Self, FormatError> {
        use DataType as T;
        let long = |data_type: &T| cast(array, data_type);
        let values = match array.data_type() {
            T::Dictionary(_, values) => return Self::open(&cast(array, values)?),
            T::Null => CellValues::Null,
            T::Boolean => CellValues::Bits(array.as_boolean().clone()),
            T::Utf8 | T::LargeUtf8 | T::Utf8View => {
                CellValues::Text(long(&T::LargeUtf8)?.as_string::<i64>().clone())
            }
            T::FixedSizeBinary(_) | T::Binary | T::LargeBinary | T::BinaryView => {
                CellValues::Bytes(long(&T::LargeBinary)?.as_binary::<i64>().clone())
            }
            T::UInt8 | T::UInt16 | T::UInt32 | T::UInt64 => {
                CellValues::Unsigned(long(&T::UInt64)?.as_primitive::<UInt64Type>().clone())
            }
            T::Float16 | T::Float32 => {
                CellValues::Float32(long(&T::Float32)?.as_primitive::<Float32Type>().clone())
            }
            T::Float64 => CellValues::Float64(array.as_primitive::<Float64Type>().clone()),
            T::Decimal32(precision, scale)
            | T::Decimal64(precision, scale)
            | T::Decimal128(precision, scale) => {
                let long = long(&T::Decimal128(*precision, *scale))?;
                CellValues::Decimal128(*scale, long.as_primitive::<Decimal128Type>().clone())
            }
            T::Decimal256(_, scale) => {
                CellValues::Decimal256(*scale, array.as_primitive::<Decimal256Type>().clone())
            }
            T::List(_) => {
                let lists = array.as_list::<i32>();
                let ends = lists.offsets().iter().map(|end| *end as usize);
                CellValues::Lists(ends.collect(), Box::new(Self::open(lists.values())?))
            }
            T::LargeList(_) => {
                let lists = array.as_list::<i64>();
                let ends = lists.offsets().iter().map(|end| *end as usize);
                CellValues::Lists(ends.collect(), Box::new(Self::open(lists.values())?))
            }
            T::FixedSizeList(_, length) => {
                let lists = array.as_fixed_size_list();
                let ends = (0..=lists.len()).map(|row| row * *length as usize);
                CellValues::Lists(ends.collect(), Box::new(Self::open(lists.values())?))
            }
            T::Map(_, _) => {
                let maps = array.as_map();
                let ends = maps.offsets().iter().map(|end| *end as usize);
                let (keys, values) = (Self::open(maps.keys())?, Self::open(maps.values())?);
                CellValues::Maps(ends.collect(), Box::new(keys), Box::new(values))
            }
            T::Struct(fields) => {
                let columns = fields.iter().zip(array.as_struct().columns());
                let cells =
                    columns.map(|(field, column)| Ok((field.name().clone(), Self::open(column)?)));
                CellValues::Structs(cells.collect::<Result<_, FormatError>>()?)
            }
            other => {
                let refuse = || FormatError::Damaged(format!("values of {other} have no text"));
                let scalar = Scalar::of(other).ok_or_else(refuse)?;
                // Days and times of 32 bits become numbers of 64 bits by way of 32 bits.
                let counts = match scalar.bytes() {
                    4 => cast(&cast(array, &T::Int32)?, &T::Int64)?,
                    _ => cast(array, &T::Int64)?,
                };
                CellValues::Counts(scalar, counts.as_primitive::<Int64Type>().clone())
            }
        };
        let nulls = array.logical_nulls();
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        Ok(Self { nulls, values })
    }

    /// Whether the row is null.
    pub fn is_null(&self, row: usize) -> bool {
        matches!(self.values, CellValues::Null)
            || self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// Appends a truth, a number, a date or a time; other values have nothing here.
    pub fn print_plain(&self, row: usize, out: &mut Vec<u8>) {
        match &self.values {
            CellValues::Bits(bits) => {
                let word: &[u8] = if bits.value(row) { b"true" } else { b"false" };
                out.extend_from_slice(word);
            }
            CellValues::Counts(scalar, counts) => print_count(*scalar, counts.value(row), out),
            CellValues::Unsigned(numbers) => {
                out.extend_from_slice(itoa::Buffer::new().format(numbers.value(row)).as_bytes());
            }
            CellValues::Float32(numbers) => {
                let number = numbers.value(row);
                match number.is_finite() {
                    true => out.extend_from_slice(ryu::Buffer::new().format(number).as_bytes()),
                    false => print_not_finite(f64::from(number), out),
                }
            }
            CellValues::Float64(numbers) => {
                let number = numbers.value(row);
                match number.is_finite() {
                    true => out.extend_from_slice(ryu::Buffer::new().format(number).as_bytes()),
                    false => print_not_finite(number, out),
                }
            }
            CellValues::Decimal128(scale, numbers) => {
                decimals::print(i256::from_i128(numbers.value(row)), *scale, out);
            }
            CellValues::Decimal256(scale, numbers) => {
                decimals::print(numbers.value(row), *scale, out);
            }
            _ => (),
        }
    }
}

fn print_not_finite(number: f64, out: &mut Vec<u8>) {
    let word = match number {
        number if number.is_nan() => "nan",
        number if number > 0.0 => "inf",
        _ => "-inf",
    };
    out.extend_from_slice(word.as_bytes());
}

fn print_count(scalar: Scalar, count: i64, out: &mut Vec<u8>) {
    const DAY_MILLISECONDS: i64 = 86_400_000;
    match scalar {
        Scalar::Days => moments::print_date(count, out),
        Scalar::DayMilliseconds if count % DAY_MILLISECONDS == 0 => {
            moments::print_date(count / DAY_MILLISECONDS, out);
        }
        Scalar::DayMilliseconds => {
            moments::print_timestamp(count, TimeUnit::Millisecond, false, out);
        }
        Scalar::Time(_, unit) => moments::print_time(count, unit, out),
        Scalar::Timestamp(unit, has_zone) => {
            moments::print_timestamp(count, unit, has_zone, out);
        }
        Scalar::Duration(unit) => moments::print_duration(count, unit, out),
        _ => out.extend_from_slice(itoa::Buffer::new().format(count).as_bytes()),
    }
}
