//! A graph of stages that is built, checked, described and run from one value.
//!
//! ```text
//!   Graph::chain([read, partition, write])      a value: nodes in order, each a StageSpec
//!     .keep / .replace / .feed / .drain         four edits: a benchmark is a job's graph, edited
//!     .check(budget)                            ports fit, ends are closed, memory suffices
//!     .draw()                                   the same value as text
//!   run(&graph, &options, &handle)              the same value as threads
//! ```
//!
//! Each worker is one OS thread. Workers pass whole buffers, never records, along edges bounded in
//! bytes. Every buffer lies in one [`Arena`], as large as the stages declared, so the memory budget
//! holds for any input. Every worker has a probe: what it moved, and how long it was busy, starved
//! (no input) or blocked (no room for output). Predicting a job and explaining it both read probes.
//!
//! This crate knows no disk and no sort. The design follows Themis (a job and its benchmarks share
//! their stages), with the topology stated once.

mod arena;
mod buffer;
mod buffer_part;
mod edge;
mod error;
mod graph;
mod kept_pages;
mod probe;
mod quiet_condvar;
mod run;
mod run_handle;
mod stage;
mod thread_clock;
mod worker_ports;
mod write_combiner;

pub use arena::Arena;
pub use buffer::{Buffer, Pool};
pub use buffer_part::BufferPart;
pub use edge::Routing;
pub use error::{Failure, GraphError, RunError, StageError};
pub use graph::{Drawing, Graph, Node};
pub use kept_pages::KeptPages;
pub use probe::{Counters, Sample, WorkerState};
pub use run::{RunOptions, RunReport, StageReport, run};
pub use run_handle::RunHandle;
pub use stage::{MemoryNeed, Port, Stage, StageSpec};
pub use worker_ports::WorkerPorts;
pub use write_combiner::WriteCombiner;
