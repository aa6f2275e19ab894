//! Whole records of a text file: where each begins, and why one cannot be used.

use tonnage_formats::text::Dialect;
use tonnage_pipeline::{Failure, StageError};

use crate::tables::text::inputs::TextInput;

/// What makes one record of several, or of a part of one.
pub const MISQUOTED: &str =
    "a quote within a value; put quotes around that value, and double those in it";

/// Whole records of a file, end to end, without its header. The last record of a file may lack its
/// newline.
#[derive(Clone, Copy, Debug)]
pub struct FileRecords<'a> {
    /// The records.
    pub bytes: &'a [u8],
    /// Where they begin in the file, or, if it is compressed, in its text.
    pub offset: u64,
    /// The number of the file's first byte among all files, about.
    pub before: u64,
    /// The number of the file among those that are read.
    pub file: usize,
    /// The file.
    pub input: &'a TextInput,
    /// How fields are written, if these may have newlines within quotes.
    pub quoting: Option<Dialect>,
}

/// A record, with its newline.
#[derive(Clone, Copy, Debug)]
pub struct TextRecord<'a> {
    /// Where it begins in the file, or, if that is compressed, in its text.
    pub offset: u64,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Whether there are newlines in it.
    has_newlines: bool,
}

impl<'a> FileRecords<'a> {
    /// Each record.
    pub fn iter(self) -> impl Iterator<Item = TextRecord<'a>> {
        Records {
            rest: self.bytes,
            // Without any quote in them records are found faster.
            quote: self
                .quoting
                .and_then(|dialect| dialect.quote)
                .filter(|&quote| memchr::memchr(quote, self.bytes).is_some()),
            offset: self.offset,
        }
    }

    /// Refuses records that are joined by a quote which is not around a field: they may be several.
    ///
    /// # Errors
    /// Such a record.
    pub fn check_quotes(&self, record: TextRecord<'_>) -> Result<(), StageError> {
        let Some(dialect) = self.quoting.filter(|_| record.has_newlines) else {
            return Ok(());
        };
        let content = record.bytes.strip_suffix(b"\n").unwrap_or(record.bytes);
        let content = content.strip_suffix(b"\r").unwrap_or(content);
        match dialect.is_misquoted(content) {
            true => Err(self.refusal(record.offset, &format!("has {MISQUOTED}"))),
            false => Ok(()),
        }
    }

    /// Why a record that begins at a byte of the file cannot be used.
    pub fn refusal(&self, offset: u64, why: &str) -> StageError {
        Failure::bad_input(self.input.record_refusal(offset, why)).into()
    }
}

/// Finds records.
struct Records<'a> {
    rest: &'a [u8],
    quote: Option<u8>,
    offset: u64,
}

impl<'a> Iterator for Records<'a> {
    type Item = TextRecord<'a>;

    fn next(&mut self) -> Option<TextRecord<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let mut has_newlines = false;
        let end = match self.quote {
            None => memchr::memchr(b'\n', self.rest),
            Some(quote) => {
                let mut is_quoted = false;
                memchr::memchr2_iter(b'\n', quote, self.rest).find(|&at| {
                    let is_newline = self.rest[at] == b'\n';
                    is_quoted ^= !is_newline;
                    has_newlines |= is_newline && is_quoted;
                    is_newline && !is_quoted
                })
            }
        };
        let (bytes, rest) = self
            .rest
            .split_at(end.map_or(self.rest.len(), |end| end + 1));
        let offset = self.offset;
        self.offset += bytes.len() as u64;
        self.rest = rest;
        Some(TextRecord {
            offset,
            bytes,
            has_newlines,
        })
    }
}
