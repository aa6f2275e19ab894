//! Stages that data passes through.

mod connection_slots;
mod deal;
mod entries;
mod file_blocks;
mod open_blocks;
mod partition;
mod partition_rows;
mod receive;
mod row_encoding;
mod row_files;
mod send;
mod sort;
mod sort_rows;

pub use connection_slots::{ConnectionSlot, ConnectionSlots};
pub use deal::Deal;
pub use entries::ENTRY_BYTES;
pub use file_blocks::FileBlocks;
pub use partition::{Partition, combiner_memory};
pub use partition_rows::{PartitionRows, RowSource, TakeRows, pieces_of};
pub use receive::{Receive, ReceiveStats};
pub use row_encoding::{RowEncoder, RowEncoding};
pub use row_files::RowFiles;
pub use send::{SendBlocks, SendStats};
pub use sort::{Sort, Unit, stride_memory};
pub use sort_rows::{Quota, RowUnit, SortRows};
