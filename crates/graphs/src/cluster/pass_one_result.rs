//! What any round of pass one has in common, whatever its blocks come from: what has come is
//! indexed, but for what came from a peer that was lost.

use std::path::Path;

use serde::Serialize;
use tonnage_object::RequestCounts;
use tonnage_stages::scratch::Scratch;
use tonnage_stages::totals::Total;
use tonnage_stages::work::{ReceiveStats, SendStats};

use crate::cluster::exchange::Exchange;
use crate::error::JobError;
use crate::sort::pass_graphs::PassOne;
use crate::watch::Phase;

/// What an endpoint did.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// What it read, or was given, wanted or not.
    pub read: Total,
    /// What each of its connections sent.
    pub sent: Vec<SendStats>,
    /// What came by each connection.
    pub received: Vec<ReceiveStats>,
    /// Bytes in the index, of each partition.
    pub partitions: Vec<u64>,
    /// How long it took until all had met.
    pub meeting_seconds: f64,
    /// What was asked of object stores.
    pub requests: RequestCounts,
    /// Seconds in all.
    pub seconds: f64,
    /// The run.
    pub phases: Vec<Phase>,
}

/// What a pass has left at its end.
pub(crate) struct RoundResult {
    /// As in [`Outcome`].
    pub sent: Vec<SendStats>,
    /// Likewise.
    pub received: Vec<ReceiveStats>,
    /// Likewise.
    pub partitions: Vec<u64>,
}

/// Writes the index of what has come to `scratch` from endpoints that sent all.
///
/// On a fleet, where a machine that comes back goes on with what its index says, all that it says is
/// durable by then.
///
/// # Errors
/// When it cannot be written, or a device fails.
pub(crate) fn save_round(
    pass: &PassOne,
    scratch: &Scratch,
    index: &Path,
) -> Result<RoundResult, JobError> {
    let (sent, received) = pass.wire.as_ref().map(Exchange::done).unwrap_or_default();
    let is_lost = |source| {
        received
            .iter()
            .any(|from| from.peer == source && from.lost.is_some())
    };
    let mut partitions = scratch.keep(|source| !is_lost(source));
    partitions.resize(pass.partition.lanes.len(), 0);
    if pass.wire.is_some() {
        scratch.flush()?;
    }
    scratch
        .save(index)
        .map_err(|why| JobError::file("writing", index, &why))?;
    Ok(RoundResult {
        sent,
        received,
        partitions,
    })
}
