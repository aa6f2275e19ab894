//! Disk I/O for bulk data, behind one queue: io_uring with registered, aligned buffers and
//! `O_DIRECT`, a thread pool where io_uring is refused, a null disk, and a disk with seeded faults.
//!
//! A caller opens [`DiskFile`]s through a [`Disk`] and asks it for one [`Queue`] per worker thread.
//! It submits [`Request`]s, which own their memory, and gets the memory back with each
//! [`Completion`]. [`Mode`] says what was really used.
//!
//! ```text
//! disk.rs       the settings; builds files and queues from them
//! queue.rs      the interface: requests, completions, mode
//! scheduler.rs  splits requests into transfers, bounds the depth, continues short transfers
//! engine/       what moves transfers: start, submit, wait, take
//!   uring.rs      an io_uring
//!   threads.rs    a pool of threads
//!   blocking.rs   the calling thread
//!   null.rs       nothing
//!   faulty.rs     another engine, with injected faults (faults.rs decides which)
//! transfer.rs   one read or write of one contiguous range
//! file.rs       files: direct if possible, preallocated, scratch
//! page_cache.rs keeps buffered files from filling the page cache
//! memory.rs     memory that the kernel may write to
//! error.rs      errors with file and offset
//! ```
//!
//! Only the scheduler knows requests, and only the engines know the kernel. So each engine is
//! small, and all of them pass one conformance suite.

#![allow(
    unsafe_code,
    reason = "the edge to the kernel: system calls, and memory that the kernel writes to"
)]

mod disk;
mod engine;
mod error;
mod faults;
mod file;
mod memory;
mod page_cache;
mod queue;
mod scheduler;
mod transfer;

pub use disk::{Disk, Engine};
pub use error::{DiskError, Operation};
pub use faults::{Effect, Faults, OperationCounts, Rule};
pub use file::DiskFile;
pub use memory::{Memory, Region};
pub use queue::{Completion, Direction, Mode, Queue, Request, Segment};
