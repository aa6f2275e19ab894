//! The inner loops of reductions: rows of numbers into a reduction object.
//!
//! ```text
//!   kmeans      rows to the nearest of some centres
//!   edges       PageRank: rank along edges
//!   bins        values into the bins of a histogram
//! ```
//!
//! No I/O and no threads: the caller owns a chunk and an object. Loops that are not here are calls
//! of BLAS or NumPy on the Python side.

pub mod bins;
pub mod kmeans;
pub mod pagerank;
