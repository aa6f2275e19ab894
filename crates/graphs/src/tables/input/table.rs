//! A table: files with columns, opened, as one sequence of rows.

use arrow_schema::SchemaRef;
use tonnage_stages::extent::FileRef;

use super::file_columns::FileColumns;
use super::table_file::TableFile;
use super::table_schema::{FileSchema, WantedColumns, common_schema};
use crate::error::{JobError, usage_error};
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
}

/// Files whose rows have the same columns.
pub struct Table {
    files: Vec<OpenFile>,
    schema: SchemaRef,
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
        let mut opened = Vec::with_capacity(inputs.len());
        for file in inputs {
            let name = file.input.file.name().display().to_string();
            let refuse = |why: String| usage_error(format!("input {name}: {why}"));
            let FileRef::Path(path) = &file.input.file else {
                return Err(refuse("tables are read from files".to_owned()));
            };
            let column_file = ColumnFile::open(format, path, file.input.bytes);
            opened.push((
                column_file.map_err(|why| refuse(why.to_string()))?,
                name,
                file,
            ));
        }
        let schemas: Vec<FileSchema<'_>> = opened
            .iter()
            .map(|(column_file, name, file)| FileSchema {
                name,
                schema: column_file.schema(),
                folders: &file.folders,
            })
            .collect();
        let schema = common_schema(&schemas, wanted)?;
        let columns = schemas.iter().map(|file| FileColumns::new(file, &schema));
        let columns = columns.collect::<Result<Vec<_>, JobError>>()?;
        let (mut files, mut rows) = (Vec::with_capacity(inputs.len()), 0);
        for ((column_file, name, file), columns) in opened.into_iter().zip(columns) {
            let projected = column_file.project(columns.places());
            let projected = projected.map_err(|why| usage_error(format!("input {name}: {why}")))?;
            let first_row = rows;
            rows += projected.rows();
            files.push(OpenFile {
                name,
                file: file.input.file.clone(),
                opened: projected,
                columns,
                first_row,
            });
        }
        Ok(Self { files, schema })
    }

    /// The file of a split.
    pub fn file(&self, split: &TableSplit) -> &OpenFile {
        &self.files[split.file]
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

/// Some rows of a file.
pub struct TableSplit {
    file: usize,
    /// Which rows.
    pub split: ColumnSplit,
}
