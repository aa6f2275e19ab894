//! What goes wrong on a connection on purpose: at a byte, so that the same fault is the same failure.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A fault of an outgoing connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Only of connections to this peer.
    pub to: usize,
    /// When so many payload bytes were sent on one of them.
    pub after_bytes: u64,
    /// What happens.
    pub effect: Effect,
}

/// What a fault does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// The connection is cut in the middle of a frame.
    Cut,
    /// The next head is wrong.
    Garble,
    /// The next payload is another than its checksum says.
    Flip,
    /// Nothing is sent for a while.
    Stall {
        /// How long.
        milliseconds: u64,
    },
}

impl Effect {
    pub(crate) fn pause(self) -> Duration {
        match self {
            Effect::Stall { milliseconds } => Duration::from_millis(milliseconds),
            _ => Duration::ZERO,
        }
    }
}
