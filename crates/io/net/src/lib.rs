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
//! Sockets block, one thread each, and look up a few times a second whether to stop. Who receives
//! is woken only when half a MiB has come, or the rest of its frame. The kernel's own congestion
//! control and buffer sizes are left alone otherwise: what is measured is what a shuffle gets.

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
