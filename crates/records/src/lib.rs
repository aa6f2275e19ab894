//! The sort benchmark's records: their layout, their generation, and the summary of a run of them.
//!
//! Follows `gensort` and `valsort` 1.5 of the sort benchmark (sortbenchmark.org), bit for bit:
//! [`Generator`] makes the records of the first, [`Summary`] computes the totals of the second.
//! Everything here is a pure function over byte slices.

mod checksum;
#[cfg(target_arch = "x86_64")]
mod crc_folding;
mod generate;
mod layout;
mod summary;

pub use checksum::{checksum, crc32};
pub use generate::{Encoding, Generator};
pub use layout::{Layout, LayoutError};
pub use summary::Summary;
