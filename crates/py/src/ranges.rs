//! Ranges of objects as Python reads them, each by several concurrent requests.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tonnage_graphs::objects::object_input::{self, ObjectError, Settings, store_error};

use crate::errors::{RunError, raised};

/// Reads ranges of objects, from any thread.
#[pyclass(frozen, module = "tonnage._core")]
pub struct Ranges(Arc<object_input::ParallelReader>);

#[pymethods]
impl Ranges {
    /// Of a store, whose settings are JSON; with so many concurrent requests per range.
    #[new]
    fn new(store: &str, at_once: usize) -> PyResult<Self> {
        let store: Settings = serde_json::from_str(store)
            .map_err(|why| PyValueError::new_err(format!("the settings: {why}")))?;
        Ok(Self(Arc::new(object_input::ParallelReader::new(
            &store, at_once,
        ))))
    }

    /// Bytes of an object from `offset` on; other Python threads run while it waits.
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

    /// Makes all current and later reads fail.
    fn stop(&self) {
        self.0.stop();
    }

    /// Requests so far, in JSON.
    fn requests(&self) -> PyResult<String> {
        let counts = self.0.counts();
        serde_json::to_string(&counts).map_err(|why| PyRuntimeError::new_err(why.to_string()))
    }
}

/// Turns an error into a Python exception; names the object if it was changed.
fn read_error(why: &ObjectError) -> PyErr {
    match why.changed() {
        Some(name) => {
            RunError::new_err((why.to_string(), "read", PathBuf::from(name), None::<u64>))
        }
        None => raised(store_error(why)),
    }
}
