//! Ranges of bytes that are read together.

use std::ops::Range;

/// Ranges in order, as one those that touch or have at most `gap` bytes between them.
pub(crate) fn joined(mut ranges: Vec<Range<u64>>, gap: u64) -> Vec<Range<u64>> {
    ranges.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start.saturating_sub(last.end) <= gap => {
                last.end = last.end.max(range.end);
            }
            _ => joined.push(range),
        }
    }
    joined
}
