//! The columns of rows that files have: all of them, but for those that their folders tell.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use tonnage_tables::{RowLayout, RowReader, TableError};

use crate::error::{JobError, setting_error};

/// The columns that files have.
#[derive(Clone, Debug)]
pub struct OutputColumns {
    layout: Arc<RowLayout>,
    places: Vec<usize>,
    schema: SchemaRef,
}

impl OutputColumns {
    /// All columns of a layout but those in these places, which are in the names of folders.
    ///
    /// # Errors
    /// When no column is left.
    pub fn new(layout: &Arc<RowLayout>, in_folders: &[usize]) -> Result<Self, JobError> {
        let all = 0..layout.schema().fields().len();
        let places: Vec<usize> = all.filter(|place| !in_folders.contains(place)).collect();
        if places.is_empty() && !in_folders.is_empty() {
            let why = "all columns are in the names of folders, so files have none; leave one out";
            return Err(setting_error("partition_by", why));
        }
        let schema = layout.schema().project(&places);
        Ok(Self {
            layout: Arc::clone(layout),
            places,
            schema: Arc::new(schema.map_err(|why| JobError::failure(why.to_string()))?),
        })
    }

    /// The columns of files.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Gathers rows into batches, about so many in each.
    pub fn reader(&self, rows: usize) -> OutputBatches {
        OutputBatches {
            reader: RowReader::new(&self.layout, rows),
            columns: self.clone(),
            bytes: 0,
        }
    }
}

/// Rows that become a batch of the columns of files.
pub struct OutputBatches {
    reader: RowReader,
    columns: OutputColumns,
    bytes: usize,
}

impl OutputBatches {
    /// Adds rows.
    pub fn push(&mut self, rows: &[&[u8]]) -> Result<(), TableError> {
        self.bytes += rows.iter().map(|row| row.len()).sum::<usize>();
        self.reader.push(rows)
    }

    /// Rows so far.
    pub fn rows(&self) -> usize {
        self.reader.rows()
    }

    /// Their bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The batch of all rows so far, if there are any; the next begins empty.
    pub fn finish(&mut self) -> Result<Option<RecordBatch>, TableError> {
        self.bytes = 0;
        if self.reader.rows() == 0 {
            return Ok(None);
        }
        let batch = self.reader.finish()?;
        Ok(Some(batch.project(&self.columns.places)?))
    }
}
