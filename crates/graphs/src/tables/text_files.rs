//! Rows into text files: each record as it was.

use tonnage_pipeline::StageError;
use tonnage_stages::work::{FileBlocks, RowEncoder, RowEncoding};
use tonnage_tables::RowShape;

/// Bytes that are gathered before they are copied to a block.
const GATHERED_BYTES: usize = 32 << 10;

/// Writes records.
#[derive(Clone, Debug)]
pub struct TextFiles {
    /// Where the keys of rows are.
    pub shape: RowShape,
    /// Whether a row's key is its record.
    pub is_whole_record: bool,
    /// What each file begins with.
    pub header: Vec<u8>,
}

impl RowEncoding for TextFiles {
    fn encoder(&self) -> Box<dyn RowEncoder> {
        Box::new(Encoder {
            files: self.clone(),
            gathered: self.header.clone(),
        })
    }

    fn memory_bytes(&self) -> usize {
        2 * GATHERED_BYTES
    }
}

struct Encoder {
    files: TextFiles,
    gathered: Vec<u8>,
}

impl RowEncoder for Encoder {
    fn push(&mut self, row: &[u8], file: &mut FileBlocks<'_>) -> Result<(), StageError> {
        let shape = self.files.shape;
        let record = match self.files.is_whole_record {
            true => shape.order_of(shape.key(row)),
            false => shape.behind_key(row),
        };
        self.gathered.extend_from_slice(record);
        if record.last() != Some(&b'\n') || self.files.is_whole_record {
            self.gathered.push(b'\n');
        }
        if self.gathered.len() >= GATHERED_BYTES {
            file.append(&self.gathered)?;
            self.gathered.clear();
        }
        Ok(())
    }

    fn finish(&mut self, file: &mut FileBlocks<'_>) -> Result<(), StageError> {
        file.append(&self.gathered)?;
        self.gathered.clone_from(&self.files.header);
        Ok(())
    }
}
