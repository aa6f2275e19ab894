//! A table: files with columns, opened, as one sequence of rows.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use arrow_schema::SchemaRef;
use tonnage_formats::FormatError;
use tonnage_stages::extent::FileRef;

use super::file_columns::FileColumns;
use super::table_file::TableFile;
use super::table_schema::{FileSchema, WantedColumns, common_schema};
use crate::error::{JobError, usage_error};
use crate::inputs::{Input, first_of_file};
use crate::tables::columns::column_file::{ColumnFile, ColumnFormat, ColumnSplit, ProjectedFile};

/// Rows of a sampled split that are decoded at most.
const SAMPLED_ROWS: usize = 4096;

/// An input file that was opened.
pub struct OpenFile {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub file: FileRef,
    /// How its columns become the table's.
    pub columns: FileColumns,
    /// The number of its first row in the whole input.
    pub first_row: u64,
    opened: ProjectedFile,
    /// The rows that are read: those of splits that begin in them.
    parts: Vec<Range<u64>>,
}

impl OpenFile {
    /// How many rows are in its parts.
    fn rows(&self) -> u64 {
        self.parts.iter().map(|rows| rows.end - rows.start).sum()
    }

    /// The number of a row in the file, by its number in the parts.
    fn row_at(&self, mut place: u64) -> u64 {
        for rows in &self.parts {
            if place < rows.end - rows.start {
                return rows.start + place;
            }
            place -= rows.end - rows.start;
        }
        0
    }
}

/// The rows of a part of a file: of its bytes and its rows the same share.
fn rows_of(input: &Input, rows: u64) -> Range<u64> {
    let bytes = u128::from(input.file_bytes.max(1));
    let row_at = |byte: u64| (u128::from(rows) * u128::from(byte) / bytes) as u64;
    row_at(input.offset)..row_at(input.offset + input.bytes)
}

/// Inputs in groups of parts of the same file, which follow one another.
fn by_file(inputs: &[TableFile]) -> impl Iterator<Item = &[TableFile]> {
    inputs.chunk_by(|one, next| {
        let is_part = next.input.bytes < next.input.file_bytes;
        is_part && one.input.file.name() == next.input.file.name()
    })
}

/// Files whose rows have the same columns.
pub struct Table {
    files: Vec<OpenFile>,
    schema: SchemaRef,
    bytes: u64,
    /// What the split that took most memory to be decoded took so far.
    decoding_bytes: AtomicU64,
}

impl Table {
    /// Opens files, and finds what columns they have in common.
    ///
    /// # Errors
    /// A file that is not of the format, or whose columns do not fit the others'.
    pub fn open(
        format: ColumnFormat,
        inputs: &[TableFile],
        wanted: &WantedColumns,
    ) -> Result<Self, JobError> {
        let groups: Vec<&[TableFile]> = by_file(inputs).collect();
        let opened = TableFile::map_items(inputs, &groups, |&parts| {
            let file = &parts[0];
            let opened = file.open().map_err(FormatError::from);
            let opened = opened.and_then(|opened| ColumnFile::open(format, opened));
            Ok((
                opened.map_err(|why| refusal(file, why))?,
                file.name(),
                parts,
            ))
        })?;
        let schemas: Vec<FileSchema<'_>> = opened
            .iter()
            .map(|(column_file, name, parts)| FileSchema {
                name,
                schema: column_file.schema(),
                folders: &parts[0].folders,
            })
            .collect();
        let schema = common_schema(&schemas, wanted)?;
        let columns = schemas.iter().map(|file| FileColumns::new(file, &schema));
        let columns = columns.collect::<Result<Vec<_>, JobError>>()?;
        let (mut files, mut rows) = (Vec::with_capacity(inputs.len()), 0);
        for ((column_file, name, parts), columns) in opened.into_iter().zip(columns) {
            let projected = column_file.project(columns.places());
            let projected = projected.map_err(|why| refusal(&parts[0], why))?;
            let input = &parts[0].input;
            let first_row = input.file_number.map_or(rows, first_of_file);
            rows += projected.rows();
            let parts = parts.iter();
            let parts = parts.map(|part| rows_of(&part.input, projected.rows()));
            files.push(OpenFile {
                name,
                file: input.file.clone(),
                parts: parts.collect(),
                opened: projected,
                columns,
                first_row,
            });
        }
        let bytes = inputs.iter().map(|file| file.input.bytes).sum();
        Ok(Self {
            files,
            schema,
            bytes,
            decoding_bytes: AtomicU64::new(0),
        })
    }

    /// The same with these columns only, if each file has one of them.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn narrowed(&self, schema: &SchemaRef) -> Result<Option<Self>, JobError> {
        let mut files = Vec::with_capacity(self.files.len());
        for file in &self.files {
            let columns = file.columns.narrowed(schema);
            if columns.places().is_empty() {
                return Ok(None);
            }
            let opened = file.opened.project(columns.places());
            let opened =
                opened.map_err(|why| usage_error(format!("input {}: {why}", file.name)))?;
            files.push(OpenFile {
                name: file.name.clone(),
                file: file.file.clone(),
                columns,
                first_row: file.first_row,
                opened,
                parts: file.parts.clone(),
            });
        }
        Ok(Some(Self {
            files,
            schema: Arc::clone(schema),
            bytes: self.bytes,
            decoding_bytes: AtomicU64::new(0),
        }))
    }

    /// Memory that decoding took at most so far, of splits that were sampled as of all.
    pub fn decoding_bytes(&self) -> u64 {
        self.decoding_bytes.load(Relaxed)
    }

    /// Notes what decoding a split takes.
    pub fn count_decoding(&self, bytes: u64) {
        self.decoding_bytes.fetch_max(bytes, Relaxed);
    }

    /// The file of a split.
    pub fn file(&self, split: &TableSplit) -> &OpenFile {
        &self.files[split.file]
    }

    /// Its columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// How many rows it has; of parts of files about.
    pub fn rows(&self) -> u64 {
        self.files.iter().map(OpenFile::rows).sum()
    }

    /// How many bytes its files have.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// About `count` splits of about `most_bytes`, spread evenly over the rows.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn sample(&self, count: usize, most_bytes: u64) -> Result<Vec<TableSplit>, JobError> {
        let total = self.rows();
        // The middle of each of `count` equal strata.
        let middle = |place| u128::from(total) * (2 * place + 1) / (2 * count as u128);
        let mut places = (0..count as u128)
            .map(|place| middle(place) as u64)
            .peekable();
        let (mut chosen, mut before) = (Vec::new(), 0);
        for (number, file) in self.files.iter().enumerate() {
            let end = before + file.rows();
            let within = std::iter::from_fn(|| places.next_if(|&at| at < end));
            let rows: Vec<u64> = within.map(|at| file.row_at(at - before)).collect();
            let splits = file.opened.splits_at(&rows, most_bytes);
            let splits =
                splits.map_err(|why| usage_error(format!("input {}: {why}", file.name)))?;
            chosen.extend(splits.into_iter().map(|split| TableSplit {
                file: number,
                split: split.thinned(SAMPLED_ROWS),
            }));
            before = end;
        }
        Ok(chosen)
    }

    /// All rows in splits of about `most_bytes` of a file.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn splits(&self, most_bytes: u64) -> Result<Vec<TableSplit>, JobError> {
        let mut all = Vec::new();
        for (number, file) in self.files.iter().enumerate() {
            let splits = file.opened.splits(most_bytes, &file.parts);
            let splits =
                splits.map_err(|why| usage_error(format!("input {}: {why}", file.name)))?;
            all.extend(splits.into_iter().map(|split| TableSplit {
                file: number,
                split,
            }));
        }
        Ok(all)
    }
}

/// Why a file cannot be read.
fn refusal(file: &TableFile, why: FormatError) -> JobError {
    match why {
        FormatError::Io(why) => file.read_error(&why),
        why => usage_error(format!("input {}: {why}", file.name())),
    }
}

/// Some rows of a file.
pub struct TableSplit {
    file: usize,
    /// Which rows.
    pub split: ColumnSplit,
}
