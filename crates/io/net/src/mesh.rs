//! All connections of one endpoint: it dials every peer to send to it, and is dialled by each.
//!
//! Peers start at different times: dialling is repeated until they are there or the patience ends.
//! Each peer is dialled from a thread of its own, so that one that is silent, or a stranger in its
//! place, holds up no other. The listener is closed when all peers have dialled.

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
