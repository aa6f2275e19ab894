//! Atomic outputs, for parts that Python writes.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tonnage_graphs::{AtomicOutput, Manifest};

use crate::errors::raised;

/// An output that is not published yet.
#[pyclass(frozen, module = "tonnage._core")]
pub struct Output(Mutex<Option<AtomicOutput>>);

#[pymethods]
impl Output {
    /// Prepares directories, one per device, for parts whose names end in `suffix`.
    #[new]
    fn new(directories: Vec<PathBuf>, suffix: &str) -> PyResult<Self> {
        let output = AtomicOutput::prepare(&directories, suffix).map_err(raised)?;
        Ok(Self(Mutex::new(Some(output))))
    }

    /// Where part `number` is written until it is published.
    fn part(&self, number: usize) -> PyResult<PathBuf> {
        Ok(self.lock().as_ref().ok_or_else(closed_error)?.part(number))
    }

    /// Publishes parts 0 up to `parts`, which are durable, then the manifest, which is JSON.
    fn publish(&self, parts: usize, manifest: &str) -> PyResult<()> {
        let manifest: Manifest = serde_json::from_str(manifest)
            .map_err(|why| PyValueError::new_err(format!("the manifest: {why}")))?;
        let output = self.lock().take().ok_or_else(closed_error)?;
        let names = output.names(parts);
        output.publish(&names, &manifest).map_err(raised)
    }

    /// Removes it, unless it was published.
    fn abandon(&self) {
        drop(self.lock().take());
    }
}

impl Output {
    fn lock(&self) -> MutexGuard<'_, Option<AtomicOutput>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn closed_error() -> PyErr {
    PyValueError::new_err("the output was already published or abandoned")
}
