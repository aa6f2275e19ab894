//! The stages that jobs and benchmarks are made of, one file a stage.
//!
//! ```text
//!   source/   read       extents of files, by direct I/O        generate   records out of nothing
//!                        (fetch: of objects, by ranges)
//!             operate    single blocks of a file, at random
//!             get        chunks of objects, by ranges
//!             given      blocks that others have made
//!             retrieve   chunks that others ask for, by several ranges at once
//!   work/     partition  records to the blocks of partitions    tag        whole buffers, unread
//!             sort       a partition in memory, in key order
//!             send       blocks to other endpoints            receive    blocks from them
//!   sink/     write      blocks or files, by direct I/O         discard    nothing
//!                        (upload: objects, by parts)
//!             summarise  order, count, checksum of records      keys       keys of sampled records
//!             put        objects, or parts of one       taken      partitions, by others
//!             hand       chunks, to others
//! ```
//!
//! `generate` and `discard` are the null twins of `read` and `write`; `tag` is that of `partition`.
//! What the stages of one graph know together (where blocks lie, what was counted) is in
//! `extent`, `boundaries`, `hash`, `scratch`, `uploads` and `ledger`; `gate` is where others give and take; `requests` is what
//! workers saw of an object store.

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
