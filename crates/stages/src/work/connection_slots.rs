//! The connections of a stage, and the errors that end the work of one.

use std::sync::{Arc, Mutex, PoisonError};

use tonnage_net::NetError;
use tonnage_pipeline::{Failure, StageError};

/// The connections of a stage's workers; each serves one worker in one run.
pub type ConnectionSlots<C> = Arc<Vec<Mutex<ConnectionSlot<C>>>>;

/// A worker's connection.
#[derive(Debug)]
pub enum ConnectionSlot<C> {
    /// To or from a peer.
    Peer(C),
    /// No connection: what this node sends to itself.
    Here,
    /// Taken by its worker.
    Taken,
}

impl<C> ConnectionSlot<C> {
    /// A slot for each connection, and one for this endpoint itself if `here`.
    pub fn all(connections: Vec<C>, here: bool) -> ConnectionSlots<C> {
        let peers = connections.into_iter().map(Self::Peer);
        Arc::new(
            peers
                .chain(here.then_some(Self::Here))
                .map(Mutex::new)
                .collect(),
        )
    }

    /// Takes the connection of a worker.
    pub(super) fn take(lanes: &ConnectionSlots<C>, worker: usize) -> Result<Self, Failure> {
        let mut place = lanes[worker].lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *place, Self::Taken) {
            Self::Taken => Err(Failure::new("this connection was already used by a run")),
            lane => Ok(lane),
        }
    }
}

/// What ends the work of a connection: the network, or the run.
pub(super) enum TransferError {
    Net(NetError),
    Run(StageError),
}

impl From<NetError> for TransferError {
    fn from(why: NetError) -> Self {
        Self::Net(why)
    }
}

impl From<StageError> for TransferError {
    fn from(why: StageError) -> Self {
        Self::Run(why)
    }
}

impl From<Failure> for TransferError {
    fn from(why: Failure) -> Self {
        Self::Run(why.into())
    }
}

/// Turns a network error into a stage's.
pub(super) fn failure(error: &NetError) -> StageError {
    match error {
        NetError::Stopped => StageError::Stopped,
        other => Failure::new(other.to_string()).into(),
    }
}
