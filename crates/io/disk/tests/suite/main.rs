//! Integration tests of the disk crate, linked as one program.

mod common;
mod conformance;
mod faults;
