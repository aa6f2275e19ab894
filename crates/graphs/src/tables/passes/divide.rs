//! Partitions that are larger than memory go through pass one again, each alone, from scratch to
//! scratch, with boundaries of its own.

use std::sync::Arc;

use tonnage_stages::extent::Extent;
use tonnage_stages::scratch::Scratch;

use super::spilled_rows::SpilledRows;
use super::{SAMPLED_SPLITS, TablePasses};
use crate::error::JobError;
use crate::sort::spilled_partition::SpilledPartition;
use crate::tables::format::SplitRows;
use crate::tables::memory::TablePlan;

/// Most rounds.
const ROUNDS: usize = 8;

impl TablePasses<'_> {
    /// Partitions again what is too large for pass two.
    ///
    /// # Errors
    /// What fails, or the cancellation.
    pub fn divide(
        &mut self,
        plan: &TablePlan,
        scratch: &Arc<Scratch>,
        mut spilled: Vec<SpilledPartition>,
    ) -> Result<Vec<SpilledPartition>, JobError> {
        let mut next_number = spilled.len();
        for _ in 0..ROUNDS {
            if spilled
                .iter()
                .all(|partition| partition.span() <= plan.slot_bytes)
            {
                return Ok(spilled);
            }
            let mut divided = Vec::new();
            for partition in spilled {
                if partition.span() <= plan.slot_bytes {
                    divided.push(partition);
                    continue;
                }
                if partition.in_order {
                    divided.extend(partition.in_parts(plan.slot_bytes));
                    continue;
                }
                let bytes = partition
                    .blocks
                    .iter()
                    .map(|block| block.len)
                    .sum::<usize>();
                self.repartitioned_bytes += bytes as u64;
                let rows = Arc::new(SpilledRows {
                    shape: self.table.shape(),
                });
                let blocks = numbered(partition.divided(usize::MAX));
                let every = blocks.len().div_ceil(SAMPLED_SPLITS);
                let chosen = blocks.iter().step_by(every).cloned().collect();
                let sampled = SplitRows {
                    rows: rows.clone(),
                    extents: numbered(chosen),
                };
                let sample = self.sample_rows("sample_again", sampled)?;
                let wanted = (2 * bytes / plan.slot_bytes + 2).min(plan.partitions.max(3));
                let ranges = self.ranges(&sample, wanted);
                let all = SplitRows {
                    rows,
                    extents: blocks,
                };
                let (mut again, _) =
                    self.partition("pass_one_again", plan, all, ranges, scratch, next_number)?;
                next_number += again.len();
                again
                    .iter_mut()
                    .for_each(|part| part.number = partition.number);
                divided.extend(again);
            }
            spilled = divided;
        }
        Err(JobError::failure(format!(
            "partitions are still too large for {} bytes of memory after repeated splitting; use \
             more memory",
            plan.memory_bytes
        )))
    }
}

/// Extents with their places as numbers.
fn numbered(extents: Vec<Arc<Extent>>) -> Vec<Arc<Extent>> {
    let number = |(number, extent): (usize, Arc<Extent>)| {
        Arc::new(Extent {
            number,
            ..extent.as_ref().clone()
        })
    };
    extents.into_iter().enumerate().map(number).collect()
}
