//! The interface of an engine: it moves single transfers, several at once.
//!
//! The interface has four small steps, so that an engine can submit several transfers with one
//! system call. A transfer is identified by its slot, a number below the depth that is not reused
//! before its outcome was taken.

pub(crate) mod blocking;
pub(crate) mod faulty;
pub(crate) mod null;
pub(crate) mod threads;
pub(crate) mod uring;

use std::io;

use crate::transfer::Transfer;

/// The slot of a transfer and the bytes it moved. Fewer bytes than requested are no error; 0 is the
/// end of the file.
pub(crate) type Outcome = (usize, io::Result<usize>);

/// An engine. Dropping one that has transfers is a bug of the scheduler.
pub(crate) trait Backend {
    /// Takes a transfer, without blocking.
    fn start(&mut self, slot: usize, transfer: Transfer);

    /// Submits the started transfers to the kernel. Does not block.
    fn submit(&mut self);

    /// Like `submit`, but returns when an outcome can be taken (or, rarely, earlier).
    fn wait(&mut self);

    /// An outcome, if there is one.
    fn take(&mut self) -> Option<Outcome>;

    /// Name for [`Mode`](crate::Mode).
    fn engine(&self) -> &'static str;

    /// Whether memory is registered with the kernel.
    fn registered(&self) -> bool {
        false
    }
}
