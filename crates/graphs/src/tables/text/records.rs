//! Text files in splits, and whole records of them: lines, or records whose quotes may have newlines.

use std::sync::Arc;

use tonnage_formats::Pieces;
use tonnage_formats::text::{CutError, Dialect, RecordCutter};
use tonnage_pipeline::{Failure, StageError};
use tonnage_stages::extent::{Extent, Piece};

use crate::inputs::{Input, first_of_file};
use crate::phases::workers;
use crate::tables::input::table_file::TableFile;
use crate::tables::text::file_records::{FileRecords, MISQUOTED};
use crate::tables::text::inputs::{Inflation, TextInput, TextInputs};
use crate::tables::text::stream::{CompressedFile, PIECE_BYTES, RecordStream, StreamError};

/// The window of compressed files that is always allowed, if the splits are as long.
const WINDOW_BYTES: usize = 8 << 20;
/// Numbers of records in a compressed file: how much text it has is not known before.
const COMPRESSED_SPAN: u64 = 1 << 44;
/// The longest record of a sample of a compressed file.
const LONGEST_SAMPLED: usize = 1 << 20;

/// Why a long record is refused, whatever memory there is.
const TOO_LONG: &str = "that is too long; check its quotes and line ends, or leave it out";

/// How files are divided into records.
#[derive(Clone, Debug)]
pub struct RecordFormat {
    /// How fields are written, if these may have newlines within quotes.
    pub quoting: Option<Dialect>,
    /// The record that each file begins with, which names the columns; empty if there is none.
    pub header: Vec<u8>,
}

impl RecordFormat {
    /// The byte around fields that may have newlines.
    fn quote(&self) -> Option<u8> {
        self.quoting.and_then(|dialect| dialect.quote)
    }
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
    number: usize,
    input: TextInput,
    /// The number of its first byte among all files.
    before: u64,
    /// Where the part of it begins that is read.
    begin: u64,
    split_bytes: u64,
    content: Content,
}

/// What is in a file.
#[derive(Debug)]
enum Content {
    Text(RecordCutter),
    Compressed(CompressedFile),
}

#[derive(Clone, Copy, Debug)]
struct TextSplit {
    file: usize,
    number: usize,
    offset: u64,
    bytes: usize,
}

impl TextRecords {
    /// Files, or parts of files in whole records, in splits of `split_bytes`; a record has
    /// `most_bytes` at most. Compressed files take
    /// turns, one for each worker and the others at the same time.
    pub fn new(
        inputs: &[TextInput],
        format: &RecordFormat,
        split_bytes: usize,
        most_bytes: usize,
    ) -> Self {
        let window_bytes = longest_window(inputs, split_bytes);
        let (mut files, mut before) = (Vec::new(), 0);
        let (mut of_text, mut of_compressed) = (Vec::new(), Vec::new());
        for (file, text) in inputs.iter().enumerate() {
            let TextInput {
                file: TableFile { input, .. },
                compression,
            } = text;
            let splits = splits_of(file, input, split_bytes);
            let (span, content) = match *compression {
                None => {
                    let cutter = RecordCutter::new(splits.len(), format.quote(), most_bytes);
                    of_text.extend(splits);
                    (input.bytes, Content::Text(cutter))
                }
                Some(mut compression) => {
                    compression.window_bytes = window_bytes;
                    let file =
                        CompressedFile::new(compression, splits.len(), format.quote(), most_bytes);
                    of_compressed.push(splits);
                    (COMPRESSED_SPAN, Content::Compressed(file))
                }
            };
            files.push(TextFile {
                number: file,
                input: text.clone(),
                before: input.file_number.map_or(before, first_of_file),
                begin: input.offset,
                split_bytes: split_bytes as u64,
                content,
            });
            before += span;
        }
        Self {
            files,
            splits: in_turns(of_text, of_compressed, workers()),
            format: format.clone(),
        }
    }

    /// About `count` splits of `bytes`, spread evenly, each of which is read on its own; of
    /// compressed files there are only beginnings.
    pub fn sample(
        inputs: &TextInputs,
        format: &RecordFormat,
        count: usize,
        bytes: usize,
    ) -> SampledRecords {
        let mut all = Self::new(inputs, format, bytes, usize::MAX);
        let splits = std::mem::take(&mut all.splits).into_iter();
        let (compressed, text): (Vec<_>, Vec<_>) =
            splits.partition(|split| inputs[split.file].compression.is_some());
        let beginnings = compressed
            .into_iter()
            .filter(|split| split.number == 0)
            .collect();
        all.splits = spread(text, count);
        all.splits.extend(spread(beginnings, count / 2));
        SampledRecords {
            records: all,
            inputs: inputs.to_vec(),
            inflation: inputs.inflation(),
        }
    }

    /// Memory of a worker, if any file is compressed.
    pub fn memory_bytes(inputs: &[TextInput], split_bytes: usize) -> usize {
        let window_bytes = longest_window(inputs, split_bytes);
        let compressions = inputs.iter().filter_map(|input| input.compression);
        let stream =
            compressions.map(|each| each.codec.memory_bytes(window_bytes) + 2 * PIECE_BYTES);
        stream.max().unwrap_or(0)
    }

    /// What each split needs to be read.
    pub fn extents(&self) -> Vec<Arc<Extent>> {
        let extent = |(number, split): (usize, &TextSplit)| {
            Arc::new(Extent {
                number,
                offset: split.offset,
                in_order: false,
                pieces: vec![Piece {
                    file: self.files[split.file].input.file.input.file.clone(),
                    offset: split.offset,
                    len: split.bytes,
                    crc: None,
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
        let TextSplit {
            file,
            number,
            offset,
            ..
        } = self.splits[split];
        let file = &self.files[file];
        let bytes = bytes.from(offset);
        match &file.content {
            Content::Text(cutter) => {
                let found = cutter.records_of(number, bytes);
                let found = found.map_err(|why| file.cut_failure(why))?;
                for whole in found {
                    let offset = file.split_begin(whole.split) + whole.at as u64;
                    take(self.without_header(file.records(&whole.bytes, offset, &self.format)))?;
                }
                Ok(())
            }
            Content::Compressed(stream) => {
                let read = stream.records_of(number, bytes, |records, offset| {
                    take(self.without_header(file.records(records, offset, &self.format)))
                });
                read.map_err(|why| file.stream_failure(why))
            }
        }
    }

    fn without_header<'a>(&self, records: FileRecords<'a>) -> FileRecords<'a> {
        if records.offset > 0 || self.format.header.is_empty() {
            return records;
        }
        let header_bytes = records.iter().next().map_or(0, |header| header.bytes.len());
        FileRecords {
            bytes: &records.bytes[header_bytes..],
            offset: header_bytes as u64,
            ..records
        }
    }
}

impl TextFile {
    fn records<'a>(
        &'a self,
        bytes: &'a [u8],
        offset: u64,
        format: &RecordFormat,
    ) -> FileRecords<'a> {
        FileRecords {
            bytes,
            offset,
            before: self.before,
            file: self.number,
            input: &self.input,
            quoting: format.quoting,
        }
    }

    /// Where a split begins in the file.
    fn split_begin(&self, split: usize) -> u64 {
        self.begin + split as u64 * self.split_bytes
    }

    fn cut_failure(&self, why: CutError) -> StageError {
        match why {
            CutError::TooLong { split, bytes } => {
                let begin = self.split_begin(split);
                self.refusal(&format!(
                    "a record that begins behind byte {begin} has more than {bytes} bytes, and {TOO_LONG}"
                ))
            }
            CutError::Unclosed { split, at } => self.unclosed(self.split_begin(split) + at as u64),
        }
    }

    fn unclosed(&self, offset: u64) -> StageError {
        let why = format!("has a quote that is not closed, or {MISQUOTED}");
        Failure::bad_input(self.input.record_refusal(offset, &why)).into()
    }

    fn refusal(&self, why: &str) -> StageError {
        let name = self.input.file.name();
        Failure::bad_input(format!("input {name}: {why}")).into()
    }

    fn stream_failure(&self, why: StreamError<StageError>) -> StageError {
        match why {
            StreamError::Refused(why) => why,
            StreamError::Unclosed { offset } => self.unclosed(offset),
            StreamError::Damaged(why) => self.refusal(&why.to_string()),
            StreamError::TooLong { offset } => self.refusal(&format!(
                "the record at byte {offset} of its text has more than a MiB, and {TOO_LONG}"
            )),
        }
    }
}

/// Some splits that are read without what is around them, to see how values are spread.
///
/// A split may begin within quotes, so what cannot be read in it is to be passed over.
#[derive(Debug)]
pub struct SampledRecords {
    records: TextRecords,
    inputs: Vec<TextInput>,
    inflation: Arc<Inflation>,
}

impl SampledRecords {
    /// What each split needs to be read.
    pub fn extents(&self) -> Vec<Arc<Extent>> {
        self.records.extents()
    }

    /// The records that lie within a split.
    ///
    /// # Errors
    /// What `take` refuses, or a stream that is damaged.
    pub fn records_within(
        &self,
        split: usize,
        bytes: Pieces,
        mut take: impl FnMut(FileRecords<'_>) -> Result<(), StageError>,
    ) -> Result<(), StageError> {
        let TextRecords {
            files,
            splits,
            format,
        } = &self.records;
        let split = splits[split];
        let file = &files[split.file];
        let bytes = bytes.from(split.offset);
        if let Some(compression) = self.inputs[split.file].compression {
            let mut stream = RecordStream::new(compression, format.quote(), LONGEST_SAMPLED);
            let read = stream.push(bytes, &mut |records, offset| {
                take(
                    self.records
                        .without_header(file.records(records, offset, format)),
                )
            });
            self.inflation.add(split.bytes as u64, stream.text_bytes());
            return match read {
                // Pass one reports it.
                Err(StreamError::TooLong { .. }) => Ok(()),
                read => read.map_err(|why| file.stream_failure(why)),
            };
        }
        let begin = match split.offset {
            0 if format.header.is_empty() => 0,
            _ => memchr::memchr(b'\n', &bytes).map_or(bytes.len(), |at| at + 1),
        };
        // The end of what has no newline is in the next split.
        let end = memchr::memrchr(b'\n', &bytes).map_or(begin, |at| at + 1);
        let within = &bytes[begin..end.max(begin)];
        take(file.records(within, split.offset + begin as u64, format))
    }
}

fn splits_of(file: usize, input: &Input, split_bytes: usize) -> Vec<TextSplit> {
    let count = input.bytes.div_ceil(split_bytes as u64) as usize;
    let split = |number: usize| {
        let offset = number as u64 * split_bytes as u64;
        TextSplit {
            file,
            number,
            offset: input.offset + offset,
            bytes: (input.bytes - offset).min(split_bytes as u64) as usize,
        }
    };
    (0..count).map(split).collect()
}

/// Splits of compressed files, of which so many take turns with each other and with the splits of
/// text: each is read in order, and many are read at the same time. The longest begin.
fn in_turns(
    text: Vec<TextSplit>,
    mut compressed: Vec<Vec<TextSplit>>,
    width: usize,
) -> Vec<TextSplit> {
    compressed.sort_by_key(|splits| std::cmp::Reverse(splits.len()));
    let mut waiting = compressed.into_iter().map(Vec::into_iter);
    let mut active: Vec<_> = waiting.by_ref().take(width).collect();
    active.push(text.into_iter());
    let mut splits = Vec::new();
    while !active.is_empty() {
        active.retain_mut(|each| {
            let mut next = each.next();
            if next.is_none()
                && let Some(file) = waiting.next()
            {
                *each = file;
                next = each.next();
            }
            splits.extend(next);
            next.is_some()
        });
    }
    splits
}

/// About `count` of these, spread evenly.
fn spread(splits: Vec<TextSplit>, count: usize) -> Vec<TextSplit> {
    let every = splits.len().div_ceil(count.max(1)).max(1);
    splits.into_iter().skip(every / 2).step_by(every).collect()
}

/// The longest window that members may have: that of the first member of any file, and 8 MiB where
/// splits are as long.
fn longest_window(inputs: &[TextInput], split_bytes: usize) -> usize {
    let windows = inputs.iter().filter_map(|input| input.compression);
    let windows = windows.map(|compression| compression.window_bytes);
    windows
        .max()
        .map_or(0, |window| window.max(split_bytes.min(WINDOW_BYTES)))
}
