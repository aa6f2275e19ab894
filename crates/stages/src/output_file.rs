//! A file, or an object, that a job writes, and the callback for each that is finished.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use tonnage_pipeline::Failure;

/// A file to be written.
#[derive(Clone, Debug)]
pub struct OutputFile {
    /// Its path, or the name of the object.
    pub path: PathBuf,
    /// Its final length.
    pub bytes: u64,
}

/// The paths of files, or names of objects, by number; more may come while the first are written.
#[derive(Debug, Default)]
pub struct FilePaths(RwLock<Vec<PathBuf>>);

impl FilePaths {
    /// The files so far.
    #[must_use]
    pub fn new(paths: Vec<PathBuf>) -> Self {
        Self(RwLock::new(paths))
    }

    /// Adds a file, whose path depends on its number; gives the number.
    pub fn add(&self, path: impl FnOnce(usize) -> PathBuf) -> usize {
        let mut paths = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let number = paths.len();
        paths.push(path(number));
        number
    }

    /// The path of a file.
    ///
    /// # Panics
    /// When there is no such file: a bug of the caller.
    #[must_use]
    pub fn get(&self, number: usize) -> PathBuf {
        self.0.read().unwrap_or_else(PoisonError::into_inner)[number].clone()
    }

    /// How many files there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.read().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// Called with the number of each file that is finished and durable.
#[derive(Clone, Default)]
pub struct OnFinished(Option<Arc<FinishedCallback>>);

type FinishedCallback = dyn Fn(usize) -> Result<(), Failure> + Send + Sync;

impl OnFinished {
    /// Calls `it`, on a thread of the stage.
    pub fn call(it: impl Fn(usize) -> Result<(), Failure> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(it)))
    }

    /// Reports a finished file.
    pub(crate) fn notify(&self, number: usize) -> Result<(), Failure> {
        self.0.as_ref().map_or(Ok(()), |whole| whole(number))
    }
}

impl fmt::Debug for OnFinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "a callback"
        } else {
            "no callback"
        })
    }
}
