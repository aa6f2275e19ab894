//! Rows into text files: each record as it was.

use tonnage_pipeline::StageError;
use tonnage_stages::work::{FileBlocks, RowEncoder, RowEncoding};
use tonnage_tables::RowShape;

use crate::tables::compression::TextCodec;
use crate::tables::text::text_file::TextFile;

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
    /// How files are compressed, if they are.
    pub compression: Option<TextCodec>,
}

impl RowEncoding for TextFiles {
    fn begin<'a>(&self, file: FileBlocks<'a>) -> Result<Box<dyn RowEncoder + 'a>, StageError> {
        Ok(Box::new(Encoder {
            shape: self.shape,
            is_whole_record: self.is_whole_record,
            gathered: self.header.clone(),
            file: TextFile::begin(file, self.compression)?,
        }))
    }

    fn memory_bytes(&self) -> usize {
        let compressor = self
            .compression
            .map(|each| each.codec.compressor_bytes(each.level));
        2 * GATHERED_BYTES + compressor.unwrap_or(0)
    }
}

struct Encoder<'a> {
    shape: RowShape,
    is_whole_record: bool,
    gathered: Vec<u8>,
    file: TextFile<'a>,
}

impl RowEncoder for Encoder<'_> {
    fn push(&mut self, rows: &[&[u8]]) -> Result<(), StageError> {
        for row in rows {
            let record = match self.is_whole_record {
                true => self.shape.order_of(self.shape.key(row)),
                false => self.shape.behind_key(row),
            };
            self.gathered.extend_from_slice(record);
            if record.last() != Some(&b'\n') || self.is_whole_record {
                self.gathered.push(b'\n');
            }
            if self.gathered.len() >= GATHERED_BYTES {
                self.file.append(&self.gathered)?;
                self.gathered.clear();
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), StageError> {
        self.file.append(&self.gathered)?;
        self.file.end()
    }
}
