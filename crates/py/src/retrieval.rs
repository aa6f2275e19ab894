//! A retrieval as Python has it: chunks are asked for, and taken without a copy.
#![allow(unsafe_code)] // Python's buffer protocol: memory in the hands of others.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use tonnage_graphs::reduce::retrieval::Ends;
use tonnage_pipeline::Buffer;

use crate::host_queues::shut;

/// Where chunks are asked for, and taken.
#[pyclass(frozen, module = "tonnage._core")]
pub struct Retrieval(Arc<Ends>);

/// Connections to stores, which retrievals have one after another.
#[pyclass(frozen, module = "tonnage._core")]
#[derive(Default)]
pub struct Clients(Arc<tonnage_graphs::reduce::retrieval::ClientPool>);

#[pymethods]
impl Clients {
    #[new]
    fn new() -> Self {
        Self::default()
    }
}

#[pymethods]
impl Retrieval {
    #[new]
    fn new(clients: &Clients) -> Self {
        Self(Arc::new(Ends::new(&clients.0)))
    }

    /// Asks for so many bytes of a source, by its place in the configuration.
    fn ask(&self, number: usize, source: usize, offset: u64, length: usize) -> PyResult<()> {
        self.0.ask(number, source, offset, length).map_err(shut)
    }

    /// Nothing more is asked for.
    fn close(&self) {
        self.0.close();
    }

    /// What has not come yet is not wanted any more; `take` gives what has come, then `None`.
    fn leave(&self) {
        self.0.leave();
    }

    /// The next chunk that is there; other threads of Python go on meanwhile. `None` after the last.
    fn take(&self, py: Python<'_>) -> PyResult<Option<Chunk>> {
        Ok(py.detach(|| self.0.take()).map_err(shut)?.map(Chunk::of))
    }

    /// How many ranges may be under way from now on.
    fn set_at_once(&self, ranges: usize) {
        self.0.pace().set_at_once(ranges);
    }

    /// The shortest time to the first byte of an answer so far, whole or not, in seconds.
    fn first_byte_seconds(&self) -> Option<f64> {
        let first = self.0.first_byte();
        first.map(|first| first.as_secs_f64())
    }

    /// Requests so far to which the store said that there are too many.
    fn throttled(&self) -> u64 {
        self.0.pace().throttled()
    }

    /// Bytes that have come so far, of chunks that are not whole yet as well.
    fn received(&self) -> u64 {
        self.0.received()
    }

    /// Nobody takes any more.
    fn shut(&self) {
        self.0.abort();
    }
}

impl Retrieval {
    pub(crate) fn ends(&self) -> Arc<Ends> {
        Arc::clone(&self.0)
    }
}

/// A chunk; its memory is the retrieval's again when nobody has it, or a view of it, any more.
#[pyclass(frozen, module = "tonnage._core")]
pub struct Chunk {
    buffer: Buffer,
    views: AtomicUsize,
}

impl Chunk {
    const fn of(buffer: Buffer) -> Self {
        Self {
            buffer,
            views: AtomicUsize::new(0),
        }
    }
}

#[pymethods]
impl Chunk {
    /// The number that it was asked for by.
    #[getter]
    fn number(&self) -> usize {
        self.buffer.number
    }

    /// How many views of its memory there are: arrays, and what was made of them without a copy.
    #[getter]
    fn views(&self) -> usize {
        self.views.load(Relaxed)
    }

    /// Its length in bytes.
    fn __len__(&self) -> usize {
        self.buffer.len
    }

    /// Its bytes, which cannot be written to.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("a view is wanted"));
        }
        let bytes = slf.get().buffer.payload();
        let (start, len) = (
            bytes.as_ptr().cast_mut().cast(),
            bytes.len() as ffi::Py_ssize_t,
        );
        // SAFETY: the bytes stay where they are as long as the chunk is there, of which the view holds
        // a reference, and nobody writes to them: views are read only.
        let filled = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, len, 1, flags) };
        if filled != 0 {
            return Err(PyErr::fetch(slf.py()));
        }
        slf.get().views.fetch_add(1, Relaxed);
        Ok(())
    }

    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        self.views.fetch_sub(1, Relaxed);
    }
}
