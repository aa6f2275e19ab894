//! Scratch: where pass one puts the blocks of partitions, and how pass two finds them.
//!
//! One nameless file a device, filled from its beginning: writing is sequential, whatever the
//! number of partitions, and a killed process leaves nothing behind. A partition's blocks are all
//! on one device. The index is kept in memory: 16 bytes a block
//! while pass one runs, and a `Piece` for each block in pass two.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tonnage_disk::{Disk, DiskError, DiskFile};

use crate::extent::{Extent, FileRef, Piece, aligned};

/// By how much a file grows that turns out too short.
const GROWTH_BYTES: u64 = 64 << 20;

/// Blocks on several devices.
#[derive(Debug)]
pub struct Scratch {
    devices: Vec<Device>,
    partitions: Mutex<Vec<Vec<Block>>>,
}

#[derive(Debug)]
struct Device {
    file: Arc<DiskFile>,
    next: Mutex<u64>,
}

/// Where a block lies; its device follows from its partition.
#[derive(Clone, Copy, Debug)]
struct Block {
    offset: u64,
    len: usize,
}

impl Scratch {
    /// Scratch files in `directories` (one a device), together `bytes` large at first.
    ///
    /// # Errors
    /// When a file cannot be made or the device has no room.
    pub fn create(disk: &Disk, directories: &[PathBuf], bytes: u64) -> Result<Self, DiskError> {
        let share = bytes / directories.len() as u64 + 1;
        let device = |directory: &PathBuf| {
            let file = disk.scratch(directory, share.next_multiple_of(1 << 20))?;
            Ok(Device {
                file,
                next: Mutex::new(0),
            })
        };
        let devices = directories
            .iter()
            .map(device)
            .collect::<Result<_, DiskError>>()?;
        Ok(Self {
            devices,
            partitions: Mutex::default(),
        })
    }

    /// How many devices there are.
    #[must_use]
    pub fn devices(&self) -> usize {
        self.devices.len()
    }

    /// A place for a block of `len` payload bytes of `partition`.
    ///
    /// # Errors
    /// When the device has no room.
    pub fn place(&self, partition: usize, len: usize) -> Result<(Arc<DiskFile>, u64), DiskError> {
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
        let mut partitions = self.lock();
        if partitions.len() <= partition {
            partitions.resize_with(partition + 1, Vec::new);
        }
        partitions[partition].push(Block { offset, len });
        Ok((Arc::clone(&device.file), offset))
    }

    /// Everything that was written, as extents of `extent_bytes` for reading it in order, a lane a
    /// device.
    #[must_use]
    pub fn filled(&self, extent_bytes: usize) -> Vec<Vec<Arc<Extent>>> {
        let extent_bytes = aligned(extent_bytes);
        let lane = |(number, device): (usize, &Device)| {
            let end = *device.next.lock().unwrap_or_else(PoisonError::into_inner);
            let extent = |offset: u64| {
                let len = (end - offset).min(extent_bytes as u64) as usize;
                let file = FileRef::Open(Arc::clone(&device.file));
                let pieces = vec![Piece { file, offset, len }];
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

    /// The blocks of `partition`, which are forgotten here.
    #[must_use]
    pub fn take(&self, partition: usize) -> Vec<Piece> {
        let file = &self.devices[partition % self.devices.len()].file;
        let blocks = self
            .lock()
            .get_mut(partition)
            .map(std::mem::take)
            .unwrap_or_default();
        blocks
            .into_iter()
            .map(|Block { offset, len }| Piece {
                file: FileRef::Open(Arc::clone(file)),
                offset,
                len,
            })
            .collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vec<Block>>> {
        self.partitions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
