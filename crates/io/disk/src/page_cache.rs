//! Keeps buffered files from filling the page cache.
//!
//! Data that is used once is not worth caching: it evicts what others use, and gigabytes of dirty
//! pages stall everyone when the kernel writes them back at once. So a buffered read drops its
//! pages as soon as they were copied, and a buffered write completes only when its pages were
//! written back and dropped. At most depth times transfer size is ever dirty, and several transfers
//! at once keep the disk busy.

use std::io;
use std::os::fd::RawFd;

/// How [`write_back`] waits: for pages being written already, then for ours.
pub(crate) const WRITE_BACK: u32 = libc::SYNC_FILE_RANGE_WAIT_BEFORE
    | libc::SYNC_FILE_RANGE_WRITE
    | libc::SYNC_FILE_RANGE_WAIT_AFTER;

/// Drops the clean pages of a range. Advice only; failure is harmless.
pub(crate) fn forget(descriptor: RawFd, offset: u64, len: usize) {
    // SAFETY: takes a number and gives one.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
    // The kernel drops whole pages only, so the range is rounded outwards; a dropped neighbour page
    // is read once more.
    let start = offset / page * page;
    let end = (offset + len as u64).next_multiple_of(page);
    // SAFETY: takes numbers only; a bad descriptor gives an error.
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
    // SAFETY: takes numbers only; a bad descriptor gives an error.
    let answer = unsafe { libc::sync_file_range(descriptor, offset as _, len as _, WRITE_BACK) };
    if answer < 0 {
        written_back(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Reports a failed write, but not a file system without support.
pub(crate) fn written_back(error: io::Error) -> io::Result<()> {
    match error.raw_os_error() {
        Some(libc::EIO | libc::ENOSPC | libc::EDQUOT) => Err(error),
        _ => Ok(()),
    }
}
