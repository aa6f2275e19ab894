//! A network mesh: every endpoint sends to every other, one way, in frames, over several TCP
//! connections per pair.
//!
//! ```text
//! settings.rs   the endpoints of a mesh
//! mesh.rs       all connections of one endpoint
//! accept.rs     accepts the peers that connect, and no stranger
//! connect.rs    connects to a peer that listens, and to no stranger
//! handshake.rs  proves on both sides that the run's secret is known
//! secret.rs     that secret
//! frame.rs      a head of 28 bytes and a payload
//! connection.rs one connection: sends or receives frames, counts retransmissions
//! faults.rs     injected faults
//! error.rs      errors with the peer
//! ```
//!
//! The handshake authenticates a peer; the frames that follow are neither encrypted nor signed.
//! Sockets block, one thread each, and check a few times a second whether to stop. A receiver wakes
//! only when half a MiB has arrived, or the rest of its frame. Otherwise the kernel's congestion
//! control and buffer sizes are untouched: what is measured is what a shuffle gets.

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
