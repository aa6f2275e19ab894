//! What flows along the edges between stages.

use tonnage_pipeline::Port;

/// FinishedCallback records, in no order.
pub const RECORDS: Port = Port("records");
/// Bytes with a destination: a partition, or a place in a file.
pub const BLOCKS: Port = Port("blocks");
/// Chunks of files, one per buffer.
pub const CHUNKS: Port = Port("chunks");
/// Blocks on the network between two nodes.
pub const WIRE: Port = Port("wire");
/// All blocks of one partition, in one buffer.
pub const PARTITIONS: Port = Port("partitions");
/// Bytes of files that some rows are decoded from, one split in one buffer.
pub const SPLITS: Port = Port("splits");
