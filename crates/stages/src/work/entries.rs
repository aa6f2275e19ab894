//! Entries: numbers that sort as keys do, and tell where each key's record is.
//!
//! An entry has 32 bits of a key above the record's place in its buffer, so that sorting compares
//! numbers and touches no record. A sample of the keys tells which 32 bits: the first in which the
//! partition's keys differ. Entries are sorted by radix. Records with equal bits get entries of the
//! next bits in which they differ, and so on.
//!
//! The order of equal keys is not kept.

use crate::boundaries::{Beginning, prefix};

/// Bits of an entry that hold the place; a partition in memory is below 4 GiB.
const PLACE_BITS: u32 = 32;
/// Bits of a digit: the ends of all digits' entries fit into a first-level cache.
const DIGIT_BITS: u32 = 11;
/// So few entries are compared at once.
const FEW_ENTRIES: usize = 128;
/// So many entries, and as much scratch, fit into a second-level cache, or nearly.
const CACHED_ENTRIES: usize = 1 << 18;
/// So few records with equal bits are compared by their whole keys.
const FEW: usize = 32;
/// Bytes of one entry, and of its copy while buckets are filled.
pub const ENTRY_BYTES: usize = 2 * size_of::<u64>();

/// Where the record of an entry is.
#[inline]
pub fn place(entry: u64) -> usize {
    entry as u32 as usize
}

/// The 32 bits of keys that make entries: a key's distance from the least one, in units of the
/// power of two for which the greatest distance has 32 bits.
#[derive(Clone, Copy, Debug)]
struct Scale {
    least: u128,
    shift: u32,
}

impl Scale {
    /// For keys with these prefixes; `None` if all are equal.
    fn of(mut prefixes: impl Iterator<Item = u128>) -> Option<Self> {
        let first = prefixes.next()?;
        let (least, greatest) = prefixes.fold((first, first), |(least, greatest), prefix| {
            (least.min(prefix), greatest.max(prefix))
        });
        let bits = u128::BITS - (greatest - least).leading_zeros();
        (bits > 0).then_some(Self {
            least,
            shift: bits.saturating_sub(u64::BITS - PLACE_BITS),
        })
    }

    /// For keys of which these are a sample: others may be a little smaller or greater.
    fn about(prefixes: impl Iterator<Item = u128>) -> Self {
        let sampled = Self::of(prefixes).unwrap_or(Self { least: 0, shift: 0 });
        Self {
            least: sampled.least.saturating_sub(1 << (sampled.shift + 28)),
            shift: sampled.shift + 1,
        }
    }

    /// The entry of a record at this place.
    #[inline]
    fn entry(self, prefix: u128, place: usize) -> u64 {
        let steps = prefix.saturating_sub(self.least) >> self.shift;
        let bits = u32::try_from(steps).unwrap_or(u32::MAX); // Beyond what was sampled.
        (u64::from(bits) << PLACE_BITS) | place as u64
    }
}

/// Makes an entry of each key, given with its place; gives how many bytes all keys begin with.
///
/// The sample tells what all keys begin with, and the scale of what follows. The keys are gone
/// through once more if one of them begins otherwise.
///
/// # Errors
/// Those of `keys`.
pub fn index<'a, E, K: Iterator<Item = Result<(usize, &'a [u8]), E>>>(
    entries: &mut Vec<u64>,
    sampled: &[&'a [u8]],
    keys: impl Fn() -> K,
) -> Result<usize, E> {
    let mut common = Beginning::of(sampled.iter().copied());
    loop {
        let skip = common.bytes().len();
        let scale = Scale::about(sampled.iter().map(|key| prefix(&key[skip..])));
        let mut shared = skip;
        entries.clear();
        for key in keys() {
            let (place, key) = key?;
            match common.strip_from(key) {
                Some(behind) => entries.push(scale.entry(prefix(behind), place)),
                None => shared = shared.min(common.shared_with(key)),
            }
        }
        if shared == skip {
            return Ok(skip);
        }
        common = common.first(shared);
    }
}

/// Sorts entries by key; entries with equal bits by the bits that follow.
///
/// `buckets` is scratch memory.
pub fn order<'a>(entries: &mut [u64], buckets: &mut Vec<u64>, key: &impl Fn(u64) -> &'a [u8]) {
    sort_entries(entries, buckets);
    for alike in entries.chunk_by_mut(|a, b| a >> PLACE_BITS == b >> PLACE_BITS) {
        if alike.len() > FEW {
            match Scale::of(alike.iter().map(|&entry| prefix(key(entry)))) {
                Some(scale) => {
                    for entry in &mut *alike {
                        *entry = scale.entry(prefix(key(*entry)), place(*entry));
                    }
                    order(alike, buckets, key);
                }
                None if are_short(alike, key) => (),
                None => alike.sort_unstable_by(|&a, &b| key(a).cmp(key(b))),
            }
        } else if alike.len() > 1 {
            alike.sort_unstable_by(|&a, &b| key(a).cmp(key(b)));
        }
    }
}

/// Whether keys with the same prefix are equal: none has more bytes, and all have as many.
fn are_short<'a>(alike: &[u64], key: &impl Fn(u64) -> &'a [u8]) -> bool {
    let bytes = key(alike[0]).len();
    bytes <= size_of::<u128>() && alike.iter().all(|&entry| key(entry).len() == bytes)
}

/// Sorts entries; `scratch` is memory that is used again.
///
/// As many entries as a second-level cache holds are sorted by their least significant digits
/// first (LSD radix sort), as many digits as make most of them differ; few are left to be compared.
/// More entries are distributed by their most significant digit before.
fn sort_entries(entries: &mut [u64], scratch: &mut Vec<u64>) {
    let count = entries.len();
    if count <= FEW_ENTRIES {
        return entries.sort_unstable();
    }
    if scratch.len() < count {
        scratch.resize(count, 0);
    }
    let scratch = &mut scratch[..count];
    if count <= CACHED_ENTRIES {
        return sort_cached(entries, scratch);
    }
    let Some(digits) = Digits::of(entries) else {
        return;
    };
    let low = digits.high.saturating_sub(DIGIT_BITS);
    let ends = distribute(entries, scratch, low, digits.high - low);
    let mut start = 0;
    for end in ends {
        let bucket = &mut scratch[start..end];
        match bucket.len() {
            0..=FEW_ENTRIES => bucket.sort_unstable(),
            // Keys that are not spread evenly.
            CACHED_ENTRIES.. if low > 0 => sort_entries(bucket, &mut Vec::new()),
            _ => sort_cached(bucket, &mut entries[start..end]),
        }
        start = end;
    }
    entries.copy_from_slice(scratch);
}

/// The bits in which entries differ, from the highest one down.
struct Digits {
    /// Bits below the highest that differs, and that one.
    high: u32,
}

impl Digits {
    /// `None` if all entries are equal.
    fn of(entries: &[u64]) -> Option<Self> {
        let first = *entries.first()?;
        let differing = entries.iter().fold(0, |bits, entry| bits | (entry ^ first));
        let high = u64::BITS - differing.leading_zeros();
        (high > 0).then_some(Self { high })
    }
}

fn sort_cached(entries: &mut [u64], scratch: &mut [u64]) {
    let Some(Digits { high }) = Digits::of(entries) else {
        return;
    };
    // Three bits more than the entries would need if they were spread evenly.
    let wanted = usize::BITS - entries.len().leading_zeros() + 3;
    let passes = wanted.min(high).div_ceil(DIGIT_BITS);
    let bits = wanted.min(high).div_ceil(passes);
    let low = high - (bits * passes).min(high);
    let (mut from, mut to) = (&mut *entries, &mut *scratch);
    for pass in 0..passes {
        distribute(from, to, low + pass * bits, bits);
        (from, to) = (to, from);
    }
    if passes % 2 == 1 {
        entries.copy_from_slice(scratch);
    }
    if low > 0 {
        for alike in entries.chunk_by_mut(|a, b| a >> low == b >> low) {
            if alike.len() > 1 {
                alike.sort_unstable();
            }
        }
    }
}

/// Copies entries in the order of one digit, the bits from `low` on; equal digits keep their order.
/// Gives the end of each digit's entries.
fn distribute(from: &[u64], to: &mut [u64], low: u32, bits: u32) -> Vec<usize> {
    let mask = (1_u64 << bits) - 1;
    let digit = |entry: u64| ((entry >> low) & mask) as usize;
    let mut ends = vec![0_usize; 1 << bits];
    from.iter().for_each(|&entry| ends[digit(entry)] += 1);
    let mut sum = 0;
    for end in &mut ends {
        sum += std::mem::replace(end, sum);
    }
    for &entry in from {
        let next = &mut ends[digit(entry)];
        to[*next] = entry;
        *next += 1;
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn buckets_sort_as_a_sort_does(
            entries in prop::collection::vec(any::<u64>(), 0..3000),
            common_bits in 0_u32..64,
            repeated in 1_usize..300,
        ) {
            // Sometimes more than fit into a cache; and with equal ones.
            let spread = |place: usize| entries.iter().map(move |entry| {
                (entry.rotate_left(place as u32 % 7)) >> common_bits
            });
            let mut entries: Vec<u64> = (0..repeated).flat_map(spread).collect();
            let mut expected = entries.clone();
            expected.sort_unstable();
            sort_entries(&mut entries, &mut Vec::new());
            prop_assert_eq!(entries, expected);
        }

        #[test]
        fn entries_are_in_the_order_of_their_keys(
            key_bytes in 1_usize..24,
            bytes in prop::collection::vec(any::<u8>(), 24..6000),
            alphabet in prop::sample::select(vec![1_u8, 2, 3, 7, 255]),
            common in 0_usize..20,
        ) {
            // Keys with a common prefix, and some without.
            let mut bytes: Vec<u8> = bytes.iter().map(|byte| byte % alphabet).collect();
            let many = bytes.len() / key_bytes * key_bytes;
            let most = bytes[..many].chunks_exact_mut(key_bytes).enumerate();
            for (_, key) in most.filter(|(number, _)| number % 17 != 3) {
                let end = common.min(key_bytes);
                key[..end].fill(9);
            }
            let key = |entry: u64| &bytes[place(entry)..place(entry) + key_bytes];
            let places = || (0..many).step_by(key_bytes);
            let sampled: Vec<&[u8]> = places().step_by(5).map(|at| key(at as u64)).collect();
            let keys = || places().map(|at| Ok::<_, ()>((at, key(at as u64))));
            let mut entries = Vec::new();
            let skip = index(&mut entries, &sampled, keys).expect("keys");
            order(&mut entries, &mut Vec::new(), &|entry| &key(entry)[skip..]);
            let keys: Vec<&[u8]> = entries.iter().map(|&entry| key(entry)).collect();
            prop_assert!(keys.is_sorted());
            let mut left: Vec<usize> = entries.iter().map(|&entry| place(entry)).collect();
            left.sort_unstable();
            prop_assert!(left.into_iter().eq(places()));
        }
    }
}
