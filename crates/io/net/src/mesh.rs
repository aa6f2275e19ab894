//! All connections of one endpoint: it dials every peer to send to it, and is dialled by each.
//!
//! Peers start at different times: dialling is repeated until they are there or the patience ends.
//! Each peer is dialled from a thread of its own, so that one that is silent, or a stranger in its
//! place, holds up no other. The listener is closed when all peers have dialled.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::dial;
use crate::error::NetError;
use crate::faults::Fault;
use crate::link::{Incoming, Outgoing};
use crate::meeting;
use crate::secret::Secret;

/// Who takes part.
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
    /// Seconds to wait for all to come, and for one that does not answer any more.
    pub patience_seconds: f64,
    /// Whether what this endpoint sends carries checksums, which who receives it looks at.
    #[serde(default)]
    pub checked: bool,
    /// What is to go wrong.
    #[serde(default)]
    pub faults: Vec<Fault>,
}

/// The connections of an endpoint.
#[derive(Debug)]
pub struct Mesh {
    /// To each peer, `connections` of them, in the order of the peers.
    pub outgoing: Vec<Outgoing>,
    /// From each peer, likewise.
    pub incoming: Vec<Incoming>,
}

impl Mesh {
    /// Connects with all peers.
    ///
    /// # Errors
    /// When the address cannot be listened on, or peers are missing when the patience ends; `stopped`.
    pub fn connect(
        settings: &Settings,
        stopped: impl Fn() -> bool + Sync,
    ) -> Result<Self, NetError> {
        let own = settings.endpoints[settings.number];
        let listener = meeting::listen(own).map_err(|source| NetError::Listen {
            address: own.to_string(),
            source,
        })?;
        let deadline = Instant::now() + settings.patience();
        let stopped = &stopped;
        thread::scope(|scope| {
            let dialling: Vec<_> = settings
                .peers()
                .map(|peer| scope.spawn(move || dial::reach(settings, peer, deadline, stopped)))
                .collect();
            let incoming = meeting::let_in(settings, listener, deadline, stopped);
            let mut outgoing = Vec::new();
            for reached in dialling {
                outgoing.extend(reached.join().expect("dialling does not panic")?);
            }
            Ok(Self {
                outgoing,
                incoming: incoming?,
            })
        })
    }
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
