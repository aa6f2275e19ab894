//! Extents: what a read stage reads into one buffer.
//!
//! An extent of an input file or object is one piece at any offset; an extent of scratch is the
//! blocks of a partition: several pieces at aligned offsets. Each piece begins at the next aligned
//! place of the buffer, so the extent alone tells where each payload lies.

use std::num::NonZeroU32;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tonnage_disk::DiskFile;
use tonnage_object::Settings;
use tonnage_pipeline::Buffer;

/// Offsets and lengths of direct I/O, and places in a buffer, are multiples of this.
pub const ALIGNMENT: usize = 4096;

/// A file by name, an open file, an object, or a block in memory.
#[derive(Clone, Debug)]
pub enum FileRef {
    /// Opened by the read stage when it is needed.
    Path(Arc<Path>),
    /// Open already (scratch files have no name).
    Open(Arc<DiskFile>),
    /// In an object store.
    Object(Arc<Object>),
    /// In memory.
    Held(Arc<Buffer>),
}

impl FileRef {
    /// Its path or URL.
    #[must_use]
    pub fn name(&self) -> PathBuf {
        match self {
            Self::Path(path) => path.to_path_buf(),
            Self::Open(file) => file.path().to_owned(),
            Self::Object(object) => object.url().into(),
            Self::Held(_) => "memory".into(),
        }
    }
}

/// An object that was found in a store.
#[derive(Clone, Debug)]
pub struct Object {
    /// Its bucket.
    pub store: Arc<Settings>,
    /// Its name there.
    pub key: String,
    /// Its ETag, if known: tells it from a later object of the same name.
    pub etag: Option<String>,
}

impl Object {
    /// Its URL.
    #[must_use]
    pub fn url(&self) -> String {
        self.store.name(&self.key)
    }
}

/// Consecutive payload bytes of one file.
#[derive(Clone, Debug)]
pub struct Piece {
    /// The file.
    pub file: FileRef,
    /// Offset of the first.
    pub offset: u64,
    /// Number of bytes.
    pub len: usize,
    /// Their CRC-32, if it is known; 0 counts as not known.
    pub crc: Option<NonZeroU32>,
}

/// The contents of one buffer.
#[derive(Clone, Debug)]
pub struct Extent {
    /// Number of its partition, file or run.
    pub number: usize,
    /// Offset of its first byte in that partition, file or run.
    pub offset: u64,
    /// Whether its records are in order already (all keys equal), so that it needs no sorting.
    pub in_order: bool,
    /// Where its bytes are.
    pub pieces: Vec<Piece>,
}

impl Extent {
    /// Payload bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pieces.iter().map(|piece| piece.len).sum()
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pieces.iter().all(|piece| piece.len == 0)
    }

    /// Buffer bytes that it takes: payload, and the alignment before and after each piece.
    #[must_use]
    pub fn span(&self) -> usize {
        self.pieces
            .iter()
            .map(|piece| piece.head() + piece.len)
            .map(aligned)
            .sum()
    }

    /// Where the payload of each piece lies in the buffer.
    pub fn places(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let mut at = 0;
        self.pieces.iter().map(move |piece| {
            let start = at + piece.head();
            at += aligned(piece.head() + piece.len);
            start..start + piece.len
        })
    }

    /// The payload of each piece.
    pub fn payloads<'a>(&'a self, buffer: &'a Buffer) -> impl Iterator<Item = &'a [u8]> + 'a {
        self.places().map(|place| &buffer.slot()[place])
    }
}

impl Piece {
    /// Bytes between the aligned offset where reading begins and the payload; 0 for objects and
    /// memory, which are read from any offset.
    #[must_use]
    pub fn head(&self) -> usize {
        match self.file {
            FileRef::Object(_) | FileRef::Held(_) => 0,
            _ => (self.offset % ALIGNMENT as u64) as usize,
        }
    }
}

/// `bytes` rounded up to the alignment.
#[must_use]
pub fn aligned(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGNMENT)
}
