//! Disk I/O for moving much data: io_uring with registered, aligned buffers and
//! `O_DIRECT`, a thread pool where that is refused, a disk that is not there and
//! one that fails on purpose, all behind one queue.
//!
//! A caller opens [`DiskFile`]s through a [`Disk`], asks it for one [`Queue`] a
//! worker thread, submits [`Request`]s that carry their memory and gets the memory
//! back with each [`Completion`]. What was really used is told by [`Mode`].
//!
//! From the top down:
//!
//! ```text
//! disk.rs       the settings; builds files and queues from them
//! queue.rs      the interface: requests, completions, mode
//! scheduler.rs  splits requests into transfers, bounds the depth, continues short ones
//! backend.rs    what an engine has to do: start, submit, wait, take
//!   uring.rs      in an io_uring
//!   threads.rs    in a pool of threads
//!   blocking.rs   in the calling thread
//!   null.rs       nowhere
//!   faulty.rs     in another engine, with faults put in (faults.rs decides which)
//! transfer.rs   one read or write of one contiguous range
//! file.rs       files: direct if possible, preallocated, scratch
//! cache.rs      keeps buffered files from filling the page cache
//! memory.rs     memory the kernel may write to
//! error.rs      what went wrong, where
//! ```
//!
//! The scheduler is the only place that knows about requests, and the engines are
//! the only places that know about the kernel, so each engine is small and all of
//! them pass one conformance suite.

#![allow(
    unsafe_code,
    reason = "the edge to the kernel: system calls, and memory that the kernel writes to"
)]

mod cache;
mod disk;
mod engine;
mod error;
mod faults;
mod file;
mod memory;
mod queue;
mod scheduler;
mod transfer;

pub use disk::{Disk, Engine};
pub use error::{DiskError, Operation};
pub use faults::{Effect, Faults, OperationCounts, Rule};
pub use file::DiskFile;
pub use memory::{Memory, Region};
pub use queue::{Completion, Direction, Mode, Queue, Request, Segment};
