//! A file, or an object, that a job writes, and the callback for each that is finished.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use tonnage_pipeline::Failure;

/// A file to be written.
#[derive(Clone, Debug)]
pub struct OutputFile {
    /// Where.
    pub path: PathBuf,
    /// Its length when it is whole.
    pub bytes: u64,
}

/// Called with the number of each file that is whole and durable.
#[derive(Clone, Default)]
pub struct OnFinished(Option<Arc<Whole>>);

type Whole = dyn Fn(usize) -> Result<(), Failure> + Send + Sync;

impl OnFinished {
    /// Calls this, on a thread of the stage's.
    pub fn call(it: impl Fn(usize) -> Result<(), Failure> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(it)))
    }

    /// Tells of a file.
    pub(crate) fn notify(&self, number: usize) -> Result<(), Failure> {
        self.0.as_ref().map_or(Ok(()), |whole| whole(number))
    }
}

impl fmt::Debug for OnFinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "somebody"
        } else {
            "nobody"
        })
    }
}
