//! Bytes of a file: some ranges in memory, or any range on demand.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::Result as ParquetResult;
use parquet::file::reader::{ChunkReader, Length};

/// A file whose bytes are read by their offset; for the little that tells where data is.
pub trait ReadAt: Send + Sync {
    /// Its length.
    fn len(&self) -> u64;

    /// Whether it has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of a range within the file.
    ///
    /// # Errors
    /// What the device or the store says, or that the file is shorter.
    fn read(&self, range: Range<u64>) -> io::Result<Bytes>;
}

/// A file on a disk and its length when it was opened.
impl ReadAt for (File, u64) {
    fn len(&self) -> u64 {
        self.1
    }

    fn read(&self, range: Range<u64>) -> io::Result<Bytes> {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        self.0.read_exact_at(&mut bytes, range.start)?;
        Ok(bytes.into())
    }
}

/// Ranges of a file that are in memory, in the file's order.
#[derive(Clone, Debug, Default)]
pub struct Pieces(Vec<(u64, Bytes)>);

impl Pieces {
    /// Pieces and their offsets, in the file's order.
    #[must_use]
    pub fn new(pieces: Vec<(u64, Bytes)>) -> Self {
        debug_assert!(pieces.is_sorted_by_key(|piece| piece.0));
        Self(pieces)
    }

    /// The bytes of each piece.
    pub fn iter(&self) -> impl Iterator<Item = &Bytes> {
        self.0.iter().map(|piece| &piece.1)
    }

    /// The first offset from this one on that is in memory.
    #[must_use]
    pub fn next(&self, offset: u64) -> Option<u64> {
        let ends_before = |(begin, bytes): &(u64, Bytes)| begin + bytes.len() as u64 <= offset;
        let next = self.0.get(self.0.partition_point(ends_before))?;
        Some(next.0.max(offset))
    }

    /// What is in memory from `offset` on, without a gap; nothing if that is not in memory.
    #[must_use]
    pub fn from(&self, offset: u64) -> Bytes {
        let place = self.0.partition_point(|piece| piece.0 <= offset);
        let Some((begin, bytes)) = place.checked_sub(1).map(|place| &self.0[place]) else {
            return Bytes::new();
        };
        let skipped = usize::try_from(offset - begin).unwrap_or(usize::MAX);
        match skipped < bytes.len() {
            true => bytes.slice(skipped..),
            false => Bytes::new(),
        }
    }
}

/// The file as far as it is in memory.
impl ReadAt for Pieces {
    fn len(&self) -> u64 {
        let last = self.0.last();
        last.map_or(0, |(begin, bytes)| begin + bytes.len() as u64)
    }

    fn read(&self, range: Range<u64>) -> io::Result<Bytes> {
        let bytes = self.from(range.start);
        let length = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        match length <= bytes.len() {
            true => Ok(bytes.slice(..length)),
            false => Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                format!("{length} bytes at offset {} were not read", range.start),
            )),
        }
    }
}

/// A whole file, as the readers of Parquet want it.
pub(crate) struct WholeFile(pub(crate) Arc<dyn ReadAt>);

/// Reads a file from an offset on, some kilobytes at a time.
pub(crate) struct WholeReader {
    file: Arc<dyn ReadAt>,
    at: u64,
    ahead: Bytes,
}

/// Bytes that are read at once: a header of a page is shorter.
const AHEAD_BYTES: u64 = 4096;

impl Length for WholeFile {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for WholeFile {
    type T = WholeReader;

    fn get_read(&self, start: u64) -> ParquetResult<WholeReader> {
        Ok(WholeReader {
            file: Arc::clone(&self.0),
            at: start,
            ahead: Bytes::new(),
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        Ok(self.0.read(start..start + length as u64)?)
    }
}

impl Read for WholeReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.ahead.is_empty() {
            let end = (self.at + AHEAD_BYTES).min(self.file.len());
            self.ahead = self.file.read(self.at..end.max(self.at))?;
            self.at = end;
        }
        let bytes = self.ahead.len().min(into.len());
        into[..bytes].copy_from_slice(&self.ahead.split_to(bytes));
        Ok(bytes)
    }
}
