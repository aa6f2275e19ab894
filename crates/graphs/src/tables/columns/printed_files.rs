//! Rows into files of text: CSV, JSON lines.

use std::fmt;
use std::sync::Arc;

use tonnage_formats::text_columns::RecordPrinter;
use tonnage_pipeline::{Failure, StageError};
use tonnage_stages::work::{FileBlocks, RowEncoder, RowEncoding};

use super::output_columns::{OutputBatches, OutputColumns};
use crate::tables::compression::TextCodec;
use crate::tables::text::text_file::TextFile;

/// Rows of a batch that are printed together.
const BATCH_ROWS: usize = 2048;
/// Bytes of a batch at most.
const BATCH_BYTES: usize = 1 << 20;
/// Rows for which memory is taken before they come.
const RESERVED_ROWS: usize = 256;

/// Prints rows into files.
#[derive(Clone)]
pub struct PrintedFiles {
    /// How records are printed.
    pub printer: Arc<dyn RecordPrinter>,
    /// The columns.
    pub columns: OutputColumns,
    /// About how many bytes may be in memory.
    pub group_bytes: usize,
    /// How files are compressed, if they are.
    pub compression: Option<TextCodec>,
}

impl fmt::Debug for PrintedFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("files of text")
    }
}

impl RowEncoding for PrintedFiles {
    fn begin<'a>(&self, file: FileBlocks<'a>) -> Result<Box<dyn RowEncoder + 'a>, StageError> {
        Ok(Box::new(Encoder {
            batch: self.columns.reader(RESERVED_ROWS),
            // Numbers are up to three times as long as text, and columns are in memory, too.
            most_batch_bytes: BATCH_BYTES.min(self.group_bytes / 4),
            text: self.printer.beginning(),
            printer: Arc::clone(&self.printer),
            file: TextFile::begin(file, self.compression)?,
        }))
    }

    fn memory_bytes(&self) -> usize {
        let compressor = self
            .compression
            .map(|each| each.codec.compressor_bytes(each.level));
        2 * self.group_bytes + compressor.unwrap_or(0)
    }
}

struct Encoder<'a> {
    batch: OutputBatches,
    most_batch_bytes: usize,
    text: Vec<u8>,
    printer: Arc<dyn RecordPrinter>,
    file: TextFile<'a>,
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
        self.file.end()
    }
}

impl Encoder<'_> {
    fn end_batch(&mut self) -> Result<(), StageError> {
        if let Some(batch) = self.batch.finish().map_err(|why| fail(&why))? {
            let printed = self.printer.print(&batch, &mut self.text);
            printed.map_err(|why| Failure::bad_input(why.to_string()))?;
        }
        self.file.append(&self.text)?;
        self.text.clear();
        Ok(())
    }
}

fn fail(why: &impl ToString) -> StageError {
    Failure::new(format!("writing text: {}", why.to_string())).into()
}
