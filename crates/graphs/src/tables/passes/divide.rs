//! Partitions that are larger than memory go through pass one again, each alone, from scratch to
//! scratch, with boundaries of its own.

use std::sync::Arc;

use tonnage_stages::boundaries::KeyRanges;
use tonnage_stages::extent::Extent;
use tonnage_stages::scratch::Scratch;

use super::spilled_rows::SpilledRows;
use super::{RowPartition, SAMPLED_SPLITS, TablePasses};
use crate::error::JobError;
use crate::tables::limit;
use crate::tables::memory::TablePlan;
use crate::tables::table_format::SplitRows;

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
        mut partitions: Vec<RowPartition>,
    ) -> Result<Vec<RowPartition>, JobError> {
        let mut next_number = partitions.len();
        for _ in 0..ROUNDS {
            let fits = |partition: &RowPartition| partition.spilled.span() <= plan.slot_bytes;
            if partitions.iter().all(fits) {
                return Ok(partitions);
            }
            let mut divided = Vec::new();
            for partition in partitions {
                if fits(&partition) {
                    divided.push(partition);
                } else if partition.spilled.in_order {
                    divided.extend(partition.in_parts(plan.slot_bytes));
                } else {
                    let mut again = self.partition_again(plan, scratch, &partition, next_number)?;
                    next_number += again.len();
                    let mut others = partition.others;
                    if let Some(quota) = &partition.quota {
                        let left_out;
                        (again, left_out) = limit::first(again, quota.rows());
                        others.add(&left_out);
                    }
                    let last = again.iter_mut().rfind(|part| part.rows.records > 0);
                    if let Some(last) = last {
                        last.others.add(&others);
                    }
                    divided.extend(again);
                }
            }
            partitions = divided;
        }
        Err(JobError::failure(format!(
            "partitions are still too large for {} bytes of memory after repeated splitting; use \
             more memory",
            plan.memory_bytes
        )))
    }

    /// Partitions of a partition, which keep its number.
    fn partition_again(
        &mut self,
        plan: &TablePlan,
        scratch: &Arc<Scratch>,
        partition: &RowPartition,
        first_number: usize,
    ) -> Result<Vec<RowPartition>, JobError> {
        let blocks = numbered(partition.spilled.divided(usize::MAX));
        let bytes: usize = blocks.iter().map(|block| block.len()).sum();
        self.repartitioned_bytes += bytes as u64;
        let rows = Arc::new(SpilledRows {
            shape: self.table.shape(),
        });
        let every = blocks.len().div_ceil(SAMPLED_SPLITS);
        let chosen = blocks.iter().step_by(every).cloned().collect();
        let sampled = SplitRows {
            rows: rows.clone(),
            count: None,
            extents: numbered(chosen),
        };
        let sample = self.sample_rows("sample_again", sampled)?;
        let wanted = (2 * bytes / plan.slot_bytes + 2).min(plan.divided_into());
        let ranges = match &partition.quota {
            // Its keys are equal but for the rows' numbers.
            Some(_) if self.unique => {
                let keys = sample.keys.iter().map(Vec::as_slice).collect();
                KeyRanges::from_sample(keys, wanted)
            }
            _ => self.ranges(&sample, wanted),
        };
        let all = SplitRows {
            rows,
            count: None,
            extents: blocks,
        };
        let pass = self.pass_one(plan, all, ranges, scratch, first_number);
        let (mut again, _) = self.partition("pass_one_again", &pass, scratch)?;
        for part in &mut again {
            part.spilled.number = partition.spilled.number;
        }
        Ok(again)
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
