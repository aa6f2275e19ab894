//! Text files in splits, and whole records of them: lines, or records whose quotes may have newlines.

use std::fs::File;
use std::io::Read as _;
use std::sync::Arc;

use tonnage_formats::Pieces;
use tonnage_formats::text::RecordCutter;
use tonnage_pipeline::{Failure, StageError};
use tonnage_stages::extent::{Extent, FileRef, Piece};

use crate::error::{JobError, usage_error};
use crate::inputs::Input;

/// How files are divided into records.
#[derive(Clone, Debug)]
pub struct RecordFormat {
    /// The byte around fields that may have newlines.
    pub quote: Option<u8>,
    /// The record that each file begins with, which names the columns; empty if there is none.
    pub header: Vec<u8>,
}

/// Text files in splits.
#[derive(Debug)]
pub struct TextRecords {
    files: Vec<TextFile>,
    splits: Vec<TextSplit>,
    format: RecordFormat,
}

#[derive(Debug)]
struct TextFile {
    file: FileRef,
    /// How many bytes the files before it have.
    before: u64,
    split_bytes: u64,
    cutter: RecordCutter,
}

#[derive(Clone, Copy, Debug)]
struct TextSplit {
    file: usize,
    number: usize,
    offset: u64,
    bytes: usize,
}

/// Whole records of a file, end to end, without its header. The last record of a file may lack its
/// newline.
#[derive(Clone, Copy, Debug)]
pub struct FileRecords<'a> {
    /// The records.
    pub bytes: &'a [u8],
    /// Where they begin in the file.
    pub offset: u64,
    /// How many bytes the files before it have.
    pub before: u64,
    file: &'a FileRef,
    quote: Option<u8>,
}

impl<'a> FileRecords<'a> {
    /// Each record with its newline, and where it begins in the file.
    pub fn iter(self) -> impl Iterator<Item = (u64, &'a [u8])> {
        let mut offset = self.offset;
        Records::new(self.bytes, self.quote).map(move |record| {
            let begin = offset;
            offset += record.len() as u64;
            (begin, record)
        })
    }

    /// Why a record that begins at a byte of the file cannot be used.
    pub fn failure(&self, offset: u64, why: &str) -> StageError {
        let name = self.file.name();
        let what = format!("{}: the record at byte {offset} {why}", name.display());
        Failure::at(&name, offset, what).into()
    }
}

impl TextRecords {
    /// Files, in splits of `split_bytes`; a record has `most_bytes` at most.
    pub fn new(
        inputs: &[Input],
        format: &RecordFormat,
        split_bytes: usize,
        most_bytes: usize,
    ) -> Self {
        let (mut files, mut splits, mut before) = (Vec::new(), Vec::new(), 0);
        for (file, input) in inputs.iter().enumerate() {
            let count = input.bytes.div_ceil(split_bytes as u64) as usize;
            splits.extend((0..count).map(|number| {
                let offset = number as u64 * split_bytes as u64;
                TextSplit {
                    file,
                    number,
                    offset,
                    bytes: (input.bytes - offset).min(split_bytes as u64) as usize,
                }
            }));
            files.push(TextFile {
                file: input.file.clone(),
                before,
                split_bytes: split_bytes as u64,
                cutter: RecordCutter::new(count, format.quote, most_bytes),
            });
            before += input.bytes;
        }
        Self {
            files,
            splits,
            format: format.clone(),
        }
    }

    /// About `count` splits of `bytes`, spread evenly, each of which is read on its own.
    pub fn sample(
        inputs: &[Input],
        format: &RecordFormat,
        count: usize,
        bytes: usize,
    ) -> SampledRecords {
        let mut all = Self::new(inputs, format, bytes, usize::MAX);
        let every = all.splits.len().div_ceil(count).max(1);
        let splits = all.splits.into_iter();
        all.splits = splits.skip(every / 2).step_by(every).collect();
        SampledRecords { records: all }
    }

    /// What each split needs to be read.
    pub fn extents(&self) -> Vec<Arc<Extent>> {
        let extent = |(number, split): (usize, &TextSplit)| {
            Arc::new(Extent {
                number,
                offset: split.offset,
                in_order: false,
                pieces: vec![Piece {
                    file: self.files[split.file].file.clone(),
                    offset: split.offset,
                    len: split.bytes,
                }],
            })
        };
        self.splits.iter().enumerate().map(extent).collect()
    }

    /// Takes the bytes of a split, of which there is each once; gives the records that are whole
    /// now.
    ///
    /// # Errors
    /// A record that is too long, or what `take` refuses.
    pub fn whole_records(
        &self,
        split: usize,
        bytes: Pieces,
        mut take: impl FnMut(FileRecords<'_>) -> Result<(), StageError>,
    ) -> Result<(), StageError> {
        let split = self.splits[split];
        let file = &self.files[split.file];
        let found = file
            .cutter
            .records_of(split.number, bytes.from(split.offset));
        let found = found.map_err(|why| {
            let (begin, name) = (why.split as u64 * file.split_bytes, file.file.name());
            let what = format!(
                "{}: a record that begins behind byte {begin} has more than {} bytes, and with this \
                 memory that is too long; use more memory",
                name.display(),
                why.bytes
            );
            Failure::at(&name, begin, what)
        })?;
        for whole in found {
            let offset = whole.split as u64 * file.split_bytes + whole.at as u64;
            take(self.without_header(FileRecords {
                bytes: &whole.bytes,
                offset,
                before: file.before,
                file: &file.file,
                quote: self.format.quote,
            }))?;
        }
        Ok(())
    }

    fn without_header<'a>(&self, records: FileRecords<'a>) -> FileRecords<'a> {
        if records.offset > 0 || self.format.header.is_empty() {
            return records;
        }
        let header = Records::new(records.bytes, records.quote).next();
        let header_bytes = header.map_or(0, <[u8]>::len);
        FileRecords {
            bytes: &records.bytes[header_bytes..],
            offset: header_bytes as u64,
            ..records
        }
    }
}

/// Some splits that are read without what is around them, to see how values are spread.
///
/// A split may begin within quotes, so what cannot be read in it is to be passed over.
#[derive(Debug)]
pub struct SampledRecords {
    records: TextRecords,
}

impl SampledRecords {
    /// What each split needs to be read.
    pub fn extents(&self) -> Vec<Arc<Extent>> {
        self.records.extents()
    }

    /// The records that lie within a split.
    ///
    /// # Errors
    /// What `take` refuses.
    pub fn records_within(
        &self,
        split: usize,
        bytes: Pieces,
        take: impl FnOnce(FileRecords<'_>) -> Result<(), StageError>,
    ) -> Result<(), StageError> {
        let TextRecords {
            files,
            splits,
            format,
        } = &self.records;
        let split = splits[split];
        let bytes = bytes.from(split.offset);
        let begin = match split.offset {
            0 if format.header.is_empty() => 0,
            _ => memchr::memchr(b'\n', &bytes).map_or(bytes.len(), |at| at + 1),
        };
        // The end of what has no newline is in the next split.
        let end = memchr::memrchr(b'\n', &bytes).map_or(begin, |at| at + 1);
        take(FileRecords {
            bytes: &bytes[begin..end.max(begin)],
            offset: split.offset + begin as u64,
            before: files[split.file].before,
            file: &files[split.file].file,
            quote: format.quote,
        })
    }
}

/// Refuses files that do not begin with the header: with other columns, or in another order, their
/// records would get wrong names. Files without bytes have no records either.
///
/// # Errors
/// The first such file.
pub fn check_headers(inputs: &[Input], header: &[u8]) -> Result<(), JobError> {
    let header = header.trim_ascii_end();
    for input in inputs
        .iter()
        .filter(|input| input.bytes > 0 && !header.is_empty())
    {
        let path = input.file.name();
        let mut begin = Vec::with_capacity(header.len() + 1);
        let read = File::open(&path)
            .and_then(|file| file.take(header.len() as u64 + 1).read_to_end(&mut begin));
        read.map_err(|why| JobError::file("read", &path, &why))?;
        let is_same = begin.starts_with(header)
            && matches!(begin.get(header.len()), None | Some(b'\n' | b'\r'));
        if !is_same {
            return Err(usage_error(format!(
                "input {}: its first line is not {:?}, that of the first input; sort files with the \
                 same columns in the same order",
                path.display(),
                String::from_utf8_lossy(header)
            )));
        }
    }
    Ok(())
}

/// Records, each with its newline.
struct Records<'a> {
    rest: &'a [u8],
    quote: Option<u8>,
}

impl<'a> Records<'a> {
    fn new(bytes: &'a [u8], quote: Option<u8>) -> Self {
        Self {
            rest: bytes,
            // Without any quote in them records are found faster.
            quote: quote.filter(|&quote| memchr::memchr(quote, bytes).is_some()),
        }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let end = match self.quote {
            None => memchr::memchr(b'\n', self.rest),
            Some(quote) => {
                let mut is_quoted = false;
                memchr::memchr2_iter(b'\n', quote, self.rest).find(|&at| {
                    is_quoted ^= self.rest[at] == quote;
                    self.rest[at] == b'\n' && !is_quoted
                })
            }
        };
        let (record, rest) = self
            .rest
            .split_at(end.map_or(self.rest.len(), |end| end + 1));
        self.rest = rest;
        Some(record)
    }
}
