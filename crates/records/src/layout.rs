//! Where the key lies in a record of fixed size.

use serde::{Deserialize, Serialize};

/// A fixed record size and the one contiguous key inside the record; keys compare as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Layout {
    /// Bytes in a record.
    pub record_bytes: usize,
    /// Bytes before the key.
    pub key_offset: usize,
    /// Bytes in the key.
    pub key_bytes: usize,
}

/// Why a [`Layout`] is impossible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// The key has no bytes.
    #[error("the key has no bytes")]
    EmptyKey,
    /// The key does not end within the record.
    #[error(
        "a key of {key_bytes} bytes at offset {key_offset} extends past the end of a {record_bytes}-byte record"
    )]
    KeyOutsideRecord {
        /// Bytes in the record.
        record_bytes: usize,
        /// Bytes before the key.
        key_offset: usize,
        /// Bytes in the key.
        key_bytes: usize,
    },
}

impl Layout {
    /// The sort benchmark's: 100 bytes, of which the first 10 are the key.
    pub const SORT_BENCHMARK: Layout = Layout {
        record_bytes: 100,
        key_offset: 0,
        key_bytes: 10,
    };

    /// A layout whose key is not empty and lies within the record (which is then not empty either).
    pub fn new(
        record_bytes: usize,
        key_offset: usize,
        key_bytes: usize,
    ) -> Result<Layout, LayoutError> {
        if key_bytes == 0 {
            return Err(LayoutError::EmptyKey);
        }
        match key_offset.checked_add(key_bytes) {
            Some(key_end) if key_end <= record_bytes => Ok(Layout {
                record_bytes,
                key_offset,
                key_bytes,
            }),
            _ => Err(LayoutError::KeyOutsideRecord {
                record_bytes,
                key_offset,
                key_bytes,
            }),
        }
    }

    /// The key of `record`.
    #[inline]
    pub fn key<'a>(&self, record: &'a [u8]) -> &'a [u8] {
        &record[self.key_offset..][..self.key_bytes]
    }
}

impl Default for Layout {
    fn default() -> Self {
        Layout::SORT_BENCHMARK
    }
}

/// A layout as read, before [`Layout::new`] has judged it.
#[derive(Deserialize)]
struct Unchecked {
    record_bytes: usize,
    key_offset: usize,
    key_bytes: usize,
}

impl TryFrom<Unchecked> for Layout {
    type Error = LayoutError;

    fn try_from(read: Unchecked) -> Result<Layout, LayoutError> {
        Layout::new(read.record_bytes, read.key_offset, read.key_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_lies_within_the_record() {
        let layout = Layout::new(8, 5, 3).unwrap();
        assert_eq!(layout.key(b"abcdefgh"), b"fgh");
        assert_eq!(Layout::new(8, 5, 0), Err(LayoutError::EmptyKey));
        for (key_offset, key_bytes) in [(6, 3), (8, 1), (usize::MAX, 1), (0, usize::MAX)] {
            assert_eq!(
                Layout::new(8, key_offset, key_bytes),
                Err(LayoutError::KeyOutsideRecord {
                    record_bytes: 8,
                    key_offset,
                    key_bytes
                })
            );
        }
    }

    #[test]
    fn reading_checks_and_writing_reads_back() {
        let written = serde_json::to_string(&Layout::SORT_BENCHMARK).unwrap();
        assert_eq!(
            serde_json::from_str::<Layout>(&written).unwrap(),
            Layout::default()
        );
        let outside = written.replace("\"key_offset\":0", "\"key_offset\":91");
        assert!(serde_json::from_str::<Layout>(&outside).is_err());
    }
}
