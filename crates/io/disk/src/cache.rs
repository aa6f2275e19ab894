//! Keeps buffered files from filling the page cache.
//!
//! Bytes that pass through once are not worth keeping: they push out what others
//! use, and gigabytes of dirty pages stall everybody when the kernel at last
//! writes them all at once. So a buffered read forgets its pages as soon as they
//! were copied, and a buffered write is complete only when its pages were handed
//! to the disk and forgotten. At most depth times transfer size is ever dirty,
//! and as several are under way at once the disk stays busy.

use std::io;
use std::os::fd::RawFd;

/// How [`write_back`] waits: for pages being written already, then for ours.
pub(crate) const WRITE_BACK: u32 = libc::SYNC_FILE_RANGE_WAIT_BEFORE
    | libc::SYNC_FILE_RANGE_WRITE
    | libc::SYNC_FILE_RANGE_WAIT_AFTER;

/// Drops the clean pages of a range. Advice only: failing changes nothing.
pub(crate) fn forget(descriptor: RawFd, offset: u64, len: usize) {
    // SAFETY: takes a number and gives one.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
    // The kernel forgets only whole pages, so rounded outwards; a neighbour's page
    // that goes too is read once more.
    let start = offset / page * page;
    let end = (offset + len as u64).next_multiple_of(page);
    // SAFETY: takes numbers only; a bad descriptor is answered with an error.
    unsafe {
        libc::posix_fadvise(
            descriptor,
            start as libc::off_t,
            (end - start) as libc::off_t,
            libc::POSIX_FADV_DONTNEED,
        )
    };
}

/// Writes the dirty pages of a range to the disk and waits for them.
pub(crate) fn write_back(descriptor: RawFd, offset: u64, len: usize) -> io::Result<()> {
    // SAFETY: takes numbers only; a bad descriptor is answered with an error.
    let answer = unsafe { libc::sync_file_range(descriptor, offset as _, len as _, WRITE_BACK) };
    if answer < 0 {
        written_back(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Tells a write that failed from a file system that cannot be asked.
pub(crate) fn written_back(error: io::Error) -> io::Result<()> {
    match error.raw_os_error() {
        Some(libc::EIO | libc::ENOSPC | libc::EDQUOT) => Err(error),
        _ => Ok(()),
    }
}
