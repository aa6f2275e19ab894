//! The network between endpoints that all send to all: one way, in frames, over several TCP
//! connections a pair.
//!
//! ```text
//! mesh.rs       who takes part, and all connections of one endpoint
//! meeting.rs    lets in the peers that dial, and no stranger
//! dial.rs       reaches a peer that listens, and no stranger
//! handshake.rs  how both prove that they know the run's secret
//! secret.rs     that secret
//! frame.rs      a head of 24 bytes and a payload
//! link.rs       one connection: sends or receives frames, says how often the kernel sent again
//! faults.rs     what goes wrong on purpose
//! error.rs      what went wrong, with whom
//! ```
//!
//! A handshake proves who is there; the frames that follow are neither encrypted nor signed.
//! Sockets block, one thread each, and look up a few times a second whether to stop. Who receives
//! is woken only when half a MiB has come, or the rest of its frame. The kernel's own congestion
//! control and buffer sizes are left alone otherwise: what is measured is what a shuffle gets.

mod accept;
mod connect;
mod connection;
mod error;
mod faults;
mod frame;
mod handshake;
mod mesh;
mod secret;
mod settings;

pub use connection::{Incoming, Outgoing};
pub use error::NetError;
pub use faults::{Effect, Fault};
pub use frame::Head;
pub use mesh::Mesh;
pub use secret::Secret;
pub use settings::{Settings, handshake_timeout};
