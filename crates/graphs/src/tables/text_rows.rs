//! Rows of text files: each record as it is, behind its key.

use std::fs::File;
use std::io::Read as _;
use std::sync::Arc;

use tonnage_formats::Pieces;
use tonnage_formats::text::{RecordCutter, Scratch, TextKeys, WholeRecords};
use tonnage_pipeline::{Failure, StageError};
use tonnage_stages::extent::{Extent, FileRef, Piece};
use tonnage_stages::work::{RowSource, TakeRows};
use tonnage_tables::{RowBuilder, RowShape};

use crate::error::{JobError, usage_error};
use crate::inputs::Input;

/// Bytes of rows that are given at once, so that they stay in the cache.
const STRIDE_BYTES: usize = 64 << 10;

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

/// Text files in splits.
#[derive(Debug)]
pub struct TextRows {
    files: Vec<TextFile>,
    splits: Vec<TextSplit>,
    keys: TextKeys,
    shape: RowShape,
    quote: Option<u8>,
    header: Vec<u8>,
}

#[derive(Debug)]
struct TextFile {
    name: String,
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

/// How text becomes rows.
#[derive(Clone, Debug)]
pub struct TextFormat {
    /// Makes the keys.
    pub keys: TextKeys,
    /// The byte around fields that may have newlines.
    pub quote: Option<u8>,
    /// The record that each file begins with, which names the columns; empty if there is none.
    pub header: Vec<u8>,
    /// Whether rows with equal keys keep their order.
    pub is_stable: bool,
}

impl TextRows {
    /// Rows of files, in splits of `split_bytes`; a record has `most_bytes` at most.
    pub fn new(
        inputs: &[Input],
        format: &TextFormat,
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
                name: input.file.name().display().to_string(),
                file: input.file.clone(),
                before,
                split_bytes: split_bytes as u64,
                cutter: RecordCutter::new(count, format.quote, most_bytes),
            });
            before += input.bytes;
        }
        let key_bytes = format.keys.key_bytes();
        Self {
            files,
            splits,
            keys: format.keys.clone(),
            // Records that are equal as a whole have no order.
            shape: RowShape::new(
                key_bytes,
                format.is_stable && !format.keys.is_whole_record(),
            ),
            quote: format.quote,
            header: format.header.clone(),
        }
    }

    /// About `count` splits of `bytes`, spread evenly, that are read on their own.
    pub fn sample(inputs: &[Input], format: &TextFormat, count: usize, bytes: usize) -> TextSample {
        let mut rows = Self::new(inputs, format, bytes, usize::MAX);
        let every = rows.splits.len().div_ceil(count).max(1);
        rows.splits = rows
            .splits
            .into_iter()
            .skip(every / 2)
            .step_by(every)
            .collect();
        TextSample { rows }
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

    /// The rows of some records of a file.
    fn rows_of(
        &self,
        file: &TextFile,
        whole: &WholeRecords,
        take: TakeRows<'_>,
    ) -> Result<(), StageError> {
        let begin = whole.split as u64 * file.split_bytes + whole.at as u64;
        let mut rows = RowBuilder::new(self.shape);
        let (mut scratch, mut at) = (Scratch::default(), 0);
        for record in Records::new(&whole.bytes, self.quote) {
            let offset = begin + at as u64;
            at += record.len();
            if !self.header.is_empty() && offset == 0 {
                continue;
            }
            let content = record.strip_suffix(b"\n").unwrap_or(record);
            let content = content.strip_suffix(b"\r").unwrap_or(content);
            let number = file.before + offset;
            let pushed = match self.keys.is_whole_record() {
                true => rows.push_whole(record.strip_suffix(b"\n").unwrap_or(record), number),
                false => rows.push(number, record, |key| {
                    self.keys.push(content, &mut scratch, key)
                }),
            };
            pushed.map_err(|why| {
                let what = format!(
                    "{}: the record at byte {offset} has {:?} in field {} of the key, which is no \
                     number; sort it as bytes, or correct it",
                    file.name,
                    why.value,
                    why.number + 1
                );
                Failure::at(&file.file.name(), offset, what)
            })?;
            if rows.bytes() >= STRIDE_BYTES {
                take(rows.rows())?;
                rows.clear();
            }
        }
        take(rows.rows())
    }
}

/// Some records of splits that are read without what is around them, to see how keys are spread.
///
/// A split may begin within quotes, so what cannot be read is passed over.
#[derive(Debug)]
pub struct TextSample {
    /// The splits, and how their records are read.
    pub rows: TextRows,
}

impl RowSource for TextSample {
    fn shape(&self) -> RowShape {
        self.rows.shape
    }

    fn memory_bytes(&self) -> usize {
        self.rows.memory_bytes()
    }

    fn rows(&self, split: usize, bytes: Pieces, take: TakeRows<'_>) -> Result<(), StageError> {
        let bytes = bytes.from(self.rows.splits[split].offset);
        let begin = match self.rows.splits[split].offset {
            0 if self.rows.header.is_empty() => 0,
            _ => memchr::memchr(b'\n', &bytes).map_or(bytes.len(), |at| at + 1),
        };
        let (mut rows, mut scratch) = (RowBuilder::new(self.rows.shape), Scratch::default());
        for record in Records::new(&bytes[begin..], self.rows.quote) {
            let Some(content) = record.strip_suffix(b"\n") else {
                continue; // its end is in the next split
            };
            let content = content.strip_suffix(b"\r").unwrap_or(content);
            let keys = &self.rows.keys;
            let _passed_over = match keys.is_whole_record() {
                true => rows.push_whole(content, 0),
                false => rows.push(0, record, |key| keys.push(content, &mut scratch, key)),
            };
        }
        take(rows.rows())
    }
}

impl RowSource for TextRows {
    fn shape(&self) -> RowShape {
        self.shape
    }

    fn memory_bytes(&self) -> usize {
        4 * STRIDE_BYTES
    }

    fn rows(&self, split: usize, bytes: Pieces, take: TakeRows<'_>) -> Result<(), StageError> {
        let TextSplit {
            file,
            number,
            offset,
            ..
        } = self.splits[split];
        let file = &self.files[file];
        let found = file.cutter.records_of(number, bytes.from(offset)).map_err(|why| {
            let begin = why.split as u64 * file.split_bytes;
            let what = format!(
                "{}: a record that begins behind byte {begin} has more than {} bytes, and with this \
                 memory that is too long; use more memory",
                file.name, why.bytes
            );
            Failure::at(&file.file.name(), begin, what)
        })?;
        found
            .iter()
            .try_for_each(|whole| self.rows_of(file, whole, take))
    }
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
