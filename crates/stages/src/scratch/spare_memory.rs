//! Memory that the passes do not need: a part of the blocks stays there.
//!
//! Memory that is touched for the first time costs the kernel, and under a hypervisor its host, and
//! may cost more than a fast disk. So blocks are copied here only while that takes a small part of
//! a writer's time at the pace at which blocks come. They are chosen evenly over the pass, so that
//! disks have something to do at all times.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tonnage_pipeline::{Arena, Buffer, Pool};

use super::held_blocks::PartitionBlocks;
use crate::extent::{ALIGNMENT, Piece};

/// So many blocks are copied to see what memory costs.
const TRIED: usize = 8;
/// The part of a writer's time that copying may take, if every block were copied.
const PART_OF_TIME: f64 = 0.5;
/// The part of the cost that is forgotten with each block that is not copied, so that it is tried
/// again at times.
const FORGOTTEN: f64 = 1.0 / 256.0;

/// Blocks of partitions in memory that is spare.
#[derive(Debug)]
pub struct SpareMemory {
    pool: Arc<Pool>,
    share: f64, // of all bytes, for which there is room
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    came_bytes: usize,
    kept_bytes: usize,
    copied_blocks: usize,
    seconds_per_byte: f64, // of copying, recently
    partitions: PartitionBlocks,
}

impl SpareMemory {
    /// Room for blocks of `block_bytes` in `memory_bytes`, of about `all_bytes` that come.
    ///
    /// # Errors
    /// When there is not so much memory.
    pub fn new(memory_bytes: usize, block_bytes: usize, all_bytes: u64) -> io::Result<Self> {
        let block_bytes = block_bytes.next_multiple_of(ALIGNMENT);
        let blocks = (memory_bytes / block_bytes).max(1);
        let memory = Arc::new(Arena::map(blocks * block_bytes)?);
        Ok(Self {
            pool: Pool::carve(&memory, 0, blocks, block_bytes),
            share: (memory_bytes as f64 / all_bytes.max(1) as f64).min(1.0),
            state: Mutex::default(),
        })
    }

    /// Keeps a copy of a block; gives the block back otherwise. Its writer has a byte every so many
    /// seconds.
    pub fn hold(&self, block: Buffer, seconds_per_byte: f64) -> Option<Buffer> {
        let Some(mut copy) = self.room(block.len, seconds_per_byte) else {
            return Some(block);
        };
        let began = Instant::now();
        copy.append(block.payload());
        let cost = began.elapsed().as_secs_f64() / block.len as f64;
        let mut state = self.state();
        state.copied_blocks += 1;
        let weight = 1.0 / state.copied_blocks.min(TRIED) as f64; // The last ones count, as memory varies.
        state.seconds_per_byte += weight * (cost - state.seconds_per_byte);
        state.partitions.add(block.number, copy);
        None
    }

    fn room(&self, bytes: usize, seconds_per_byte: f64) -> Option<Buffer> {
        let mut state = self.state();
        state.came_bytes += bytes;
        let is_dear = state.copied_blocks >= TRIED
            && state.seconds_per_byte > PART_OF_TIME * seconds_per_byte;
        let is_ahead = (state.kept_bytes + bytes) as f64 > self.share * state.came_bytes as f64;
        if is_dear {
            state.seconds_per_byte *= 1.0 - FORGOTTEN;
        }
        if bytes == 0 || is_ahead || is_dear {
            return None;
        }
        let room = self.pool.take()?;
        state.kept_bytes += bytes;
        Some(room)
    }

    /// Takes the blocks of `partition`.
    pub fn take(&self, partition: usize) -> Vec<Piece> {
        self.state().partitions.take(partition)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of so many blocks of two partitions are kept where half have room.
    fn blocks_in_memory(blocks: usize, seconds_per_byte: f64) -> usize {
        let arena = Arc::new(Arena::map(ALIGNMENT).expect("memory"));
        let pool = Pool::carve(&arena, 0, 1, ALIGNMENT);
        let (room, all) = (blocks / 2 * ALIGNMENT, (blocks * ALIGNMENT) as u64);
        let spare = SpareMemory::new(room, ALIGNMENT, all).expect("memory");
        for number in 0..blocks {
            let mut block = pool.take().expect("a block");
            block.append(&[number as u8; ALIGNMENT]);
            block.number = number / 2 % 2;
            spare.hold(block, seconds_per_byte);
        }
        let taken = [0, 1].map(|partition| spare.take(partition).len());
        assert!(taken[0].abs_diff(taken[1]) <= 1, "{taken:?}");
        assert!(spare.take(0).is_empty() && spare.take(2).is_empty());
        taken.into_iter().sum()
    }

    #[test]
    fn a_part_is_kept_evenly_unless_memory_is_dear() {
        assert_eq!(blocks_in_memory(40 * TRIED, 1.0), 20 * TRIED);
        assert_eq!(blocks_in_memory(40 * TRIED, 0.0), TRIED);
        assert_eq!(blocks_in_memory(4, 1.0), 2);
    }
}
