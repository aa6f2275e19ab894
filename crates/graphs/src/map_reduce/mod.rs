//! MapReduce: the sort's two passes, with functions of the host program in place of partitioning
//! and sorting.
//!
//! ```text
//!   pass_one    from_host -> write                      blocks of partitions, as functions made them
//!               from_host -> send -> receive -> write   the same on a cluster
//!   pass_two    read -> to_host                         each partition whole, or in portions
//! ```

pub mod pass_one;
pub mod pass_two;
