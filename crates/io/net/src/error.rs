//! Network errors, with the peer.

use std::io;

use thiserror::Error;

/// A failure of the network.
#[derive(Debug, Error)]
pub enum NetError {
    /// An address cannot be listened on.
    #[error("listening on {address}: {source}")]
    Listen {
        /// The address.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// A peer cannot be reached, or has not connected.
    #[error("{peer}: {what}")]
    Connect {
        /// The peer, or the missing one.
        peer: String,
        /// What happened.
        what: String,
    },
    /// A connection failed.
    #[error("{doing} {peer}: {source}")]
    Connection {
        /// `sending to` or `receiving from`.
        doing: &'static str,
        /// The peer.
        peer: String,
        /// Why.
        source: io::Error,
    },
    /// The bytes that arrived are no frame.
    #[error("receiving from {peer}: {what}")]
    Protocol {
        /// The peer.
        peer: String,
        /// What is wrong.
        what: String,
    },
    /// The caller stopped it.
    #[error("stopped")]
    Stopped,
}
