//! Rows that were spilled, for a partition that is divided again.

use tonnage_formats::Pieces;
use tonnage_pipeline::{Failure, StageError};
use tonnage_stages::work::{RowSource, TakeRows};
use tonnage_tables::{RowShape, Rows};

/// Rows that are taken at once.
const STRIDE_ROWS: usize = 512;

/// Gives rows as they are.
#[derive(Clone, Debug)]
pub struct SpilledRows {
    /// Where their keys are.
    pub shape: RowShape,
}

impl RowSource for SpilledRows {
    fn shape(&self) -> RowShape {
        self.shape
    }

    fn memory_bytes(&self) -> usize {
        STRIDE_ROWS * size_of::<u32>()
    }

    fn rows(&self, _split: usize, bytes: Pieces, take: TakeRows<'_>) -> Result<(), StageError> {
        let mut starts = Vec::with_capacity(STRIDE_ROWS + 1);
        for block in bytes.iter() {
            let mut rest: &[u8] = block;
            while !rest.is_empty() {
                starts.clear();
                starts.push(0);
                let mut end = 0;
                while end < rest.len() && starts.len() <= STRIDE_ROWS {
                    let row = RowShape::row_bytes(&rest[end..]).filter(|&bytes| bytes > 0);
                    end += row.ok_or_else(damaged)?;
                    starts.push(end as u32);
                }
                let (rows, left) = rest.split_at_checked(end).ok_or_else(damaged)?;
                take(Rows::new(rows, &starts))?;
                rest = left;
            }
        }
        Ok(())
    }
}

fn damaged() -> Failure {
    Failure::new("a block in scratch has no whole rows: a device or memory is corrupting data")
}
