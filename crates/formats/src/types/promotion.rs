//! The type that holds every value of two types, exactly: integers and floats are widened, times
//! get the finer unit, decimals the longer scale; of strings, binary and dictionaries the plainer.
//!
//! Integers become floats only where all of them are exact, so 64-bit ones never do.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, TimeUnit};

/// Names of the zone without an offset.
const UTC: [&str; 4] = ["UTC", "+00:00", "Etc/UTC", "Z"];

/// The type for the values of both, if there is one.
#[must_use]
pub fn common_type(one: &DataType, other: &DataType) -> Option<DataType> {
    use DataType as T;
    if one == other {
        return Some(one.clone());
    }
    let same = |unit: fn(TimeUnit) -> DataType, one: TimeUnit, other: TimeUnit| {
        Some(unit(one.max_by_fineness(other)))
    };
    match (one, other) {
        (T::Null, any) | (any, T::Null) => Some(any.clone()),
        (T::Dictionary(one_key, one), T::Dictionary(other_key, other)) => Some(T::Dictionary(
            Box::new(common_type(one_key, other_key).filter(DataType::is_dictionary_key_type)?),
            Box::new(common_type(one, other)?),
        )),
        (T::Dictionary(_, one), other) | (other, T::Dictionary(_, one)) => common_type(one, other),
        (T::Timestamp(one, one_zone), T::Timestamp(other, other_zone)) => Some(T::Timestamp(
            one.max_by_fineness(*other),
            common_zone(one_zone.as_ref(), other_zone.as_ref())?,
        )),
        (T::Time32(one) | T::Time64(one), T::Time32(other) | T::Time64(other)) => {
            Some(match one.max_by_fineness(*other) {
                unit @ (TimeUnit::Second | TimeUnit::Millisecond) => T::Time32(unit),
                unit => T::Time64(unit),
            })
        }
        (T::Duration(one), T::Duration(other)) => same(T::Duration, *one, *other),
        (T::Date32, T::Date64) | (T::Date64, T::Date32) => Some(T::Date64),
        (T::List(one), T::List(other)) => Some(T::List(common_field(one, other)?)),
        (T::List(one) | T::LargeList(one), T::List(other) | T::LargeList(other)) => {
            Some(T::LargeList(common_field(one, other)?))
        }
        (T::Struct(one), T::Struct(other)) if one.len() == other.len() => {
            let fields = one.iter().zip(other);
            let same_names = |(one, other): (&FieldRef, &FieldRef)| one.name() == other.name();
            let is_same = fields.clone().all(same_names);
            let fields = fields.map(|(one, other)| common_field(one, other));
            is_same.then(|| fields.collect::<Option<_>>().map(T::Struct))?
        }
        (T::Map(one, one_sorted), T::Map(other, other_sorted)) => Some(T::Map(
            common_field(one, other)?,
            *one_sorted && *other_sorted,
        )),
        _ => common_text(one, other)
            .or_else(|| common_number(one, other))
            .or_else(|| common_decimal(one, other)),
    }
}

/// A field like the first, of the type for the values of both.
#[must_use]
pub fn common_field(one: &FieldRef, other: &FieldRef) -> Option<FieldRef> {
    if one == other {
        return Some(Arc::clone(one));
    }
    let data_type = common_type(one.data_type(), other.data_type())?;
    let is_nullable = one.is_nullable() || other.is_nullable();
    let field = Field::new(one.name(), data_type, is_nullable);
    Some(Arc::new(field.with_metadata(one.metadata().clone())))
}

trait Fineness {
    fn max_by_fineness(self, other: Self) -> Self;
}

impl Fineness for TimeUnit {
    /// The unit that is a part of the other.
    fn max_by_fineness(self, other: Self) -> Self {
        let per_second = |unit| match unit {
            Self::Second => 1,
            Self::Millisecond => 1_000,
            Self::Microsecond => 1_000_000,
            Self::Nanosecond => 1_000_000_000,
        };
        match per_second(self) >= per_second(other) {
            true => self,
            false => other,
        }
    }
}

/// The zone of both; `Some(None)` if neither has one.
fn common_zone(one: Option<&Arc<str>>, other: Option<&Arc<str>>) -> Option<Option<Arc<str>>> {
    match (one, other) {
        (one, other) if one == other => Some(one.cloned()),
        (Some(one), Some(other)) if UTC.contains(&&**one) && UTC.contains(&&**other) => {
            Some(Some(UTC[0].into()))
        }
        _ => None,
    }
}

fn common_text(one: &DataType, other: &DataType) -> Option<DataType> {
    use DataType as T;
    match (one, other) {
        (T::LargeUtf8, T::Utf8 | T::Utf8View) | (T::Utf8 | T::Utf8View, T::LargeUtf8) => {
            Some(T::LargeUtf8)
        }
        (T::Utf8, T::Utf8View) | (T::Utf8View, T::Utf8) => Some(T::Utf8),
        (T::LargeBinary, bytes) | (bytes, T::LargeBinary) if is_binary(bytes) => {
            Some(T::LargeBinary)
        }
        (one, other) if is_binary(one) && is_binary(other) => Some(T::Binary),
        _ => None,
    }
}

fn is_binary(data_type: &DataType) -> bool {
    use DataType as T;
    matches!(
        data_type,
        T::Binary | T::LargeBinary | T::BinaryView | T::FixedSizeBinary(_)
    )
}

/// Bits of an integer's values, and whether it has a sign.
fn integer(data_type: &DataType) -> Option<(usize, bool)> {
    let bits = data_type.primitive_width()? * 8;
    match (
        data_type.is_signed_integer(),
        data_type.is_unsigned_integer(),
    ) {
        (true, _) => Some((bits, true)),
        (_, true) => Some((bits, false)),
        _ => None,
    }
}

/// Bits of a float, and of the integers that it holds exactly.
fn float(data_type: &DataType) -> Option<(usize, usize)> {
    match data_type {
        DataType::Float16 => Some((16, 11)),
        DataType::Float32 => Some((32, 24)),
        DataType::Float64 => Some((64, 53)),
        _ => None,
    }
}

fn common_number(one: &DataType, other: &DataType) -> Option<DataType> {
    use DataType as T;
    let floats = [T::Float16, T::Float32, T::Float64];
    let widest = |bits: usize, exact: usize| {
        let holds = |each: &&DataType| float(each).is_some_and(|of| of.0 >= bits && of.1 >= exact);
        floats.iter().find(holds).cloned()
    };
    match (integer(one), integer(other), float(one), float(other)) {
        (Some((one, true)), Some((other, true)), ..) => signed(one.max(other)),
        (Some((one, false)), Some((other, false)), ..) => unsigned(one.max(other)),
        // An unsigned integer needs a bit more with a sign.
        (Some((with, true)), Some((without, false)), ..)
        | (Some((without, false)), Some((with, true)), ..) => signed(with.max(2 * without)),
        (_, _, Some(one), Some(other)) => widest(one.0.max(other.0), 0),
        (Some((bits, _)), _, _, Some(float)) | (_, Some((bits, _)), Some(float), _) => {
            widest(float.0, bits)
        }
        _ => None,
    }
}

fn signed(bits: usize) -> Option<DataType> {
    use DataType as T;
    let types = [T::Int8, T::Int16, T::Int32, T::Int64];
    types
        .into_iter()
        .find(|each| integer(each) == Some((bits, true)))
}

fn unsigned(bits: usize) -> Option<DataType> {
    use DataType as T;
    let types = [T::UInt8, T::UInt16, T::UInt32, T::UInt64];
    types
        .into_iter()
        .find(|each| integer(each) == Some((bits, false)))
}

/// Bits, precision and scale of a decimal.
fn decimal(data_type: &DataType) -> Option<(usize, i16, i16)> {
    match data_type {
        DataType::Decimal32(precision, scale) => Some((32, (*precision).into(), (*scale).into())),
        DataType::Decimal64(precision, scale) => Some((64, (*precision).into(), (*scale).into())),
        DataType::Decimal128(precision, scale) => Some((128, (*precision).into(), (*scale).into())),
        DataType::Decimal256(precision, scale) => Some((256, (*precision).into(), (*scale).into())),
        _ => None,
    }
}

/// As many digits before the point, and behind it, as either has.
fn common_decimal(one: &DataType, other: &DataType) -> Option<DataType> {
    let (one, other) = (decimal(one)?, decimal(other)?);
    let scale = one.2.max(other.2);
    let precision = (one.1 - one.2).max(other.1 - other.2) + scale;
    let (digits, behind) = (u8::try_from(precision).ok()?, i8::try_from(scale).ok()?);
    let bits = one.0.max(other.0);
    Some(match (digits, bits) {
        (..=9, ..=32) => DataType::Decimal32(digits, behind),
        (..=18, ..=64) => DataType::Decimal64(digits, behind),
        (..=38, ..=128) => DataType::Decimal128(digits, behind),
        (..=76, _) => DataType::Decimal256(digits, behind),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use DataType as T;

    fn common(one: &DataType, other: &DataType) -> Option<DataType> {
        let both = [common_type(one, other), common_type(other, one)];
        assert_eq!(both[0], both[1], "{one} and {other}");
        both[0].clone()
    }

    #[test]
    fn numbers_are_widened_only_where_all_values_fit() {
        assert_eq!(common(&T::Int32, &T::Int64), Some(T::Int64));
        assert_eq!(common(&T::UInt8, &T::UInt32), Some(T::UInt32));
        assert_eq!(common(&T::UInt8, &T::Int8), Some(T::Int16));
        assert_eq!(common(&T::UInt32, &T::Int8), Some(T::Int64));
        assert_eq!(common(&T::UInt64, &T::Int64), None);
        assert_eq!(common(&T::Float16, &T::Float64), Some(T::Float64));
        assert_eq!(common(&T::Int16, &T::Float32), Some(T::Float32));
        assert_eq!(common(&T::Int32, &T::Float32), Some(T::Float64));
        assert_eq!(common(&T::Int64, &T::Float64), None);
        assert_eq!(common(&T::Boolean, &T::Int8), None);
        assert_eq!(common(&T::Null, &T::Int8), Some(T::Int8));
    }

    #[test]
    fn decimals_get_the_digits_of_both() {
        let decimal = |one, other| common(&one, &other);
        assert_eq!(
            decimal(T::Decimal128(10, 2), T::Decimal128(9, 4)),
            Some(T::Decimal128(12, 4))
        );
        assert_eq!(
            decimal(T::Decimal128(38, 0), T::Decimal128(10, 10)),
            Some(T::Decimal256(48, 10))
        );
        assert_eq!(decimal(T::Decimal256(76, 0), T::Decimal256(76, 1)), None);
        assert_eq!(
            decimal(T::Decimal32(9, 2), T::Decimal32(9, 4)),
            Some(T::Decimal64(11, 4))
        );
    }

    #[test]
    fn times_get_the_finer_unit_and_zones_stay() {
        let stamp = |unit, zone: Option<&str>| T::Timestamp(unit, zone.map(Into::into));
        assert_eq!(
            common(
                &stamp(TimeUnit::Second, None),
                &stamp(TimeUnit::Nanosecond, None)
            ),
            Some(stamp(TimeUnit::Nanosecond, None))
        );
        assert_eq!(
            common(
                &stamp(TimeUnit::Second, Some("+00:00")),
                &stamp(TimeUnit::Millisecond, Some("UTC"))
            ),
            Some(stamp(TimeUnit::Millisecond, Some("UTC")))
        );
        assert_eq!(
            common(
                &stamp(TimeUnit::Second, None),
                &stamp(TimeUnit::Second, Some("UTC"))
            ),
            None
        );
        assert_eq!(
            common(
                &T::Time32(TimeUnit::Second),
                &T::Time64(TimeUnit::Microsecond)
            ),
            Some(T::Time64(TimeUnit::Microsecond))
        );
    }

    #[test]
    fn strings_and_dictionaries_become_plain() {
        let words = T::Dictionary(Box::new(T::Int32), Box::new(T::Utf8));
        let few = T::Dictionary(Box::new(T::Int8), Box::new(T::LargeUtf8));
        assert_eq!(common(&T::Utf8, &T::LargeUtf8), Some(T::LargeUtf8));
        assert_eq!(common(&T::Utf8View, &T::Utf8), Some(T::Utf8));
        assert_eq!(
            common(&T::FixedSizeBinary(4), &T::FixedSizeBinary(8)),
            Some(T::Binary)
        );
        assert_eq!(
            common(&T::BinaryView, &T::LargeBinary),
            Some(T::LargeBinary)
        );
        assert_eq!(common(&T::Utf8, &T::Binary), None);
        assert_eq!(common(&words, &T::LargeUtf8), Some(T::LargeUtf8));
        assert_eq!(
            common(&words, &few),
            Some(T::Dictionary(Box::new(T::Int32), Box::new(T::LargeUtf8)))
        );
    }
}
