//! The network between endpoints that all send to all: one way, in frames, over several TCP
//! connections a pair.
//!
//! ```text
//! mesh.rs    listens, dials, and knows who is who: all connections of one endpoint
//! frame.rs   a head of 24 bytes and a payload
//! link.rs    one connection: sends or receives frames, says how often the kernel sent again
//! faults.rs  what goes wrong on purpose
//! error.rs   what went wrong, with whom
//! ```
//!
//! Sockets block, one thread each, and look up a few times a second whether to stop. The kernel's
//! own congestion control and buffer sizes are left alone: what is measured is what a shuffle
//! gets that asks for nothing special.

mod error;
mod faults;
mod frame;
mod link;
mod mesh;

pub use error::NetError;
pub use faults::{Effect, Fault};
pub use frame::Head;
pub use link::{Incoming, Outgoing};
pub use mesh::{Mesh, Settings};
