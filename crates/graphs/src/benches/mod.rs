//! Benchmarks: a job's graph with parts of it cut off or replaced, or one edge of it alone.

pub mod cpu;
pub mod disk;
pub mod net;
pub mod object;
pub mod random_io;
