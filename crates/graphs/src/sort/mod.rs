//! The sort on one machine, and the sort benchmark's `gensort` and `valsort`.

pub(crate) mod external_sort;
pub mod gensort;
pub mod pass_graphs;
pub mod sort_job;
pub(crate) mod spilled_partition;
pub mod valsort;
