//! Stages that data begins in.

mod from_host;
mod generate;
mod get;
mod random_io;
mod read;
mod read_objects;
mod retrieve;

pub use from_host::{FromHost, HostBlock};
pub use generate::{Chunk, Content, Generate};
pub use get::Get;
pub use random_io::{Pattern, RandomIo, WorkerTimings};
pub use read::ReadExtents;
pub use retrieve::{Pace, Retrieve};
