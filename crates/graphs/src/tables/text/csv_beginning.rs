//! What a CSV file begins with: the names of its columns, and the types of their values.

use std::collections::HashSet;

use arrow_schema::{DataType, Field, Schema};
use serde::{Deserialize, Serialize};
use tonnage_formats::text::Dialect;
use tonnage_formats::text_columns::{Charset, infer_csv, record_end};
use tonnage_formats::types::{name_of, write_schema};
use tonnage_object::RequestCounts;
use tonnage_pipeline::RunHandle;

use super::inputs::{BYTE_ORDER_MARK, TextInput};
use crate::error::{JobError, usage_error};
use crate::objects::object_input::ObjectStorage;
use crate::tables::input::object_file::ObjectFiles;
use crate::tables::input::table_file::{TableFile, TableFileConfig};

/// Text that tells the types.
const INFERRED_BYTES: usize = 1 << 20;
const QUOTE: u8 = b'"';

/// The file to look at.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The file.
    pub input: TableFileConfig,
    /// The byte between fields.
    pub delimiter: u8,
    /// Whether the first record names the columns.
    pub header: bool,
    /// What the bytes from 128 on mean, if they are not UTF-8; U+FFFD is none.
    pub upper_half: Option<String>,
    /// The columns whose types matter, all by default; others are text.
    pub typed: Option<HashSet<String>>,
    /// How to use an object store.
    #[serde(rename = "volumes")]
    pub storage: ObjectStorage,
}

/// What it begins with.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The record that names the columns, as it is; empty if there is none.
    pub header: Vec<u8>,
    /// The columns' names.
    pub names: Vec<String>,
    /// Their types, as PyArrow prints them; `binary` of what is no UTF-8.
    pub types: Vec<String>,
    /// The columns as a schema's IPC message in Base64.
    pub schema: String,
    /// Requests to object stores.
    pub requests: RequestCounts,
}

/// Looks at the beginning of a file.
///
/// # Errors
/// When it cannot be read, or is no CSV.
pub fn run(config: &Config, handle: &RunHandle) -> Result<Outcome, JobError> {
    let access = config.storage.access()?;
    let objects = ObjectFiles::new(&access, handle);
    let files = TableFile::find(std::slice::from_ref(&config.input), &objects)?;
    let file = files.first().ok_or_else(|| usage_error("no input"))?;
    let refuse = |why: String| usage_error(format!("input {}: {why}", file.name()));
    let input = TextInput::open(file)?;
    let whole = input.beginning(INFERRED_BYTES)?;
    let text = whole.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&whole);
    let first = &text[..record_end(text, Some(QUOTE)).unwrap_or(text.len())];
    check_first(first).map_err(refuse)?;
    let dialect = Dialect {
        delimiter: config.delimiter,
        quote: Some(QUOTE),
    };
    let charset = Charset::new(config.upper_half.as_deref());
    let fields = fields_of(&charset.to_utf8(first).map_err(refuse)?, dialect);
    let (header, names) = match config.header {
        true => (first, fields),
        false => (
            &[][..],
            (0..fields.len()).map(|place| format!("f{place}")).collect(),
        ),
    };
    let records = match text.len() + BYTE_ORDER_MARK.len() >= INFERRED_BYTES {
        true => whole_records(text),
        false => text,
    };
    let records = records.get(header.len()..).unwrap_or_default();
    let records = charset.to_utf8(records).map_err(refuse)?;
    let types = infer_csv(&records, dialect, names.len()).map_err(|(at, why)| {
        let begin = whole.len() - text.len() + header.len() + charset.bytes(&records[..at]);
        usage_error(input.record_refusal(begin as u64, &why))
    })?;
    let is_typed = |name: &String| {
        config
            .typed
            .as_ref()
            .is_none_or(|typed| typed.contains(name))
    };
    let columns = names.iter().zip(&types).map(|(name, of)| {
        let is_text = *of != DataType::Binary && !is_typed(name);
        Field::new(
            name,
            if is_text { DataType::Utf8 } else { of.clone() },
            true,
        )
    });
    let schema = write_schema(&Schema::new(columns.collect::<Vec<_>>()));
    Ok(Outcome {
        header: header.to_vec(),
        types: types.iter().map(name_of).collect(),
        schema: schema.map_err(|why| refuse(why.to_string()))?,
        names,
        requests: access.counted(),
    })
}

fn check_first(first: &[u8]) -> Result<(), String> {
    if first.trim_ascii().is_empty() || first.contains(&0) {
        return Err("its first line names no columns".to_owned());
    }
    if first.trim_ascii_end().contains(&b'\r') {
        let why = "its lines end with a carriage return alone; convert these to newlines";
        return Err(why.to_owned());
    }
    Ok(())
}

fn fields_of(record: &[u8], dialect: Dialect) -> Vec<String> {
    let record = record.strip_suffix(b"\n").unwrap_or(record);
    let record = record.strip_suffix(b"\r").unwrap_or(record);
    let places: Vec<usize> = (0..=record.len()).collect();
    let (mut fields, mut scratch) = (Vec::new(), Vec::new());
    dialect.fields(record, &places, |_, field| {
        if let Some(field) = field {
            fields.push(String::from_utf8_lossy(field.value(&mut scratch)).into_owned());
        }
    });
    fields
}

/// The records of a text that ends anywhere.
fn whole_records(text: &[u8]) -> &[u8] {
    let mut end = 0;
    while let Some(next) = record_end(&text[end..], Some(QUOTE)) {
        end += next;
    }
    &text[..end]
}
