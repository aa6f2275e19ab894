//! `partition_rows`: makes rows of what was read, and copies each to the open block of its
//! partition.
//!
//! What was read is a split: all bytes that some rows are decoded from. Work proceeds in strides
//! that stay in the cache: rows, their partitions, their blocks. No block is sorted here. Rows are
//! counted by their hashes.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use bytes::Bytes;
use serde_json::{Value, json};
use tonnage_formats::Pieces;
use tonnage_pipeline::{
    Buffer, Failure, MemoryNeed, Pool, Port, Stage, StageError, StageSpec, WorkerPorts,
};
use tonnage_tables::{RowShape, Rows};

use crate::boundaries::KeyRanges;
use crate::extent::Extent;
use crate::ports::{BLOCKS, SPLITS};
use crate::totals::{Total, Totals};
use crate::work::open_blocks::OpenBlocks;

/// Takes some rows of a split.
pub type TakeRows<'a> = &'a mut dyn FnMut(Rows<'_>) -> Result<(), StageError>;

/// Makes rows of splits.
pub trait RowSource: fmt::Debug + Send + Sync {
    /// Where the keys of its rows are.
    fn shape(&self) -> RowShape;

    /// Memory that a worker needs while it decodes a split.
    fn memory_bytes(&self) -> usize;

    /// Gives the rows of a split to `take`, some hundred at a time.
    ///
    /// # Errors
    /// What `take` says, or why the split cannot be decoded.
    fn rows(&self, split: usize, bytes: Pieces, take: TakeRows<'_>) -> Result<(), StageError>;
}

/// Partitions rows.
#[derive(Clone, Debug)]
pub struct PartitionRows {
    /// Makes rows.
    pub source: Arc<dyn RowSource>,
    /// What is read, by the number of the split.
    pub splits: Arc<Vec<Arc<Extent>>>,
    /// Where partitions begin and end.
    pub ranges: Arc<KeyRanges>,
    /// Number of the first partition.
    pub first_number: usize,
    /// The lane of each partition, a device or a connection; `None` if it is not wanted.
    pub lanes: Arc<Vec<Option<usize>>>,
    /// Threads.
    pub workers: usize,
    /// Size of a block.
    pub block_bytes: usize,
    /// Blocks beyond the open ones, on their way to the disk.
    pub spare_blocks: usize,
    /// Where blocks are filled, if they may outlive the pass.
    pub lasting: Option<Arc<Pool>>,
    /// Counts the rows of each partition.
    pub totals: Arc<Totals>,
    /// The length of a row that no block has room for, if there was one.
    pub long_row: Arc<AtomicUsize>,
}

impl StageSpec for PartitionRows {
    fn kind(&self) -> &'static str {
        "partition_rows"
    }

    fn config(&self) -> Value {
        json!({
            "splits": self.splits.len(),
            "partitions": self.ranges.len(),
            "first_number": self.first_number,
            "wanted": self.lanes.iter().flatten().count(),
            "block_bytes": self.block_bytes,
            "spare_blocks": self.spare_blocks,
        })
    }

    fn input(&self) -> Option<Port> {
        Some(SPLITS)
    }

    fn output(&self) -> Option<Port> {
        Some(BLOCKS)
    }

    fn workers(&self) -> usize {
        self.workers
    }

    fn inbox_bytes(&self) -> usize {
        1 // One split may wait; memory allows no more.
    }

    fn memory(&self) -> MemoryNeed {
        let open = self.workers * self.lanes.iter().flatten().count();
        let buffers = match self.lasting {
            Some(_) => 0,
            None => open + self.spare_blocks,
        };
        MemoryNeed {
            buffers,
            buffer_bytes: self.block_bytes,
            private_bytes: self.workers * self.source.memory_bytes(),
        }
    }

    fn lasting_pool(&self) -> Option<Arc<Pool>> {
        self.lasting.clone()
    }

    fn start(&self, worker: usize, _flow: &WorkerPorts) -> Result<Box<dyn Stage>, Failure> {
        let of = (worker, self.workers);
        Ok(Box::new(RowPartitioner {
            blocks: OpenBlocks::new(self.first_number, &self.lanes, self.block_bytes, of),
            partition: self.clone(),
            totals: vec![Total::default(); self.ranges.len()],
        }))
    }
}

struct RowPartitioner {
    partition: PartitionRows,
    blocks: OpenBlocks,
    totals: Vec<Total>, // by partition
}

impl Stage for RowPartitioner {
    fn run(&mut self, ports: &mut WorkerPorts) -> Result<(), StageError> {
        let PartitionRows {
            source,
            splits,
            ranges,
            block_bytes,
            ..
        } = self.partition.clone();
        let shape = source.shape();
        let mut places = Vec::new();
        while let Some(buffer) = ports.receive()? {
            let (split, bytes) = (buffer.number, buffer.len);
            let mut count = 0;
            let pieces = pieces_of(buffer, &splits[split]);
            source.rows(split, pieces, &mut |rows| {
                places.clear();
                for row in rows.iter() {
                    if row.len() > block_bytes {
                        self.partition.long_row.fetch_max(row.len(), Relaxed);
                        return Err(too_long(row.len(), block_bytes).into());
                    }
                    let around = (&[][..], shape.behind_key(row));
                    let place = ranges.range_of(shape.key(row), around);
                    self.totals[place].count_row(row);
                    places.push(place as u32);
                }
                count += places.len();
                for (row, &place) in rows.iter().zip(&places) {
                    self.blocks.append(place as usize, row, ports)?;
                }
                Ok(())
            })?;
            ports.add_moved(bytes, count);
        }
        self.blocks.send_all(ports)?;
        for (place, total) in self.totals.iter().enumerate() {
            self.partition.totals.add(place, total);
        }
        Ok(())
    }
}

fn too_long(row_bytes: usize, block_bytes: usize) -> Failure {
    Failure::bad_input(format!(
        "a row has {row_bytes} bytes, and no sampled row was longer than a block of {block_bytes} \
         bytes; sort the files with such rows alone, on one machine"
    ))
}

/// A buffer that was read, as the bytes of its extent's pieces; its memory is free when the last
/// of them is dropped.
pub fn pieces_of(buffer: Buffer, extent: &Extent) -> Pieces {
    let slot = Bytes::from_owner(Slot(buffer));
    let pieces = extent.pieces.iter().zip(extent.places());
    Pieces::new(
        pieces
            .map(|(piece, place)| (piece.offset, slot.slice(place)))
            .collect(),
    )
}

struct Slot(Buffer);

impl AsRef<[u8]> for Slot {
    fn as_ref(&self) -> &[u8] {
        self.0.slot()
    }
}
