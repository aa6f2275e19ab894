//! Batches as JSON lines, whose values are written as MapReduce writes them.

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::RecordPrinter;
use super::cells::{CellValues, Cells, has_text};
use super::refusals::no_values;
use crate::error::FormatError;

/// Prints JSON lines.
#[derive(Debug)]
pub struct JsonPrinter {
    /// What is before each column's value.
    names: Vec<Vec<u8>>,
}

impl JsonPrinter {
    /// Prints these columns.
    ///
    /// # Errors
    /// A column whose type JSON has no values of.
    pub fn new(schema: &Schema) -> Result<Self, String> {
        let fields = schema.fields().iter();
        if let Some(field) = fields.clone().find(|field| !has_text(field.data_type())) {
            return Err(no_values(field, "JSON"));
        }
        Ok(Self {
            names: names_of(fields.map(|field| field.name().as_str())),
        })
    }
}

impl RecordPrinter for JsonPrinter {
    fn beginning(&self) -> Vec<u8> {
        Vec::new()
    }

    fn print(&self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), FormatError> {
        let cells = batch.columns().iter().map(Cells::open);
        let cells: Vec<Cells> = cells.collect::<Result<_, _>>()?;
        for row in 0..batch.num_rows() {
            for ((name, cell), field) in self.names.iter().zip(&cells).zip(batch.schema().fields())
            {
                out.extend_from_slice(name);
                print(cell, row, out).ok_or_else(|| {
                    FormatError::Damaged(format!(
                        "the column {:?} has a value that is not finite, which JSON has no number \
                         for; leave the column out, or choose another format",
                        field.name()
                    ))
                })?;
            }
            out.extend_from_slice(if cells.is_empty() { b"{}\n" } else { b"}\n" });
        }
        Ok(())
    }
}

/// What is before each value of an object: a brace or a comma, the name, a colon.
fn names_of<'a>(names: impl Iterator<Item = &'a str>) -> Vec<Vec<u8>> {
    let name = |(place, name): (usize, &str)| {
        let mut text = vec![if place == 0 { b'{' } else { b',' }];
        print_string(name, &mut text);
        text.push(b':');
        text
    };
    names.enumerate().map(name).collect()
}

fn print_string(text: &str, out: &mut Vec<u8>) {
    serde_json::to_writer(out, text).expect("memory takes all");
}

/// Appends a value; `None` if it is a number that is not finite.
fn print(cells: &Cells, row: usize, out: &mut Vec<u8>) -> Option<()> {
    if cells.is_null(row) {
        out.extend_from_slice(b"null");
        return Some(());
    }
    match &cells.values {
        CellValues::Text(texts) => print_string(texts.value(row), out),
        CellValues::Bytes(bytes) => print_string(&BASE64.encode(bytes.value(row)), out),
        CellValues::Lists(ends, items) => {
            out.push(b'[');
            for (place, item) in (ends[row]..ends[row + 1]).enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                print(items, item, out)?;
            }
            out.push(b']');
        }
        CellValues::Maps(ends, keys, values) => {
            out.push(b'[');
            for (place, item) in (ends[row]..ends[row + 1]).enumerate() {
                out.extend_from_slice(if place > 0 { b",[" } else { b"[" });
                print(keys, item, out)?;
                out.push(b',');
                print(values, item, out)?;
                out.push(b']');
            }
            out.push(b']');
        }
        CellValues::Structs(fields) => {
            for (place, (name, field)) in fields.iter().enumerate() {
                out.push(if place == 0 { b'{' } else { b',' });
                print_string(name, out);
                out.push(b':');
                print(field, row, out)?;
            }
            out.extend_from_slice(if fields.is_empty() { b"{}" } else { b"}" });
        }
        CellValues::Float32(numbers) => {
            numbers
                .value(row)
                .is_finite()
                .then(|| cells.print_plain(row, out))?;
        }
        CellValues::Float64(numbers) => {
            numbers
                .value(row)
                .is_finite()
                .then(|| cells.print_plain(row, out))?;
        }
        CellValues::Counts(scalar, _) if scalar.is_number() => cells.print_plain(row, out),
        CellValues::Counts(..) | CellValues::Decimal128(..) | CellValues::Decimal256(..) => {
            out.push(b'"');
            cells.print_plain(row, out);
            out.push(b'"');
        }
        _ => cells.print_plain(row, out),
    }
    Some(())
}
