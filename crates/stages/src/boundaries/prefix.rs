//! Beginnings of keys as numbers: they are compared at once, without a loop over bytes.

/// Bytes whose number a processor compares at once.
const NUMBER_BYTES: usize = size_of::<u128>();

/// Bytes that all keys of some set begin with.
#[derive(Clone, Debug)]
pub struct Beginning {
    bytes: Vec<u8>,
    number: u128,
    mask: u128, // a one for each bit of `number` that counts
}

impl Beginning {
    /// These bytes.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        let mask = match bytes.len() {
            0 => 0,
            len => u128::MAX << (8 * NUMBER_BYTES.saturating_sub(len)),
        };
        Self {
            bytes: bytes.to_vec(),
            number: prefix(bytes),
            mask,
        }
    }

    /// What all of these keys begin with.
    #[must_use]
    pub fn of<'a>(mut keys: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut common = keys.next().unwrap_or_default();
        for key in keys.take_while(|_| !common.is_empty()) {
            common = &common[..alike(common, key)];
        }
        Self::new(common)
    }

    /// The bytes.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What follows in a key that begins so.
    #[inline]
    #[must_use]
    pub fn strip_from<'a>(&self, key: &'a [u8]) -> Option<&'a [u8]> {
        let (beginning, rest) = key.split_at_checked(self.bytes.len())?;
        let is_same = match self.bytes.len() {
            0..=NUMBER_BYTES => prefix(key) & self.mask == self.number,
            _ => beginning == self.bytes,
        };
        is_same.then_some(rest)
    }

    /// How many of the bytes a key begins with.
    #[must_use]
    pub fn shared_with(&self, key: &[u8]) -> usize {
        alike(&self.bytes, key)
    }

    /// The first so many of the bytes.
    #[must_use]
    pub fn first(&self, bytes: usize) -> Self {
        Self::new(&self.bytes[..bytes])
    }
}

/// How many bytes two keys have in common at their beginnings.
fn alike(one: &[u8], other: &[u8]) -> usize {
    let both = one.iter().zip(other);
    both.take_while(|(one, other)| one == other).count()
}

/// The first 16 bytes of a key as a number that sorts alike; shorter keys are padded with zeros.
#[inline]
#[must_use]
pub fn prefix(key: &[u8]) -> u128 {
    if let Some(first) = key.first_chunk::<16>() {
        return u128::from_be_bytes(*first);
    }
    if let (Some(first), Some(last)) = (key.first_chunk::<8>(), key.last_chunk::<8>()) {
        // 8 to 15 bytes: two overlapping words.
        let missing = 8 * (16 - key.len());
        let last = u128::from(u64::from_be_bytes(*last)) << missing;
        return (u128::from(u64::from_be_bytes(*first)) << 64) | last;
    }
    let short = key
        .iter()
        .fold(0_u128, |number, &byte| (number << 8) | u128::from(byte));
    if key.is_empty() {
        0
    } else {
        short << (8 * (16 - key.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_prefix_orders_as_its_key(a in prop::collection::vec(0_u8..4, 1..20), b in prop::collection::vec(0_u8..4, 1..20)) {
            let len = a.len().min(b.len());
            let (a, b) = (&a[..len], &b[..len]);
            let first = len.min(16);
            prop_assert_eq!(prefix(a).cmp(&prefix(b)), a[..first].cmp(&b[..first]));
        }

        #[test]
        fn a_beginning_is_stripped_as_from_a_slice(
            keys in prop::collection::vec(prop::collection::vec(0_u8..2, 0..24), 1..6),
            shared in prop::collection::vec(0_u8..2, 0..24),
            other in prop::collection::vec(0_u8..2, 0..24),
        ) {
            let keys: Vec<Vec<u8>> = keys.into_iter().map(|key| [&shared[..], &key].concat()).collect();
            let common = Beginning::of(keys.iter().map(Vec::as_slice));
            prop_assert!(common.bytes().starts_with(&shared));
            for key in keys.iter().chain([&other]) {
                prop_assert_eq!(common.strip_from(key), key.strip_prefix(common.bytes()));
                let shorter = common.first(common.shared_with(key));
                prop_assert!(shorter.strip_from(key).is_some());
            }
            prop_assert!(keys.iter().all(|key| common.strip_from(key).is_some()));
        }
    }
}
