//! A graph of stages that is built, checked, drawn and run from one value.
//!
//! ```text
//!   Graph::chain([read, partition, write])      a value: nodes in order, each a Spec
//!     .keep / .replace / .feed / .drain         four edits: a benchmark is a job's graph, edited
//!     .check(budget)                            ports fit, ends are closed, memory is kept
//!     .draw()                                   the same value as text
//!   run(&graph, &options, &control)             the same value as threads
//! ```
//!
//! One OS thread a worker; workers pass whole buffers, never records, along edges bounded in
//! bytes. Every buffer lies in one [`Arena`] that is as large as the graph's stages declared, so
//! the memory budget holds whatever the input. Every worker keeps a probe: what it moved, and how
//! long it was busy, starved (nothing came in), or blocked (nowhere to put it). Predicting and
//! explaining a job are both reading those probes.
//!
//! This crate knows no disk and no sort. The design follows Themis (a job and its benchmarks
//! share their stages) with the topology stated once.

mod arena;
mod buffer;
mod clock;
mod combiner;
mod condition;
mod edge;
mod error;
mod flow;
mod graph;
mod part;
mod probe;
mod run;
mod stage;

pub use arena::Arena;
pub use buffer::{Buffer, Pool};
pub use combiner::Combiner;
pub use error::{Failure, GraphError, RunError, StageError};
pub use flow::Flow;
pub use graph::{Drawing, Graph, Node};
pub use part::Part;
pub use probe::{Counters, Sample, State};
pub use run::{Control, Options, Report, StageReport, run};
pub use stage::{MemoryNeed, Port, Routing, Spec, Stage};
