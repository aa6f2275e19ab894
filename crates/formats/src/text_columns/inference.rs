//! Types of CSV columns, inferred from values: the first type that can be read from all of them.
//!
//! Values are read as the sort reads them, so what is inferred is read. Whole numbers of any length
//! stay whole numbers: as floats, differing ones would be equal.

use std::sync::Arc;

use arrow_schema::{DataType, Field, TimeUnit};

use super::column::{Column, Values};
use super::csv::push_value;
use super::refusals::wrong_fields;
use crate::text::Dialect;

const LONGEST_WHOLE: DataType = DataType::Decimal256(76, 0);

/// Types in the order in which they are tried.
fn candidates() -> Vec<DataType> {
    use DataType as T;
    let zone = || Some(Arc::from("UTC"));
    vec![
        T::Int64,
        T::UInt64,
        T::Decimal128(38, 0),
        LONGEST_WHOLE,
        T::Boolean,
        T::Date32,
        T::Time32(TimeUnit::Second),
        T::Timestamp(TimeUnit::Second, None),
        T::Timestamp(TimeUnit::Nanosecond, None),
        T::Timestamp(TimeUnit::Second, zone()),
        T::Timestamp(TimeUnit::Nanosecond, zone()),
        T::Float64,
        T::Utf8,
    ]
}

/// What a column's values may be.
struct Guess {
    candidates: Vec<(DataType, Values)>,
    has_values: bool,
    is_whole: bool,
}

impl Guess {
    fn new() -> Self {
        let values = |data_type: DataType| {
            let field = Arc::new(Field::new("", data_type.clone(), true));
            Some((data_type, Column::new(&field)?.values))
        };
        Self {
            candidates: candidates().into_iter().filter_map(values).collect(),
            has_values: false,
            is_whole: true,
        }
    }

    fn see(&mut self, value: &[u8]) {
        self.has_values = true;
        if self.is_whole && !is_whole(value) {
            self.is_whole = false;
            // Decimals read fractions and exponents, too, which are floats.
            let is_decimal =
                |of: &DataType| matches!(of, DataType::Decimal128(..) | DataType::Decimal256(..));
            self.candidates.retain(|(of, _)| !is_decimal(of));
        }
        self.candidates.retain_mut(|(_, values)| {
            let is_read = push_value(values, value).is_some();
            forget(values);
            is_read
        });
    }

    /// Text if there was no value, bytes if there was one that is no UTF-8.
    fn data_type(&self) -> DataType {
        if !self.has_values {
            return DataType::Utf8;
        }
        let first = self.candidates.first().map(|(of, _)| of.clone());
        match first {
            // Too long for any: who reads it as this says so.
            Some(DataType::Float64 | DataType::Utf8) if self.is_whole => LONGEST_WHOLE,
            first => first.unwrap_or(DataType::Binary),
        }
    }
}

fn is_whole(value: &[u8]) -> bool {
    let value = value.trim_ascii();
    let digits = value.strip_prefix(b"-").or(value.strip_prefix(b"+"));
    let digits = digits.unwrap_or(value);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

/// The values are not wanted, only whether they are some.
fn forget(values: &mut Values) {
    match values {
        Values::Scalar(_, bytes) => bytes.clear(),
        Values::Bits(bits) => bits.truncate(0),
        Values::Bytes { offsets, data, .. } => {
            offsets.truncate(1);
            data.clear();
        }
        _ => (),
    }
}

/// The types of the columns of CSV, of which these are whole records without a header; `Binary`
/// of those that have text which is no UTF-8.
///
/// # Errors
/// A record that has more or fewer fields; how many, and where it begins.
pub fn infer_csv(
    text: &[u8],
    dialect: Dialect,
    columns: usize,
) -> Result<Vec<DataType>, (usize, String)> {
    let mut guesses: Vec<Guess> = (0..columns).map(|_| Guess::new()).collect();
    let places: Vec<usize> = (0..=columns).collect();
    let (mut scratch, mut begin) = (Vec::new(), 0);
    while begin < text.len() {
        let rest = &text[begin..];
        let end = record_end(rest, dialect.quote).unwrap_or(rest.len());
        let record = rest[..end].strip_suffix(b"\n").unwrap_or(&rest[..end]);
        let record = record.strip_suffix(b"\r").unwrap_or(record);
        if record.is_empty() {
            begin += end;
            continue;
        }
        let mut found = 0;
        dialect.fields(record, &places, |place, field| {
            let Some(field) = field else {
                return;
            };
            found += 1;
            if let Some(guess) = guesses.get_mut(place)
                && (field.is_quoted || !field.bytes.is_empty())
            {
                guess.see(field.value(&mut scratch));
            }
        });
        if found != columns {
            return Err((begin, wrong_fields(found, columns)));
        }
        begin += end;
    }
    Ok(guesses.iter().map(Guess::data_type).collect())
}

/// Where the first record ends, behind its newline: the first one that is not within quotes.
#[must_use]
pub fn record_end(text: &[u8], quote: Option<u8>) -> Option<usize> {
    let mut is_quoted = false;
    let quote = quote.unwrap_or(b'\n');
    for at in memchr::memchr2_iter(b'\n', quote, text) {
        match text[at] {
            b'\n' if !is_quoted => return Some(at + 1),
            b'\n' => (),
            _ => is_quoted = !is_quoted,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::name_of;

    const CSV: Dialect = Dialect {
        delimiter: b',',
        quote: Some(b'"'),
    };

    fn inferred(values: &[&str]) -> String {
        let text: String = values.iter().map(|value| format!("{value},x\n")).collect();
        let types = infer_csv(text.as_bytes(), CSV, 2).expect("two columns");
        name_of(&types[0])
    }

    #[test]
    fn types_hold_all_values() {
        for (values, wanted) in [
            (&["1", "", " -2 "][..], "int64"),
            (&["18446744073709551615", "1"], "uint64"),
            (&["18446744073709551615", "-1"], "decimal128(38, 0)"),
            (&["9".repeat(50).as_str()], "decimal256(76, 0)"),
            (&["9".repeat(80).as_str()], "decimal256(76, 0)"),
            (&["18446744073709551615", "1.0"], "double"),
            (&["1", "2.50", "-inf", "nan"], "double"),
            (&["1", "true"], "bool"),
            (&["2020-01-01"], "date32[day]"),
            (&["12:30", "12:30:01"], "time32[s]"),
            (&["2020-01-01", "2020-01-01 10:00"], "timestamp[s]"),
            (&["2020-01-01", "2020-01-01T10:00:00.5"], "timestamp[ns]"),
            (&["2020-01-01T10:00:00+01:00"], "timestamp[s, tz=UTC]"),
            (&["2020-01-01T10:00:00.5Z"], "timestamp[ns, tz=UTC]"),
            (&["1", "a"], "string"),
            (&["1", "\"\""], "string"),
            (&["\"1\"", "2"], "int64"),
            (&["", ""], "string"),
        ] {
            assert_eq!(inferred(values), wanted, "{values:?}");
        }
    }

    #[test]
    fn what_is_no_text_is_bytes_and_fields_are_counted() {
        let types = infer_csv(b"a,\xe4\n", CSV, 2);
        assert_eq!(types, Ok(vec![DataType::Utf8, DataType::Binary]));
        let types = infer_csv(b"\"a\n,\",1\r\n\n\"b\",2", CSV, 2);
        assert_eq!(types, Ok(vec![DataType::Utf8, DataType::Int64]));
        let why = wrong_fields(3, 2);
        assert_eq!(infer_csv(b"1,2\n1,2,3\n", CSV, 2), Err((4, why)));
    }
}
