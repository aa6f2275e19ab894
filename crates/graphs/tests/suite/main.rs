//! Integration tests of the graphs, linked as one program.

mod cluster;
mod cluster_tables;
mod common;
mod edits;
mod gensort_valsort;
mod map_reduce;
mod net;
mod object;
mod objects;
mod random_io;
mod sort_faults;
mod sort_leftovers;
mod sort_properties;
mod sort_rows;
