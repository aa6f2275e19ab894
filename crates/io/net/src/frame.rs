//! A frame: 28 bytes of head, then the payload.
//!
//! ```text
//!   0..8    number of the partition, file or run    little endian
//!   8..16   offset of the payload in it
//!  16..20   length of the payload
//!  20..24   CRC-32 of all before it, and of the payload, if it is checked
//!  24..28   kind of the frame; any other value shows a reader that it is out of step
//! ```
//!
//! The last frame of a connection is an end frame, with the total payload bytes as its offset. A
//! connection that closes without one was cut.

/// Bytes of a head on the wire.
pub(crate) const HEAD_BYTES: usize = 28;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A payload.
    Plain = 0x544f_4e31,
    /// A payload that has its checksum.
    Checked = 0x544f_4e32,
    /// No more will come.
    End = 0x544f_4e33,
}

/// The head of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Number of the partition, file or run that it belongs to.
    pub number: u64,
    /// Where in that it begins.
    pub offset: u64,
    /// Its length.
    pub len: u32,
}

/// Bytes of a head that its checksum covers.
const CHECKED_BYTES: usize = 20;

/// The CRC-32 of a frame.
pub(crate) fn checksum(head: &[u8; HEAD_BYTES], payload: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&head[..CHECKED_BYTES]);
    sum.update(payload);
    sum.finalize()
}

impl Head {
    pub(crate) fn to_bytes(self, checksum: u32, kind: Kind) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[0..8].copy_from_slice(&self.number.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.offset.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.len.to_le_bytes());
        bytes[20..24].copy_from_slice(&checksum.to_le_bytes());
        bytes[24..28].copy_from_slice(&(kind as u32).to_le_bytes());
        bytes
    }

    /// Parses a head, with its checksum and kind; `None` if it is none.
    pub(crate) fn from_bytes(bytes: &[u8; HEAD_BYTES]) -> Option<(Self, u32, Kind)> {
        let long = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("within"));
        let short = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().expect("within"));
        let kinds = [Kind::Plain, Kind::Checked, Kind::End];
        let kind = kinds.into_iter().find(|&kind| kind as u32 == short(24))?;
        let head = Self {
            number: long(0),
            offset: long(8),
            len: short(16),
        };
        Some((head, short(20), kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_head_survives_the_wire(number: u64, offset: u64, len: u32, checksum: u32, place in 25_usize..28) {
            let head = Head { number, offset, len };
            for kind in [Kind::Plain, Kind::Checked, Kind::End] {
                let mut bytes = head.to_bytes(checksum, kind);
                prop_assert_eq!(Head::from_bytes(&bytes), Some((head, checksum, kind)));
                bytes[place] ^= 1;
                prop_assert_eq!(Head::from_bytes(&bytes), None);
            }
        }
    }
}
