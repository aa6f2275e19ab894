//! Values of a fixed size, from text to their bytes in an array.

use arrow_buffer::i256;
use arrow_schema::{DataType, TimeUnit};
use half::f16;

use super::{decimals, moments};

/// A type whose values have a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// Whole numbers with a sign, of so many bytes.
    Signed(usize),
    /// Whole numbers without a sign.
    Unsigned(usize),
    /// Floats.
    Float(usize),
    /// Decimals of so many bytes: their digits, and places behind the point.
    Decimal(usize, u8, i8),
    /// Days.
    Days,
    /// Days as milliseconds.
    DayMilliseconds,
    /// Times of day of so many bytes.
    Time(usize, TimeUnit),
    /// Timestamps, and whether they have a zone.
    Timestamp(TimeUnit, bool),
    /// Durations.
    Duration(TimeUnit),
}

impl Scalar {
    /// `None` if the type's values have no size, or no text.
    pub fn of(data_type: &DataType) -> Option<Self> {
        use DataType as T;
        Some(match data_type {
            T::Int8 => Self::Signed(1),
            T::Int16 => Self::Signed(2),
            T::Int32 => Self::Signed(4),
            T::Int64 => Self::Signed(8),
            T::UInt8 => Self::Unsigned(1),
            T::UInt16 => Self::Unsigned(2),
            T::UInt32 => Self::Unsigned(4),
            T::UInt64 => Self::Unsigned(8),
            T::Float16 => Self::Float(2),
            T::Float32 => Self::Float(4),
            T::Float64 => Self::Float(8),
            T::Decimal32(precision, scale) => Self::Decimal(4, *precision, *scale),
            T::Decimal64(precision, scale) => Self::Decimal(8, *precision, *scale),
            T::Decimal128(precision, scale) => Self::Decimal(16, *precision, *scale),
            T::Decimal256(precision, scale) => Self::Decimal(32, *precision, *scale),
            T::Date32 => Self::Days,
            T::Date64 => Self::DayMilliseconds,
            T::Time32(unit) => Self::Time(4, *unit),
            T::Time64(unit) => Self::Time(8, *unit),
            T::Timestamp(unit, zone) => Self::Timestamp(*unit, zone.is_some()),
            T::Duration(unit) => Self::Duration(*unit),
            _ => return None,
        })
    }

    /// Bytes of a value.
    pub fn bytes(self) -> usize {
        match self {
            Self::Signed(bytes)
            | Self::Unsigned(bytes)
            | Self::Float(bytes)
            | Self::Decimal(bytes, _, _)
            | Self::Time(bytes, _) => bytes,
            Self::Days => 4,
            Self::DayMilliseconds | Self::Timestamp(_, _) | Self::Duration(_) => 8,
        }
    }

    /// Whether JSON has it as a number.
    pub fn is_number(self) -> bool {
        matches!(
            self,
            Self::Signed(_) | Self::Unsigned(_) | Self::Float(_) | Self::Decimal(_, _, _)
        )
    }

    /// Appends the value of a text; `None` if it has none.
    pub fn push(self, text: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let text = text.trim_ascii();
        match self {
            Self::Signed(bytes) => push_signed(whole_number(text)?, bytes, out),
            Self::Unsigned(bytes) => {
                let number: u64 = std::str::from_utf8(text).ok()?.parse().ok()?;
                let number = number.to_le_bytes();
                let is_whole = number[bytes..].iter().all(|&byte| byte == 0);
                is_whole.then(|| out.extend_from_slice(&number[..bytes]))
            }
            Self::Float(bytes) => push_float(text, bytes, out),
            Self::Decimal(bytes, precision, scale) => {
                let units = decimals::parse(text, precision, scale)?;
                push_decimal(units, bytes, out)
            }
            Self::Days => push_signed(moments::parse_date(text)?, 4, out),
            Self::DayMilliseconds => {
                let units = moments::parse_timestamp(text, TimeUnit::Millisecond, false)?;
                push_signed(units, 8, out)
            }
            Self::Time(bytes, unit) => push_signed(moments::parse_time(text, unit)?, bytes, out),
            Self::Timestamp(unit, has_zone) => {
                push_signed(moments::parse_timestamp(text, unit, has_zone)?, 8, out)
            }
            Self::Duration(unit) => push_signed(moments::parse_duration(text, unit)?, 8, out),
        }
    }
}

/// A number of 64 bits, which most have few digits of.
fn whole_number(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text.split_first()? {
        (b'-', digits) => (true, digits),
        (b'+', digits) => (false, digits),
        _ => (false, text),
    };
    if digits.is_empty() || digits.len() > 18 || !digits.iter().all(u8::is_ascii_digit) {
        return std::str::from_utf8(text).ok()?.parse().ok();
    }
    let number = digits
        .iter()
        .fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    Some(if is_negative { -number } else { number })
}

fn push_signed(number: i64, bytes: usize, out: &mut Vec<u8>) -> Option<()> {
    let bits = 8 * bytes as u32;
    let is_whole = bits == 64 || (number >> (bits - 1) == number >> 63);
    is_whole.then(|| out.extend_from_slice(&number.to_le_bytes()[..bytes]))
}

fn push_float(text: &[u8], bytes: usize, out: &mut Vec<u8>) -> Option<()> {
    // What is not written as infinite is a number: one that is too large is refused.
    let is_infinite = || {
        let first = text.iter().find(|byte| !matches!(byte, b'+' | b'-'));
        first.is_some_and(|first| first.eq_ignore_ascii_case(&b'i'))
    };
    if bytes == 8 {
        let number: f64 = fast_float2::parse(text).ok()?;
        if number.is_infinite() && !is_infinite() {
            return None;
        }
        out.extend_from_slice(&number.to_le_bytes());
        return Some(());
    }
    let number: f32 = fast_float2::parse(text).ok()?;
    let short = f16::from_f32(number);
    let has_overflown = match bytes {
        2 => short.is_infinite(),
        _ => number.is_infinite(),
    };
    if has_overflown && !is_infinite() {
        return None;
    }
    match bytes {
        2 => out.extend_from_slice(&short.to_le_bytes()),
        _ => out.extend_from_slice(&number.to_le_bytes()),
    }
    Some(())
}

/// `i256` is in two parts, the lower first.
fn push_decimal(units: i256, bytes: usize, out: &mut Vec<u8>) -> Option<()> {
    if bytes == 32 {
        out.extend_from_slice(&units.to_le_bytes());
        return Some(());
    }
    let units = units.to_i128()?;
    let bits = 8 * bytes as u32;
    let is_whole = bits == 128 || (units >> (bits - 1) == units >> 127);
    is_whole.then(|| out.extend_from_slice(&units.to_le_bytes()[..bytes]))
}
