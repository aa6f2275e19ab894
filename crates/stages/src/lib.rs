//! The stages that jobs and benchmarks are made of, one file per stage.
//!
//! ```text
//!   source/   read         extents of files, by direct I/O       generate    generated records
//!             read_objects extents of objects, by range requests
//!             random_io    single blocks of a file               get         chunks of objects
//!             from_host    blocks that the host program made     retrieve    chunks on demand
//!   work/     partition    records to blocks of partitions       deal        whole buffers, unread
//!             sort         a partition in memory, by key
//!             send         blocks to other nodes                 receive     blocks from them
//!   sink/     write        blocks or files, by direct I/O        discard     nothing
//!             write_objects  parts of uploads
//!             summarise    order, count, checksum of records     sample_keys keys of samples
//!             put          objects, or parts of one upload       to_host     partitions
//!             lend         chunks to the host program
//! ```
//!
//! `generate` and `discard` are the null twins of `read` and `write`, `deal` is that of
//! `partition`. `extent`, `boundaries`, `hash`, `scratch`, `object` and `totals` hold what the
//! stages of a graph share; `host_queue` connects a graph with the host program.

pub mod boundaries;
pub mod disk;
pub mod extent;
pub mod hash;
pub mod host_queue;
pub mod latencies;
pub mod object;
pub mod output_file;
pub mod ports;
pub mod scratch;
pub mod sink;
pub mod source;
pub mod totals;
pub mod work;
