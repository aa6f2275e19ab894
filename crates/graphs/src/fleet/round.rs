//! What any round of pass one has in common, whatever its blocks come from: the endpoints meet, and
//! what has come is indexed, but for what came from a peer that was lost.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use tonnage_net::{Mesh, NetError, Settings};
use tonnage_pipeline::Control;
use tonnage_stages::ledger::Total;
use tonnage_stages::scratch::Scratch;
use tonnage_stages::work::{Received, Sent};

use crate::job::{JobError, Phase};
use crate::passes::PassOne;

/// What an endpoint did.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// What it read, or was given, wanted or not.
    pub read: Total,
    /// What each of its connections sent.
    pub sent: Vec<Sent>,
    /// What came by each connection.
    pub received: Vec<Received>,
    /// Bytes in the index, of each partition.
    pub partitions: Vec<u64>,
    /// How long it took until all had met.
    pub meeting_seconds: f64,
    /// Seconds in all.
    pub seconds: f64,
    /// The run.
    pub phases: Vec<Phase>,
}

/// What a pass has left at its end.
pub(crate) struct Left {
    /// As in [`Outcome`].
    pub sent: Vec<Sent>,
    /// Likewise.
    pub received: Vec<Received>,
    /// Likewise.
    pub partitions: Vec<u64>,
}

/// Meets the other endpoints.
///
/// # Errors
/// When not all could meet, or the cancellation.
pub(crate) fn meet(mesh: &Settings, control: &Control) -> Result<Mesh, JobError> {
    Mesh::connect(mesh, || control.is_cancelled()).map_err(|why| match why {
        NetError::Stopped => JobError::Cancelled,
        other => JobError::failed(other.to_string()),
    })
}

/// Writes the index of what has come to `scratch` from endpoints that sent all.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn leave(pass: &PassOne, scratch: &Scratch, index: &Path) -> Result<Left, JobError> {
    let (sent, received) = match &pass.wire {
        Some((send, receive)) => (taken(&send.sent), taken(&receive.received)),
        None => (Vec::new(), Vec::new()),
    };
    let is_lost = |source| {
        received
            .iter()
            .any(|from| from.peer == source && from.lost.is_some())
    };
    let mut partitions = scratch.keep(|source| !is_lost(source));
    partitions.resize(pass.partition.lanes.len(), 0);
    scratch
        .save(index)
        .map_err(|why| JobError::file("writing", index, &why))?;
    Ok(Left {
        sent,
        received,
        partitions,
    })
}

fn taken<T>(list: &Mutex<Vec<T>>) -> Vec<T> {
    std::mem::take(&mut list.lock().unwrap_or_else(PoisonError::into_inner))
}
