//! The result of a round of pass one, for all jobs: an index of what arrived, without
//! what came from lost peers.

use std::path::Path;

use serde::Serialize;
use tonnage_object::RequestCounts;
use tonnage_stages::scratch::Scratch;
use tonnage_stages::totals::Total;
use tonnage_stages::work::{ReceiveStats, SendStats};

use crate::cluster::exchange::Exchange;
use crate::error::JobError;
use crate::phases::Phase;

/// The results of a node.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// What it read, or was given, wanted or not.
    pub read: Total,
    /// What each connection sent.
    pub sent: Vec<SendStats>,
    /// What each connection received.
    pub received: Vec<ReceiveStats>,
    /// Bytes in the index, by partition.
    pub partitions: Vec<u64>,
    /// Seconds until all nodes were connected.
    pub meeting_seconds: f64,
    /// Requests to object stores.
    pub requests: RequestCounts,
    /// Seconds in total.
    pub seconds: f64,
    /// The run.
    pub phases: Vec<Phase>,
}

/// What a round has left at its end.
pub(crate) struct RoundResult {
    /// As in [`Outcome`].
    pub sent: Vec<SendStats>,
    /// As in [`Outcome`].
    pub received: Vec<ReceiveStats>,
    /// As in [`Outcome`].
    pub partitions: Vec<u64>,
}

/// Writes the index of what arrived of so many partitions in `scratch` from nodes that sent
/// everything.
///
/// On a cluster everything in the index is durable first: a node that returns after a power loss
/// resumes from its index.
///
/// # Errors
/// When it cannot be written, or a device fails.
pub(crate) fn save_round(
    wire: Option<&Exchange>,
    partitions: usize,
    scratch: &Scratch,
    index: &Path,
) -> Result<RoundResult, JobError> {
    let (sent, received) = wire.map(Exchange::take_stats).unwrap_or_default();
    let is_lost = |source| {
        received
            .iter()
            .any(|from| from.peer == source && from.lost.is_some())
    };
    let mut bytes = scratch.keep(|source| !is_lost(source));
    bytes.resize(partitions, 0);
    if wire.is_some() {
        scratch.flush()?;
    }
    scratch
        .save(index)
        .map_err(|why| JobError::file("write", index, &why))?;
    Ok(RoundResult {
        sent,
        received,
        partitions: bytes,
    })
}
