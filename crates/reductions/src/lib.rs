//! The hot loops of reductions: rows of numbers into a reduction object.
//!
//! ```text
//!   kmeans      rows to the nearest of some centres
//!   edges       PageRank: rank along edges
//!   bins        values into the bins of a histogram
//! ```
//!
//! No I/O, no threads: whoever calls has a chunk and an object, each its own. What has no loop of its
//! own here is a call of BLAS or NumPy outside.

pub mod bins;
pub mod edges;
pub mod kmeans;
