//! Rows of files with columns.

use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_cast::cast;
use arrow_schema::{FieldRef, SchemaRef};
use tonnage_formats::Pieces;
use tonnage_pipeline::{Failure, StageError};
use tonnage_stages::extent::{Extent, FileRef, Piece};
use tonnage_stages::work::{RowSource, TakeRows};
use tonnage_tables::{RowLayout, RowShape, RowWriter};

use crate::error::{JobError, setting_error, usage_error};
use crate::inputs::Input;
use crate::tables::columns::column_file::{ColumnFile, ColumnFormat, ColumnSplit, ProjectedFile};

/// Rows that are written at once, so that they stay in the cache.
const STRIDE_ROWS: usize = 512;
/// Rows of a sampled split that are decoded at most.
const SAMPLED_ROWS: usize = 4096;
/// Rows of a decoded batch.
const BATCH_ROWS: usize = 8192;

/// An input file that was opened.
struct OpenFile {
    name: String,
    file: FileRef,
    opened: ProjectedFile,
    /// The number of its first row in the whole input.
    first_row: u64,
}

/// Files with the same columns.
pub struct Table {
    files: Vec<OpenFile>,
    schema: SchemaRef,
}

impl Table {
    /// Opens files, of which these columns are read, in this order; all by default.
    ///
    /// # Errors
    /// A file that is not of the format, or lacks a column that the first has.
    pub fn open(
        format: ColumnFormat,
        inputs: &[Input],
        columns: Option<&[String]>,
    ) -> Result<Self, JobError> {
        let mut files: Vec<OpenFile> = Vec::new();
        let mut schema: Option<SchemaRef> = None;
        let mut rows = 0;
        for input in inputs {
            let name = input.file.name().display().to_string();
            let refuse = |why: String| usage_error(format!("input {name}: {why}"));
            let FileRef::Path(path) = &input.file else {
                return Err(refuse("tables are read from files".to_owned()));
            };
            let opened = ColumnFile::open(format, path, input.bytes)
                .map_err(|why| refuse(why.to_string()))?;
            let wanted = match &schema {
                Some(schema) => Arc::clone(schema),
                None => Arc::clone(schema.insert(projected(opened.schema(), columns)?)),
            };
            let place = |field: &FieldRef| place_of(opened.schema(), field.name()).map_err(refuse);
            let places: Vec<usize> = wanted
                .fields()
                .iter()
                .map(place)
                .collect::<Result<_, _>>()?;
            let opened = opened
                .project(&places)
                .map_err(|why| refuse(why.to_string()))?;
            let first_row = rows;
            rows += opened.rows();
            files.push(OpenFile {
                name,
                file: input.file.clone(),
                opened,
                first_row,
            });
        }
        let schema = schema.ok_or_else(|| usage_error("input: there are no files"))?;
        Ok(Self { files, schema })
    }

    /// Its columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// How many rows it has.
    pub fn rows(&self) -> u64 {
        self.files.iter().map(|file| file.opened.rows()).sum()
    }

    /// About `count` splits of about `most_bytes`, spread evenly over the rows.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn sample(&self, count: usize, most_bytes: u64) -> Result<Vec<TableSplit>, JobError> {
        let total = self.rows();
        let mut chosen: Vec<TableSplit> = Vec::new();
        for place in 0..count as u64 {
            // The middle of each of `count` equal strata.
            let at = u128::from(total) * (2 * u128::from(place) + 1) / (2 * count as u128);
            let at = at as u64;
            let number = self
                .files
                .partition_point(|file| file.first_row <= at)
                .saturating_sub(1);
            let file = &self.files[number];
            let is_known = chosen.iter().any(|chosen| {
                chosen.file == number && chosen.split.rows.contains(&(at - file.first_row))
            });
            if total == 0 || is_known {
                continue;
            }
            let split = file.opened.split_at(at - file.first_row, most_bytes);
            let split = split.map_err(|why| usage_error(format!("input {}: {why}", file.name)))?;
            chosen.extend(split.map(|split| TableSplit {
                file: number,
                split: split.thinned(SAMPLED_ROWS),
            }));
        }
        Ok(chosen)
    }

    /// All rows in splits of about `most_bytes` of a file.
    ///
    /// # Errors
    /// A row group that cannot be divided and is too large.
    pub fn splits(&self, most_bytes: u64) -> Result<Vec<TableSplit>, JobError> {
        let mut all = Vec::new();
        for (number, file) in self.files.iter().enumerate() {
            let splits = file.opened.splits(most_bytes);
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

/// The columns with these names, in this order; all by default.
fn projected(schema: &SchemaRef, columns: Option<&[String]>) -> Result<SchemaRef, JobError> {
    let Some(names) = columns else {
        return Ok(Arc::clone(schema));
    };
    if let Some((_, twice)) = (1..)
        .zip(names)
        .find(|(next, name)| names[*next..].contains(name))
    {
        return Err(setting_error(
            "columns",
            format!("the column {twice:?} is named twice"),
        ));
    }
    let places: Result<Vec<usize>, _> = names.iter().map(|name| schema.index_of(name)).collect();
    let projected = places.and_then(|places| schema.project(&places));
    Ok(Arc::new(projected.map_err(|why| {
        setting_error("columns", why.to_string())
    })?))
}

/// Where the only column with this name is.
fn place_of(schema: &SchemaRef, name: &str) -> Result<usize, String> {
    let mut places = (0..schema.fields().len()).filter(|&place| schema.field(place).name() == name);
    match (places.next(), places.next()) {
        (Some(place), None) => Ok(place),
        (None, _) => Err(format!("it has no column {name:?}, as others have")),
        (Some(_), Some(_)) => Err(format!("several columns are named {name:?}")),
    }
}

/// Some rows of a file.
pub struct TableSplit {
    file: usize,
    split: ColumnSplit,
}

/// Makes rows of splits of a table.
pub struct ColumnRows {
    table: Arc<Table>,
    layout: Arc<RowLayout>,
    splits: Vec<TableSplit>,
}

impl fmt::Debug for ColumnRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} splits of files with columns", self.splits.len())
    }
}

impl ColumnRows {
    /// Rows of these splits.
    pub fn new(table: &Arc<Table>, layout: &Arc<RowLayout>, splits: Vec<TableSplit>) -> Self {
        Self {
            table: Arc::clone(table),
            layout: Arc::clone(layout),
            splits,
        }
    }

    /// What each split needs to be read.
    pub fn extents(&self) -> Vec<Arc<Extent>> {
        let extent = |(number, split): (usize, &TableSplit)| {
            let file = &self.table.files[split.file];
            let piece = |range: &std::ops::Range<u64>| Piece {
                file: file.file.clone(),
                offset: range.start,
                len: (range.end - range.start) as usize,
            };
            Arc::new(Extent {
                number,
                offset: 0,
                in_order: false,
                pieces: split.split.ranges.iter().map(piece).collect(),
            })
        };
        self.splits.iter().enumerate().map(extent).collect()
    }

    /// A batch with the layout's columns, in their order and of their types.
    fn arranged(&self, batch: &RecordBatch) -> Result<RecordBatch, String> {
        let schema = self.layout.schema();
        let columns = schema.fields().iter().map(|field| {
            let array = batch.column_by_name(field.name());
            let array = array.ok_or_else(|| format!("there is no column {:?}", field.name()))?;
            match array.data_type() == field.data_type() {
                true => Ok(Arc::clone(array)),
                false => cast(array, field.data_type()).map_err(|why| why.to_string()),
            }
        });
        let columns = columns.collect::<Result<_, String>>()?;
        RecordBatch::try_new(Arc::clone(schema), columns).map_err(|why| why.to_string())
    }
}

impl RowSource for ColumnRows {
    fn shape(&self) -> RowShape {
        self.layout.shape()
    }

    fn memory_bytes(&self) -> usize {
        let splits = self.splits.iter();
        let bytes = splits.map(|split| split.split.decoded_bytes).max();
        usize::try_from(bytes.unwrap_or(0)).unwrap_or(usize::MAX)
    }

    fn rows(&self, split: usize, bytes: Pieces, take: TakeRows<'_>) -> Result<(), StageError> {
        let TableSplit { file, split } = &self.splits[split];
        let file = &self.table.files[*file];
        let fail = |why: String| Failure::at(&file.file.name(), 0, format!("{}: {why}", file.name));
        let batches = split.decode(bytes, BATCH_ROWS);
        let batches = batches.map_err(|why| fail(why.to_string()))?;
        let mut writer = RowWriter::new(&self.layout);
        let mut number = file.first_row + split.rows.start;
        for batch in batches {
            let batch = batch.map_err(|why| fail(why.to_string()))?;
            let batch = self.arranged(&batch).map_err(fail)?;
            writer.open(&batch).map_err(|why| fail(why.to_string()))?;
            for first in (0..batch.num_rows()).step_by(STRIDE_ROWS) {
                let range = first..(first + STRIDE_ROWS).min(batch.num_rows());
                let count = range.len() as u64;
                let rows = writer.write(range, number);
                take(rows.map_err(|why| fail(why.to_string()))?)?;
                number += count;
            }
        }
        Ok(())
    }
}
