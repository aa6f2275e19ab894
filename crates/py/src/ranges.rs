//! Parts of objects as Python reads them: here and there, each by several requests at once.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tonnage_graphs::objects::object_input::{self, ObjectError, Settings, store_error};

use crate::errors::{RunError, raised};

/// Reads parts of objects, in any thread.
#[pyclass(frozen, module = "tonnage._core")]
pub struct Ranges(Arc<object_input::ParallelReader>);

#[pymethods]
impl Ranges {
    /// Of a store, whose settings are JSON; with so many requests at once for each part.
    #[new]
    fn new(store: &str, at_once: usize) -> PyResult<Self> {
        let store: Settings = serde_json::from_str(store)
            .map_err(|why| PyValueError::new_err(format!("the settings: {why}")))?;
        Ok(Self(Arc::new(object_input::ParallelReader::new(
            &store, at_once,
        ))))
    }

    /// What an object holds from `offset` on; other threads of Python go on meanwhile.
    #[pyo3(signature = (bucket, key, etag, offset, length))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        bucket: &str,
        key: &str,
        etag: Option<&str>,
        offset: u64,
        length: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        PyBytes::new_with(py, length, |memory| {
            let read = py.detach(|| self.0.read(bucket, key, etag, offset, memory));
            read.map_err(|why| read_error(&why))
        })
    }

    /// Has all that reads fail.
    fn stop(&self) {
        self.0.stop();
    }

    /// What was asked of the store, in JSON.
    fn requests(&self) -> PyResult<String> {
        let counts = self.0.counts();
        serde_json::to_string(&counts).map_err(|why| PyRuntimeError::new_err(why.to_string()))
    }
}

/// An error as it is raised; of an object that was changed, with its name.
fn read_error(why: &ObjectError) -> PyErr {
    match why.changed() {
        Some(name) => {
            RunError::new_err((why.to_string(), "read", PathBuf::from(name), None::<u64>))
        }
        None => raised(store_error(why)),
    }
}
