//! A compressed file: one stream, whose splits come in any order to any worker.
//!
//! A split that comes before its predecessors is kept, in the buffer that it was read into.
//! Whichever worker brings what is next decompresses all that is contiguous by then; the
//! others leave what they bring to it, so nobody ever waits. Text is given in pieces of whole records.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tonnage_formats::FormatError;
use tonnage_formats::compression::Decompressor;

use crate::tables::text::inputs::Compression;

/// Text that is decompressed at once, at least.
pub const PIECE_BYTES: usize = 256 << 10;

/// A compressed file of which some splits have come.
#[derive(Debug)]
pub struct CompressedFile {
    splits: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The number of the split that is decompressed next.
    next: usize,
    /// Splits that came before it.
    early: BTreeMap<usize, Bytes>,
    /// `None` while a worker decompresses.
    stream: Option<RecordStream>,
}

/// Why a stream has no more records.
#[derive(Debug)]
pub enum StreamError<E> {
    /// It is damaged, or too long for this memory.
    Damaged(FormatError),
    /// A record that begins at this byte of the text has more bytes than it may have.
    TooLong {
        /// Where it begins.
        offset: u64,
    },
    /// The text ends within the quotes of the record that begins at this byte.
    Unclosed {
        /// Where it begins.
        offset: u64,
    },
    /// What the records were refused for.
    Refused(E),
}

impl CompressedFile {
    /// A file of so many splits. Records end at newlines that are not between `quote`s, and have
    /// `most_bytes` at most.
    pub fn new(
        compression: Compression,
        splits: usize,
        quote: Option<u8>,
        most_bytes: usize,
    ) -> Self {
        Self {
            splits,
            state: Mutex::new(State {
                next: 0,
                early: BTreeMap::new(),
                stream: Some(RecordStream::new(compression, quote, most_bytes)),
            }),
        }
    }

    /// Takes a split, of which there is each once; gives the records that are whole now, end to
    /// end, and where they begin in the text.
    ///
    /// # Errors
    /// What is wrong with the stream, or what `take` says.
    pub fn records_of<E>(
        &self,
        split: usize,
        bytes: Bytes,
        mut take: impl FnMut(&[u8], u64) -> Result<(), E>,
    ) -> Result<(), StreamError<E>> {
        let mut state = self.lock();
        state.early.insert(split, bytes);
        let Some(mut stream) = state.stream.take() else {
            return Ok(()); // Its worker takes this split, too.
        };
        loop {
            let next = state.next;
            let Some(bytes) = state.early.remove(&next) else {
                state.stream = Some(stream);
                return Ok(());
            };
            state.next += 1;
            drop(state);
            stream.push(bytes, &mut take)?;
            if next + 1 == self.splits {
                return stream.end(&mut take);
            }
            state = self.lock();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whole records of a stream, as its bytes arrive.
#[derive(Debug)]
pub struct RecordStream {
    compression: Compression,
    /// Begun with the first bytes, so that only files that are being read take memory.
    decompressor: Option<Decompressor>,
    quote: Option<u8>,
    most_bytes: usize,
    /// Text that is not given yet, from the beginning of a record on, and room for more.
    text: Vec<u8>,
    known: usize,
    /// Whether the known text ends within quotes.
    is_quoted: bool,
    /// Where the known text begins.
    offset: u64,
}

impl RecordStream {
    /// A stream of which nothing has arrived.
    pub fn new(compression: Compression, quote: Option<u8>, most_bytes: usize) -> Self {
        Self {
            compression,
            decompressor: None,
            quote,
            most_bytes,
            text: Vec::new(),
            known: 0,
            is_quoted: false,
            offset: 0,
        }
    }

    /// How much text there was so far.
    pub fn text_bytes(&self) -> u64 {
        self.offset + self.known as u64
    }

    /// Takes the next bytes; gives records, and where they begin.
    ///
    /// # Errors
    /// What is wrong with the stream, or what `take` says.
    pub fn push<E>(
        &mut self,
        bytes: Bytes,
        take: &mut impl FnMut(&[u8], u64) -> Result<(), E>,
    ) -> Result<(), StreamError<E>> {
        self.decompressor()?.arrive(bytes);
        self.read(take)
    }

    /// Ends the stream; its last record may lack a newline.
    ///
    /// # Errors
    /// What is wrong with the stream, or what `take` says.
    pub fn end<E>(
        mut self,
        take: &mut impl FnMut(&[u8], u64) -> Result<(), E>,
    ) -> Result<(), StreamError<E>> {
        self.decompressor()?.end();
        self.read(take)?;
        if self.is_quoted {
            let offset = self.offset;
            return Err(StreamError::Unclosed { offset });
        }
        match self.known {
            0 => Ok(()),
            known => take(&self.text[..known], self.offset).map_err(StreamError::Refused),
        }
    }

    fn decompressor<E>(&mut self) -> Result<&mut Decompressor, StreamError<E>> {
        if self.decompressor.is_none() {
            let Compression {
                codec,
                window_bytes,
            } = self.compression;
            let begun = Decompressor::new(codec, window_bytes).map_err(StreamError::Damaged)?;
            self.decompressor = Some(begun);
        }
        Ok(self.decompressor.as_mut().expect("begun"))
    }

    fn read<E>(
        &mut self,
        take: &mut impl FnMut(&[u8], u64) -> Result<(), E>,
    ) -> Result<(), StreamError<E>> {
        loop {
            if self.text.len() < self.known + PIECE_BYTES / 2 {
                self.text.resize(self.known + PIECE_BYTES, 0);
            }
            let decompressor = self.decompressor.as_mut().expect("begun");
            let read = decompressor.read(&mut self.text[self.known..]);
            let Some(bytes @ 1..) = read.map_err(StreamError::Damaged)? else {
                return Ok(());
            };
            let end = self.last_end(self.known + bytes);
            self.known += bytes;
            if end > 0 {
                take(&self.text[..end], self.offset).map_err(StreamError::Refused)?;
                self.text.copy_within(end..self.known, 0);
                self.known -= end;
                self.offset += end as u64;
            }
            if self.known > self.most_bytes {
                return Err(StreamError::TooLong {
                    offset: self.offset,
                });
            }
        }
    }

    /// Where the last record ends in the text up to `known`, of which what is new is looked at; 0
    /// if none ends there.
    fn last_end(&mut self, known: usize) -> usize {
        let new = &self.text[self.known..known];
        let end = match self.quote {
            None => memchr::memrchr(b'\n', new),
            Some(quote) => {
                let mut end = None;
                for at in memchr::memchr2_iter(b'\n', quote, new) {
                    if new[at] == quote {
                        self.is_quoted = !self.is_quoted;
                    } else if !self.is_quoted {
                        end = Some(at);
                    }
                }
                end
            }
        };
        end.map_or(0, |at| self.known + at + 1)
    }
}
