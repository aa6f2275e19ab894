//! The network edge of a graph: what one node sends leaves `receive` on another.

use std::collections::BTreeMap;
use std::iter::Cycle;
use std::sync::{Arc, Mutex, PoisonError};
use std::vec::IntoIter;

use tonnage_net::{Mesh, NetError, Settings};
use tonnage_pipeline::{Node, RunHandle};
use tonnage_stages::extent::aligned;
use tonnage_stages::work::{ConnectionSlot, Receive, ReceiveStats, SendBlocks, SendStats};

use crate::error::JobError;
use crate::memory_plan::buffers_of_receive;

/// Both ends of the edge.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// To the other nodes.
    pub send: SendBlocks,
    /// From the other nodes.
    pub receive: Receive,
    lanes: BTreeMap<usize, Vec<usize>>, // of `send`, by endpoint
}

impl Exchange {
    /// Over the connections of a mesh, with one buffer in flight on each.
    ///
    /// A job has a lane for this node itself (`here`) and continues without a lost peer: what
    /// arrived from it is incomplete then, and what belongs to it is dropped. A benchmark, where
    /// nothing stays, ends with the first lost peer.
    #[must_use]
    pub fn new(mesh: Mesh, here: Option<usize>, record_bytes: usize, block_bytes: usize) -> Self {
        let (links, stays) = (mesh.outgoing.len(), here.is_some());
        let mut lanes: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (lane, connection) in mesh.outgoing.iter().enumerate() {
            lanes.entry(connection.peer()).or_default().push(lane);
        }
        if let Some(here) = here {
            lanes.insert(here, vec![links]);
        }
        let send = SendBlocks {
            lanes: ConnectionSlot::all(mesh.outgoing, stays),
            record_bytes,
            inbox_bytes: block_bytes,
            keeps: false,
            tolerates_loss: stays,
            sent: Arc::default(),
        };
        let receive = Receive {
            lanes: ConnectionSlot::all(mesh.incoming, stays),
            here: here.unwrap_or_default(),
            numbers: None,
            next_lanes: 1,
            record_bytes,
            buffers: links,
            buffer_bytes: aligned(block_bytes),
            tolerates_loss: stays,
            received: Arc::default(),
        };
        Self {
            send,
            receive,
            lanes,
        }
    }

    /// For a job's blocks, of which about `spare_blocks` are on their way to `devices`.
    #[must_use]
    pub fn of_blocks(
        mesh: Mesh,
        here: usize,
        record_bytes: usize,
        (block_bytes, spare_blocks): (usize, usize),
        devices: usize,
    ) -> Self {
        let mut wire = Self::new(mesh, Some(here), record_bytes, block_bytes);
        wire.send.inbox_bytes = (spare_blocks / wire.send.lanes.len()).max(1) * block_bytes;
        wire.receive.next_lanes = devices;
        wire.receive.buffers = buffers_of_receive(spare_blocks, wire.receive.buffers, devices);
        wire
    }

    /// The lane to the owner of each item; a node's connections take turns.
    #[must_use]
    pub fn lanes_to(&self, endpoints: &[Option<usize>]) -> Vec<Option<usize>> {
        let mut turns: BTreeMap<usize, Cycle<IntoIter<usize>>> = self
            .lanes
            .iter()
            .map(|(&endpoint, lanes)| (endpoint, lanes.clone().into_iter().cycle()))
            .collect();
        let lane = |endpoint: &Option<usize>| turns.get_mut(endpoint.as_ref()?)?.next();
        endpoints.iter().map(lane).collect()
    }

    /// The two stages.
    #[must_use]
    pub fn nodes(&self) -> [Node; 2] {
        [
            Node::new("send", self.send.clone()),
            Node::new("receive", self.receive.clone()),
        ]
    }

    /// Statistics of each connection.
    #[must_use]
    pub fn take_stats(&self) -> (Vec<SendStats>, Vec<ReceiveStats>) {
        (take_all(&self.send.sent), take_all(&self.receive.received))
    }
}

/// Connects to all other nodes.
///
/// # Errors
/// The missing node, or the cancellation.
pub fn connect(settings: &Settings, handle: &RunHandle) -> Result<Mesh, JobError> {
    Mesh::connect(settings, || handle.is_cancelled()).map_err(|why| match why {
        NetError::Stopped => JobError::Cancelled,
        other => JobError::failure(other.to_string()),
    })
}

fn take_all<T>(list: &Mutex<Vec<T>>) -> Vec<T> {
    std::mem::take(&mut list.lock().unwrap_or_else(PoisonError::into_inner))
}
