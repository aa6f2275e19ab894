//! What CSV files begin with: the names of their columns, and the types of their values. The first
//! file that is not empty names the columns, the first with records behind these tells the types.

use std::collections::HashSet;

use arrow_schema::{DataType, Field, Schema};
use serde::{Deserialize, Serialize};
use tonnage_formats::text::Dialect;
use tonnage_formats::text_columns::{Charset, infer_csv, record_end};
use tonnage_formats::types::{name_of, write_schema};
use tonnage_object::RequestCounts;
use tonnage_pipeline::RunHandle;

use super::inputs::{BYTE_ORDER_MARK, ENDS_WITH_RETURN, INFERRED_BYTES, NO_TEXT, TextInput};
use crate::error::{JobError, usage_error};
use crate::objects::object_input::ObjectStorage;
use crate::tables::input::object_file::ObjectFiles;
use crate::tables::input::table_file::{TableFile, TableFileConfig};

const QUOTE: u8 = b'"';

/// The files to look at.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The files, in their order.
    pub inputs: Vec<TableFileConfig>,
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

/// What they begin with.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The file that names the columns.
    pub file: String,
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

/// Looks at the beginnings of files.
///
/// # Errors
/// When one cannot be read, or is no CSV.
pub fn run(config: &Config, handle: &RunHandle) -> Result<Outcome, JobError> {
    let access = config.storage.access()?;
    let files = TableFile::find(&config.inputs, &ObjectFiles::new(&access, handle))?;
    let mut named: Option<Columns> = None;
    let mut types = None;
    for file in &files {
        let text = FileText::read(file, config)?;
        if text.bytes().is_empty() {
            continue;
        }
        let columns = text.columns()?;
        let is_same = named
            .as_ref()
            .is_none_or(|named| named.header == columns.header);
        let columns = named.get_or_insert(columns);
        // Files with other columns are refused when all are opened.
        if !is_same || text.bytes().len() > columns.header.len() {
            types = is_same.then(|| text.types(columns)).transpose()?;
            break;
        }
    }
    let Columns {
        file,
        header,
        names,
    } = named.ok_or_else(|| {
        let first = files.first().map_or_else(String::new, TableFile::name);
        usage_error(format!(
            "input {first}: it is empty, as all files are, so there are no columns"
        ))
    })?;
    let types = types.unwrap_or_else(|| vec![DataType::Utf8; names.len()]);
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
        schema: schema.map_err(|why| usage_error(format!("input {file}: {why}")))?,
        file,
        header,
        types: types.iter().map(name_of).collect(),
        names,
        requests: access.counted(),
    })
}

/// The columns of a file.
struct Columns {
    file: String,
    /// The record that names them, with its newline; empty if there is none.
    header: Vec<u8>,
    names: Vec<String>,
}

/// The beginning of a file's text.
struct FileText<'a> {
    config: &'a Config,
    input: TextInput,
    charset: Charset,
    /// The text, behind a byte order mark, if it has one.
    whole: Vec<u8>,
    begin: usize,
}

impl<'a> FileText<'a> {
    fn read(file: &TableFile, config: &'a Config) -> Result<Self, JobError> {
        let input = TextInput::open(file)?;
        let whole = input.beginning(INFERRED_BYTES)?;
        let has_mark = whole.starts_with(BYTE_ORDER_MARK);
        Ok(Self {
            config,
            input,
            charset: Charset::new(config.upper_half.as_deref()),
            begin: if has_mark { BYTE_ORDER_MARK.len() } else { 0 },
            whole,
        })
    }

    fn bytes(&self) -> &[u8] {
        &self.whole[self.begin..]
    }

    fn refuse(&self, why: String) -> JobError {
        usage_error(format!("input {}: {why}", self.input.file.name()))
    }

    fn dialect(&self) -> Dialect {
        Dialect {
            delimiter: self.config.delimiter,
            quote: Some(QUOTE),
        }
    }

    fn columns(&self) -> Result<Columns, JobError> {
        let text = self.bytes();
        let first = &text[..record_end(text, Some(QUOTE)).unwrap_or(text.len())];
        check_first(first).map_err(|why| self.refuse(why))?;
        let utf8 = self
            .charset
            .to_utf8(first)
            .map_err(|why| self.refuse(why))?;
        let fields = fields_of(&utf8, self.dialect());
        let (header, names) = match self.config.header {
            true => (with_newline(first), fields),
            false => {
                let names = (0..fields.len()).map(|place| format!("f{place}"));
                (Vec::new(), names.collect())
            }
        };
        Ok(Columns {
            file: self.input.file.name(),
            header,
            names,
        })
    }

    fn types(&self, columns: &Columns) -> Result<Vec<DataType>, JobError> {
        let text = self.bytes();
        let records = match self.whole.len() >= INFERRED_BYTES {
            true => whole_records(text),
            false => text,
        };
        let records = records.get(columns.header.len()..).unwrap_or_default();
        let records = self
            .charset
            .to_utf8(records)
            .map_err(|why| self.refuse(why))?;
        infer_csv(&records, self.dialect(), columns.names.len()).map_err(|(at, why)| {
            let before = self.charset.bytes(&records[..at]);
            let offset = self.begin + columns.header.len() + before;
            usage_error(self.input.record_refusal(offset as u64, &why))
        })
    }
}

fn with_newline(record: &[u8]) -> Vec<u8> {
    let record = record.strip_suffix(b"\n").unwrap_or(record);
    [record, b"\n"].concat()
}

fn check_first(first: &[u8]) -> Result<(), String> {
    if first.contains(&0) {
        return Err(NO_TEXT.to_owned());
    }
    if first.trim_ascii().is_empty() {
        return Err("its first line names no columns".to_owned());
    }
    if first.trim_ascii_end().contains(&b'\r') {
        return Err(ENDS_WITH_RETURN.to_owned());
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
