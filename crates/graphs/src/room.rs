//! Room on devices, asked for before a sort starts: a full disk that is foreseen is no failure.

use std::fs;
use std::path::{Path, PathBuf};

use crate::job::JobError;

/// Refuses a sort of `bytes` that the devices have no room for.
///
/// # Errors
/// Which directory has too little.
pub fn check_room(scratch: &[PathBuf], output: &[PathBuf], bytes: u64) -> Result<(), JobError> {
    let mut wanted: Vec<(u64, u64, &Path)> = Vec::new(); // device, bytes, a directory on it
    for directories in [scratch, output] {
        for directory in directories {
            let about = fs::metadata(directory);
            let about = about.map_err(|why| JobError::file("looking at", directory, &why))?;
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
            return Err(JobError::Refused(format!(
                "{} has {} bytes free, the sort needs {bytes} there (scratch and output each as \
                 large as the input): free some, or give other --scratch or --output directories",
                directory.display(),
                free.unwrap_or(0)
            )));
        }
    }
    Ok(())
}

/// Bytes free for this user; `None` where the file system does not say.
#[allow(unsafe_code)] // One call: statvfs.
fn free_bytes(directory: &Path) -> Option<u64> {
    let path = std::ffi::CString::new(directory.as_os_str().as_encoded_bytes()).ok()?;
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
