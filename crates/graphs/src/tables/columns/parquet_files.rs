//! Rows into Parquet files.

use std::fmt;
use std::sync::Arc;

use tonnage_formats::FormatError;
use tonnage_formats::parquet::{FileWriter, Output, RowGroupEncoder};
use tonnage_pipeline::{Failure, StageError};
use tonnage_stages::work::{FileBlocks, RowEncoder, RowEncoding};

use super::output_columns::{OutputBatches, OutputColumns};

/// Rows of a batch that are encoded together.
const BATCH_ROWS: usize = 8192;
/// Bytes of a batch at most.
const BATCH_BYTES: usize = 4 << 20;

/// Encodes rows into Parquet files.
#[derive(Clone)]
pub struct ParquetFiles {
    /// How files are written.
    pub output: Arc<Output>,
    /// The columns.
    pub columns: OutputColumns,
    /// About how many bytes a row group has.
    pub group_bytes: usize,
}

impl fmt::Debug for ParquetFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Parquet files")
    }
}

impl RowEncoding for ParquetFiles {
    fn begin<'a>(&self, file: FileBlocks<'a>) -> Result<Box<dyn RowEncoder + 'a>, StageError> {
        Ok(Box::new(Encoder {
            batch: self.columns.reader(BATCH_ROWS),
            group: RowGroupEncoder::new(&self.output),
            group_bytes: 0,
            most_group_bytes: self.group_bytes,
            file: FileWriter::new(&self.output, file).map_err(|why| fail(&why))?,
            output: Arc::clone(&self.output),
        }))
    }

    fn memory_bytes(&self) -> usize {
        2 * self.group_bytes + self.output.codec_bytes()
    }
}

struct Encoder<'a> {
    output: Arc<Output>,
    batch: OutputBatches,
    group: RowGroupEncoder,
    group_bytes: usize,
    most_group_bytes: usize,
    file: FileWriter<FileBlocks<'a>>,
}

impl RowEncoder for Encoder<'_> {
    fn push(&mut self, rows: &[&[u8]]) -> Result<(), StageError> {
        self.batch.push(rows).map_err(|why| fail(&why))?;
        if self.batch.rows() >= BATCH_ROWS
            || self.batch.bytes() >= BATCH_BYTES.min(self.most_group_bytes / 2)
        {
            self.end_batch()?;
            if self.group_bytes >= self.most_group_bytes {
                self.end_group()?;
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), StageError> {
        self.end_batch()?;
        self.end_group()?;
        match self.file.finish() {
            Ok(()) => self.file.inner_mut().end(),
            Err(why) => Err(self.stopped(&why)),
        }
    }
}

impl Encoder<'_> {
    fn end_batch(&mut self) -> Result<(), StageError> {
        let bytes = self.batch.bytes();
        if let Some(batch) = self.batch.finish().map_err(|why| fail(&why))? {
            let written = self.group.write(&batch);
            written.map_err(|why| Failure::bad_input(format!("output: {why}")))?;
            self.group_bytes += bytes;
        }
        Ok(())
    }

    fn end_group(&mut self) -> Result<(), StageError> {
        if std::mem::take(&mut self.group_bytes) == 0 {
            return Ok(());
        }
        let next = RowGroupEncoder::new(&self.output);
        let group = std::mem::replace(&mut self.group, next);
        let group = group.finish().map_err(|why| fail(&why))?;
        match self.file.append(group) {
            Ok(()) => Ok(()),
            Err(why) => Err(self.stopped(&why)),
        }
    }

    /// Why the file could not be written.
    fn stopped(&mut self, why: &FormatError) -> StageError {
        let stopped = self.file.inner_mut().stopped();
        stopped.unwrap_or_else(|| fail(why))
    }
}

fn fail(why: &impl ToString) -> StageError {
    Failure::new(format!("encoding Parquet: {}", why.to_string())).into()
}
