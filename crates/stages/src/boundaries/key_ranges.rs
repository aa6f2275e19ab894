//! Ranges of keys of any lengths, and which of them a key is in.
//!
//! Lookup: what all boundaries begin with is compared first. The 16 bytes behind it, as a number,
//! index a table by their distance from the least boundary. The table leaves a few candidates for
//! a binary search, and is small enough to stay in the cache with the records. Longer keys that
//! equal a boundary in these bytes are compared in full.

use serde::{Deserialize, Serialize};

use crate::boundaries::prefix::{Beginning, prefix};

/// Table entries for each boundary, about.
const PLACES_PER_BOUND: usize = 8;

/// The beginning of a partition: its first key, or the last key before it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bound {
    #[serde(with = "digits")]
    key: Vec<u8>,
    after: bool, // keys greater than `key` instead of those not less
}

/// Bytes as hexadecimal digits.
mod digits {
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;

    pub fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
        to.serialize_str(&digits.collect::<String>())
    }

    pub fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Vec<u8>, D::Error> {
        let digits = String::deserialize(from)?;
        let byte = |at: usize| {
            digits
                .get(at..at + 2)
                .and_then(|two| u8::from_str_radix(two, 16).ok())
        };
        (0..digits.len())
            .step_by(2)
            .map(|at| {
                byte(at).ok_or_else(|| {
                    D::Error::custom("a key must be an even number of hexadecimal digits")
                })
            })
            .collect()
    }
}

/// Ranges of keys, one after another.
#[derive(Clone, Debug)]
pub struct KeyRanges {
    bounds: Vec<Bound>,
    common: Beginning,   // of all bounds
    prefixes: Vec<u128>, // of what follows
    least: u128,         // of the prefixes
    shift: u32,          // how far apart places of the table are, as a power of two
    table: Vec<u32>,     // by place: how many bounds have a smaller one
    single: Vec<bool>,
    shares: Vec<u32>, // how many ranges up to this one are of its key alone
}

impl KeyRanges {
    /// At most `ranges` ranges with as many of the sampled `keys` each.
    ///
    /// Fewer come out where the sample is small.
    #[must_use]
    pub fn from_sample(mut keys: Vec<&[u8]>, ranges: usize) -> Self {
        keys.sort_unstable();
        let mut bounds: Vec<Bound> = Vec::new();
        let quantile = |place: usize| keys[place * keys.len() / ranges];
        for place in 1..if keys.is_empty() { 1 } else { ranges } {
            let key = quantile(place);
            let bound = Bound {
                key: key.to_vec(),
                after: false,
            };
            if bounds.last().is_none_or(|last| *last < bound) {
                bounds.push(bound);
            } else if bounds.last().is_some_and(|last| last.after) {
                bounds.insert(bounds.len() - 1, bound);
            } else {
                bounds.push(Bound {
                    key: key.to_vec(),
                    after: true,
                });
            }
        }
        Self::new(bounds)
    }

    /// Ranges between these bounds, which are in order.
    #[must_use]
    pub fn new(bounds: Vec<Bound>) -> Self {
        let common = Beginning::new(common_beginning(&bounds));
        let behind = |bound: &Bound| prefix(&bound.key[common.bytes().len()..]);
        let prefixes: Vec<u128> = bounds.iter().map(behind).collect();
        let (least, greatest) = match &prefixes[..] {
            [least, .., greatest] => (*least, *greatest),
            [only] => (*only, *only),
            [] => (0, 0),
        };
        let places = (PLACES_PER_BOUND * bounds.len()).next_power_of_two();
        let bits = u128::BITS - (greatest - least).leading_zeros();
        let shift = bits.saturating_sub(places.trailing_zeros());
        let mut table = vec![0_u32; places + 1];
        for &prefix in &prefixes {
            table[place_of(prefix, least, shift, places) + 1] += 1;
        }
        for value in 1..table.len() {
            table[value] += table[value - 1];
        }
        let mut single = vec![false; bounds.len() + 1];
        for (place, pair) in bounds.windows(2).enumerate() {
            single[place + 1] = pair[0].key == pair[1].key;
        }
        let mut shares = vec![0; bounds.len() + 1];
        for place in 1..bounds.len() {
            if single[place] {
                shares[place] = shares[place - 1] + 1;
            }
        }
        Self {
            bounds,
            common,
            prefixes,
            least,
            shift,
            table,
            single,
            shares,
        }
    }

    /// The same with one range for a frequent key, not several.
    #[must_use]
    pub fn undivided(self) -> Self {
        let mut bounds: Vec<Bound> = self.bounds;
        bounds.dedup();
        Self::new(bounds)
    }

    /// The same for keys that are followed by numbers of so many bytes: keys that differ only in
    /// these are in one range.
    #[must_use]
    pub fn before_numbers(self, number_bytes: usize) -> Self {
        let mut bounds = self.bounds;
        for bound in bounds.iter_mut().filter(|bound| bound.after) {
            bound.key.resize(bound.key.len() + number_bytes, u8::MAX);
        }
        Self {
            single: self.single,
            ..Self::new(bounds)
        }
    }

    /// The same, with what is greater than `key` in a range of its own, the last; no bound is
    /// greater.
    #[must_use]
    pub fn cut_after(self, key: &[u8]) -> Self {
        let (mut bounds, key) = (self.bounds, key.to_vec());
        bounds.push(Bound { key, after: true });
        bounds.dedup();
        Self::new(bounds)
    }

    /// The bounds between the ranges.
    #[must_use]
    pub fn bounds(&self) -> &[Bound] {
        &self.bounds
    }

    /// How many ranges there are: one more than bounds.
    #[allow(clippy::len_without_is_empty)] // There is one at least.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bounds.len() + 1
    }

    /// How many of the first ranges have the keys that do not exceed this one.
    #[must_use]
    pub fn up_to(&self, key: &[u8]) -> usize {
        self.bounds
            .partition_point(|bound| bound.is_reached_by(key))
            + 1
    }

    /// Whether all keys of this range are equal.
    #[must_use]
    pub fn is_single(&self, range: usize) -> bool {
        self.single[range]
    }

    /// The range of a key: the number of bounds that it has reached. Where a frequent key has
    /// several ranges, the bytes around it choose one.
    #[inline]
    #[must_use]
    pub fn range_of(&self, key: &[u8], around: (&[u8], &[u8])) -> usize {
        let Some(behind) = self.common.strip_from(key) else {
            return match key < self.common.bytes() {
                true => 0,
                false => self.bounds.len(),
            };
        };
        let wanted = prefix(behind);
        let place = place_of(wanted, self.least, self.shift, self.table.len() - 1);
        let (low, high) = (self.table[place] as usize, self.table[place + 1] as usize);
        let mut at = low + self.prefixes[low..high].partition_point(|&bound| bound < wanted);
        // Bounds with the same prefix are compared in full.
        if at < high && self.prefixes[at] == wanted {
            let same = self.prefixes[at..high].partition_point(|&bound| bound == wanted);
            at += self.bounds[at..at + same].partition_point(|bound| bound.is_reached_by(key));
        }
        match self.shares[at] {
            0 | 1 => at,
            shares => at - share_of(around, shares),
        }
    }
}

/// What all bounds begin with.
fn common_beginning(bounds: &[Bound]) -> &[u8] {
    let (Some(first), Some(last)) = (bounds.first(), bounds.last()) else {
        return &[];
    };
    // All others lie between these two.
    let same = first
        .key
        .iter()
        .zip(&last.key)
        .take_while(|(a, b)| a == b)
        .count();
    // With one bound, or one key, nothing would be left to compare.
    &first.key[..if first.key == last.key { 0 } else { same }]
}

/// Chooses one of a frequent key's ranges by the bytes around it: FNV-1a over words instead of
/// bytes, since such records are many.
#[cold]
fn share_of((before, after): (&[u8], &[u8]), shares: u32) -> usize {
    let mixed = mix(mix(0xcbf2_9ce4_8422_2325, before), after);
    (((mixed >> 32) * u64::from(shares)) >> 32) as usize
}

/// Table entry of a prefix. A prefix below the least boundary has the first entry; one above the
/// greatest has the last or an earlier one.
#[inline]
fn place_of(prefix: u128, least: u128, shift: u32, places: usize) -> usize {
    let place = prefix.saturating_sub(least) >> shift;
    usize::try_from(place).map_or(places - 1, |place| place.min(places - 1))
}

fn mix(mixed: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let words = words.iter().chain([&last]);
    words.fold(mixed, |mixed, &word| {
        let mixed = (mixed ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 32) // A product's high bits depend on all others, its low bits do not.
    })
}

impl Bound {
    fn is_reached_by(&self, key: &[u8]) -> bool {
        if self.after {
            key > self.key.as_slice()
        } else {
            key >= self.key.as_slice()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_key_is_between_its_bounds_whatever_its_length(
            keys in prop::collection::vec(prop::collection::vec(0_u8..3, 0..24), 1..60),
            common in 0_usize..20,
            ranges in 1_usize..12,
        ) {
            let with_common = |(number, key): (usize, &Vec<u8>)| match number % 7 {
                6 => key.clone(), // some have another beginning
                _ => [&vec![1; common][..], key].concat(),
            };
            let keys: Vec<Vec<u8>> = keys.iter().enumerate().map(with_common).collect();
            let half = keys[..keys.len().div_ceil(2)].iter().map(Vec::as_slice).collect();
            let ranges = KeyRanges::from_sample(half, ranges);
            for key in &keys {
                let range = ranges.range_of(key, (&[], &[]));
                let bounds = ranges.bounds();
                let reached = bounds.iter().filter(|bound| bound.is_reached_by(key)).count();
                // Several ranges of one key share its rows.
                if !ranges.is_single(reached) {
                    prop_assert_eq!(range, reached);
                }
                prop_assert!(range <= reached);
                prop_assert_eq!(ranges.is_single(range), ranges.is_single(reached));
            }
        }
    }
}
