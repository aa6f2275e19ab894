//! Stages that data passes through.

mod connection_slots;
mod deal;
mod partition;
mod receive;
mod send;
mod sort;

pub use connection_slots::{ConnectionSlot, ConnectionSlots};
pub use deal::Deal;
pub use partition::{Partition, combiner_memory};
pub use receive::{Receive, ReceiveStats};
pub use send::{SendBlocks, SendStats};
pub use sort::{ENTRY_BYTES, Sort, Unit, stride_memory};
