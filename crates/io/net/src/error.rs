//! What went wrong on the network, and with whom.

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
    /// A peer cannot be reached, or has not come.
    #[error("{peer}: {what}")]
    Connect {
        /// The peer, or who of them is missing.
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
    /// What came is no frame.
    #[error("receiving from {peer}: {what}")]
    Protocol {
        /// The peer.
        peer: String,
        /// What is wrong with it.
        what: String,
    },
    /// It was asked to stop.
    #[error("stopped")]
    Stopped,
}
