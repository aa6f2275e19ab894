//! Gates as Python has them: blocks go in, partitions come out, copied once each way.

use std::sync::Arc;

use pyo3::buffer::PyBuffer;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tonnage_graphs::host_queue::HostQueue;
use tonnage_graphs::{HostBlock, PartitionBlocks};

create_exception!(
    _core,
    Shut,
    PyException,
    "Nothing passes a gate any more: its job has ended."
);

pub(crate) fn shut(_: tonnage_graphs::host_queue::Aborted) -> PyErr {
    Shut::new_err("the job has ended; its result says why")
}

/// A partition, its blocks end to end, how many, and the sum of their CRC-32s.
type Portion<'py> = (usize, Bound<'py, PyBytes>, u64, u64);

/// Where blocks go into a job.
#[pyclass(frozen, module = "tonnage._core")]
pub struct Given(Arc<HostQueue<HostBlock>>);

#[pymethods]
impl Given {
    /// So many bytes may wait there.
    #[new]
    fn new(most_bytes: usize) -> Self {
        Self(Arc::new(HostQueue::new(most_bytes)))
    }

    /// Gives a block of a partition, as soon as there is room; other threads of Python go on.
    fn put(&self, py: Python<'_>, partition: usize, block: PyBuffer<u8>) -> PyResult<()> {
        let block = block.to_vec(py)?;
        let bytes = block.len();
        let put = py.detach(|| self.0.put((partition, block), bytes, || false));
        put.map_err(shut)
    }

    /// No more will be given.
    fn close(&self) {
        self.0.close();
    }
}

impl Given {
    pub(crate) fn queue(&self) -> Arc<HostQueue<HostBlock>> {
        Arc::clone(&self.0)
    }
}

/// Where partitions come out of a job.
#[pyclass(frozen, module = "tonnage._core")]
pub struct Taken(Arc<HostQueue<PartitionBlocks>>);

#[pymethods]
impl Taken {
    /// One may wait there.
    #[new]
    fn new() -> Self {
        Self(Arc::new(HostQueue::new(1)))
    }

    /// A partition's number and blocks, laid end to end, as soon as there is one, with how many they
    /// are and the sum of their CRC-32s; other threads of Python go on. `None` when all were taken.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Option<Portion<'py>>> {
        let taken = py.detach(|| self.0.take(|| false)).map_err(shut)?;
        let Some(taken) = taken else { return Ok(None) };
        let copy = |into: &mut [u8]| {
            let mut rest = into;
            for block in taken.blocks() {
                let (here, after) = rest.split_at_mut(block.len());
                here.copy_from_slice(block);
                rest = after;
            }
            Ok(())
        };
        let bytes = PyBytes::new_with(py, taken.bytes(), copy)?;
        let total = taken.total;
        let checksum = u64::try_from(total.checksum).unwrap_or(u64::MAX); // of fewer than 2^32 blocks
        Ok(Some((taken.partition, bytes, total.records, checksum)))
    }

    /// Nobody takes any more.
    fn shut(&self) {
        self.0.abort();
    }
}

impl Taken {
    pub(crate) fn queue(&self) -> Arc<HostQueue<PartitionBlocks>> {
        Arc::clone(&self.0)
    }
}
