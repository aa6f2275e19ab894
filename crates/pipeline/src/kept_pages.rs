//! Keeps the pages of freed memory while a job runs, for what is not in the [`Arena`](crate::Arena).
//!
//! Pages of columns and row groups come and go by the thousand. By default glibc returns them to
//! the kernel, which clears them again: a tenth of the CPU time of a sort of tables.

#![allow(unsafe_code)] // The edge to the system's allocator.

/// Free memory at the end of a heap that is kept.
const KEPT_BYTES: libc::c_int = 256 << 20;
/// Allocations from this size on are mapped alone: between small ones they would leave holes.
const MAPPED_BYTES: libc::c_int = 4 << 20;
/// By how much heaps grow.
const GROWTH_BYTES: libc::c_int = 4 << 20;

/// Keeps pages until it is dropped.
#[derive(Debug)]
pub struct KeptPages(());

impl KeptPages {
    /// Begins to keep pages, in the whole process. Other allocators than glibc's keep their ways.
    #[must_use]
    pub fn begin() -> Self {
        #[cfg(target_env = "gnu")]
        for (option, bytes) in [
            (libc::M_TRIM_THRESHOLD, KEPT_BYTES),
            (libc::M_MMAP_THRESHOLD, MAPPED_BYTES),
            (libc::M_TOP_PAD, GROWTH_BYTES),
        ] {
            // SAFETY: it sets a number under the allocator's own lock.
            unsafe { libc::mallopt(option, bytes) };
        }
        Self(())
    }
}

impl Drop for KeptPages {
    fn drop(&mut self) {
        // SAFETY: it returns free pages under the allocator's own locks.
        #[cfg(target_env = "gnu")]
        unsafe {
            libc::malloc_trim(0)
        };
    }
}
