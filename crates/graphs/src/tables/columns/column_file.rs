//! Files with columns, in one of the formats that have them.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use serde::Deserialize;
use tonnage_formats::arrow_ipc::{self, ArrowFile};
use tonnage_formats::parquet::{self, ParquetFile};
use tonnage_formats::{FormatError, Pieces, ReadAt};

/// A format of files with columns.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnFormat {
    /// Parquet.
    Parquet,
    /// Arrow IPC.
    Arrow,
}

/// A file that was opened.
pub enum ColumnFile {
    /// Parquet.
    Parquet(ParquetFile),
    /// Arrow IPC.
    Arrow(ArrowFile),
}

/// A file that was opened, and the columns of it that are read.
pub enum ProjectedFile {
    /// Parquet.
    Parquet(ParquetFile, parquet::Projection),
    /// Arrow IPC.
    Arrow(ArrowFile, arrow_ipc::Projection),
}

/// Some rows of a file.
pub struct ColumnSplit {
    /// Their numbers in the file.
    pub rows: Range<u64>,
    /// The bytes of the file that they need.
    pub ranges: Vec<Range<u64>>,
    /// Memory to decode them.
    pub decoded_bytes: u64,
    encoded: Encoded,
}

enum Encoded {
    Parquet(parquet::Split, parquet::Projection),
    Arrow(arrow_ipc::Split, arrow_ipc::Projection),
}

impl ColumnSplit {
    /// About so many of its rows, evenly; all rows of an Arrow batch, which cost little to decode.
    pub fn thinned(self, rows: usize) -> Self {
        let encoded = match self.encoded {
            Encoded::Parquet(split, projection) => {
                Encoded::Parquet(split.thinned(rows), projection)
            }
            arrow @ Encoded::Arrow(_, _) => arrow,
        };
        Self { encoded, ..self }
    }
}

/// Rows that are being decoded.
pub struct Batches<'a> {
    /// Memory that it takes, about.
    pub memory_bytes: u64,
    /// The rows.
    pub batches: Box<dyn Iterator<Item = Result<RecordBatch, FormatError>> + 'a>,
}

impl ColumnFile {
    /// Opens a file.
    pub fn open(format: ColumnFormat, file: Arc<dyn ReadAt>) -> Result<Self, FormatError> {
        Ok(match format {
            ColumnFormat::Parquet => Self::Parquet(ParquetFile::open(file)?),
            ColumnFormat::Arrow => Self::Arrow(ArrowFile::open(file)?),
        })
    }

    /// Its columns.
    pub fn schema(&self) -> &SchemaRef {
        match self {
            Self::Parquet(file) => file.schema(),
            Self::Arrow(file) => file.schema(),
        }
    }

    /// The file, of which the columns in these places are read.
    pub fn project(self, places: &[usize]) -> Result<ProjectedFile, FormatError> {
        Ok(match self {
            Self::Parquet(file) => {
                let projection = file.projection(places);
                ProjectedFile::Parquet(file, projection)
            }
            Self::Arrow(file) => {
                let projection = file.projection(places)?;
                ProjectedFile::Arrow(file, projection)
            }
        })
    }
}

impl ProjectedFile {
    /// The same file, of which the columns in these places are read instead.
    pub fn project(&self, places: &[usize]) -> Result<Self, FormatError> {
        let file = match self {
            Self::Parquet(file, _) => ColumnFile::Parquet(file.clone()),
            Self::Arrow(file, _) => ColumnFile::Arrow(file.clone()),
        };
        file.project(places)
    }

    /// How many rows it has.
    pub fn rows(&self) -> u64 {
        match self {
            Self::Parquet(file, _) => file.rows(),
            Self::Arrow(file, _) => file.rows(),
        }
    }

    /// The file in splits of about `most_bytes`; those whose first rows are in one of `parts`.
    pub fn splits(
        &self,
        most_bytes: u64,
        parts: &[Range<u64>],
    ) -> Result<Vec<ColumnSplit>, FormatError> {
        let splits: Vec<ColumnSplit> = match self {
            Self::Parquet(file, projection) => {
                let is_wanted = |group: &Range<u64>| {
                    let mut parts = parts.iter();
                    parts.any(|rows| rows.start < group.end && group.start < rows.end)
                };
                let splits = file.splits(projection, most_bytes, is_wanted)?;
                let splits = splits.into_iter();
                splits
                    .map(|split| parquet_split(file, projection, split))
                    .collect()
            }
            Self::Arrow(file, projection) => {
                let splits = file.splits(projection, most_bytes)?.into_iter();
                splits.map(|split| arrow_split(projection, split)).collect()
            }
        };
        let is_in = |split: &ColumnSplit| parts.iter().any(|rows| rows.contains(&split.rows.start));
        Ok(splits.into_iter().filter(is_in).collect())
    }

    /// The splits that have some of these rows of the file, in order, of about `most_bytes`.
    pub fn splits_at(
        &self,
        rows: &[u64],
        most_bytes: u64,
    ) -> Result<Vec<ColumnSplit>, FormatError> {
        match self {
            Self::Parquet(file, projection) => {
                let splits = file.splits_at(projection, rows, most_bytes)?.into_iter();
                Ok(splits
                    .map(|split| parquet_split(file, projection, split))
                    .collect())
            }
            Self::Arrow(file, projection) => {
                let mut splits: Vec<ColumnSplit> = Vec::new();
                for row in rows {
                    if !splits.last().is_some_and(|last| last.rows.contains(row)) {
                        let split = file.split_at(projection, *row, most_bytes)?;
                        splits.extend(split.map(|split| arrow_split(projection, split)));
                    }
                }
                Ok(splits)
            }
        }
    }
}

impl ColumnSplit {
    /// Batches of at most `batch_rows` from the bytes of its ranges.
    pub fn decode(&self, bytes: Pieces, batch_rows: usize) -> Result<Batches<'_>, FormatError> {
        Ok(match &self.encoded {
            Encoded::Parquet(split, projection) => {
                let decoder = parquet::Decoder::new(split, projection, bytes, batch_rows)?;
                Batches {
                    memory_bytes: decoder.memory_bytes(),
                    batches: Box::new(decoder),
                }
            }
            Encoded::Arrow(split, projection) => Batches {
                memory_bytes: split.decoded_bytes,
                batches: Box::new(arrow_ipc::Decoder::new(
                    split, projection, bytes, batch_rows,
                )?),
            },
        })
    }
}

fn parquet_split(
    file: &ParquetFile,
    projection: &parquet::Projection,
    split: parquet::Split,
) -> ColumnSplit {
    let first = file.first_row(&split);
    ColumnSplit {
        rows: first..first + split.rows.len() as u64,
        ranges: split.ranges.clone(),
        decoded_bytes: split.decoded_bytes,
        encoded: Encoded::Parquet(split, projection.clone()),
    }
}

fn arrow_split(projection: &arrow_ipc::Projection, split: arrow_ipc::Split) -> ColumnSplit {
    ColumnSplit {
        rows: split.rows.clone(),
        ranges: split.ranges.clone(),
        decoded_bytes: split.decoded_bytes,
        encoded: Encoded::Arrow(split, projection.clone()),
    }
}
