//! A node's sample in a file: a line of JSON, then keys, each behind its length.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::JobError;

/// What a node has found in its splits.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct KeySample {
    /// Sampled rows.
    pub rows: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those of the longest.
    pub longest_row: usize,
    /// About how many bytes all rows of the splits have.
    pub rows_bytes: u64,
    /// About how many rows these are.
    pub all_rows: u64,
    /// The last bytes of a key that number rows.
    pub number_bytes: usize,
    /// Memory that a worker needs to decode a split.
    pub decoding_bytes: usize,
    /// The longest split, with the alignment of its pieces.
    pub split_span: usize,
    /// Keys.
    #[serde(skip)]
    pub keys: Vec<Vec<u8>>,
}

impl KeySample {
    /// Writes it.
    pub fn write(&self, path: &Path) -> Result<(), JobError> {
        let mut bytes = serde_json::to_vec(self).expect("it is JSON");
        bytes.push(b'\n');
        for key in &self.keys {
            bytes.extend((key.len() as u32).to_le_bytes());
            bytes.extend(key);
        }
        fs::write(path, bytes).map_err(|why| JobError::file("write", path, &why))
    }

    /// Reads it.
    pub fn read(path: &Path) -> Result<Self, JobError> {
        let read = || {
            let bytes = fs::read(path)?;
            Self::parse(&bytes).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
        };
        read().map_err(|why| JobError::file("read", path, &why))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let line = memchr::memchr(b'\n', bytes)?;
        let mut sample: Self = serde_json::from_slice(&bytes[..line]).ok()?;
        let mut rest = &bytes[line + 1..];
        while !rest.is_empty() {
            let (length, keys) = rest.split_first_chunk::<4>()?;
            let (key, keys) = keys.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            sample.keys.push(key.to_vec());
            rest = keys;
        }
        Some(sample)
    }
}
