//! A file that record batches are appended to.
//!
//! It is not compressed, so that programs can map it into memory. A column's dictionary grows from
//! batch to batch, and what is new is written as a delta.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_ipc::writer::{DictionaryHandling, IpcWriteOptions};
use arrow_schema::SchemaRef;

use super::dictionaries::Dictionaries;
use crate::error::FormatError;

/// A file that record batches are appended to.
pub struct FileWriter<W: Write> {
    writer: arrow_ipc::writer::FileWriter<W>,
    dictionaries: Dictionaries,
}

impl<W: Write> FileWriter<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn new(schema: &SchemaRef, to: W) -> Result<Self, FormatError> {
        let options =
            IpcWriteOptions::default().with_dictionary_handling(DictionaryHandling::Delta);
        let writer = arrow_ipc::writer::FileWriter::try_new_with_options(to, schema, options)?;
        Ok(Self {
            writer,
            dictionaries: Dictionaries::default(),
        })
    }

    /// Appends a batch.
    ///
    /// # Errors
    /// When it cannot be written, or its values are too many for a dictionary.
    pub fn append(&mut self, batch: &RecordBatch) -> Result<(), FormatError> {
        Ok(self.writer.write(&self.dictionaries.unify(batch)?)?)
    }

    /// What was written to, with all that was written so far.
    pub fn written(&mut self) -> &mut W {
        self.writer.get_mut()
    }

    /// Writes the footer; gives back what was written to.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(self) -> Result<W, FormatError> {
        Ok(self.writer.into_inner()?)
    }
}
