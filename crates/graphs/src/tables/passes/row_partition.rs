//! Rows between the passes: the blocks of a partition, and which of its rows are wanted.

use std::mem;
use std::sync::Arc;

use tonnage_stages::totals::Total;
use tonnage_stages::work::Quota;

use crate::sort::spilled_partition::SpilledPartition;

/// A partition of rows between the passes.
pub struct RowPartition {
    /// Its blocks.
    pub spilled: SpilledPartition,
    /// Its rows, if they are counted; of parts of equal keys only the first tells them, of all.
    pub rows: Total,
    /// How many of them are wanted, if not all; parts of equal keys share them.
    pub quota: Option<Arc<Quota>>,
}

impl From<SpilledPartition> for RowPartition {
    fn from(spilled: SpilledPartition) -> Self {
        Self {
            spilled,
            rows: Total::default(),
            quota: None,
        }
    }
}

impl RowPartition {
    /// A partition of equal keys, as several that span at most `most_bytes` each.
    pub fn in_parts(self, most_bytes: usize) -> impl Iterator<Item = Self> {
        let Self {
            spilled,
            mut rows,
            quota,
        } = self;
        let parts = spilled.in_parts(most_bytes).into_iter();
        parts.map(move |spilled| Self {
            spilled,
            rows: mem::take(&mut rows),
            quota: quota.clone(),
        })
    }
}
