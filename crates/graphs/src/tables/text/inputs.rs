//! Files of text, some of which are compressed, and how much text all of them have, about.

use std::io;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tonnage_formats::FormatError;
use tonnage_formats::compression::{BEGINNING_BYTES, Codec, Decompressor};

use crate::error::{JobError, usage_error};
use crate::tables::input::table_file::TableFile;

/// Bytes of a file that are read at once to find its first line.
const STEP_BYTES: usize = 64 << 10;
/// Text in which lines are counted to say where a record is.
const COUNTED_BYTES: u64 = 1 << 30;
/// Bytes of it that are read at once.
const COUNTED_STEP_BYTES: usize = 4 << 20;
/// What a file begins with that is compressed in a way that is not read.
const XZ: &[u8] = b"\xfd7zXZ\0";
/// Text at the beginning of a file that tells what values are.
pub const INFERRED_BYTES: usize = 1 << 20;
/// Why a file is refused whose first line has a NUL byte.
pub const NO_TEXT: &str =
    "its first line has NUL bytes, as of UTF-16 or of what is no text; convert it to UTF-8";
/// Why a file is refused that has no newlines, but should.
pub const ENDS_WITH_RETURN: &str =
    "its lines end with a carriage return alone; convert these to newlines";
/// What a file in UTF-8 may begin with.
pub const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Files of text.
#[derive(Clone, Debug)]
pub struct TextInputs {
    files: Vec<TextInput>,
    /// What sampling found.
    inflation: Arc<Inflation>,
}

/// A file of text.
#[derive(Clone, Debug)]
pub struct TextInput {
    /// The file.
    pub file: TableFile,
    /// How it is compressed, if it is.
    pub compression: Option<Compression>,
}

/// How a file is compressed.
#[derive(Clone, Copy, Debug)]
pub struct Compression {
    /// The codec.
    pub codec: Codec,
    /// The window of its first member.
    pub window_bytes: usize,
}

/// How much text came from how many bytes of compressed files.
#[derive(Debug, Default)]
pub struct Inflation {
    read: AtomicU64,
    text: AtomicU64,
}

impl Inflation {
    /// So many bytes gave so much text.
    pub fn add(&self, read: u64, text: u64) {
        self.read.fetch_add(read, Relaxed);
        self.text.fetch_add(text, Relaxed);
    }
}

impl Deref for TextInputs {
    type Target = [TextInput];

    fn deref(&self) -> &[TextInput] {
        &self.files
    }
}

impl TextInputs {
    /// Looks at the beginning of each file; a name tells nothing.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn open(files: &[TableFile]) -> Result<Self, JobError> {
        Ok(Self {
            files: TableFile::map(files, TextInput::open)?,
            inflation: Arc::default(),
        })
    }

    /// What sampling finds.
    #[must_use]
    pub fn inflation(&self) -> Arc<Inflation> {
        Arc::clone(&self.inflation)
    }

    /// Bytes of all files as they are, and of those that are compressed.
    fn bytes(&self) -> (u64, u64) {
        let bytes = |file: &TextInput| (file.file.input.bytes, file.compression.is_some());
        self.files
            .iter()
            .map(bytes)
            .fold((0, 0), |(all, packed), (bytes, is_packed)| {
                (all + bytes, packed + if is_packed { bytes } else { 0 })
            })
    }

    /// About how many bytes all rows have, if those of `read_bytes` of the files have `sampled`.
    #[must_use]
    pub fn scaled(&self, sampled: u64, read_bytes: u64) -> u64 {
        let (all, packed) = self.bytes();
        let (read, text) = (
            self.inflation.read.load(Relaxed),
            self.inflation.text.load(Relaxed),
        );
        let inflated = u128::from(packed) * u128::from(text) / u128::from(read.max(1));
        let whole = u128::from(all - packed) + inflated;
        let part = u128::from(read_bytes.saturating_sub(read) + text);
        let bytes = u128::from(sampled) * whole / part.max(1);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// How many of these bytes, which sampling told, there are at least: of compressed text it can
    /// only guess.
    #[must_use]
    pub fn least_bytes(&self, rows_bytes: u64) -> u64 {
        let (all, packed) = self.bytes();
        if packed > 0 {
            rows_bytes.min(all)
        } else {
            rows_bytes
        }
    }

    /// Refuses files that do not begin with the header: with other columns, or in another order,
    /// their records would get wrong names. Files without bytes have no records either.
    ///
    /// # Errors
    /// The first such file.
    pub fn check_headers(&self, header: &[u8]) -> Result<(), JobError> {
        let header = header.trim_ascii_end();
        if header.is_empty() {
            return Ok(());
        }
        for file in &self.files {
            let begin = file.beginning(BYTE_ORDER_MARK.len() + header.len() + 2)?;
            let begin = begin.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&begin);
            let behind = begin.strip_prefix(header);
            if behind
                .is_some_and(|behind| behind.len() > 1 && behind[0] == b'\r' && behind[1] != b'\n')
            {
                return Err(usage_error(format!(
                    "input {}: {ENDS_WITH_RETURN}",
                    file.file.name()
                )));
            }
            let is_same = matches!(behind, Some([] | [b'\n' | b'\r', ..]));
            if !begin.is_empty() && !is_same {
                return Err(usage_error(format!(
                    "input {}: its first line is not {:?}, that of the first input; sort files with \
                     the same columns in the same order",
                    file.file.name(),
                    String::from_utf8_lossy(header)
                )));
            }
        }
        Ok(())
    }
}

impl TextInput {
    /// Looks at the beginning of a file.
    ///
    /// # Errors
    /// When it cannot be read, or its compression is not.
    pub fn open(file: &TableFile) -> Result<Self, JobError> {
        let beginning = file.open().and_then(|opened| {
            let bytes = opened.len().min(BEGINNING_BYTES as u64);
            opened.read(0..bytes)
        });
        let beginning = beginning.map_err(|why| file.read_error(&why))?;
        if beginning.starts_with(XZ) {
            return Err(usage_error(format!(
                "input {} is compressed with xz; decompress it, or use one of gzip, zstd, bzip2",
                file.name()
            )));
        }
        let codec = Codec::of(&beginning);
        let compression = codec.map(|codec| Compression {
            codec,
            window_bytes: codec.window_bytes(&beginning),
        });
        Ok(Self {
            file: file.clone(),
            compression,
        })
    }

    /// Whether it is compressed.
    #[must_use]
    pub fn is_compressed(&self) -> bool {
        self.compression.is_some()
    }

    /// The first `bytes` of its text.
    ///
    /// # Errors
    /// When it cannot be read or decompressed.
    pub fn beginning(&self, bytes: usize) -> Result<Vec<u8>, JobError> {
        let mut text = Vec::with_capacity(bytes);
        self.read(bytes, |piece| {
            let wanted = bytes - text.len();
            text.extend_from_slice(&piece[..piece.len().min(wanted)]);
            text.len() < bytes
        })?;
        Ok(text)
    }

    /// Why a record that begins at a byte of its text cannot be used: where it is, and `why`.
    #[must_use]
    pub fn record_refusal(&self, offset: u64, why: &str) -> String {
        let (name, of_text) = (
            self.file.name(),
            if self.is_compressed() {
                " of its text"
            } else {
                ""
            },
        );
        match self.line_at(offset) {
            Some(line) => {
                format!("input {name}: the record in line {line} (byte {offset}{of_text}) {why}")
            }
            None => format!("input {name}: the record at byte {offset}{of_text} {why}"),
        }
    }

    /// The number of the line that begins at a byte of its text, from 1 on, unless that is so far
    /// behind that counting takes long.
    fn line_at(&self, offset: u64) -> Option<u64> {
        if offset > COUNTED_BYTES {
            return None;
        }
        let (mut left, mut line) = (offset as usize, 1);
        let counted = self.read(COUNTED_STEP_BYTES, |piece| {
            let before = &piece[..piece.len().min(left)];
            line += memchr::memchr_iter(b'\n', before).count() as u64;
            left -= before.len();
            left > 0
        });
        (counted.is_ok() && left == 0).then_some(line)
    }

    /// Gives its text from the beginning on, in pieces of up to `piece_bytes`, until `take` has
    /// enough.
    fn read(
        &self,
        piece_bytes: usize,
        mut take: impl FnMut(&[u8]) -> bool,
    ) -> Result<(), JobError> {
        let unreadable = |why: io::Error| self.file.read_error(&why);
        let opened = self.file.open().map_err(unreadable)?;
        let step = |at: u64, bytes: usize| {
            let end = opened.len().min(at + bytes as u64);
            opened.read(at.min(end)..end).map_err(unreadable)
        };
        let Some(compression) = self.compression else {
            let mut at = 0;
            loop {
                let piece = step(at, piece_bytes)?;
                at += piece.len() as u64;
                if piece.is_empty() || !take(&piece) {
                    return Ok(());
                }
            }
        };
        let damaged = |why: FormatError| usage_error(format!("input {}: {why}", self.file.name()));
        let window = compression.window_bytes;
        let mut stream = Decompressor::new(compression.codec, window).map_err(damaged)?;
        let (mut text, mut at) = (vec![0; piece_bytes], 0);
        loop {
            match stream.read(&mut text).map_err(damaged)? {
                Some(0) => return Ok(()),
                Some(read) if take(&text[..read]) => (),
                Some(_) => return Ok(()),
                None => {
                    let bytes = step(at, STEP_BYTES)?;
                    at += bytes.len() as u64;
                    match bytes.is_empty() {
                        true => stream.end(),
                        false => stream.arrive(bytes),
                    }
                }
            }
        }
    }
}
