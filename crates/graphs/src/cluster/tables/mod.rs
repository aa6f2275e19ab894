//! A sort of tables on a cluster, as one node does its part.
//!
//! ```text
//!   schema      columns of its files -> what all files are read as
//!   quotes      read -> count_quotes                            of parts of text with quotes
//!   sample      read -> sample_rows -> keys                       of its splits of the input
//!   boundaries  all samples -> partitions and sizes of blocks     once, for all nodes
//!   pass_one    read -> partition_rows -> send -> receive -> write
//!   pass_two    read -> sort_rows -> write
//! ```
//!
//! A split of a file is a range of its bytes. Text records belong to the split in which they begin;
//! quotes are counted first, since only all that is before a newline tells whether it is within them.
//! Columns have no such places, so rows are thought to be spread evenly over the bytes; all nodes
//! divide a file into the same groups of rows, and each belongs to the split of its first row.

pub mod boundaries;
mod key_sample;
mod partition_log;
pub mod pass_one;
pub mod pass_two;
pub mod quotes;
pub mod sample;
pub mod schema;
