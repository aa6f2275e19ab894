//! Rows into Arrow IPC files.

use std::fmt;
use std::sync::Arc;

use tonnage_formats::arrow_ipc::FileWriter;
use tonnage_pipeline::{Failure, StageError};
use tonnage_stages::work::{FileBlocks, RowEncoder, RowEncoding};
use tonnage_tables::{RowLayout, RowReader};

/// The most rows of a record batch: as many as PyArrow's Feather has.
const BATCH_ROWS: usize = 64 << 10;

/// Rows for which memory is taken before they come: of wide tables fewer become a batch.
const RESERVED_ROWS: usize = 8 << 10;

/// Encodes rows into Arrow IPC files.
#[derive(Clone)]
pub struct ArrowFiles {
    /// The rows.
    pub layout: Arc<RowLayout>,
    /// About how many bytes a record batch has at most.
    pub group_bytes: usize,
}

impl fmt::Debug for ArrowFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Arrow IPC files")
    }
}

impl RowEncoding for ArrowFiles {
    fn encoder(&self) -> Box<dyn RowEncoder> {
        Box::new(Encoder {
            files: self.clone(),
            reader: RowReader::new(&self.layout, RESERVED_ROWS),
            batch_bytes: 0,
            file: None,
        })
    }

    /// A batch, and its message.
    fn memory_bytes(&self) -> usize {
        2 * self.group_bytes
    }
}

struct Encoder {
    files: ArrowFiles,
    reader: RowReader,
    batch_bytes: usize,
    file: Option<FileWriter<Vec<u8>>>,
}

impl RowEncoder for Encoder {
    fn push(&mut self, row: &[u8], file: &mut FileBlocks<'_>) -> Result<(), StageError> {
        self.reader.push(row).map_err(|why| fail(&why))?;
        self.batch_bytes += row.len();
        if self.reader.rows() == BATCH_ROWS || self.batch_bytes >= self.files.group_bytes {
            self.end_batch(file)?;
        }
        Ok(())
    }

    fn finish(&mut self, file: &mut FileBlocks<'_>) -> Result<(), StageError> {
        self.end_batch(file)?;
        let writer = self.take_file()?;
        file.append(&writer.finish().map_err(|why| fail(&why))?)
    }
}

impl Encoder {
    fn end_batch(&mut self, file: &mut FileBlocks<'_>) -> Result<(), StageError> {
        self.batch_bytes = 0;
        if self.reader.rows() == 0 {
            return Ok(());
        }
        let batch = self.reader.finish().map_err(|why| fail(&why))?;
        let mut writer = self.take_file()?;
        writer.append(&batch).map_err(|why| fail(&why))?;
        let written = writer.written();
        file.append(written)?;
        written.clear();
        self.file = Some(writer);
        Ok(())
    }

    /// The file that was begun, or a new one.
    fn take_file(&mut self) -> Result<FileWriter<Vec<u8>>, StageError> {
        match self.file.take() {
            Some(file) => Ok(file),
            None => {
                FileWriter::new(self.files.layout.schema(), Vec::new()).map_err(|why| fail(&why))
            }
        }
    }
}

fn fail(why: &impl ToString) -> StageError {
    Failure::new(format!("encoding Arrow: {}", why.to_string())).into()
}
