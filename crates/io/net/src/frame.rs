//! A frame: 24 bytes of head, then the payload.
//!
//! ```text
//!   0..8    number of the partition, file or run    little endian
//!   8..16   offset of the payload in it
//!  16..20   length of the payload
//!  20..24   a constant, so that a reader out of step notices
//! ```

/// Bytes of a head on the wire.
pub(crate) const HEAD_BYTES: usize = 24;
const MARK: u32 = 0x544f_4e31;

/// What a payload is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Number of the partition, file or run that it belongs to.
    pub number: u64,
    /// Where in that it begins.
    pub offset: u64,
    /// Its length.
    pub len: u32,
}

impl Head {
    pub(crate) fn to_bytes(self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[0..8].copy_from_slice(&self.number.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.offset.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.len.to_le_bytes());
        bytes[20..24].copy_from_slice(&MARK.to_le_bytes());
        bytes
    }

    /// The head in `bytes`; `None` if that is none.
    pub(crate) fn from_bytes(bytes: &[u8; HEAD_BYTES]) -> Option<Self> {
        let long = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("within"));
        let short = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().expect("within"));
        (short(20) == MARK).then(|| Self {
            number: long(0),
            offset: long(8),
            len: short(16),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_head_survives_the_wire(number: u64, offset: u64, len: u32, place in 20_usize..24) {
            let head = Head { number, offset, len };
            let mut bytes = head.to_bytes();
            prop_assert_eq!(Head::from_bytes(&bytes), Some(head));
            bytes[place] ^= 1;
            prop_assert_eq!(Head::from_bytes(&bytes), None);
        }
    }
}
