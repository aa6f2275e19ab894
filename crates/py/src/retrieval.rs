//! A retrieval as Python sees it: requests for chunks, and chunks without a copy.
#![allow(unsafe_code)] // Python's buffer protocol lends memory.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use tonnage_graphs::reduce::retrieval::Ends;
use tonnage_pipeline::Buffer;

use crate::host_queues::shut;

/// Requests and takes chunks.
#[pyclass(frozen, module = "tonnage._core")]
pub struct Retrieval(Arc<Ends>);

/// Connections to stores, shared by consecutive retrievals.
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

    /// Requests bytes of a source, by its index in the configuration.
    fn ask(&self, number: usize, source: usize, offset: u64, length: usize) -> PyResult<()> {
        self.0.ask(number, source, offset, length).map_err(shut)
    }

    /// Ends the requests.
    fn close(&self) {
        self.0.close();
    }

    /// Drops chunks that have not arrived; `take` gives those that have, then `None`.
    fn leave(&self) {
        self.0.leave();
    }

    /// The next chunk; other Python threads run while it waits. `None` after the last.
    fn take(&self, py: Python<'_>) -> PyResult<Option<Chunk>> {
        Ok(py.detach(|| self.0.take()).map_err(shut)?.map(Chunk::of))
    }

    /// Limits concurrent ranges from now on.
    fn set_at_once(&self, ranges: usize) {
        self.0.pace().set_at_once(ranges);
    }

    /// The shortest time to a first byte so far, in seconds.
    fn first_byte_seconds(&self) -> Option<f64> {
        let first = self.0.first_byte();
        first.map(|first| first.as_secs_f64())
    }

    /// Requests so far that the store throttled.
    fn throttled(&self) -> u64 {
        self.0.pace().throttled()
    }

    /// Bytes received so far, those of incomplete chunks too.
    fn received(&self) -> u64 {
        self.0.received()
    }

    /// Takes no more.
    fn shut(&self) {
        self.0.abort();
    }
}

impl Retrieval {
    pub(crate) fn ends(&self) -> Arc<Ends> {
        Arc::clone(&self.0)
    }
}

/// A chunk; its memory returns to the retrieval when nobody has it, or a view of it, any more.
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
    /// The number of its request.
    #[getter]
    fn number(&self) -> usize {
        self.buffer.number
    }

    /// Views of its memory: arrays, and what was made of them without a copy.
    #[getter]
    fn views(&self) -> usize {
        self.views.load(Relaxed)
    }

    /// Its length in bytes.
    fn __len__(&self) -> usize {
        self.buffer.len
    }

    /// Its bytes, read-only.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("the view is null"));
        }
        let bytes = slf.get().buffer.payload();
        let (start, len) = (
            bytes.as_ptr().cast_mut().cast(),
            bytes.len() as ffi::Py_ssize_t,
        );
        // SAFETY: the bytes stay in place as long as the chunk, to which the view holds a
        // reference, and nobody writes to them: views are read-only.
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
