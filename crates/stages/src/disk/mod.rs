//! What stages that use disks share: buffers as the memory of queues, and the modes that queues
//! had.

pub(crate) mod in_flight;
pub mod modes;
