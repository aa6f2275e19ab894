//! What tests of several formats share.

use std::ops::Range;

use bytes::Bytes;
use tonnage_formats::ReadAt;

/// A file in memory.
#[derive(Clone)]
pub struct Memory(pub Bytes);

impl ReadAt for Memory {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, range: Range<u64>) -> std::io::Result<Bytes> {
        Ok(self.0.slice(range.start as usize..range.end as usize))
    }
}
