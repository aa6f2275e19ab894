//! The inner loops of reductions as Python calls them: on arrays in place, while other threads run.
#![allow(unsafe_code)] // Arrays of Python's as slices.

use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tonnage_reductions::{bins, kmeans, pagerank};

/// Sums of each centre's rows, their numbers, both as concatenated 64-bit numbers, and the sum of
/// squared distances.
type Sums<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>, f64);

/// The centres of a round of k-means.
#[pyclass(frozen, module = "tonnage._core")]
pub struct Centres {
    centres: kmeans::Centres,
    columns: usize,
}

#[pymethods]
impl Centres {
    /// So many columns each, one after another.
    #[new]
    fn new(centres: PyBuffer<f64>, columns: usize) -> PyResult<Self> {
        let numbers = numbers(&centres)?;
        if columns == 0 || numbers.is_empty() || !numbers.len().is_multiple_of(columns) {
            return Err(PyValueError::new_err(
                "centres must be at least one whole row",
            ));
        }
        let centres = kmeans::Centres::new(numbers, columns);
        Ok(Self { centres, columns })
    }

    /// Sums of rows, each at its nearest centre; or the index of the first row that is not finite.
    fn sums<'py>(&self, py: Python<'py>, rows: PyBuffer<f64>) -> PyResult<ReducedRows<'py>> {
        let rows = numbers(&rows)?;
        if !rows.len().is_multiple_of(self.columns) {
            return Err(PyValueError::new_err("the last row is incomplete"));
        }
        let mut sums = self.centres.sums();
        Ok(match py.detach(|| self.centres.add(rows, &mut sums)) {
            Err(place) => (None, Some(place)),
            Ok(()) => {
                let of_rows: Vec<u8> = sums.rows.iter().flat_map(|one| one.to_ne_bytes()).collect();
                let all: Vec<u8> = sums.sums.iter().flat_map(|one| one.to_ne_bytes()).collect();
                let sums = (
                    PyBytes::new(py, &all),
                    PyBytes::new(py, &of_rows),
                    sums.inertia,
                );
                (Some(sums), None)
            }
        })
    }
}

/// Sums, or the index of a bad row.
type ReducedRows<'py> = (Option<Sums<'py>>, Option<usize>);

/// Edges: pairs of node numbers, from and to.
#[derive(FromPyObject)]
pub enum Edges {
    /// Of 32 bits.
    Narrow(PyBuffer<i32>),
    /// Of 64 bits.
    Wide(PyBuffer<i64>),
}

/// Counts the edges that leave each node into `out`, and marks targets in `reached`; returns the
/// index of the first edge with an unknown node, if any.
#[pyfunction]
pub fn count_edges(
    py: Python<'_>,
    edges: Edges,
    out: PyBuffer<i64>,
    reached: PyBuffer<u8>,
) -> PyResult<Option<usize>> {
    let (out, reached) = (written(&out)?, written(&reached)?);
    let counted = match &edges {
        Edges::Narrow(array) => {
            let edges = pairs(array)?;
            py.detach(|| pagerank::count(edges, out, reached))
        }
        Edges::Wide(array) => {
            let edges = pairs(array)?;
            py.detach(|| pagerank::count(edges, out, reached))
        }
    };
    Ok(counted.err())
}

/// Adds the `share` of each edge's origin to the `rank` of its target; returns the index of the
/// first edge with an unknown node, if any.
#[pyfunction]
pub fn give_rank(
    py: Python<'_>,
    edges: Edges,
    share: PyBuffer<f64>,
    rank: PyBuffer<f64>,
) -> PyResult<Option<usize>> {
    let (share, rank) = (numbers(&share)?, written(&rank)?);
    let given = match &edges {
        Edges::Narrow(array) => {
            let edges = pairs(array)?;
            py.detach(|| pagerank::give(edges, share, rank))
        }
        Edges::Wide(array) => {
            let edges = pairs(array)?;
            py.detach(|| pagerank::give(edges, share, rank))
        }
    };
    Ok(given.err())
}

/// Counts values in the bins between edges into `counts`; values may have any stride.
#[pyfunction]
pub fn count_in_bins(
    py: Python<'_>,
    edges: PyBuffer<f64>,
    values: PyBuffer<f64>,
    counts: PyBuffer<i64>,
) -> PyResult<()> {
    let (edges, counts) = (numbers(&edges)?, written(&counts)?);
    if edges.len() != counts.len() + 1 {
        return Err(PyValueError::new_err(
            "there must be one more edge than bins",
        ));
    }
    let (values, step) = spaced(&values)?;
    py.detach(|| bins::count(edges, values.iter().step_by(step).copied(), counts));
    Ok(())
}

/// The numbers of a strided row or column, with those between them, and their distance.
fn spaced(array: &PyBuffer<f64>) -> PyResult<(&[f64], usize)> {
    let apart = match array.strides() {
        [apart] if array.item_count() > 1 => *apart,
        _ => return Ok((numbers(array)?, 1)),
    };
    let start = array.buf_ptr().cast::<f64>();
    let step = usize::try_from(apart).unwrap_or(0) / size_of::<f64>();
    if step == 0 || apart.cast_unsigned() % size_of::<f64>() != 0 || !start.is_aligned() {
        return Err(PyValueError::new_err(
            "the stride must be a positive multiple of 8 bytes",
        ));
    }
    // SAFETY: as for `numbers`. Everything from the first number to the last is memory of the same
    // array, and its numbers are initialised; those between are not read.
    let all = unsafe { std::slice::from_raw_parts(start, (array.item_count() - 1) * step + 1) };
    Ok((all, step))
}

/// The numbers of edges.
fn pairs<T: Element>(array: &PyBuffer<T>) -> PyResult<&[T]> {
    let numbers = numbers(array)?;
    if !numbers.len().is_multiple_of(2) {
        return Err(PyValueError::new_err("each edge must have two nodes"));
    }
    Ok(numbers)
}

/// An array's numbers.
fn numbers<T: Element>(array: &PyBuffer<T>) -> PyResult<&[T]> {
    let start = array.buf_ptr().cast::<T>();
    if !array.is_c_contiguous() || !start.is_aligned() {
        return Err(PyValueError::new_err("the array must be C-contiguous"));
    }
    if array.item_count() == 0 {
        return Ok(&[]);
    }
    // SAFETY: the array has so many aligned numbers for as long as a view of it exists. Nobody
    // writes to a chunk's; a caller that writes to its own array during the call gets mixed sums, as with
    // NumPy.
    Ok(unsafe { std::slice::from_raw_parts(start, array.item_count()) })
}

/// An array's numbers, writable.
#[allow(clippy::mut_from_ref)]
fn written<T: Element>(array: &PyBuffer<T>) -> PyResult<&mut [T]> {
    let count = numbers(array)?.len();
    if array.readonly() {
        return Err(PyValueError::new_err("the array must be writable"));
    }
    if count == 0 {
        return Ok(&mut []);
    }
    // SAFETY: as above, and it may be written. A reduction object belongs to one worker: nobody
    // else uses it during the call.
    Ok(unsafe { std::slice::from_raw_parts_mut(array.buf_ptr().cast::<T>(), count) })
}
