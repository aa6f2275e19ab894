//! A file that record batches are appended to.
//!
//! It is not compressed by default, so that programs can map it into memory. Batches have places in
//! dictionaries that grow with them; the dictionaries are written last, which the format allows
//! where a footer tells where they are. So they are whole, and no reader has to know deltas.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_ipc::CompressionType;
use arrow_ipc::writer::IpcWriteOptions;
use arrow_schema::SchemaRef;

use super::codec::Codec;
use super::dictionaries::Dictionaries;
use crate::error::FormatError;

/// A file that record batches are appended to.
pub struct FileWriter<W: Write> {
    writer: arrow_ipc::writer::FileWriter<W>,
    dictionaries: Dictionaries,
}

impl<W: Write> FileWriter<W> {
    /// Begins a file, whose buffers are compressed if there is a codec.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn new(schema: &SchemaRef, codec: Option<Codec>, to: W) -> Result<Self, FormatError> {
        let codec = codec.map(|codec| match codec {
            Codec::Lz4 => CompressionType::LZ4_FRAME,
            Codec::Zstd => CompressionType::ZSTD,
        });
        let options = IpcWriteOptions::default().try_with_compression(codec)?;
        Ok(Self {
            writer: arrow_ipc::writer::FileWriter::try_new_with_options(to, schema, options)?,
            dictionaries: Dictionaries::default(),
        })
    }

    /// Appends a batch.
    ///
    /// # Errors
    /// When it cannot be written, or its values are too many for a dictionary.
    pub fn append(&mut self, batch: &RecordBatch) -> Result<(), FormatError> {
        // In a message, a column with a dictionary is as a column of its places.
        Ok(self.writer.write(&self.dictionaries.places_of(batch)?)?)
    }

    /// What is written to.
    pub fn inner_mut(&mut self) -> &mut W {
        self.writer.get_mut()
    }

    /// Writes the dictionaries and the footer.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(&mut self) -> Result<(), FormatError> {
        if let Some(batch) = self.dictionaries.batch(self.writer.schema())? {
            self.writer.write(&batch)?;
        }
        Ok(self.writer.finish()?)
    }
}
