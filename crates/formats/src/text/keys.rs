//! Keys of records: bytes that compare as the fields' values do.

use arrow_schema::TimeUnit;

use crate::text::decimal_key::DecimalText;
use crate::text::fields::{Dialect, Field, words};
use crate::text_columns::moments;

/// What a field is compared as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// As bytes.
    Bytes,
    /// As a whole number of 64 bits.
    Integer,
    /// As a number.
    Float,
    /// As the number that it begins with, of any length, as GNU sort's `-n`; 0 if there is none, or
    /// no field.
    Decimal,
    /// As false or true; of JSON only.
    Boolean,
    /// As a date.
    Date,
    /// As a time of day in seconds.
    Time,
    /// As a timestamp, whose zone is looked at if there is one in all values.
    Timestamp {
        /// The unit that all values have.
        unit: TimeUnit,
        /// Whether they have zones.
        has_zone: bool,
    },
}

impl FieldKind {
    /// Whether all keys of it have the same length.
    fn is_short(self) -> bool {
        !matches!(self, Self::Bytes | Self::Decimal | Self::Boolean)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bytes => "string",
            Self::Integer => "whole number of 64 bits",
            Self::Float | Self::Decimal => "number",
            Self::Boolean => "boolean",
            Self::Date => "date",
            Self::Time => "time in whole seconds",
            Self::Timestamp {
                unit: TimeUnit::Second,
                ..
            } => "timestamp in whole seconds",
            Self::Timestamp { .. } => "timestamp of 64 bits in nanoseconds",
        }
    }
}

/// A field of the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldKey {
    /// Its place in the record; `None` is the whole record.
    pub place: Option<usize>,
    /// What it is compared as.
    pub kind: FieldKind,
    /// Whether greater values come first.
    pub descending: bool,
    /// Whether nulls (empty fields without quotes, and fields that a record lacks) come first.
    pub nulls_first: bool,
}

/// Why a record has no key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// A field that is not what it is compared as.
    Value {
        /// The number of the key's field.
        number: usize,
        /// What it is compared as.
        kind: FieldKind,
        /// What it has.
        value: Vec<u8>,
    },
    /// What the record is not.
    Record(String),
}

/// Makes keys of records.
#[derive(Clone, Debug)]
pub struct TextKeys {
    /// Without one, fields are between blanks.
    dialect: Option<Dialect>,
    keys: Vec<FieldKey>,
    /// Places of fields in ascending order, and the numbers of the keys that they are.
    places: Vec<usize>,
    numbers: Vec<usize>,
}

const VALUE: u8 = 1;

impl TextKeys {
    /// Keys of these fields, which are between blanks without a dialect.
    #[must_use]
    pub fn new(dialect: Option<Dialect>, keys: Vec<FieldKey>) -> Self {
        let mut placed: Vec<(usize, usize)> = keys
            .iter()
            .enumerate()
            .filter_map(|(number, key)| Some((key.place?, number)))
            .collect();
        placed.sort_unstable();
        Self {
            places: placed.iter().map(|placed| placed.0).collect(),
            numbers: placed.iter().map(|placed| placed.1).collect(),
            dialect,
            keys,
        }
    }

    /// Whether the key is the whole record as it is, so that records are their own keys.
    #[must_use]
    pub fn is_whole_record(&self) -> bool {
        match &self.keys[..] {
            [key] => key.place.is_none() && key.kind == FieldKind::Bytes && !key.descending,
            _ => false,
        }
    }

    /// The length of every key, unless they differ.
    #[must_use]
    pub fn key_bytes(&self) -> Option<usize> {
        let is_short = self.keys.iter().all(|key| key.kind.is_short());
        is_short.then_some(9 * self.keys.len())
    }

    /// Appends the key of a record, which comes without its newline.
    ///
    /// # Errors
    /// A field that is no number although it should be one.
    pub fn push(
        &self,
        record: &[u8],
        scratch: &mut Scratch,
        to: &mut Vec<u8>,
    ) -> Result<(), KeyError> {
        scratch.fields.clear();
        scratch.fields.resize(self.keys.len(), None);
        let base = record.as_ptr() as usize;
        let fields = &mut scratch.fields;
        let each = |number: usize, field: Option<Field<'_>>| {
            fields[self.numbers[number]] = field.map(|field| FieldPlace::of(field, base));
        };
        match self.dialect {
            Some(dialect) => dialect.fields(record, &self.places, each),
            None => words(record, &self.places, each),
        }
        for (number, key) in self.keys.iter().enumerate() {
            let found = match key.place {
                None => Some(FieldPlace::whole_record(record)),
                Some(_) => scratch.fields[number],
            };
            let field =
                found.filter(|found| found.is_quoted || found.len > 0 || key.place.is_none());
            let Some(found) = field else {
                if key.kind == FieldKind::Decimal {
                    to.push(VALUE);
                    push_value(key, &[], to);
                    continue;
                }
                to.push(if key.nulls_first { 0 } else { 2 });
                if key.kind.is_short() {
                    to.extend_from_slice(&[0; 8]);
                }
                continue;
            };
            to.push(VALUE);
            let field = found.field(record, self.dialect.and_then(|dialect| dialect.quote));
            let value = field.value(&mut scratch.value);
            push_value(key, value, to).ok_or_else(|| KeyError::Value {
                number,
                kind: key.kind,
                value: value.to_vec(),
            })?;
        }
        Ok(())
    }
}

/// Memory that is used again for each record.
#[derive(Debug, Default)]
pub struct Scratch {
    fields: Vec<Option<FieldPlace>>,
    value: Vec<u8>,
}

/// Where a field is in its record.
#[derive(Clone, Copy, Debug)]
struct FieldPlace {
    at: usize,
    len: usize,
    is_quoted: bool,
    has_quotes: bool,
}

impl FieldPlace {
    fn of(field: Field<'_>, base: usize) -> Self {
        Self {
            at: field.bytes.as_ptr() as usize - base,
            len: field.bytes.len(),
            is_quoted: field.is_quoted,
            has_quotes: field.has_quotes.is_some(),
        }
    }

    fn whole_record(record: &[u8]) -> Self {
        Self {
            at: 0,
            len: record.len(),
            is_quoted: false,
            has_quotes: false,
        }
    }

    fn field(self, record: &[u8], quote: Option<u8>) -> Field<'_> {
        Field {
            bytes: &record[self.at..self.at + self.len],
            is_quoted: self.is_quoted,
            has_quotes: quote.filter(|_| self.has_quotes),
        }
    }
}

/// Appends a value; `None` if it is no number although it should be one.
fn push_value(key: &FieldKey, value: &[u8], to: &mut Vec<u8>) -> Option<()> {
    let inverted = if key.descending { u8::MAX } else { 0 };
    match key.kind {
        FieldKind::Bytes => push_bytes(value, key.descending, to),
        FieldKind::Decimal => DecimalText::beginning(value).push_key(inverted, to),
        FieldKind::Boolean => return None,
        FieldKind::Integer => {
            let text = std::str::from_utf8(value).ok()?.trim();
            push_whole(text.parse().ok()?, inverted, to);
        }
        FieldKind::Date => push_whole(moments::parse_date(value.trim_ascii())?, inverted, to),
        FieldKind::Time => {
            let seconds = moments::parse_time(value.trim_ascii(), TimeUnit::Second)?;
            push_whole(seconds, inverted, to);
        }
        FieldKind::Timestamp { unit, has_zone } => {
            let units = moments::parse_timestamp(value.trim_ascii(), unit, has_zone)?;
            push_whole(units, inverted, to);
        }
        FieldKind::Float => {
            let number: f64 = fast_float2::parse(value.trim_ascii()).ok()?;
            to.extend(comparable(number).to_be_bytes().map(|byte| byte ^ inverted));
        }
    }
    Some(())
}

fn push_whole(number: i64, inverted: u8, to: &mut Vec<u8>) {
    let bits = number as u64 ^ (1 << 63);
    to.extend(bits.to_be_bytes().map(|byte| byte ^ inverted));
}

/// Appends bytes of any length.
pub(super) fn push_bytes(value: &[u8], descending: bool, to: &mut Vec<u8>) {
    let begin = to.len();
    for part in ZeroEscaped(value) {
        to.extend_from_slice(part);
    }
    to.push(0);
    if descending {
        to.push(0);
        to[begin..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// Bits that compare as floats do: one zero, and one NaN above all numbers.
fn comparable(number: f64) -> u64 {
    let bits = match number {
        number if number.is_nan() => f64::NAN.to_bits() & !(1 << 63) | ((1 << 52) - 1),
        0.0 => 0,
        number => number.to_bits(),
    };
    match bits >> 63 {
        0 => bits | 1 << 63,
        _ => !bits,
    }
}

/// Parts of a value, with 255 behind each zero.
struct ZeroEscaped<'a>(&'a [u8]);

impl<'a> Iterator for ZeroEscaped<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.0.is_empty() {
            return None;
        }
        match memchr::memchr(0, self.0) {
            Some(0) => {
                self.0 = &self.0[1..];
                Some(&[0, 255])
            }
            Some(at) => {
                let (part, rest) = self.0.split_at(at);
                self.0 = rest;
                Some(part)
            }
            None => Some(std::mem::take(&mut self.0)),
        }
    }
}
