//! Rows into Parquet files.

use std::fmt;
use std::sync::Arc;

use tonnage_formats::parquet::{FileWriter, Output, RowGroupEncoder};
use tonnage_pipeline::{Failure, StageError};
use tonnage_stages::work::{FileBlocks, RowEncoder, RowEncoding};
use tonnage_tables::{RowLayout, RowReader};

/// Rows of a batch that are encoded together.
const BATCH_ROWS: usize = 8192;
/// Bytes of a batch at most.
const BATCH_BYTES: usize = 4 << 20;

/// Encodes rows into Parquet files.
#[derive(Clone)]
pub struct ParquetFiles {
    /// How files are written.
    pub output: Arc<Output>,
    /// The rows.
    pub layout: Arc<RowLayout>,
    /// About how many bytes a row group has.
    pub group_bytes: usize,
}

impl fmt::Debug for ParquetFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Parquet files")
    }
}

impl RowEncoding for ParquetFiles {
    fn encoder(&self) -> Box<dyn RowEncoder> {
        Box::new(Encoder {
            files: self.clone(),
            reader: RowReader::new(&self.layout, BATCH_ROWS),
            batch_bytes: 0,
            group_bytes: 0,
            group: None,
            file: None,
        })
    }

    fn memory_bytes(&self) -> usize {
        2 * self.group_bytes
    }
}

struct Encoder {
    files: ParquetFiles,
    reader: RowReader,
    batch_bytes: usize,
    group_bytes: usize,
    group: Option<RowGroupEncoder>,
    file: Option<FileWriter<Vec<u8>>>,
}

impl RowEncoder for Encoder {
    fn push(&mut self, row: &[u8], file: &mut FileBlocks<'_>) -> Result<(), StageError> {
        self.reader.push(row).map_err(|why| fail(&why))?;
        self.batch_bytes += row.len();
        if self.reader.rows() == BATCH_ROWS
            || self.batch_bytes >= BATCH_BYTES.min(self.files.group_bytes / 2)
        {
            self.end_batch()?;
            if self.group_bytes >= self.files.group_bytes {
                self.end_group(file)?;
            }
        }
        Ok(())
    }

    fn finish(&mut self, file: &mut FileBlocks<'_>) -> Result<(), StageError> {
        self.end_batch()?;
        self.end_group(file)?;
        let writer = match self.file.take() {
            Some(writer) => writer,
            None => self.begin_file()?,
        };
        file.append(&writer.finish().map_err(|why| fail(&why))?)
    }
}

impl Encoder {
    fn end_batch(&mut self) -> Result<(), StageError> {
        if self.reader.rows() == 0 {
            return Ok(());
        }
        let batch = self.reader.finish().map_err(|why| fail(&why))?;
        let output = &self.files.output;
        let group = self
            .group
            .get_or_insert_with(|| RowGroupEncoder::new(output));
        group.write(&batch).map_err(|why| fail(&why))?;
        self.group_bytes += std::mem::take(&mut self.batch_bytes);
        Ok(())
    }

    fn end_group(&mut self, file: &mut FileBlocks<'_>) -> Result<(), StageError> {
        self.group_bytes = 0;
        let Some(group) = self.group.take() else {
            return Ok(());
        };
        let group = group.finish().map_err(|why| fail(&why))?;
        let mut writer = match self.file.take() {
            Some(writer) => writer,
            None => self.begin_file()?,
        };
        writer.append(group).map_err(|why| fail(&why))?;
        let written = writer.written().map_err(|why| fail(&why))?;
        file.append(written)?;
        written.clear();
        self.file = Some(writer);
        Ok(())
    }

    fn begin_file(&self) -> Result<FileWriter<Vec<u8>>, StageError> {
        FileWriter::new(&self.files.output, Vec::new()).map_err(|why| fail(&why))
    }
}

fn fail(why: &impl ToString) -> StageError {
    Failure::new(format!("encoding Parquet: {}", why.to_string())).into()
}
