//! Normalized keys: bytes that compare by `memcmp` as the values do, and back.
//!
//! ```text
//!   null      a byte: 1 for a value; 0 or 2 for null, first or last
//!   numbers   big-endian, the sign inverted; floats: all bits of negative ones inverted
//!   bytes     as they are, 0 as 0 255, and 0 at the end
//! ```
//!
//! Descending values have all bits inverted, and end with two bytes of 255: what follows could be
//! greater than one. -0.0 equals 0.0, and all NaNs are one value above all numbers, as in SQL;
//! so a float cannot be read from its key.

use arrow_schema::DataType;

use crate::builder::ColumnBuilder;
use crate::column::{ByteValues, Column, Shape, Values, with_bytes};
use crate::error::TableError;

/// The byte before a value.
const VALUE: u8 = 1;

/// One column of a key.
#[derive(Clone, Debug)]
pub struct KeyField {
    /// Place of the column in the table.
    pub column: usize,
    kind: Kind,
    descending: bool,
    null: u8,
}

/// How a type's bytes become bytes that compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Unsigned(usize),
    Signed(usize),
    Float(usize),
    FixedBytes(usize),
    Bits,
    Bytes,
    Null,
}

impl Kind {
    fn of(data_type: &DataType) -> Option<Self> {
        use DataType as T;
        Some(match data_type {
            T::Null => Self::Null,
            T::Boolean => Self::Bits,
            T::UInt8 | T::UInt16 | T::UInt32 | T::UInt64 => {
                Self::Unsigned(data_type.primitive_width()?)
            }
            T::Float16 | T::Float32 | T::Float64 => Self::Float(data_type.primitive_width()?),
            T::FixedSizeBinary(width) => Self::FixedBytes(usize::try_from(*width).ok()?),
            T::Dictionary(_, values) => Self::of(values)?,
            // Days and milliseconds, or months and days, compare in no one way.
            T::Interval(arrow_schema::IntervalUnit::YearMonth) => Self::Signed(4),
            T::Interval(_) => return None,
            other => match Shape::of(other)? {
                Shape::Fixed(width) => Self::Signed(width),
                Shape::Bytes => Self::Bytes,
                _ => return None,
            },
        })
    }
}

impl KeyField {
    /// A key of the column in this place.
    ///
    /// # Errors
    /// When its values have no order here.
    pub fn new(
        column: usize,
        name: &str,
        data_type: &DataType,
        descending: bool,
        nulls_first: bool,
    ) -> Result<Self, TableError> {
        let kind = Kind::of(data_type).ok_or_else(|| TableError::Unordered {
            name: name.to_owned(),
            data_type: data_type.clone(),
        })?;
        Ok(Self {
            column,
            kind,
            descending,
            null: if nulls_first { 0 } else { 2 },
        })
    }

    /// Whether the value can be read from the key.
    pub fn is_exact(&self) -> bool {
        !matches!(self.kind, Kind::Float(_))
    }

    /// The length of every key, unless lengths differ.
    pub fn fixed_bytes(&self) -> Option<usize> {
        Some(match self.kind {
            Kind::Unsigned(width) | Kind::Signed(width) | Kind::Float(width) => 1 + width,
            Kind::FixedBytes(width) => 1 + width,
            Kind::Bits => 2,
            Kind::Null => 1,
            Kind::Bytes => return None,
        })
    }

    /// Adds the lengths of keys of consecutive rows.
    pub fn add_lengths(&self, column: &Column, first: usize, lengths: &mut [u64]) {
        if let Some(bytes) = self.fixed_bytes() {
            return lengths
                .iter_mut()
                .for_each(|length| *length += bytes as u64);
        }
        let end = if self.descending { 2 } else { 1 };
        with_bytes!(&column.values, values => {
            let has_zeros = values.may_have_zero(first..first + lengths.len());
            for (row, length) in (first..).zip(lengths) {
                *length += 1;
                if !column.is_null(row) {
                    let value = values.get(row);
                    let zeros = if has_zeros { zeros(value) } else { 0 };
                    *length += (value.len() + zeros + end) as u64;
                }
            }
        });
    }

    /// Writes the keys of consecutive rows, each at its cursor, which moves on.
    pub fn write(&self, column: &Column, first: usize, rows: &mut [u8], cursors: &mut [u32]) {
        match (self.kind, &column.values) {
            (Kind::Null, _) => {
                for cursor in cursors {
                    rows[*cursor as usize] = self.null;
                    *cursor += 1;
                }
            }
            (Kind::Bits, Values::Bits(bits)) => {
                for (row, cursor) in (first..).zip(cursors) {
                    let null = column.is_null(row);
                    let value = u8::from(bits.value(row)) ^ self.inverted();
                    let key = if null { [self.null, 0] } else { [VALUE, value] };
                    rows[*cursor as usize..][..2].copy_from_slice(&key);
                    *cursor += 2;
                }
            }
            (_, Values::Fixed(width, values)) => match width {
                1 => self.write_fixed::<1>(column, values, first, rows, cursors),
                2 => self.write_fixed::<2>(column, values, first, rows, cursors),
                4 => self.write_fixed::<4>(column, values, first, rows, cursors),
                8 => self.write_fixed::<8>(column, values, first, rows, cursors),
                16 => self.write_fixed::<16>(column, values, first, rows, cursors),
                32 => self.write_fixed::<32>(column, values, first, rows, cursors),
                _ => self.write_fixed_bytes(column, (*width, values), first, rows, cursors),
            },
            (_, values) => with_bytes!(values, values => {
                let has_zeros = values.may_have_zero(first..first + cursors.len());
                for (row, cursor) in (first..).zip(cursors) {
                    let key = &mut rows[*cursor as usize..];
                    *cursor += match column.is_null(row) {
                        true => {
                            key[0] = self.null;
                            1
                        }
                        false => {
                            key[0] = VALUE;
                            1 + self.write_bytes(values.get(row), has_zeros, &mut key[1..]) as u32
                        }
                    };
                }
            }),
        }
    }

    fn inverted(&self) -> u8 {
        if self.descending { u8::MAX } else { 0 }
    }

    fn write_fixed<const W: usize>(
        &self,
        column: &Column,
        values: &[u8],
        first: usize,
        rows: &mut [u8],
        cursors: &mut [u32],
    ) {
        if matches!(self.kind, Kind::FixedBytes(_)) {
            return self.write_fixed_bytes(column, (W, values), first, rows, cursors);
        }
        let (values, _) = values.as_chunks::<W>();
        for (row, (value, cursor)) in (first..).zip(values[first..].iter().zip(cursors)) {
            let key = &mut rows[*cursor as usize..][..1 + W];
            if column.is_null(row) {
                key.fill(0);
                key[0] = self.null;
            } else {
                key[0] = VALUE;
                key[1..].copy_from_slice(&self.comparable(*value));
            }
            *cursor += 1 + W as u32;
        }
    }

    /// The bytes of a number (little-endian) so that they compare.
    #[inline]
    fn comparable<const W: usize>(&self, mut value: [u8; W]) -> [u8; W] {
        if let Kind::Float(_) = self.kind {
            value = one_zero_and_one_nan(value);
        }
        value.reverse();
        match self.kind {
            Kind::Signed(_) => value[0] ^= 0x80,
            Kind::Float(_) if value[0] & 0x80 != 0 => {
                value.iter_mut().for_each(|byte| *byte = !*byte)
            }
            Kind::Float(_) => value[0] |= 0x80,
            _ => (),
        }
        value.map(|byte| byte ^ self.inverted())
    }

    fn write_fixed_bytes(
        &self,
        column: &Column,
        (width, values): (usize, &[u8]),
        first: usize,
        rows: &mut [u8],
        cursors: &mut [u32],
    ) {
        let inverted = self.inverted();
        for (row, cursor) in (first..).zip(cursors) {
            let key = &mut rows[*cursor as usize..][..1 + width];
            if column.is_null(row) {
                key.fill(0);
                key[0] = self.null;
            } else {
                key[0] = VALUE;
                let value = &values[row * width..][..width];
                for (byte, value) in key[1..].iter_mut().zip(value) {
                    *byte = value ^ inverted;
                }
            }
            *cursor += 1 + width as u32;
        }
    }

    /// Writes bytes and their end; gives the length.
    #[inline]
    fn write_bytes(&self, value: &[u8], may_have_zero: bool, key: &mut [u8]) -> usize {
        let (mut at, mut rest) = (0, value);
        while let Some(zero) = may_have_zero.then(|| memchr::memchr(0, rest)).flatten() {
            key[at..=at + zero].copy_from_slice(&rest[..=zero]);
            key[at + zero + 1] = 255;
            at += zero + 2;
            rest = &rest[zero + 1..];
        }
        key[at..at + rest.len()].copy_from_slice(rest);
        key[at + rest.len()] = 0;
        at += rest.len() + 1;
        if self.descending {
            key[at] = 0;
            at += 1;
            key[..at].iter_mut().for_each(|byte| *byte = !*byte);
        }
        at
    }

    /// Reads the values of rows from their keys, each from its cursor, which moves on, up to its
    /// end.
    ///
    /// # Errors
    /// When the bytes are no keys.
    pub fn read(
        &self,
        rows: &[&[u8]],
        cursors: &mut [u32],
        ends: &[u32],
        into: &mut ColumnBuilder,
    ) -> Result<(), TableError> {
        let keys = rows.iter().zip(&*cursors);
        let keys = keys.map(|(row, cursor)| &row[*cursor as usize..]);
        let bytes = match self.kind {
            Kind::Null => {
                into.push_nulls(rows.len());
                1
            }
            Kind::Bits => {
                for key in keys {
                    match key[0] == VALUE {
                        true => into.push_bit((key[1] ^ self.inverted()) & 1 == 1),
                        false => into.push_null(),
                    }
                }
                2
            }
            Kind::Unsigned(width) | Kind::Signed(width) => {
                match width {
                    1 => into.push_all(keys.map(|key| self.number::<1>(key))),
                    2 => into.push_all(keys.map(|key| self.number::<2>(key))),
                    4 => into.push_all(keys.map(|key| self.number::<4>(key))),
                    8 => into.push_all(keys.map(|key| self.number::<8>(key))),
                    16 => into.push_all(keys.map(|key| self.number::<16>(key))),
                    32 => into.push_all(keys.map(|key| self.number::<32>(key))),
                    _ => return Err(TableError::Damaged("a number has another width")),
                }
                1 + width
            }
            Kind::FixedBytes(width) => {
                let mut value = vec![0; width];
                for key in keys {
                    for (byte, key) in value.iter_mut().zip(&key[1..]) {
                        *byte = key ^ self.inverted();
                    }
                    match key[0] == VALUE {
                        true => into.push_fixed(&value),
                        false => into.push_null(),
                    }
                }
                1 + width
            }
            Kind::Bytes => {
                for ((row, cursor), end) in rows.iter().zip(cursors).zip(ends) {
                    let key = &row[*cursor as usize..*end as usize];
                    *cursor += match key[0] == VALUE {
                        true => 1 + self.read_bytes(&key[1..], into)? as u32,
                        false => {
                            into.push_null();
                            1
                        }
                    };
                }
                return Ok(());
            }
            Kind::Float(width) => 1 + width, // stored behind the key
        };
        cursors
            .iter_mut()
            .for_each(|cursor| *cursor += bytes as u32);
        Ok(())
    }

    /// The number of a key, little-endian.
    #[inline]
    fn number<const W: usize>(&self, key: &[u8]) -> Option<[u8; W]> {
        let key = &key[..1 + W];
        let mut value = [0; W];
        value.copy_from_slice(&key[1..]);
        let mut value = value.map(|byte| byte ^ self.inverted());
        if matches!(self.kind, Kind::Signed(_)) {
            value[0] ^= 0x80;
        }
        value.reverse();
        (key[0] == VALUE).then_some(value)
    }

    /// Reads bytes up to their end; gives the length of the key.
    fn read_bytes(&self, key: &[u8], into: &mut ColumnBuilder) -> Result<usize, TableError> {
        let inverted = self.inverted();
        let mut at = 0;
        loop {
            let Some(end) = memchr::memchr(inverted, &key[at..]) else {
                return Err(TableError::Damaged("a key has no end"));
            };
            into.extend_bytes(&key[at..at + end], inverted);
            at += end + 1;
            // A zero of the value is followed by 255, inverted if descending.
            if key.get(at) != Some(&!inverted) {
                break;
            }
            into.extend_bytes(&[inverted], inverted);
            at += 1;
        }
        into.end_bytes();
        Ok(if self.descending { at + 1 } else { at })
    }
}

fn zeros(value: &[u8]) -> usize {
    memchr::memchr_iter(0, value).count()
}

/// A float (little-endian) with one value for both zeros and one for all NaNs.
#[inline]
fn one_zero_and_one_nan<const W: usize>(value: [u8; W]) -> [u8; W] {
    let mut magnitude = value;
    magnitude[W - 1] &= 0x7f;
    if magnitude == [0; W] {
        return magnitude;
    }
    // Exponent bits all set and a fraction that is not zero.
    let mut infinity = [0; W];
    let exponent: u16 = match W {
        2 => 0x7c00,
        4 => 0x7f80,
        _ => 0x7ff0,
    };
    infinity[W - 2..].copy_from_slice(&exponent.to_le_bytes());
    let is_nan = magnitude.iter().rev().gt(infinity.iter().rev());
    if is_nan {
        magnitude = [0xff; W];
        magnitude[W - 1] = 0x7f;
        return magnitude;
    }
    value
}
