//! A sort on a cluster, as one node does its part: a sequence of jobs that leave their results in
//! files, so that a restarted node can resume.
//!
//! ```text
//!   sample      read -> keys                                      of its splits of the input
//!   boundaries  all samples -> partition boundaries               once, for all nodes
//!   pass_one    read -> partition -> send -> receive -> write     its splits; the partitions it owns
//!   pass_two    read -> sort -> write                             those partitions
//!               read -> sort -> send -> receive -> write          and replicas of others' output
//!   copy        read -> send -> receive -> write                  output that lacks its replica
//! ```
//!
//! Tables are sorted by the same steps, with stages of their own (`tables`).
//!
//! Pass one may take several rounds. If a node is lost in one, others read and send its splits in
//! the next; partitions of a lost owner get another, to which everything is sent again. A round
//! leaves a directory of scratch, with an index of what arrived from nodes that sent everything.

pub mod boundaries;
pub mod exchange;
mod finished_log;
pub mod pass_one;
pub mod pass_one_result;
pub mod pass_two;
pub mod re_replicate;
pub mod replicas;
pub mod sample;
pub mod tables;

pub use crate::inputs::Split;
