//! The sort benchmark's records: what they look like, how they are made, how a run of them is judged.
//!
//! Follows `gensort` and `valsort` 1.5 of the sort benchmark (sortbenchmark.org), bit for bit:
//! [`Generator`] makes the records of the first, [`Summary`] keeps the accounts of the second.
//! Everything here is a pure function over byte slices.

mod checksum;
#[cfg(target_arch = "x86_64")]
mod folding;
mod generate;
mod layout;
mod summary;

pub use checksum::{checksum, crc32};
pub use generate::{Encoding, Generator};
pub use layout::{Layout, LayoutError};
pub use summary::Summary;
