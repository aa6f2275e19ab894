//! Files of text, compressed or not.

use std::io::{self, Write as _};

use tonnage_formats::FormatError;
use tonnage_formats::compression::Compressor;
use tonnage_pipeline::{Failure, StageError};
use tonnage_stages::work::FileBlocks;

use crate::tables::compression::TextCodec;

/// A file that text is appended to.
pub enum TextFile<'a> {
    /// As it is.
    Plain(FileBlocks<'a>),
    /// Compressed.
    Compressed(Box<Compressor<FileBlocks<'a>>>),
}

impl<'a> TextFile<'a> {
    /// Begins a file.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn begin(file: FileBlocks<'a>, compression: Option<TextCodec>) -> Result<Self, StageError> {
        let Some(TextCodec { codec, level }) = compression else {
            return Ok(Self::Plain(file));
        };
        let compressor = Compressor::new(codec, level, file);
        let compressor = compressor.map_err(|why| Failure::new(format!("compressing: {why}")))?;
        Ok(Self::Compressed(Box::new(compressor)))
    }

    /// Appends text.
    ///
    /// # Errors
    /// When the run is stopped.
    pub fn append(&mut self, text: &[u8]) -> Result<(), StageError> {
        match self {
            Self::Plain(file) => file.append(text),
            Self::Compressed(file) => {
                let written = file.write_all(text);
                written.map_err(|why| stopped(file, &why))
            }
        }
    }

    /// Ends the file.
    ///
    /// # Errors
    /// When the run is stopped.
    pub fn end(&mut self) -> Result<(), StageError> {
        match self {
            Self::Plain(file) => file.end(),
            Self::Compressed(file) => {
                let finished = file.finish();
                finished.map_err(|why| stopped(file, &why))?;
                file.inner_mut().end()
            }
        }
    }
}

/// Why a file could not be written.
fn stopped(file: &mut Compressor<FileBlocks<'_>>, why: &io::Error) -> StageError {
    let stopped = file.inner_mut().stopped();
    stopped.unwrap_or_else(|| Failure::new(format!("compressing: {why}")).into())
}

/// A file that has only this text.
///
/// # Errors
/// When there is no memory.
pub fn file_of(text: &[u8], compression: Option<TextCodec>) -> Result<Vec<u8>, FormatError> {
    let Some(TextCodec { codec, level }) = compression else {
        return Ok(text.to_vec());
    };
    let mut compressor = Compressor::new(codec, level, Vec::new())?;
    compressor.write_all(text)?;
    compressor.finish()?;
    Ok(std::mem::take(compressor.inner_mut()))
}
