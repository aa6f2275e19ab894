//! The graphs: jobs, and benchmarks that are edits of them.
//!
//! ```text
//!   sort         read -> partition -> write | read -> sort -> write      two passes on one machine
//!   cluster      read -> partition -> send -> receive -> write | the same pass two    a node's part
//!                read -> send -> receive -> write     replicas of output
//!   map_reduce   from_host -> write | read -> to_host    the passes, with functions of the host between
//!   reduce       retrieve -> lend    chunks of files and objects, which the host reduces
//!   objects      object storage as input and output; upload: read -> write
//!   tables       read -> partition_rows -> write | read -> sort_rows -> write    rows of any types
//!   benches      disk      pass one with its work replaced, or cut off
//!                cpu       the work of each pass, without disks
//!                net       generate -> send -> receive -> discard
//!                random_io single blocks of files
//!                object    get -> discard, generate -> put
//! ```
//!
//! `sort::pass_graphs` builds the graphs of the passes, for jobs and benchmarks alike;
//! `sort::external_sort` runs them. `memory_plan` divides a memory budget among the stages, `inputs` and
//! `output` find the input and publish the output, `free_space` checks the devices first.

pub mod benches;
pub mod cluster;
pub mod error;
mod free_space;
mod inputs;
pub mod map_reduce;
mod memory_plan;
pub mod objects;
mod output;
pub mod phases;
pub mod reduce;
pub mod sort;
pub mod tables;

pub use memory_plan::{Plan, Shape};
pub use output::atomic_output::AtomicOutput;
pub use output::manifest::Manifest;
pub use tonnage_stages::hash;
pub use tonnage_stages::host_queue;
pub use tonnage_stages::sink::PartitionBlocks;
pub use tonnage_stages::source::HostBlock;
