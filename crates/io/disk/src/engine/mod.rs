//! What an engine has to do: move single transfers, several at once.
//!
//! Four small steps rather than one, so that an engine may hand several transfers
//! to the kernel with one system call. A transfer is known by its slot, a number
//! below the depth that is not used again before its outcome was taken.

pub(crate) mod blocking;
pub(crate) mod faulty;
pub(crate) mod null;
pub(crate) mod threads;
pub(crate) mod uring;

use std::io;

use crate::transfer::Transfer;

/// The slot of a transfer and the bytes it moved: fewer than asked is no error, and
/// none is the end of the file.
pub(crate) type Outcome = (usize, io::Result<usize>);

/// An engine. Dropping one while it has transfers is a mistake of the scheduler.
pub(crate) trait Backend {
    /// Takes a transfer, without blocking.
    fn start(&mut self, slot: usize, transfer: Transfer);

    /// Hands to the kernel what was started. Does not block.
    fn submit(&mut self);

    /// Like `submit`; returns when an outcome can be taken (or, rarely, earlier).
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
