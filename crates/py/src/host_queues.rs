//! Queues between Python and a job: blocks go in, partitions come out, copied once each way.

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
    GateClosed,
    PyException,
    "Nothing passes a gate any more: its job has ended."
);

pub(crate) fn shut(_: tonnage_graphs::host_queue::Aborted) -> PyErr {
    GateClosed::new_err("the job has ended; its result says why")
}

/// A partition, its blocks concatenated, their number, and the sum of their CRC-32s.
type Portion<'py> = (usize, Bound<'py, PyBytes>, u64, u64);

/// Gives blocks to a job.
#[pyclass(frozen, module = "tonnage._core")]
pub struct HostInput(Arc<HostQueue<HostBlock>>);

#[pymethods]
impl HostInput {
    /// At most so many bytes wait there.
    #[new]
    fn new(most_bytes: usize) -> Self {
        Self(Arc::new(HostQueue::new(most_bytes)))
    }

    /// Puts a block of a partition once there is room; other Python threads run while it waits.
    fn put(&self, py: Python<'_>, partition: usize, block: PyBuffer<u8>) -> PyResult<()> {
        let block = block.to_vec(py)?;
        let bytes = block.len();
        let put = py.detach(|| self.0.put((partition, block), bytes, || false));
        put.map_err(shut)
    }

    /// Ends the input.
    fn close(&self) {
        self.0.close();
    }
}

impl HostInput {
    pub(crate) fn queue(&self) -> Arc<HostQueue<HostBlock>> {
        Arc::clone(&self.0)
    }
}

/// Takes partitions from a job.
#[pyclass(frozen, module = "tonnage._core")]
pub struct HostOutput(Arc<HostQueue<PartitionBlocks>>);

#[pymethods]
impl HostOutput {
    /// At most one partition waits there.
    #[new]
    fn new() -> Self {
        Self(Arc::new(HostQueue::new(1)))
    }

    /// The next partition: its number, its blocks concatenated, their number and the sum of their
    /// CRC-32s; other Python threads run while it waits. `None` after the last.
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

    /// Takes no more.
    fn shut(&self) {
        self.0.abort();
    }
}

impl HostOutput {
    pub(crate) fn queue(&self) -> Arc<HostQueue<PartitionBlocks>> {
        Arc::clone(&self.0)
    }
}
