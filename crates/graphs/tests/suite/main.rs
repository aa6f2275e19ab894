//! What the graphs are held to, in one program: each more would have to be linked with all of them.

mod common;
mod edits;
mod fleet;
mod gensort_valsort;
mod map_reduce;
mod net;
mod object;
mod ops;
mod sort_faults;
mod sort_leftovers;
mod sort_properties;
mod volumes;
