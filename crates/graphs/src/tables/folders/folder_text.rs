//! Values of columns as the names of folders have them, as Hive and Spark write them.

use std::fmt::Write as _;

use arrow_array::{Array, ArrayRef};
use arrow_cast::cast;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{DataType, TimeUnit};

/// The value of a folder whose column is null.
pub const NULL: &str = "__HIVE_DEFAULT_PARTITION__";
/// The longest name that file systems have.
const LONGEST_NAME: usize = 255;
/// Bytes that are percent-encoded, apart from control characters.
const ENCODED: &[u8] = b"\"#%'*/:=?\\{[]^\x7f";

/// Whether folders can have values of a type: those with one text each.
pub fn has_text(data_type: &DataType) -> bool {
    use DataType as T;
    match data_type {
        T::Dictionary(_, values) => has_text(values),
        T::Boolean | T::Utf8 | T::LargeUtf8 | T::Utf8View => true,
        T::Date32 | T::Time32(_) | T::Time64(_) | T::Timestamp(_, _) => true,
        other => other.is_integer() || other.is_decimal(),
    }
}

/// The text of a value: a timestamp with a zone is in UTC.
///
/// # Errors
/// When it has none.
pub fn value_text(values: &ArrayRef, row: usize) -> Result<String, String> {
    let format = FormatOptions::new()
        .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"))
        .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.fZ"));
    let in_utc = |unit: &TimeUnit| DataType::Timestamp(*unit, Some("+00:00".into()));
    let values = match values.data_type() {
        DataType::Timestamp(unit, Some(_)) => cast(values, &in_utc(unit)),
        DataType::Dictionary(_, plain) => match plain.as_ref() {
            DataType::Timestamp(unit, Some(_)) => cast(values, &in_utc(unit)),
            plain => cast(values, plain),
        },
        _ => Ok(values.clone()),
    };
    let values = values.map_err(|why| why.to_string())?;
    let text = ArrayFormatter::try_new(&values, &format);
    let text = text.and_then(|text| text.value(row).try_to_string());
    text.map_err(|why| why.to_string())
}

/// The name of the folder for the first value of a column.
///
/// # Errors
/// When it would be none, or mean another value.
pub fn folder_name(column: &str, values: &ArrayRef) -> Result<String, String> {
    let mut name = encoded(column) + "=";
    if values.is_null(0) {
        name += NULL;
    } else {
        let text = value_text(values, 0)?;
        if text == NULL {
            return Err(format!(
                "the column {column:?} has the value {NULL}, which is a folder's name for null"
            ));
        }
        name += &encoded(&text);
    }
    match name.len() {
        0..=LONGEST_NAME => Ok(name),
        _ => Err(format!(
            "the column {column:?} has a value that is too long for the name of a folder ({name}); \
             use another column for folders"
        )),
    }
}

/// A text without what is special in paths, as Hive encodes it.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for character in text.chars() {
        match u8::try_from(character) {
            Ok(byte) if byte < b' ' || ENCODED.contains(&byte) => {
                write!(encoded, "%{byte:02X}").expect("memory takes all");
            }
            _ => encoded.push(character),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Decimal128Array, StringArray, TimestampMicrosecondArray};

    use super::*;

    #[test]
    fn names_are_as_hive_writes_them() {
        let name = |values: ArrayRef| folder_name("a", &values).expect("a name");
        let text = |text| name(Arc::new(StringArray::from(vec![text])));
        assert_eq!(text(Some("b/c=%\u{1}\0 ü")), "a=b%2Fc%3D%25%01%00 ü");
        assert_eq!(
            (text(Some("")), text(Some(".."))),
            ("a=".into(), "a=..".into())
        );
        assert_eq!(text(None), format!("a={NULL}"));
        let moments = TimestampMicrosecondArray::from(vec![1_500_000]);
        assert_eq!(
            name(Arc::new(moments.clone())),
            "a=1970-01-01 00%3A00%3A01.500"
        );
        let zoned = moments.with_timezone("Europe/Berlin");
        assert_eq!(name(Arc::new(zoned)), "a=1970-01-01 00%3A00%3A01.500Z");
        let decimals = Decimal128Array::from(vec![150]).with_precision_and_scale(5, 2);
        assert_eq!(name(Arc::new(decimals.expect("it fits"))), "a=1.50");
    }

    #[test]
    fn what_would_mean_another_value_is_refused() {
        for text in [NULL, &"x".repeat(254)] {
            let values: ArrayRef = Arc::new(StringArray::from(vec![text]));
            assert!(folder_name("a", &values).is_err(), "{text}");
        }
    }
}
