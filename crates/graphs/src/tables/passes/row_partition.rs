//! Rows between the passes: the blocks of a partition, and which of its rows are wanted.

use std::mem;
use std::sync::Arc;

use tonnage_stages::totals::Total;
use tonnage_stages::work::Quota;

use crate::sort::spilled_partition::SpilledPartition;

/// Whether all keys of a partition are equal, and which rows are wanted then.
#[derive(Clone, Copy, Debug)]
pub enum EqualKeys {
    /// They are not, as far as is known.
    None,
    /// All rows.
    AllWanted,
    /// One row, whichever.
    AnyWanted,
    /// The one with the least number.
    FirstWanted,
}

impl EqualKeys {
    /// What is wanted of rows with one key, if they are `single`.
    pub fn of(single: bool, is_unique: bool, is_numbered: bool) -> Self {
        match (single, is_unique, is_numbered) {
            (false, ..) => Self::None,
            (true, false, _) => Self::AllWanted,
            (true, true, false) => Self::AnyWanted,
            (true, true, true) => Self::FirstWanted,
        }
    }
}

/// A partition of rows between the passes.
pub struct RowPartition {
    /// Its blocks.
    pub spilled: SpilledPartition,
    /// Its rows, if they are counted; of parts of equal keys only the first tells them, of all.
    pub rows: Total,
    /// How many of them are wanted, if not all; parts of equal keys share them.
    pub quota: Option<Arc<Quota>>,
    /// Rows of the partition that this one was divided from, which no part has: they are not wanted.
    pub others: Total,
}

impl RowPartition {
    /// A partition that has these rows, which are all wanted; of equal keys one, if they are to be
    /// unique.
    pub fn new(mut spilled: SpilledPartition, rows: Total, keys: EqualKeys) -> Self {
        let quota = match keys {
            EqualKeys::None | EqualKeys::AllWanted => None,
            EqualKeys::AnyWanted | EqualKeys::FirstWanted => Some(Arc::new(Quota::new(1))),
        };
        spilled.in_order = matches!(keys, EqualKeys::AllWanted | EqualKeys::AnyWanted);
        Self {
            spilled,
            rows,
            quota,
            others: Total::default(),
        }
    }

    /// A partition of equal keys, as several that span at most `most_bytes` each.
    pub fn in_parts(self, most_bytes: usize) -> impl Iterator<Item = Self> {
        let Self {
            spilled,
            mut rows,
            quota,
            mut others,
        } = self;
        let parts = spilled.in_parts(most_bytes).into_iter();
        parts.map(move |spilled| Self {
            spilled,
            rows: mem::take(&mut rows),
            quota: quota.clone(),
            others: mem::take(&mut others),
        })
    }
}
