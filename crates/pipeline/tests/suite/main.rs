//! Integration tests of the pipeline crate, linked as one program.

mod building;
mod common;
mod ending;
mod running;
