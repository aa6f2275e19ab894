//! The passes of a MapReduce: the sort's, with functions from outside of the core in the place of
//! partitioning and sorting.
//!
//! ```text
//!   pass_one    given -> write                      blocks of partitions, as functions made them
//!               given -> send -> receive -> write   the same on a fleet
//!   pass_two    read -> taken                       each partition whole, or in portions
//! ```

pub mod pass_one;
pub mod pass_two;
