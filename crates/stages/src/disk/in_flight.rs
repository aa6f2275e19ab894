//! Pipeline buffers as memory of disk queues.
#![allow(unsafe_code)] // Promises one crate's addresses to another: they stay in place.

use tonnage_disk::{Disk, DiskError, Memory, Queue, Region};
use tonnage_pipeline::{Buffer, Failure, WorkerPorts};

/// A buffer while a disk reads or writes it.
pub struct InFlight(pub Buffer);

// SAFETY: a buffer's slot lies in the run's arena, which stays mapped and in place as long as the
// buffer exists, and no other buffer has that slot during that time.
unsafe impl Memory for InFlight {
    fn as_mut_ptr(&mut self) -> *mut u8 {
        self.0.slot_mut().as_mut_ptr()
    }

    fn capacity(&self) -> usize {
        self.0.capacity()
    }
}

/// A queue on `disk` for the buffers of this run.
pub fn queue(disk: &Disk, ports: &WorkerPorts) -> Result<Box<dyn Queue<InFlight>>, Failure> {
    let (start, len) = ports.region();
    disk.queue(&[Region { start, len }])
        .map_err(|why| failure(&why))
}

/// Turns a disk error into a stage's failure.
pub fn failure(error: &DiskError) -> Failure {
    Failure {
        what: error.to_string(),
        file: error.path().map(ToOwned::to_owned),
        offset: error.offset(),
        is_bad_input: false,
    }
}
