//! The hot loops of reductions as Python calls them: arrays as they are, other threads go on meanwhile.
#![allow(unsafe_code)] // Arrays of Python's as slices.

use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tonnage_reductions::{bins, edges, kmeans};

/// Sums of each centre's rows, how many they are, both as numbers of 64 bits end to end, and the sum of
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
                "centres are whole rows, one at least",
            ));
        }
        let centres = kmeans::Centres::new(numbers, columns);
        Ok(Self { centres, columns })
    }

    /// What rows come to, each at its nearest centre; the place of the first that is no point instead.
    fn sums<'py>(&self, py: Python<'py>, rows: PyBuffer<f64>) -> PyResult<Found<'py>> {
        let rows = numbers(&rows)?;
        if !rows.len().is_multiple_of(self.columns) {
            return Err(PyValueError::new_err("the last row is cut short"));
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

/// Sums, or the place of a row that has none.
type Found<'py> = (Option<Sums<'py>>, Option<usize>);

/// Edges: two whole numbers each, from a node and to a node.
#[derive(FromPyObject)]
pub enum Edges {
    /// Of 32 bits.
    Narrow(PyBuffer<i32>),
    /// Of 64 bits.
    Wide(PyBuffer<i64>),
}

/// Counts edges that leave each node into `out`, and marks in `reached` those that edges lead to; the
/// place of the first edge with a node that has no place there, if one has not.
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
            py.detach(|| edges::count(edges, out, reached))
        }
        Edges::Wide(array) => {
            let edges = pairs(array)?;
            py.detach(|| edges::count(edges, out, reached))
        }
    };
    Ok(counted.err())
}

/// Adds to `rank` at each edge's target the `share` at its origin; the place of the first edge with a
/// node that has no place there, if one has not.
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
            py.detach(|| edges::give(edges, share, rank))
        }
        Edges::Wide(array) => {
            let edges = pairs(array)?;
            py.detach(|| edges::give(edges, share, rank))
        }
    };
    Ok(given.err())
}

/// Counts values in the bins between edges into `counts`; they may lie at any distance from each other.
#[pyfunction]
pub fn count_in_bins(
    py: Python<'_>,
    edges: PyBuffer<f64>,
    values: PyBuffer<f64>,
    counts: PyBuffer<i64>,
) -> PyResult<()> {
    let (edges, counts) = (numbers(&edges)?, written(&counts)?);
    if edges.len() != counts.len() + 1 {
        return Err(PyValueError::new_err("there is an edge more than bins"));
    }
    let (values, step) = spaced(&values)?;
    py.detach(|| bins::count(edges, values.iter().step_by(step).copied(), counts));
    Ok(())
}

/// A row's or a column's numbers with what lies between them, and how far apart they are.
fn spaced(array: &PyBuffer<f64>) -> PyResult<(&[f64], usize)> {
    let apart = match array.strides() {
        [apart] if array.item_count() > 1 => *apart,
        _ => return Ok((numbers(array)?, 1)),
    };
    let start = array.buf_ptr().cast::<f64>();
    let step = usize::try_from(apart).unwrap_or(0) / size_of::<f64>();
    if step == 0 || apart.cast_unsigned() % size_of::<f64>() != 0 || !start.is_aligned() {
        return Err(PyValueError::new_err(
            "numbers at whole distances, one after another, are wanted",
        ));
    }
    // SAFETY: as for `numbers`. From the first number to the last all is of the same array's memory,
    // of which every number is initialised; those between are not looked at.
    let all = unsafe { std::slice::from_raw_parts(start, (array.item_count() - 1) * step + 1) };
    Ok((all, step))
}

/// The numbers of edges.
fn pairs<T: Element>(array: &PyBuffer<T>) -> PyResult<&[T]> {
    let numbers = numbers(array)?;
    if !numbers.len().is_multiple_of(2) {
        return Err(PyValueError::new_err("an edge is two nodes"));
    }
    Ok(numbers)
}

/// An array's numbers.
fn numbers<T: Element>(array: &PyBuffer<T>) -> PyResult<&[T]> {
    let start = array.buf_ptr().cast::<T>();
    if !array.is_c_contiguous() || !start.is_aligned() {
        return Err(PyValueError::new_err(
            "an array of rows that lie end to end is wanted",
        ));
    }
    if array.item_count() == 0 {
        return Ok(&[]);
    }
    // SAFETY: the array has so many numbers there, aligned, for as long as there is a view of it. A
    // chunk's are not written to by anybody; who writes to an array of their own meanwhile gets sums
    // of either, as with NumPy.
    Ok(unsafe { std::slice::from_raw_parts(start, array.item_count()) })
}

/// An array's numbers, to write to.
#[allow(clippy::mut_from_ref)]
fn written<T: Element>(array: &PyBuffer<T>) -> PyResult<&mut [T]> {
    let count = numbers(array)?.len();
    if array.readonly() {
        return Err(PyValueError::new_err(
            "an array that may be written to is wanted",
        ));
    }
    if count == 0 {
        return Ok(&mut []);
    }
    // SAFETY: as above, and it may be written to. An object belongs to the worker that reduces into it:
    // nobody else has it meanwhile.
    Ok(unsafe { std::slice::from_raw_parts_mut(array.buf_ptr().cast::<T>(), count) })
}
