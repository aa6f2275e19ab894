//! Rows into Arrow IPC files.

use std::fmt;

use tonnage_formats::FormatError;
use tonnage_formats::arrow_ipc::{Codec, FileWriter};
use tonnage_pipeline::{Failure, StageError};
use tonnage_stages::work::{FileBlocks, RowEncoder, RowEncoding};

use super::output_columns::{OutputBatches, OutputColumns};

/// The most rows of a record batch: as many as PyArrow's Feather has.
const BATCH_ROWS: usize = 64 << 10;

/// Rows for which memory is taken before they come: of wide tables fewer become a batch.
const RESERVED_ROWS: usize = 8 << 10;

/// Encodes rows into Arrow IPC files.
#[derive(Clone)]
pub struct ArrowFiles {
    /// The columns.
    pub columns: OutputColumns,
    /// About how many bytes a record batch has at most.
    pub group_bytes: usize,
    /// How buffers are compressed, if they are.
    pub codec: Option<Codec>,
}

impl fmt::Debug for ArrowFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Arrow IPC files")
    }
}

impl RowEncoding for ArrowFiles {
    fn begin<'a>(&self, file: FileBlocks<'a>) -> Result<Box<dyn RowEncoder + 'a>, StageError> {
        Ok(Box::new(Encoder {
            batch: self.columns.reader(RESERVED_ROWS),
            most_batch_bytes: self.group_bytes,
            file: FileWriter::new(self.columns.schema(), self.codec, file)
                .map_err(|why| fail(&why))?,
        }))
    }

    /// A batch, and its message.
    fn memory_bytes(&self) -> usize {
        2 * self.group_bytes
    }
}

struct Encoder<'a> {
    batch: OutputBatches,
    most_batch_bytes: usize,
    file: FileWriter<FileBlocks<'a>>,
}

impl RowEncoder for Encoder<'_> {
    fn push(&mut self, rows: &[&[u8]]) -> Result<(), StageError> {
        self.batch.push(rows).map_err(|why| fail(&why))?;
        if self.batch.rows() >= BATCH_ROWS || self.batch.bytes() >= self.most_batch_bytes {
            self.end_batch()?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), StageError> {
        self.end_batch()?;
        match self.file.finish() {
            Ok(()) => self.file.inner_mut().end(),
            Err(why) => Err(self.stopped(&why)),
        }
    }
}

impl Encoder<'_> {
    fn end_batch(&mut self) -> Result<(), StageError> {
        let Some(batch) = self.batch.finish().map_err(|why| fail(&why))? else {
            return Ok(());
        };
        match self.file.append(&batch) {
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
    Failure::new(format!("encoding Arrow: {}", why.to_string())).into()
}
