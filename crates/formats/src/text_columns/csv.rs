//! Records of CSV as batches, and batches as records.
//!
//! An empty field is null; within quotes it is an empty text. Bytes are hexadecimal.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema, SchemaRef};

use super::cells::{CellValues, Cells, has_text};
use super::column::{Column, Values, batch_of};
use super::refusals::{missing_value, no_values, wrong_fields, wrong_value};
use super::{RecordPrinter, RecordReader};
use crate::error::FormatError;
use crate::text::{Dialect, Field as TextField};

/// Reads records of CSV.
#[derive(Debug)]
pub struct CsvReader {
    dialect: Dialect,
    /// Where fields are in a record, and one more, which it should lack.
    places: Vec<usize>,
    /// The column of each field, if it is kept.
    wanted: Vec<Option<usize>>,
    columns: Vec<Column>,
    scratch: Vec<u8>,
}

impl CsvReader {
    /// Reads records with the fields of `file`, of which those of `kept` become columns.
    ///
    /// # Errors
    /// A column whose type CSV has no values of.
    pub fn new(dialect: Dialect, file: &Schema, kept: &SchemaRef) -> Result<Self, String> {
        let columns = kept.fields().iter().map(|field| {
            let column = Column::new(field).filter(|column| is_flat(&column.values));
            column.ok_or_else(|| no_values(field, "CSV"))
        });
        let place_of = |field: &Arc<Field>| kept.index_of(field.name()).ok();
        Ok(Self {
            dialect,
            places: (0..=file.fields().len()).collect(),
            wanted: file.fields().iter().map(place_of).collect(),
            columns: columns.collect::<Result<_, _>>()?,
            scratch: Vec::new(),
        })
    }

    fn push_fields(&mut self, record: &[u8]) -> Result<(), String> {
        let Self {
            dialect,
            places,
            wanted,
            columns,
            scratch,
        } = self;
        let (mut found, mut refusal) = (0, None);
        dialect.fields(record, places, |number, field| {
            let Some(field) = field else {
                return;
            };
            found += 1;
            let Some(Some(column)) = wanted.get(number) else {
                return;
            };
            if refusal.is_none() {
                refusal = push_field(&mut columns[*column], field, record, *dialect, scratch).err();
            }
        });
        if found != wanted.len() {
            return Err(wrong_fields(found, wanted.len()));
        }
        refusal.map_or(Ok(()), Err)
    }
}

impl RecordReader for CsvReader {
    fn push(&mut self, record: &[u8]) -> Result<bool, String> {
        let record = record.strip_suffix(b"\r").unwrap_or(record);
        if record.is_empty() && self.wanted.len() > 1 {
            return Ok(false);
        }
        let rows = self.rows();
        let pushed = self.push_fields(record);
        if pushed.is_err() {
            self.columns
                .iter_mut()
                .for_each(|column| column.truncate(rows));
        }
        pushed.map(|()| true)
    }

    fn rows(&self) -> usize {
        // All columns have as many once a record was added, or left out.
        self.columns.first().map_or(0, Column::len)
    }

    fn row_bytes(&self) -> usize {
        self.columns.iter().map(Column::value_bytes).sum()
    }

    fn finish(&mut self) -> Result<RecordBatch, FormatError> {
        batch_of(&mut self.columns)
    }
}

fn is_flat(values: &Values) -> bool {
    !matches!(
        values,
        Values::List { .. } | Values::Map { .. } | Values::Struct(_)
    )
}

fn push_field(
    column: &mut Column,
    field: TextField<'_>,
    record: &[u8],
    dialect: Dialect,
    scratch: &mut Vec<u8>,
) -> Result<(), String> {
    if field.bytes.is_empty() && !field.is_quoted {
        return column.push_null().ok_or_else(|| missing_value(column));
    }
    if field.is_quoted {
        let end = field.bytes.as_ptr() as usize - record.as_ptr() as usize + field.bytes.len();
        let is_whole = record.get(end).copied() == dialect.quote
            && record
                .get(end + 1)
                .is_none_or(|&next| next == dialect.delimiter);
        if !is_whole {
            let name = column.field.name();
            return Err(format!(
                "has a quote in column {name:?} that ends within a value; double the quotes within values"
            ));
        }
    }
    let value = field.value(scratch);
    push_value(&mut column.values, value).ok_or_else(|| wrong_value(column, value))?;
    column.push_valid();
    Ok(())
}

pub fn push_value(values: &mut Values, value: &[u8]) -> Option<()> {
    match values {
        Values::Scalar(scalar, values) => scalar.push(value, values),
        Values::Bits(bits) => {
            bits.append(match value.trim_ascii() {
                b"true" | b"True" | b"TRUE" | b"1" => true,
                b"false" | b"False" | b"FALSE" | b"0" => false,
                _ => return None,
            });
            Some(())
        }
        Values::Bytes {
            is_text,
            offsets,
            data,
        } => {
            match *is_text {
                true => data.extend_from_slice(std::str::from_utf8(value).ok()?.as_bytes()),
                false => push_hexadecimal(value, data)?,
            }
            offsets.push(i32::try_from(data.len()).ok()?);
            Some(())
        }
        Values::FixedBinary(width, values) => {
            (value.len() == 2 * *width).then(|| push_hexadecimal(value, values))?
        }
        Values::Null | Values::List { .. } | Values::Map { .. } | Values::Struct(_) => None,
    }
}

fn push_hexadecimal(digits: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    for &[high, low] in pairs {
        out.push((digit(high)? * 16 + digit(low)?) as u8);
    }
    Some(())
}

/// Prints records of CSV.
#[derive(Debug)]
pub struct CsvPrinter {
    delimiter: u8,
    header: Vec<u8>,
}

impl CsvPrinter {
    /// Prints these columns, and their names first if there is a header.
    ///
    /// # Errors
    /// A column whose type CSV has no values of.
    pub fn new(schema: &Schema, delimiter: u8, has_header: bool) -> Result<Self, String> {
        let mut header = Vec::new();
        for (place, field) in schema.fields().iter().enumerate() {
            if field.data_type().is_nested() || !has_text(field.data_type()) {
                return Err(no_values(field, "CSV"));
            }
            if place > 0 {
                header.push(delimiter);
            }
            push_text(field.name().as_bytes(), delimiter, &mut header);
        }
        header.push(b'\n');
        if !has_header {
            header.clear();
        }
        Ok(Self { delimiter, header })
    }
}

impl RecordPrinter for CsvPrinter {
    fn beginning(&self) -> Vec<u8> {
        self.header.clone()
    }

    fn print(&self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), FormatError> {
        let cells = batch.columns().iter().map(Cells::open);
        let cells: Vec<Cells> = cells.collect::<Result<_, _>>()?;
        for row in 0..batch.num_rows() {
            for (place, cell) in cells.iter().enumerate() {
                if place > 0 {
                    out.push(self.delimiter);
                }
                if cell.is_null(row) {
                    continue;
                }
                match &cell.values {
                    CellValues::Text(texts) => {
                        push_text(texts.value(row).as_bytes(), self.delimiter, out);
                    }
                    CellValues::Bytes(bytes) if bytes.value(row).is_empty() => {
                        out.extend_from_slice(b"\"\"");
                    }
                    CellValues::Bytes(bytes) => print_hexadecimal(bytes.value(row), out),
                    _ => cell.print_plain(row, out),
                }
            }
            out.push(b'\n');
        }
        Ok(())
    }
}

/// Appends a text, within quotes if it is empty or has what ends a field.
fn push_text(text: &[u8], delimiter: u8, out: &mut Vec<u8>) {
    const QUOTE: u8 = b'"';
    let ends_field = |&byte: &u8| byte == delimiter || matches!(byte, QUOTE | b'\n' | b'\r');
    if !text.is_empty() && !text.iter().any(ends_field) {
        return out.extend_from_slice(text);
    }
    out.push(QUOTE);
    for part in text.split_inclusive(|&byte| byte == QUOTE) {
        out.extend_from_slice(part);
        if part.last() == Some(&QUOTE) {
            out.push(QUOTE);
        }
    }
    out.push(QUOTE);
}

fn print_hexadecimal(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = |byte: &u8| {
        [
            DIGITS[usize::from(byte >> 4)],
            DIGITS[usize::from(byte & 15)],
        ]
    };
    out.extend(bytes.iter().flat_map(digits));
}
