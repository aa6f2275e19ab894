//! Integration tests of the object store crate, linked as one program.

mod client_pool;
mod common;
mod conformance;
mod faults;
mod hedging;
mod parallel_read;
