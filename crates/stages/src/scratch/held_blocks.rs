//! Blocks that stay in memory: what fits there never goes to a disk.
//!
//! They stay where they were filled, in a pool that outlives the pass; nothing is copied.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use tonnage_pipeline::{Arena, Buffer, Pool};

use crate::extent::{ALIGNMENT, FileRef, Piece};

/// The blocks of each partition that stay in memory.
#[derive(Debug, Default)]
pub(super) struct PartitionBlocks(Vec<Vec<Arc<Buffer>>>);

impl PartitionBlocks {
    pub(super) fn add(&mut self, partition: usize, block: Buffer) {
        super::of_partition(&mut self.0, partition).push(Arc::new(block));
    }

    pub(super) fn take(&mut self, partition: usize) -> Vec<Piece> {
        let blocks = self.0.get_mut(partition).map(std::mem::take);
        let piece = |block: Arc<Buffer>| Piece {
            offset: 0,
            len: block.len,
            crc: None,
            file: FileRef::Held(block),
        };
        blocks.unwrap_or_default().into_iter().map(piece).collect()
    }
}

/// All blocks of a pass.
#[derive(Debug)]
pub struct HeldBlocks {
    pool: Arc<Pool>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    room: usize, // blocks that may still be kept
    partitions: PartitionBlocks,
}

impl HeldBlocks {
    /// Blocks of `block_bytes` in `memory_bytes`, of which so many are never kept, since they are
    /// being filled or on their way to a disk.
    ///
    /// # Errors
    /// When there is not so much memory.
    pub fn new(memory_bytes: usize, block_bytes: usize, moving: usize) -> io::Result<Self> {
        let block_bytes = block_bytes.next_multiple_of(ALIGNMENT);
        let blocks = (memory_bytes / block_bytes).max(moving);
        let memory = Arc::new(Arena::map(blocks * block_bytes)?);
        Ok(Self {
            pool: Pool::carve(&memory, 0, blocks, block_bytes),
            state: Mutex::new(State {
                room: blocks - moving,
                partitions: PartitionBlocks::default(),
            }),
        })
    }

    /// Where blocks are filled.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Keeps a block of the pool; gives it back if there is no room.
    pub fn hold(&self, block: Buffer) -> Option<Buffer> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.room == 0 || block.len == 0 {
            return Some(block);
        }
        state.room -= 1;
        state.partitions.add(block.number, block);
        None
    }

    /// Takes the blocks of `partition`.
    pub fn take(&self, partition: usize) -> Vec<Piece> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.partitions.take(partition)
    }
}
