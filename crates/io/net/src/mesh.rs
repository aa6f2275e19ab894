//! All connections of one endpoint: it connects to every peer to send, and every peer connects to
//! it.
//!
//! Peers start at different times, so connecting is retried until they are there or the patience
//! ends. Each peer is connected from its own thread, so that a silent peer, or a stranger in its
//! place, delays no other. The listener closes when all peers have connected.

use std::thread;
use std::time::Instant;

use crate::accept;
use crate::connect;
use crate::connection::{Incoming, Outgoing};
use crate::error::NetError;
use crate::settings::Settings;

/// The connections of an endpoint.
#[derive(Debug)]
pub struct Mesh {
    /// To each peer, `connections` of them, in the order of the peers.
    pub outgoing: Vec<Outgoing>,
    /// From each peer, likewise in the order of the peers.
    pub incoming: Vec<Incoming>,
}

impl Mesh {
    /// Connects with all peers.
    ///
    /// # Errors
    /// When the address cannot be listened on, or peers are missing at the end of the patience;
    /// `stopped`.
    pub fn connect(
        settings: &Settings,
        stopped: impl Fn() -> bool + Sync,
    ) -> Result<Self, NetError> {
        let own = settings.endpoints[settings.number];
        let listener = accept::listen(own).map_err(|source| NetError::Listen {
            address: own.to_string(),
            source,
        })?;
        let deadline = Instant::now() + settings.patience();
        let stopped = &stopped;
        thread::scope(|scope| {
            let initiator: Vec<_> = settings
                .peers()
                .map(|peer| {
                    scope.spawn(move || connect::connect_peer(settings, peer, deadline, stopped))
                })
                .collect();
            let incoming = accept::accept_peers(settings, listener, deadline, stopped);
            let mut outgoing = Vec::new();
            for reached in initiator {
                outgoing.extend(reached.join().expect("dialling does not panic")?);
            }
            Ok(Self {
                outgoing,
                incoming: incoming?,
            })
        })
    }
}
