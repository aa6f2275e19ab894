//! Integration tests of the network crate, linked as one program.

mod mesh;
mod stranger;
mod strangers;
mod support;
