//! One read or write of one contiguous range: the unit of work of an engine.
//!
//! A transfer can continue after it moved only a part. The kernel may stop at a byte from which a
//! direct file cannot continue; the rest then goes through the page cache, which accepts any
//! offset. That also tells whether a short read met the end of the file: then the rest reads
//! nothing. It is too rare to deserve anything cleverer.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

use crate::file::DiskFile;
use crate::memory::Pointer;
use crate::page_cache;
use crate::queue::Direction;

/// Flags of the system call.
pub(crate) fn flags(direction: Direction) -> i32 {
    match direction {
        Direction::Read | Direction::Write => 0,
        Direction::WriteDurably => libc::RWF_DSYNC,
    }
}

/// A read or write not yet finished.
#[derive(Clone, Debug)]
pub(crate) struct Transfer {
    pub direction: Direction,
    pub file: Arc<DiskFile>,
    pub offset: u64,
    /// `len` bytes from here are the transfer's own until its outcome is taken.
    pub pointer: Pointer,
    pub len: usize,
    /// Goes through the page cache though the file is direct.
    pub unaligned: bool,
    /// How often the kernel asked to try again.
    pub attempt: u32,
}

impl Transfer {
    /// Leaves what remains after `moved` bytes.
    pub fn advance(&mut self, moved: usize) {
        self.offset += moved as u64;
        self.pointer = self.pointer.add(moved);
        self.len -= moved;
        self.attempt = 0;
        self.unaligned |= self.file.is_direct() && !moved.is_multiple_of(self.file.alignment());
    }

    /// Whether it leaves pages in the page cache that should be dropped.
    pub fn cached(&self) -> bool {
        (self.unaligned || !self.file.is_direct()) && !self.file.keeps_pages()
    }

    /// What to give the kernel.
    pub fn descriptor(&self) -> io::Result<RawFd> {
        if self.unaligned {
            self.file.buffered_descriptor()
        } else {
            self.file.descriptor()
        }
    }

    /// Does it here and now.
    pub fn perform(&self) -> io::Result<usize> {
        let descriptor = self.descriptor()?;
        let offset = self.offset as libc::off_t;
        let moved = match self.direction {
            // SAFETY: the `len` bytes are within the memory of the request, owned by
            // the scheduler and touched by nobody else until the outcome is taken.
            Direction::Read => unsafe {
                libc::pread(descriptor, self.pointer.0.cast(), self.len, offset)
            },
            // SAFETY: as above; the kernel only reads them.
            Direction::Write => unsafe {
                libc::pwrite(descriptor, self.pointer.0.cast(), self.len, offset)
            },
            // SAFETY: as above, in a list of one.
            Direction::WriteDurably => unsafe {
                let list = libc::iovec {
                    iov_base: self.pointer.0.cast(),
                    iov_len: self.len,
                };
                libc::pwritev2(descriptor, &list, 1, offset, flags(self.direction))
            },
        };
        if moved < 0 {
            return Err(io::Error::last_os_error());
        }
        let moved = moved as usize;
        if self.cached() && moved > 0 {
            if self.direction.is_write() {
                page_cache::write_back(descriptor, self.offset, moved)?;
            }
            page_cache::forget(descriptor, self.offset, moved);
        }
        Ok(moved)
    }
}
