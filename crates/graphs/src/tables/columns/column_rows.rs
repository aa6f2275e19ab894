//! Rows of files with columns.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tonnage_formats::Pieces;
use tonnage_pipeline::{Failure, StageError};
use tonnage_stages::extent::{Extent, Piece};
use tonnage_stages::work::{RowSource, TakeRows};
use tonnage_tables::{RowLayout, RowShape, RowWriter};

use crate::tables::columns::column_file::Batches;
use crate::tables::input::table::{Table, TableSplit};

/// Rows of a decoded batch.
const BATCH_ROWS: usize = 8192;

/// Makes rows of splits of a table.
pub struct ColumnRows {
    table: Arc<Table>,
    layout: Arc<RowLayout>,
    splits: Vec<TableSplit>,
    /// What a split takes in memory, as far as is known before they are read.
    memory_bytes: u64,
    /// The turn of the split that takes more.
    turn: Mutex<()>,
}

impl fmt::Debug for ColumnRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} splits of files with columns", self.splits.len())
    }
}

impl ColumnRows {
    /// Rows of these splits.
    pub fn new(table: &Arc<Table>, layout: &Arc<RowLayout>, splits: Vec<TableSplit>) -> Self {
        let decoded_bytes = splits.iter().map(|split| split.split.decoded_bytes).max();
        Self {
            table: Arc::clone(table),
            layout: Arc::clone(layout),
            memory_bytes: decoded_bytes.unwrap_or(0).max(table.decoding_bytes()),
            splits,
            turn: Mutex::new(()),
        }
    }

    /// How many rows there are.
    pub fn count(&self) -> u64 {
        let rows = self.splits.iter().map(|split| &split.split.rows);
        rows.map(|rows| rows.end - rows.start).sum()
    }

    /// What each split needs to be read.
    pub fn extents(&self) -> Vec<Arc<Extent>> {
        let extent = |(number, split): (usize, &TableSplit)| {
            let file = self.table.file(split);
            let piece = |range: &std::ops::Range<u64>| Piece {
                file: file.file.clone(),
                offset: range.start,
                len: (range.end - range.start) as usize,
                crc: None,
            };
            Arc::new(Extent {
                number,
                offset: 0,
                in_order: false,
                pieces: split.split.ranges.iter().map(piece).collect(),
            })
        };
        self.splits.iter().enumerate().map(extent).collect()
    }
}

impl RowSource for ColumnRows {
    fn shape(&self) -> RowShape {
        self.layout.shape()
    }

    fn memory_bytes(&self) -> usize {
        usize::try_from(self.memory_bytes).unwrap_or(usize::MAX)
    }

    fn rows(&self, split: usize, bytes: Pieces, take: TakeRows<'_>) -> Result<(), StageError> {
        let split = &self.splits[split];
        let (file, split) = (self.table.file(split), &split.split);
        let fail = |why: String| Failure::bad_input(format!("input {}: {why}", file.name));
        let batches = split.decode(bytes, BATCH_ROWS);
        let Batches {
            memory_bytes,
            batches,
        } = batches.map_err(|why| fail(why.to_string()))?;
        self.table.count_decoding(memory_bytes);
        let is_long = memory_bytes > self.memory_bytes;
        let _turn = is_long.then(|| self.turn.lock().unwrap_or_else(PoisonError::into_inner));
        let mut writer = RowWriter::new(&self.layout);
        let mut number = file.first_row + split.rows.start;
        for batch in batches {
            let batch = batch.map_err(|why| fail(why.to_string()))?;
            let batch = file.columns.arrange(&batch).map_err(fail)?;
            writer.open(&batch).map_err(|why| fail(why.to_string()))?;
            let mut first = 0;
            while first < batch.num_rows() {
                let rows = writer.write(first..batch.num_rows(), number);
                let rows = rows.map_err(|why| fail(why.to_string()))?;
                take(rows)?;
                first += rows.len();
                number += rows.len() as u64;
            }
        }
        Ok(())
    }
}
