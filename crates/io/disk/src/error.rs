//! Errors with the operation, the file and the offset.
//!
//! An error of the operating system has neither path nor offset, and "Input/output error" helps
//! little with a job that moves terabytes through thousands of files. Every error of this crate has
//! both.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A disk operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Building the queue.
    Setup,
    /// Opening a file that exists.
    Open,
    /// Making a new file and reserving its space.
    Create,
    /// Reserving more space.
    Grow,
    /// Cutting to the true size and making durable.
    Sync,
    /// Reading bytes.
    Read,
    /// Writing bytes.
    Write,
}

impl Operation {
    /// How many there are.
    pub(crate) const COUNT: usize = 7;
}

impl fmt::Display for Operation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Operation::Setup => "setup",
            Operation::Open => "open",
            Operation::Create => "create",
            Operation::Grow => "grow",
            Operation::Sync => "sync",
            Operation::Read => "read",
            Operation::Write => "write",
        })
    }
}

/// A disk operation that failed.
///
/// Reads, for example, `read of /data/x at offset 4096: Input/output error (os error 5)`.
#[derive(Debug, thiserror::Error)]
#[error("{operation}{}{}: {source}{}", Of(path), At(offset), Remedy(source))]
pub struct DiskError {
    /// The operation.
    pub operation: Operation,
    path: Option<PathBuf>,
    offset: Option<u64>,
    length: u64,
    /// The error of the operating system.
    pub source: io::Error,
}

impl DiskError {
    /// An error of a whole file of (planned) length `length`.
    pub(crate) fn file(operation: Operation, path: &Path, length: u64, source: io::Error) -> Self {
        DiskError {
            operation,
            path: Some(path.to_owned()),
            offset: None,
            length,
            source,
        }
    }

    /// An error of `length` bytes of a file.
    pub(crate) fn range(
        operation: Operation,
        path: &Path,
        offset: u64,
        length: usize,
        source: io::Error,
    ) -> Self {
        let length = length as u64;
        DiskError {
            operation,
            path: Some(path.to_owned()),
            offset: Some(offset),
            length,
            source,
        }
    }

    /// A queue that could not be built.
    pub(crate) fn setup(source: io::Error) -> Self {
        DiskError {
            operation: Operation::Setup,
            path: None,
            offset: None,
            length: 0,
            source,
        }
    }

    /// The file; `None` when the queue could not be built.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The offset; `None` for an operation on the whole file.
    pub fn offset(&self) -> Option<u64> {
        self.offset
    }

    /// The requested length (of the range, or of the whole file).
    pub fn length(&self) -> u64 {
        self.length
    }
}

/// Writes ` of <path>` if there is one.
struct Of<'a>(&'a Option<PathBuf>);

impl fmt::Display for Of<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .as_ref()
            .map_or(Ok(()), |path| write!(out, " of {}", path.display()))
    }
}

/// Writes what helps, if that is known.
struct Remedy<'a>(&'a io::Error);

impl fmt::Display for Remedy<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                out.write_str("; free some space there, or use another directory")
            }
            _ => Ok(()),
        }
    }
}

/// Writes ` at offset <offset>` if there is one.
struct At<'a>(&'a Option<u64>);

impl fmt::Display for At<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .map_or(Ok(()), |offset| write!(out, " at offset {offset}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_as_promised() {
        let source = || io::Error::from_raw_os_error(libc::EIO);
        let path = Path::new("/data/x");
        assert_eq!(
            DiskError::range(Operation::Read, path, 4096, 512, source()).to_string(),
            "read of /data/x at offset 4096: Input/output error (os error 5)"
        );
        assert_eq!(
            DiskError::file(Operation::Create, path, 9, source()).to_string(),
            "create of /data/x: Input/output error (os error 5)"
        );
        assert_eq!(
            DiskError::setup(source()).to_string(),
            "setup: Input/output error (os error 5)"
        );
    }
}
