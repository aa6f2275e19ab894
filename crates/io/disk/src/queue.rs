//! The interface: requests and completions.
//!
//! A request moves bytes between one piece of memory and any number of file ranges. The memory
//! travels with the request and returns with its completion, even after an error. So no error loses
//! a buffer, and nobody touches one while the kernel has it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::DiskError;
use crate::file::DiskFile;
use crate::memory::Memory;

/// Which way the bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the file to the memory.
    Read,
    /// From the memory to the file.
    Write,
    /// From the memory to the file, and done when it is durable (`RWF_DSYNC`).
    WriteDurably,
}

impl Direction {
    /// Whether the file is written.
    #[must_use]
    pub fn is_write(self) -> bool {
        self != Self::Read
    }
}

/// One contiguous range of a file, and where in the memory it goes.
///
/// For a direct file the offset, the length and the address are multiples of
/// [`DiskFile::alignment`] (the last range of a file runs past its end); a
/// buffered file takes anything.
#[derive(Clone, Debug)]
pub struct Segment {
    /// The file.
    pub file: Arc<DiskFile>,
    /// First byte in the file.
    pub offset: u64,
    /// First byte in the memory.
    pub at: usize,
    /// How many bytes.
    pub len: usize,
}

/// Something to read or write.
pub struct Request<M> {
    /// Which way.
    pub direction: Direction,
    /// The memory; owned by the queue until the completion.
    pub memory: M,
    /// The ranges. They may lie in different files.
    pub segments: Vec<Segment>,
    /// The caller's own tag, returned unchanged.
    pub tag: u64,
}

/// A request that is done.
pub struct Completion<M> {
    /// The memory of the request, which the kernel no longer touches.
    pub memory: M,
    /// The tag of the request.
    pub tag: u64,
    /// Bytes moved over all segments: fewer than requested where a read met the end of a file,
    /// which ends its segment early. Or the first error.
    pub result: Result<usize, DiskError>,
}

/// A queue of requests to the disk, one per worker thread.
///
/// Requests start in order of submission and complete in any order. Dropping a queue waits for the
/// transfers in the kernel and drops the rest. A queue stays on the thread that made it: a ring may
/// serve no other.
pub trait Queue<M: Memory> {
    /// Queues a request without a system call; the next `wait` submits it to the kernel together
    /// with the others. The completion reports any error.
    fn submit(&mut self, request: Request<M>);

    /// Waits for the next completion; none if nothing is outstanding.
    fn wait(&mut self) -> Option<Completion<M>>;

    /// The next completion if the kernel has reported it already; without a system call.
    fn ready(&mut self) -> Option<Completion<M>>;

    /// Requests that were not returned yet.
    fn outstanding(&self) -> usize;

    /// Transfers in the kernel now; never more than the depth.
    fn in_flight(&self) -> usize;

    /// How transfers are really done.
    fn mode(&self) -> Mode;
}

/// How a queue really works: reported with every result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mode {
    /// `io_uring`, `threads` or `null`.
    pub engine: String,
    /// Whether the memory is registered with the kernel.
    pub registered: bool,
    /// Whether all files seen so far bypass the page cache.
    pub direct: bool,
    /// Why it is not the preferred mode, if it is not.
    pub why: Option<String>,
}
