//! Files of text, some of which are compressed, and how much text all of them have, about.

use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use tonnage_formats::FormatError;
use tonnage_formats::compression::{BEGINNING_BYTES, Codec, Decompressor};

use crate::error::{JobError, usage_error};
use crate::inputs::Input;

/// Bytes of a file that are read at once to find its first line.
const STEP_BYTES: usize = 64 << 10;

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
    pub input: Input,
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
    pub fn open(inputs: Vec<Input>) -> Result<Self, JobError> {
        let files = inputs.into_iter().map(TextInput::open);
        Ok(Self {
            files: files.collect::<Result<_, _>>()?,
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
        let bytes = |file: &TextInput| (file.input.bytes, file.compression.is_some());
        self.files
            .iter()
            .map(bytes)
            .fold((0, 0), |(all, packed), (bytes, is_packed)| {
                (all + bytes, packed + if is_packed { bytes } else { 0 })
            })
    }

    /// About how many bytes `sampled` is of a whole, of which `read_bytes` of files were sampled.
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

    /// Whether how much text there is can only be guessed.
    #[must_use]
    pub fn has_compressed(&self) -> bool {
        self.files.iter().any(|file| file.compression.is_some())
    }

    /// Bytes of all files.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.bytes().0
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
        for file in self.files.iter().filter(|file| file.input.bytes > 0) {
            let begin = file.beginning(header.len() + 1)?;
            let is_same = begin.starts_with(header)
                && matches!(begin.get(header.len()), None | Some(b'\n' | b'\r'));
            if !begin.is_empty() && !is_same {
                return Err(usage_error(format!(
                    "input {}: its first line is not {:?}, that of the first input; sort files with \
                     the same columns in the same order",
                    file.input.file.name().display(),
                    String::from_utf8_lossy(header)
                )));
            }
        }
        Ok(())
    }
}

impl TextInput {
    fn open(input: Input) -> Result<Self, JobError> {
        let mut beginning = Vec::with_capacity(BEGINNING_BYTES);
        read_beginning(&input, BEGINNING_BYTES, &mut beginning)?;
        let compression = Codec::of(&beginning).map(|codec| Compression {
            codec,
            window_bytes: codec.window_bytes(&beginning),
        });
        Ok(Self { input, compression })
    }

    /// The first `bytes` of its text.
    fn beginning(&self, bytes: usize) -> Result<Vec<u8>, JobError> {
        let mut text = Vec::new();
        let Some(compression) = self.compression else {
            read_beginning(&self.input, bytes, &mut text)?;
            return Ok(text);
        };
        let path = self.input.file.name();
        let damaged = |why: FormatError| usage_error(format!("input {}: {why}", path.display()));
        let unreadable = |why: io::Error| JobError::file("read", &path, &why);
        let mut file = File::open(&path).map_err(unreadable)?;
        let window = compression.window_bytes;
        let mut stream = Decompressor::new(compression.codec, window).map_err(damaged)?;
        text.resize(bytes, 0);
        let (mut known, mut step) = (0, vec![0; STEP_BYTES]);
        while known < bytes {
            match stream.read(&mut text[known..]).map_err(damaged)? {
                Some(0) => break,
                Some(read) => known += read,
                None => match file.read(&mut step).map_err(unreadable)? {
                    0 => stream.end(),
                    read => stream.arrive(Bytes::copy_from_slice(&step[..read])),
                },
            }
        }
        text.truncate(known);
        Ok(text)
    }
}

fn read_beginning(input: &Input, bytes: usize, to: &mut Vec<u8>) -> Result<(), JobError> {
    let path = input.file.name();
    let read = File::open(&path).and_then(|file| file.take(bytes as u64).read_to_end(to));
    read.map(|_| ())
        .map_err(|why| JobError::file("read", &path, &why))
}
