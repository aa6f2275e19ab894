//! Injected faults of a connection: at a certain byte, so that a fault always has the same effect.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A fault of an outgoing connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Only connections to this peer.
    pub to: usize,
    /// Once so many payload bytes were sent on one of them.
    pub after_bytes: u64,
    /// The fault.
    pub effect: Effect,
}

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// The connection is cut in the middle of a frame.
    Cut,
    /// The next head is wrong.
    Garble,
    /// The next payload does not match its checksum.
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
