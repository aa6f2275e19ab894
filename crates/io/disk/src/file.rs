//! Files for data that is used once.
//!
//! They bypass the page cache (`O_DIRECT`) where the file system can; elsewhere
//! [`page_cache`](crate::page_cache) cleans up behind them. Space is reserved before it is written: direct
//! writes that extend a file are serialised on some file systems, and a full disk is better noticed
//! at the start.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::error::{DiskError, Operation};
use crate::faults::Injector;

/// Alignment of direct transfers, unless a file system needs more.
const ALIGNMENT: usize = 4096;

/// A file, shared by all its users.
#[derive(Debug)]
pub struct DiskFile {
    path: PathBuf,
    /// None for a file of the null disk.
    descriptor: Option<OwnedFd>,
    /// The same file through the page cache, opened when a direct one first needs it.
    buffered: OnceLock<OwnedFd>,
    why_buffered: Option<String>,
    /// Whether its pages stay in the page cache, by request.
    keeps_pages: bool,
    alignment: usize,
    len: AtomicU64,
    faults: Option<Injector>,
}

impl DiskFile {
    pub(crate) fn open_with(
        path: &Path,
        access: i32,
        page_cache: bool,
        faults: Option<Injector>,
    ) -> Result<Arc<DiskFile>, DiskError> {
        let failed = |source| DiskError::file(Operation::Open, path, 0, source);
        if let Some(faults) = &faults {
            faults.control(Operation::Open, path, 0)?;
        }
        let opened = open(path, access, page_cache).map_err(failed)?;
        let len = end_of(&opened.descriptor).map_err(failed)?;
        Ok(Arc::new(Self::new(path.to_owned(), opened, len, faults)))
    }

    pub(crate) fn create_with(
        path: &Path,
        bytes: u64,
        page_cache: bool,
        faults: Option<Injector>,
    ) -> Result<Arc<DiskFile>, DiskError> {
        let failed = |source| DiskError::file(Operation::Create, path, bytes, source);
        if let Some(faults) = &faults {
            faults.control(Operation::Create, path, bytes)?;
        }
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC;
        let opened = open(path, flags, page_cache).map_err(failed)?;
        if let Err(source) = reserve(&opened.descriptor, bytes) {
            let _ = std::fs::remove_file(path);
            return Err(failed(source));
        }
        Ok(Arc::new(Self::new(path.to_owned(), opened, bytes, faults)))
    }

    pub(crate) fn scratch_with(
        dir: &Path,
        bytes: u64,
        faults: Option<Injector>,
    ) -> Result<Arc<DiskFile>, DiskError> {
        let path = scratch_path(dir);
        let failed = |source| DiskError::file(Operation::Create, &path, bytes, source);
        if let Some(faults) = &faults {
            faults.control(Operation::Create, &path, bytes)?;
        }
        let opened = open(dir, libc::O_RDWR | libc::O_TMPFILE, false).or_else(|error| match error
            .raw_os_error()
        {
            Some(libc::EOPNOTSUPP | libc::EISDIR) => open_unlinked(dir),
            _ => Err(error),
        });
        let opened = opened.map_err(failed)?;
        reserve(&opened.descriptor, bytes).map_err(failed)?;
        Ok(Arc::new(Self::new(path, opened, bytes, faults)))
    }

    /// A file of the null disk, which has only a length.
    pub(crate) fn null(path: &Path, len: u64, faults: Option<Injector>) -> Arc<DiskFile> {
        Arc::new(DiskFile {
            path: path.to_owned(),
            descriptor: None,
            buffered: OnceLock::new(),
            why_buffered: None,
            keeps_pages: false,
            alignment: ALIGNMENT,
            len: len.into(),
            faults,
        })
    }

    fn new(path: PathBuf, opened: OpenedFile, len: u64, faults: Option<Injector>) -> DiskFile {
        DiskFile {
            path,
            alignment: alignment_of(&opened.descriptor),
            descriptor: Some(opened.descriptor),
            buffered: OnceLock::new(),
            why_buffered: opened.why_buffered,
            keeps_pages: opened.keeps_pages,
            len: len.into(),
            faults,
        }
    }

    /// Reserves space, so that the file is at least `bytes` long.
    pub fn grow(&self, bytes: u64) -> Result<(), DiskError> {
        if let Some(faults) = &self.faults {
            faults.control(
                Operation::Grow,
                &self.path,
                bytes.saturating_sub(self.len()),
            )?;
        }
        if bytes <= self.len() {
            return Ok(());
        }
        if let Some(descriptor) = &self.descriptor {
            reserve(descriptor, bytes)
                .map_err(|source| DiskError::file(Operation::Grow, &self.path, bytes, source))?;
        }
        self.len.fetch_max(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Waits until all that was written is durable.
    pub fn flush(&self) -> Result<(), DiskError> {
        self.finish(self.len())
    }

    /// Cuts the file to its true length and waits until it is durable.
    pub fn finish(&self, true_len: u64) -> Result<(), DiskError> {
        if let Some(faults) = &self.faults {
            faults.control(Operation::Sync, &self.path, true_len)?;
        }
        if let Some(descriptor) = &self.descriptor {
            truncate(descriptor, true_len)
                // SAFETY: takes the number of a descriptor that is open.
                .and_then(|()| retried(|| unsafe { libc::fdatasync(descriptor.as_raw_fd()) }))
                .map_err(|source| DiskError::file(Operation::Sync, &self.path, true_len, source))?;
        }
        self.len.store(true_len, Ordering::Relaxed);
        Ok(())
    }

    /// The name it was opened by; for scratch, the directory and `(scratch)`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes at opening, or what was reserved or cut since. Writes past the end do not count.
    pub fn len(&self) -> u64 {
        self.len.load(Ordering::Relaxed)
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether transfers bypass the page cache.
    pub fn is_direct(&self) -> bool {
        self.why_buffered.is_none()
    }

    /// Whether its pages are left to the page cache.
    pub(crate) fn keeps_pages(&self) -> bool {
        self.keeps_pages
    }

    /// Alignment of offsets, lengths and addresses of a direct file.
    pub fn alignment(&self) -> usize {
        self.alignment
    }

    /// Why it is not direct.
    pub(crate) fn why_buffered(&self) -> Option<&str> {
        self.why_buffered.as_deref()
    }

    pub(crate) fn descriptor(&self) -> io::Result<RawFd> {
        self.descriptor
            .as_ref()
            .map(AsRawFd::as_raw_fd)
            .ok_or_else(|| {
                io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "a file of the null disk has no bytes",
                )
            })
    }

    /// The same file through the page cache.
    pub(crate) fn buffered_descriptor(&self) -> io::Result<RawFd> {
        if let Some(buffered) = self.buffered.get() {
            return Ok(buffered.as_raw_fd());
        }
        let descriptor = self.descriptor()?;
        // SAFETY: asks for flags, with the number of a descriptor that is open.
        let flags = os_result(unsafe { libc::fcntl(descriptor, libc::F_GETFL) })?;
        // Through the descriptor and not the path, which a scratch file lacks.
        let link = PathBuf::from(format!("/proc/self/fd/{descriptor}"));
        let buffered = open_flags(&link, flags & libc::O_ACCMODE)?;
        // SAFETY: takes numbers only. Advice: what is around is not read this way.
        unsafe { libc::posix_fadvise(buffered.as_raw_fd(), 0, 0, libc::POSIX_FADV_RANDOM) };
        Ok(self.buffered.get_or_init(|| buffered).as_raw_fd())
    }
}

/// The name of a scratch file in messages.
pub(crate) fn scratch_path(dir: &Path) -> PathBuf {
    dir.join("(scratch)")
}

/// A file just opened.
struct OpenedFile {
    descriptor: OwnedFd,
    why_buffered: Option<String>,
    keeps_pages: bool,
}

/// Opens directly if possible, unless the page cache is asked for.
fn open(path: &Path, flags: i32, page_cache: bool) -> io::Result<OpenedFile> {
    if page_cache {
        return Ok(OpenedFile {
            descriptor: open_flags(path, flags)?,
            why_buffered: Some("the page cache was requested".to_owned()),
            keeps_pages: true,
        });
    }
    let why = match open_flags(path, flags | libc::O_DIRECT) {
        Ok(descriptor) if !is_memory(&descriptor) => {
            return Ok(OpenedFile {
                descriptor,
                why_buffered: None,
                keeps_pages: false,
            });
        }
        // Newer kernels accept the flag for a file system in memory, and ignore it.
        Ok(_) => "the file system is in memory".to_owned(),
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => error.to_string(),
        Err(error) => return Err(error),
    };
    let descriptor = open_flags(path, flags)?;
    // SAFETY: takes numbers only. Advice: read ahead generously.
    unsafe { libc::posix_fadvise(descriptor.as_raw_fd(), 0, 0, libc::POSIX_FADV_SEQUENTIAL) };
    let why_buffered = Some(format!("O_DIRECT for {}: {why}", path.display()));
    Ok(OpenedFile {
        descriptor,
        why_buffered,
        keeps_pages: false,
    })
}

/// Where unlinked files are not supported: creates a file and removes its name at once.
fn open_unlinked(dir: &Path) -> io::Result<OpenedFile> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = dir.join(format!(".tonnage-scratch-{}-{number}", std::process::id()));
        // The name is claimed first, since `open` may have to try twice.
        match open_flags(&path, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
        }
        let opened = open(&path, libc::O_RDWR, false);
        std::fs::remove_file(&path)?;
        return opened;
    }
}

/// Opens without updating the access time, which costs each read a little; only the owner may.
fn open_flags(path: &Path, flags: i32) -> io::Result<OwnedFd> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut flags = flags | libc::O_CLOEXEC | libc::O_NOATIME;
    loop {
        // SAFETY: the path is a string that ends with zero and outlives the call.
        match os_result(unsafe { libc::open(path.as_ptr(), flags, 0o666) }) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error)
                if error.raw_os_error() == Some(libc::EPERM) && flags & libc::O_NOATIME != 0 =>
            {
                flags &= !libc::O_NOATIME;
            }
            Err(error) => return Err(error),
            // SAFETY: a descriptor just opened, owned by nobody else.
            Ok(descriptor) => return Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        }
    }
}

/// Whether the file lies in memory, where there is nothing to bypass.
#[allow(clippy::unnecessary_cast, reason = "C libraries differ in the types")]
fn is_memory(descriptor: &OwnedFd) -> bool {
    const RAMFS: i64 = 0x8584_58f6;
    // SAFETY: a structure of numbers, for which zero is a value.
    let mut about: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: an open descriptor, and a structure of the type the call fills in.
    let answer = unsafe { libc::fstatfs(descriptor.as_raw_fd(), &mut about) };
    answer == 0 && [libc::TMPFS_MAGIC as i64, RAMFS].contains(&(about.f_type as i64))
}

fn alignment_of(descriptor: &OwnedFd) -> usize {
    // SAFETY: a structure of numbers, for which zero is a value.
    let mut about: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: an open descriptor, an empty path that ends with zero, and a structure
    // of the type the call fills in.
    let answer = unsafe {
        libc::statx(
            descriptor.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            libc::STATX_DIOALIGN,
            &mut about,
        )
    };
    if answer < 0 || about.stx_mask & libc::STATX_DIOALIGN == 0 {
        return ALIGNMENT;
    }
    let asked = about.stx_dio_mem_align.max(about.stx_dio_offset_align);
    ALIGNMENT.max(asked as usize)
}

/// The size of a file or block device. (The latter have none in their metadata.)
fn end_of(descriptor: &OwnedFd) -> io::Result<u64> {
    // SAFETY: takes numbers only; nothing here uses the position it moves.
    let end = unsafe { libc::lseek(descriptor.as_raw_fd(), 0, libc::SEEK_END) };
    if end < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(end as u64)
    }
}

/// Extends the file to `bytes`, with space on disk if the file system can promise that.
fn reserve(descriptor: &OwnedFd, bytes: u64) -> io::Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    let len =
        libc::off_t::try_from(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))?;
    // SAFETY: takes numbers only.
    match retried(|| unsafe { libc::fallocate(descriptor.as_raw_fd(), 0, 0, len) }) {
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => truncate(descriptor, bytes),
        answer => answer,
    }
}

fn truncate(descriptor: &OwnedFd, bytes: u64) -> io::Result<()> {
    // `set_len` of a borrowed descriptor: it retries and checks the range.
    File::from(descriptor.try_clone()?).set_len(bytes)
}

/// Retries while a signal interrupts.
fn retried(mut call: impl FnMut() -> i32) -> io::Result<()> {
    loop {
        match os_result(call()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            answer => return answer.map(drop),
        }
    }
}

fn os_result(answer: i32) -> io::Result<i32> {
    if answer < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(answer)
    }
}
