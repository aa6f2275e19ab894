//! Scratch: where pass one spills the blocks of partitions, and how pass two finds them.
//!
//! There is one file per device, filled from its beginning, so writes are sequential for any number
//! of partitions. On one machine the file has no name, so a killed process leaves nothing behind;
//! on a cluster it has one, so that a restarted node can resume. All blocks of a partition are on
//! one device. The index stays in memory: 24 bytes a block during pass one, a `Piece` a block in
//! pass two. Each block records its sender, so blocks from a lost peer can be dropped.

mod held_blocks;
mod index;
mod spare_memory;

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroU32;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ScopedJoinHandle};

use tonnage_disk::{Disk, DiskError, DiskFile};
use tonnage_pipeline::{Buffer, Pool};
use tonnage_records::crc32;

use crate::extent::{Extent, FileRef, Piece, aligned};
use crate::totals::Total;
pub use held_blocks::HeldBlocks;
use index::IndexedBlock;
pub use spare_memory::SpareMemory;

/// Growth of a file that turns out too short.
const GROWTH_BYTES: u64 = 64 << 20;

/// Blocks on several devices.
#[derive(Debug)]
pub struct Scratch {
    devices: Vec<Device>,
    partitions: Mutex<Vec<Vec<Block>>>,
    received: Option<Mutex<ReceivedTotals>>,
    held: Option<HeldBlocks>,
    spare: Option<SpareMemory>,
    is_checked: bool,
}

/// What arrived of each partition from each sender.
type ReceivedTotals = BTreeMap<(usize, usize), Total>;

#[derive(Debug)]
struct Device {
    file: Arc<DiskFile>,
    next: Mutex<u64>,
}

/// Where a block lies; its partition determines its device.
#[derive(Clone, Copy, Debug)]
struct Block {
    offset: u64,
    len: u32,
    peer: u32,
    crc: Option<NonZeroU32>,
}

impl Scratch {
    /// Scratch files in `directories` (one per device), of `bytes` in total at first.
    ///
    /// # Errors
    /// When a file cannot be created or the device has no room.
    pub fn create(disk: &Disk, directories: &[PathBuf], bytes: u64) -> Result<Self, DiskError> {
        let share = share(bytes, directories.len());
        Self::of(
            directories
                .iter()
                .map(|directory| disk.scratch(directory, share)),
        )
    }

    /// The same with named files.
    ///
    /// # Errors
    /// When a file cannot be created or the device has no room.
    pub fn in_files(disk: &Disk, files: &[PathBuf], bytes: u64) -> Result<Self, DiskError> {
        let share = share(bytes, files.len());
        Self::of(files.iter().map(|file| disk.create(file, share)))
    }

    /// Scratch that was saved, in files of these names.
    ///
    /// # Errors
    /// When a file cannot be opened, or the index is damaged.
    pub fn saved(disk: &Disk, files: &[PathBuf], index: &Path) -> io::Result<Self> {
        let scratch = Self::of(files.iter().map(|file| disk.open_read(file)));
        let scratch = scratch.map_err(|why| io::Error::other(why.to_string()))?;
        let mut partitions = scratch.lock();
        for IndexedBlock {
            partition,
            len,
            offset,
            crc,
        } in self::index::read(index)?
        {
            let block = Block {
                offset,
                len,
                peer: 0,
                crc: NonZeroU32::new(crc),
            };
            of_partition(&mut partitions, partition as usize).push(block);
        }
        drop(partitions);
        Ok(scratch)
    }

    fn of(
        files: impl Iterator<Item = Result<Arc<DiskFile>, DiskError>>,
    ) -> Result<Self, DiskError> {
        let device = |file| Device {
            file,
            next: Mutex::new(0),
        };
        Ok(Self {
            devices: files
                .map(|file| file.map(device))
                .collect::<Result<_, _>>()?,
            partitions: Mutex::default(),
            received: None,
            held: None,
            spare: None,
            is_checked: false,
        })
    }

    /// Counts what arrives, for blocks whose reader cannot count it again.
    #[must_use]
    pub fn counting(mut self) -> Self {
        self.received = Some(Mutex::default());
        self
    }

    /// Notes the CRC-32 of each block that is written, so that its reader sees whether it has
    /// changed.
    #[must_use]
    pub fn with_checksums(mut self) -> Self {
        self.is_checked = true;
        self
    }

    /// Keeps blocks in memory as long as there is room.
    #[must_use]
    pub fn holding(mut self, held: HeldBlocks) -> Self {
        self.held = Some(held);
        self
    }

    /// Keeps a part of the blocks in spare memory.
    #[must_use]
    pub fn with_spare_memory(mut self, spare: SpareMemory) -> Self {
        self.spare = Some(spare);
        self
    }

    /// Keeps a block in memory; gives it back if there is no room, or if memory is dear for a writer
    /// that has a byte every so many seconds.
    pub fn hold(&self, block: Buffer, seconds_per_byte: f64) -> Option<Buffer> {
        match (&self.held, &self.spare) {
            (Some(held), _) => held.hold(block),
            (None, Some(spare)) => spare.hold(block, seconds_per_byte),
            (None, None) => Some(block),
        }
    }

    /// Where blocks are filled, if they may stay in memory.
    #[must_use]
    pub fn pool(&self) -> Option<Arc<Pool>> {
        self.held.as_ref().map(|held| Arc::clone(held.pool()))
    }

    /// Bytes on all devices, with the alignment of blocks.
    #[must_use]
    pub fn spilled_bytes(&self) -> u64 {
        let next = |device: &Device| *device.next.lock().unwrap_or_else(PoisonError::into_inner);
        self.devices.iter().map(next).sum()
    }

    /// Counts a block that has arrived, if blocks are counted.
    pub fn count(&self, partition: usize, peer: usize, block: &[u8]) {
        if let Some(received) = &self.received {
            let mut total = Total::default();
            total.count(block, block.len());
            let mut received = received.lock().unwrap_or_else(PoisonError::into_inner);
            received.entry((partition, peer)).or_default().add(&total);
        }
    }

    /// The counts of so many partitions, without what was dropped.
    #[must_use]
    pub fn counted(&self, partitions: usize) -> Vec<Total> {
        let mut totals = vec![Total::default(); partitions];
        if let Some(received) = &self.received {
            let received = received.lock().unwrap_or_else(PoisonError::into_inner);
            for (&(partition, _), total) in received.iter() {
                totals[partition].add(total);
            }
        }
        totals
    }

    /// Drops blocks from senders that `is_whole` rejects; gives the bytes left of each partition.
    pub fn keep(&self, is_whole: impl Fn(usize) -> bool) -> Vec<u64> {
        let mut partitions = self.lock();
        for blocks in partitions.iter_mut() {
            blocks.retain(|block| is_whole(block.peer as usize));
        }
        if let Some(received) = &self.received {
            let mut received = received.lock().unwrap_or_else(PoisonError::into_inner);
            received.retain(|&(_, peer), _| is_whole(peer));
        }
        let bytes = |blocks: &Vec<Block>| blocks.iter().map(|block| u64::from(block.len)).sum();
        partitions.iter().map(bytes).collect()
    }

    /// Bytes of memory that each whole partition takes, with the alignment of its blocks.
    #[must_use]
    pub fn spans(&self) -> Vec<u64> {
        let span = |blocks: &Vec<Block>| {
            let spans = blocks.iter().map(|block| aligned(block.len as usize));
            spans.sum::<usize>() as u64
        };
        self.lock().iter().map(span).collect()
    }

    /// Waits until everything written is durable, on all devices at once.
    ///
    /// # Errors
    /// When a device fails.
    pub fn flush(&self) -> Result<(), DiskError> {
        thread::scope(|scope| {
            let files = self.devices.iter().map(|device| &device.file);
            let flushes: Vec<_> = files.map(|file| scope.spawn(|| file.flush())).collect();
            let mut flushed = flushes.into_iter().map(ScopedJoinHandle::join);
            flushed.try_for_each(|each| each.unwrap_or_else(|panic| resume_unwind(panic)))
        })
    }

    /// Writes the index atomically. Flush the files first if the index has to survive a power loss.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn save(&self, index: &Path) -> io::Result<()> {
        let partitions = self.lock();
        let blocks = (0..)
            .zip(partitions.iter())
            .flat_map(|(partition, blocks)| {
                blocks.iter().map(move |block| IndexedBlock {
                    partition,
                    len: block.len,
                    offset: block.offset,
                    crc: block.crc.map_or(0, NonZeroU32::get),
                })
            });
        self::index::write(index, blocks)
    }

    /// Number of devices.
    #[must_use]
    pub fn devices(&self) -> usize {
        self.devices.len()
    }

    /// Reserves a place for a block of `partition`, sent by `peer`.
    ///
    /// # Errors
    /// When the device has no room.
    pub fn place(
        &self,
        partition: usize,
        peer: usize,
        payload: &[u8],
    ) -> Result<(Arc<DiskFile>, u64), DiskError> {
        let len = payload.len();
        let crc = match self.is_checked {
            true => NonZeroU32::new(crc32(payload)),
            false => None,
        };
        let device = &self.devices[partition % self.devices.len()];
        let span = aligned(len) as u64;
        let mut next = device.next.lock().unwrap_or_else(PoisonError::into_inner);
        if *next + span > device.file.len() {
            device
                .file
                .grow((*next + span.max(GROWTH_BYTES)).next_multiple_of(1 << 20))?;
        }
        let offset = *next;
        *next += span;
        let block = Block {
            offset,
            len: u32::try_from(len).expect("a block is below 4 GiB"),
            peer: peer as u32,
            crc,
        };
        of_partition(&mut self.lock(), partition).push(block);
        Ok((Arc::clone(&device.file), offset))
    }

    /// Everything that was written, as extents of `extent_bytes` for reading it in order, one lane
    /// per device.
    #[must_use]
    pub fn filled(&self, extent_bytes: usize) -> Vec<Vec<Arc<Extent>>> {
        let extent_bytes = aligned(extent_bytes);
        let lane = |(number, device): (usize, &Device)| {
            let end = *device.next.lock().unwrap_or_else(PoisonError::into_inner);
            let extent = |offset: u64| {
                let len = (end - offset).min(extent_bytes as u64) as usize;
                let file = FileRef::Open(Arc::clone(&device.file));
                let pieces = vec![Piece {
                    file,
                    offset,
                    len,
                    crc: None,
                }];
                Arc::new(Extent {
                    number,
                    offset,
                    in_order: false,
                    pieces,
                })
            };
            (0..end).step_by(extent_bytes).map(extent).collect()
        };
        self.devices.iter().enumerate().map(lane).collect()
    }

    /// Takes the blocks of `partition` out of the index, those in memory last.
    #[must_use]
    pub fn take(&self, partition: usize) -> Vec<Piece> {
        let file = &self.devices[partition % self.devices.len()].file;
        let blocks = self
            .lock()
            .get_mut(partition)
            .map(std::mem::take)
            .unwrap_or_default();
        let on_disk = blocks.into_iter().map(|block| Piece {
            file: FileRef::Open(Arc::clone(file)),
            offset: block.offset,
            len: block.len as usize,
            crc: block.crc,
        });
        let held = self.held.iter().flat_map(|held| held.take(partition));
        let spare = self.spare.iter().flat_map(|spare| spare.take(partition));
        on_disk.chain(held).chain(spare).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vec<Block>>> {
        self.partitions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn share(bytes: u64, devices: usize) -> u64 {
    (bytes / devices as u64 + 1).next_multiple_of(1 << 20)
}

fn of_partition<T>(partitions: &mut Vec<Vec<T>>, partition: usize) -> &mut Vec<T> {
    if partitions.len() <= partition {
        partitions.resize_with(partition + 1, Vec::new);
    }
    &mut partitions[partition]
}
