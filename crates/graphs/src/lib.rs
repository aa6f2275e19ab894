//! The graphs: jobs, and benchmarks that are edits of them.
//!
//! ```text
//!   sort        read -> partition -> write | read -> sort -> write      the job, two passes
//!   fleet       read -> partition -> send -> receive -> write | the same pass two    an endpoint's part
//!               read -> send -> receive -> write     copies of output, where one is lacking
//!   upload      read -> write                     a file as an object
//!   map_reduce  given -> write | read -> taken    the same passes, with functions from outside between them
//!   reduce      retrieve -> hand    chunks of files and objects, which are reduced outside
//!   disk_bench  pass one with its work replaced by a tag, or cut off     what the disks carry
//!   cpu_bench   the work of each pass, fed and drained without a disk    what the cores carry
//!   net_bench   generate -> send -> receive -> discard   what the network carries, all to all
//!   ops_bench   operate                       single blocks of a file, at random
//!   object_bench  get -> discard, generate -> put   what an object store carries, by so many threads
//!   gensort     generate -> write             valsort  read -> summarise
//! ```
//!
//! `passes` puts the sort's graphs together, for the job and its benchmarks, `wire` is the network in them; `two_pass` runs them; `plan` divides a memory
//! budget among the stages, `room` asks devices for space, `cut` is a partition between the passes, `inputs` looks at what is to be read, `output` is where parts
//! become visible when all are whole, `seal` how files do, `volumes` is object storage as input and output, `folder` sees to a folder of it, `job` is what all of them report.

pub mod benches;
pub mod cluster;
pub mod error;
mod free_space;
mod inputs;
pub mod map_reduce;
pub mod objects;
mod output;
mod plan;
pub mod reduce;
pub mod sort;
pub mod watch;

pub use output::atomic_output::AtomicOutput;
pub use plan::{Plan, Shape};
pub use tonnage_stages::hash;
pub use tonnage_stages::host_queue;
pub use tonnage_stages::sink::PartitionBlocks;
pub use tonnage_stages::source::HostBlock;
