//! A file, or an object, that a job writes, and the callback for each that is finished.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use tonnage_pipeline::Failure;

/// A file to be written.
#[derive(Clone, Debug)]
pub struct OutputFile {
    /// Its path, or the name of the object.
    pub path: PathBuf,
    /// Its final length.
    pub bytes: u64,
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
