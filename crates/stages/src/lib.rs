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
pub mod extent;
pub mod gate;
pub mod hash;
mod inflight;
pub mod latencies;
pub mod ledger;
pub mod requests;
pub mod scratch;
pub mod uploads;

/// Stages that data begins in.
pub mod source {
    mod fetch;
    mod generate;
    mod get;
    mod given;
    mod operate;
    mod read;
    mod retrieve;
    pub use generate::{Chunk, Content, Generate};
    pub use get::Get;
    pub use given::{Given, GivenBlock};
    pub use operate::{Operate, Pattern, Seen};
    pub use read::{Fetch, Read};
    pub use retrieve::{Pace, Retrieve};
}

/// Stages that data passes.
pub mod work {
    mod partition;
    mod receive;
    mod send;
    mod sort;
    mod tag;
    pub use partition::{Partition, combiner_memory};
    pub use receive::{Receive, Received};
    pub use send::{Lane, Lanes, Send, Sent};
    pub use sort::{ENTRY_BYTES, Sort, Unit, stride_memory};
    pub use tag::Tag;
}

/// Stages that data ends in.
pub mod sink {
    mod discard;
    mod hand;
    mod keys;
    mod put;
    mod summarise;
    mod taken;
    mod upload;
    mod write;
    pub use discard::Discard;
    pub use hand::Hand;
    pub use keys::Keys;
    pub use put::{Put, PutAs};
    pub use summarise::{Summaries, Summarise};
    pub use taken::{Taken, TakenBlocks};
    pub use write::{OnWhole, OutputFile, Target, Write};
}

use tonnage_pipeline::Port;

/// Whole records, in no order.
pub const RECORDS: Port = Port("records");
/// Bytes with a destination: a partition's block, or a place in a file.
pub const BLOCKS: Port = Port("blocks");
/// Chunks of files, each in one buffer.
pub const CHUNKS: Port = Port("chunks");
/// Blocks on the network between two endpoints.
pub const WIRE: Port = Port("wire");
/// All blocks of one partition, in one buffer.
pub const PARTITIONS: Port = Port("partitions");
