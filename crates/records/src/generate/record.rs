//! The type of the sort benchmark's records, for their generators.

use crate::layout::Layout;

/// A record of the sort benchmark.
pub(super) type Record = [u8; Layout::SORT_BENCHMARK.record_bytes];
