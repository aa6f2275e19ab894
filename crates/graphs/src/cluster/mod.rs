//! A sort on a fleet, as one endpoint does its part: job after job, each told what to do, and with
//! its results in files, so that whoever is started again goes on from them.
//!
//! ```text
//!   sample      read -> keys                                      of its splits of the input
//!   boundaries  all samples -> where partitions begin             once, for all
//!   pass_one    read -> partition -> send -> receive -> write     its splits; the partitions it owns
//!   pass_two    read -> sort -> write                             those partitions
//!               read -> sort -> send -> receive -> write          and copies of others' output
//!   copy        read -> send -> receive -> write                  of output that lacks its copy
//! ```
//!
//! Pass one may be several rounds: what came from an endpoint that was lost in one, another one reads
//! and sends in the next; partitions whose owner is lost get another, to which all is sent again. A
//! round leaves a directory of scratch, with an index of what came from endpoints that sent all.

pub mod boundaries;
pub mod exchange;
mod finished_log;
pub mod pass_one;
pub mod pass_one_result;
pub mod pass_two;
pub mod re_replicate;
pub mod replicas;
pub mod sample;

pub use crate::inputs::Split;
