//! The endpoints of a mesh, and how patient they are with each other.

use std::net::SocketAddr;
use std::time::Duration;

use serde::Deserialize;

use crate::faults::Fault;
use crate::secret::Secret;

/// The endpoints of a mesh, and its limits.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The addresses of all endpoints, in the order of their numbers.
    pub endpoints: Vec<SocketAddr>,
    /// The number of this one, which listens on its address.
    pub number: usize,
    /// Connections from each endpoint to each other.
    pub connections: usize,
    /// Known to all endpoints of a run, and to nobody else.
    pub secret: Secret,
    /// Seconds to wait for all peers to connect, and for one that does not answer any more.
    pub patience_seconds: f64,
    /// How long a handshake may take. Tests set less.
    #[serde(skip, default = "handshake_timeout")]
    pub handshake_timeout: Duration,
    /// Whether frames that this endpoint sends carry checksums, which the receiver verifies.
    #[serde(default)]
    pub checked: bool,
    /// Injected faults.
    #[serde(default)]
    pub faults: Vec<Fault>,
}

/// The usual limit of a handshake.
#[must_use]
pub fn handshake_timeout() -> Duration {
    Duration::from_secs(2)
}

impl Settings {
    pub(crate) fn peers(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.endpoints.len()).filter(|&peer| peer != self.number)
    }

    pub(crate) fn patience(&self) -> Duration {
        let patience = Duration::try_from_secs_f64(self.patience_seconds);
        patience.unwrap_or(Duration::from_secs(1))
    }

    pub(crate) fn name(&self, peer: usize) -> String {
        format!("endpoint {peer} ({})", self.endpoints[peer])
    }
}
