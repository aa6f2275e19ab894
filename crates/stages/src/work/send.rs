//! `send`: blocks to the endpoints that they belong to, one thread a connection.
//!
//! Worker i has connection i of the mesh and sends the buffers of lane i. Waiting for the peer is
//! waiting for a device, so it counts as work. The edge to the next stage of the graph is the
//! network: what is sent here comes out of `receive` elsewhere.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tonnage_net::{Head, NetError, Outgoing};
use tonnage_pipeline::{Failure, Flow, Port, Routing, Spec, Stage, StageError};

use crate::{BLOCKS, WIRE};

/// Sends blocks.
#[derive(Clone, Debug)]
pub struct Send {
    /// The connections, each taken by its worker.
    pub links: Arc<Vec<Mutex<Option<Outgoing>>>>,
    /// Size of a record, for counting.
    pub record_bytes: usize,
    /// Bytes that may wait for each connection.
    pub inbox_bytes: usize,
    /// What each connection did, in no order.
    pub sent: Arc<Mutex<Vec<Sent>>>,
}

/// What a connection did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Sent {
    /// Number of the peer.
    pub peer: usize,
    /// Payload bytes.
    pub bytes: u64,
    /// Segments that the kernel sent again; `None` where it does not say.
    pub retransmits: Option<u64>,
}

impl Spec for Send {
    fn kind(&self) -> &'static str {
        "send"
    }

    fn config(&self) -> Value {
        json!({
            "connections": self.links.len(),
            "record_bytes": self.record_bytes,
            "inbox_bytes": self.inbox_bytes,
        })
    }

    fn input(&self) -> Option<Port> {
        Some(BLOCKS)
    }

    fn output(&self) -> Option<Port> {
        Some(WIRE)
    }

    fn workers(&self) -> usize {
        self.links.len()
    }

    fn routing(&self) -> Routing {
        Routing::ByLane
    }

    fn inbox_bytes(&self) -> usize {
        self.inbox_bytes
    }

    fn start(&self, worker: usize, _flow: &Flow) -> Result<Box<dyn Stage>, Failure> {
        let mut place = self.links[worker]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let link = place.take();
        Ok(Box::new(Sender {
            send: self.clone(),
            link: link.ok_or_else(|| Failure::new("a connection serves one run"))?,
        }))
    }
}

struct Sender {
    send: Send,
    link: Outgoing,
}

impl Stage for Sender {
    fn run(&mut self, flow: &mut Flow) -> Result<(), StageError> {
        let mut bytes = 0;
        while let Some(buffer) = flow.receive()? {
            let head = Head {
                number: buffer.number as u64,
                offset: buffer.offset,
                len: u32::try_from(buffer.len).map_err(|_| Failure::new("a block above 4 GiB"))?,
            };
            let sent = self
                .link
                .send(head, buffer.payload(), || flow.check().is_err());
            sent.map_err(|why| failure(&why))?;
            bytes += buffer.len as u64;
            flow.moved(buffer.len, buffer.len / self.send.record_bytes);
        }
        self.link.finish(|| flow.check().is_err()).map_err(|why| failure(&why))?;
        let sent = Sent {
            peer: self.link.peer(),
            bytes,
            retransmits: self.link.retransmits(),
        };
        let mut all = self
            .send
            .sent
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        all.push(sent);
        Ok(())
    }
}

/// A network's error as a stage's.
pub(crate) fn failure(error: &NetError) -> StageError {
    match error {
        NetError::Stopped => StageError::Stopped,
        other => Failure::new(other.to_string()).into(),
    }
}
