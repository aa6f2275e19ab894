//! Casts that lose nothing: a value that would change is an error that names it.

use arrow_array::{Array, ArrayRef};
use arrow_cast::display::array_value_to_string;
use arrow_cast::{CastOptions, can_cast_types, cast_with_options};
use arrow_schema::DataType;

use super::names::name_of;
use super::promotion::common_type;

const STRICT: CastOptions = CastOptions {
    safe: false, // what does not fit is an error, not null
    format_options: arrow_cast::display::FormatOptions::new(),
};

/// Why an array has no exact equal of another type.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CastError {
    /// No value of this type is one of the other.
    #[error("its type {from} cannot be read as {to}")]
    Types {
        /// The array's type.
        from: String,
        /// The other.
        to: String,
    },
    /// A value that the type lacks.
    #[error("the value {value} ({from}) is not exact as {to}")]
    Value {
        /// As text.
        value: String,
        /// Its type.
        from: String,
        /// The other.
        to: String,
    },
}

/// The same values, of another type.
///
/// # Errors
/// When the types have nothing in common, or a value would change.
pub fn cast_exactly(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, CastError> {
    let from = array.data_type();
    if from == to {
        return Ok(array.clone());
    }
    if !is_readable(from, to) || !can_cast_types(from, to) {
        return Err(CastError::Types {
            from: name_of(from),
            to: name_of(to),
        });
    }
    // What holds all values of both types needs no proof but that of its range, as of times.
    let is_wider = common_type(from, to).as_ref() == Some(to);
    let exact = |array: &ArrayRef| {
        let cast = cast_with_options(array, to, &STRICT).ok()?;
        let is_same = is_wider
            || cast_with_options(&cast, from, &STRICT)
                .is_ok_and(|back| back.as_ref() == array.as_ref());
        is_same.then_some(cast)
    };
    exact(array).ok_or_else(|| {
        let changes = |&row: &usize| exact(&array.slice(row, 1)).is_none();
        let row = (0..array.len()).find(changes).unwrap_or(0);
        CastError::Value {
            value: array_value_to_string(array, row).unwrap_or_else(|why| why.to_string()),
            from: name_of(from),
            to: name_of(to),
        }
    })
}

/// Whether values of one type may be values of the other, too.
fn is_readable(from: &DataType, to: &DataType) -> bool {
    use DataType as T;
    let kind = |data_type: &DataType| match data_type {
        T::Utf8 | T::LargeUtf8 | T::Utf8View => 1,
        T::Binary | T::LargeBinary | T::BinaryView | T::FixedSizeBinary(_) => 1,
        T::Date32 | T::Date64 | T::Timestamp(..) => 2,
        T::Time32(_) | T::Time64(_) => 3,
        T::Duration(_) => 4,
        other if other.is_numeric() => 5,
        _ => 0,
    };
    match (from, to) {
        (T::Null, _) => true,
        (T::Dictionary(_, from), T::Dictionary(_, to)) => is_readable(from, to),
        (T::Dictionary(_, values), plain) => is_readable(values, plain),
        (plain, T::Dictionary(_, values)) => is_readable(plain, values),
        (from, to) if from == to || common_type(from, to).as_ref() == Some(to) => true,
        (from, to) => kind(from) > 0 && kind(from) == kind(to),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{
        Decimal128Array, Float64Array, Int8Array, Int64Array, StringArray,
        TimestampNanosecondArray, TimestampSecondArray,
    };
    use arrow_schema::TimeUnit;

    use super::*;

    fn refusal(array: ArrayRef, to: &DataType) -> String {
        cast_exactly(&array, to).unwrap_err().to_string()
    }

    #[test]
    fn values_that_fit_are_cast() {
        let narrow = cast_exactly(
            &(Arc::new(Int64Array::from(vec![Some(1), None, Some(-128)])) as ArrayRef),
            &DataType::Int8,
        );
        let expected = Int8Array::from(vec![Some(1), None, Some(-128)]);
        assert_eq!(narrow.unwrap().as_ref(), &expected as &dyn Array);
    }

    #[test]
    fn a_value_that_would_change_is_named() {
        let integers = Arc::new(Int64Array::from(vec![1, 300]));
        assert_eq!(
            refusal(integers, &DataType::Int8),
            "the value 300 (int64) is not exact as int8"
        );
        let large = Arc::new(Int64Array::from(vec![1, (1 << 53) + 1, i64::MAX]));
        assert_eq!(
            refusal(large, &DataType::Float64),
            "the value 9007199254740993 (int64) is not exact as double"
        );
        let fractions = Arc::new(Float64Array::from(vec![2.0, 0.5]));
        assert_eq!(
            refusal(fractions, &DataType::Int64),
            "the value 0.5 (double) is not exact as int64"
        );
        let cents = Decimal128Array::from(vec![1230, 1239]).with_precision_and_scale(10, 3);
        assert_eq!(
            refusal(Arc::new(cents.unwrap()), &DataType::Decimal128(10, 2)),
            "the value 1.239 (decimal128(10, 3)) is not exact as decimal128(10, 2)"
        );
        let nanoseconds = Arc::new(TimestampNanosecondArray::from(vec![1_000_000, 1]));
        assert!(
            refusal(
                nanoseconds,
                &DataType::Timestamp(TimeUnit::Millisecond, None)
            )
            .starts_with("the value 1970-01-01T00:00:00.000000001 (timestamp[ns])")
        );
        let far = Arc::new(TimestampSecondArray::from(vec![0, 1 << 40]));
        assert!(
            refusal(far, &DataType::Timestamp(TimeUnit::Nanosecond, None)).starts_with("the value")
        );
    }

    #[test]
    fn types_without_anything_in_common_are_refused() {
        let words = Arc::new(StringArray::from(vec!["1"]));
        assert_eq!(
            refusal(words, &DataType::Int64),
            "its type string cannot be read as int64"
        );
    }
}
