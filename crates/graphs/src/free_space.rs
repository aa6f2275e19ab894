//! Checks directories and the free space of their devices before a job starts, so that a full or
//! read-only disk is refused instead of failing later.

use std::ffi::CString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{JobError, setting_error, usage_error};

/// Creates `directory` if only its last component is missing; refuses one that cannot be written.
///
/// # Errors
/// Why it cannot be used; `setting` is what named it.
pub fn make_writable(setting: &'static str, directory: &Path) -> Result<(), JobError> {
    let show = directory.display();
    let refuse = |why: io::Error| {
        setting_error(
            setting,
            format!("{show}: {why}; use a directory that can be written to"),
        )
    };
    match fs::create_dir(directory) {
        // A longer missing path is more likely a mistake, or a missing mount.
        Err(why) if why.kind() == io::ErrorKind::NotFound => Err(setting_error(
            setting,
            format!("{show}: its parent directory does not exist; create it first"),
        )),
        Err(why) if why.kind() != io::ErrorKind::AlreadyExists => Err(refuse(why)),
        _ => check_writable(directory).map_err(refuse),
    }
}

/// Whether files can be created in `directory`, according to the kernel.
#[allow(unsafe_code)] // One call: faccessat.
pub fn check_writable(directory: &Path) -> io::Result<()> {
    if !fs::metadata(directory)?.is_dir() {
        return Err(io::Error::from_raw_os_error(libc::ENOTDIR));
    }
    let path = CString::new(directory.as_os_str().as_encoded_bytes())?;
    let mode = libc::W_OK | libc::X_OK;
    // SAFETY: the path is terminated and outlives the call, which only reads it.
    match unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), mode, libc::AT_EACCESS) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Refuses a sort for which the devices have no room: so many bytes in scratch, and in the output.
///
/// # Errors
/// The directory that has too little.
pub fn check_room(scratch: (&[PathBuf], u64), output: (&[PathBuf], u64)) -> Result<(), JobError> {
    let mut wanted: Vec<(u64, u64, &Path)> = Vec::new(); // device, bytes, a directory on it
    for (directories, bytes) in [scratch, output] {
        for directory in directories {
            let about = fs::metadata(directory);
            let about = about.map_err(|why| JobError::file("stat", directory, &why))?;
            let device = std::os::unix::fs::MetadataExt::dev(&about);
            let share = bytes / directories.len() as u64;
            match wanted.iter_mut().find(|(known, ..)| *known == device) {
                Some((_, sum, _)) => *sum += share,
                None => wanted.push((device, share, directory)),
            }
        }
    }
    for (_, bytes, directory) in wanted {
        let free = free_bytes(directory);
        if free.is_some_and(|free| free < bytes) {
            return Err(usage_error(format!(
                "{} has only {} bytes free, but the sort needs about {bytes} bytes there, for its \
                 output or for what memory does not hold; free some space, or use other \
                 directories for scratch or output",
                directory.display(),
                free.unwrap_or(0)
            )));
        }
    }
    Ok(())
}

/// Bytes free for this user; `None` if the file system does not say.
#[allow(unsafe_code)] // One call: statvfs.
fn free_bytes(directory: &Path) -> Option<u64> {
    let path = CString::new(directory.as_os_str().as_encoded_bytes()).ok()?;
    let mut about = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: the path is terminated, and `about` outlives the call, which fills it on success.
    let about = unsafe {
        if libc::statvfs(path.as_ptr(), about.as_mut_ptr()) != 0 {
            return None;
        }
        about.assume_init()
    };
    Some(about.f_bavail * about.f_frsize)
}
