//! `send`: blocks to the endpoints that they belong to, one thread a connection.
//!
//! Worker i has connection i of the mesh and sends the buffers of lane i. Waiting for the peer is
//! waiting for a device, so it counts as work. The edge to the next stage of the graph is the
//! network: what is sent here comes out of `receive` elsewhere. What belongs to this endpoint itself
//! has a lane, too, whose worker only hands on. Where a copy is sent, each block goes on there when
//! it was sent.
//!
//! A job goes on without a peer that is lost: what belongs to it goes nowhere, and the lane says so.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tonnage_net::{Head, NetError, Outgoing};
use tonnage_pipeline::{Buffer, Failure, Flow, Port, Routing, Spec, Stage, StageError};

use crate::{BLOCKS, WIRE};

/// Sends blocks.
#[derive(Clone, Debug)]
pub struct Send {
    /// The connections, each taken by its worker.
    pub lanes: Lanes<Outgoing>,
    /// Size of a record, for counting.
    pub record_bytes: usize,
    /// Bytes that may wait for each connection.
    pub inbox_bytes: usize,
    /// Whether what is sent is a copy: the block itself then takes the lane of what stays.
    pub keeps: bool,
    /// Whether a connection that fails ends alone, and not the run.
    pub outlives: bool,
    /// What each connection did, in no order.
    pub sent: Arc<Mutex<Vec<Sent>>>,
}

/// Connections for the workers of a stage, each for one of them and one run.
pub type Lanes<Link> = Arc<Vec<Mutex<Lane<Link>>>>;

/// A worker's connection.
#[derive(Debug)]
pub enum Lane<Link> {
    /// To or from a peer.
    Peer(Link),
    /// None: what this endpoint sends to itself.
    Here,
    /// A worker has it.
    Taken,
}

impl<Link> Lane<Link> {
    /// Lanes of these connections, and of none.
    pub fn all(links: Vec<Link>, here: bool) -> Lanes<Link> {
        let peers = links.into_iter().map(Self::Peer);
        Arc::new(
            peers
                .chain(here.then_some(Self::Here))
                .map(Mutex::new)
                .collect(),
        )
    }

    /// The lane of a worker.
    pub(crate) fn take(lanes: &Lanes<Link>, worker: usize) -> Result<Self, Failure> {
        let mut place = lanes[worker].lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *place, Self::Taken) {
            Self::Taken => Err(Failure::new("a connection serves one run")),
            lane => Ok(lane),
        }
    }
}

/// What a connection did.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Sent {
    /// Number of the peer.
    pub peer: usize,
    /// Payload bytes.
    pub bytes: u64,
    /// Segments that the kernel sent again; `None` where it does not say.
    pub retransmits: Option<u64>,
    /// Why not all was sent.
    pub lost: Option<String>,
}

impl Spec for Send {
    fn kind(&self) -> &'static str {
        "send"
    }

    fn config(&self) -> Value {
        json!({
            "connections": self.lanes.len(),
            "record_bytes": self.record_bytes,
            "inbox_bytes": self.inbox_bytes,
            "keeps": self.keeps,
        })
    }

    fn input(&self) -> Option<Port> {
        Some(BLOCKS)
    }

    fn output(&self) -> Option<Port> {
        Some(WIRE)
    }

    fn workers(&self) -> usize {
        self.lanes.len()
    }

    fn routing(&self) -> Routing {
        Routing::ByLane
    }

    fn inbox_bytes(&self) -> usize {
        self.inbox_bytes
    }

    fn start(&self, worker: usize, _flow: &Flow) -> Result<Box<dyn Stage>, Failure> {
        Ok(match Lane::take(&self.lanes, worker)? {
            Lane::Peer(link) => Box::new(Sender {
                send: self.clone(),
                link,
                bytes: 0,
            }),
            _ => Box::new(HandingOn),
        })
    }
}

/// What stays on this endpoint.
struct HandingOn;

impl Stage for HandingOn {
    fn run(&mut self, flow: &mut Flow) -> Result<(), StageError> {
        while let Some(buffer) = flow.receive()? {
            flow.send(buffer)?;
        }
        Ok(())
    }
}

struct Sender {
    send: Send,
    link: Outgoing,
    bytes: u64,
}

impl Stage for Sender {
    fn run(&mut self, flow: &mut Flow) -> Result<(), StageError> {
        let lost = match self.send_all(flow) {
            Err(Trouble::Net(why)) if self.send.outlives && !matches!(why, NetError::Stopped) => {
                while let Some(buffer) = flow.receive()? {
                    self.leave(buffer, flow)?;
                }
                Some(why.to_string())
            }
            Err(Trouble::Net(why)) => return Err(failure(&why)),
            Err(Trouble::Run(why)) => return Err(why),
            Ok(()) => None,
        };
        let sent = Sent {
            peer: self.link.peer(),
            bytes: self.bytes,
            retransmits: self.link.retransmits(),
            lost,
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

impl Sender {
    fn send_all(&mut self, flow: &mut Flow) -> Result<(), Trouble> {
        while let Some(buffer) = flow.receive()? {
            let sent = self.send_one(&buffer, flow);
            self.leave(buffer, flow)?; // If it was not sent, too: the copy is lost, and not the block.
            sent?;
        }
        Ok(self.link.finish(|| flow.check().is_err())?)
    }

    fn send_one(&mut self, buffer: &Buffer, flow: &Flow) -> Result<(), Trouble> {
        let head = Head {
            number: buffer.number as u64,
            offset: buffer.offset,
            len: u32::try_from(buffer.len).map_err(|_| Failure::new("a block above 4 GiB"))?,
        };
        self.link
            .send(head, buffer.payload(), || flow.check().is_err())?;
        self.bytes += buffer.len as u64;
        flow.moved(buffer.len, buffer.len / self.send.record_bytes);
        Ok(())
    }

    /// Is done with a block, sent or not: hands it on if it stays here, too.
    fn leave(&self, mut buffer: Buffer, flow: &mut Flow) -> Result<(), StageError> {
        if self.send.keeps {
            buffer.lane = self.send.lanes.len() - 1; // that of what stays is the last one
            flow.send(buffer)?;
        }
        Ok(())
    }
}

/// What ends a connection's work: the connection itself, or the run.
pub(crate) enum Trouble {
    Net(NetError),
    Run(StageError),
}

impl From<NetError> for Trouble {
    fn from(why: NetError) -> Self {
        Self::Net(why)
    }
}

impl From<StageError> for Trouble {
    fn from(why: StageError) -> Self {
        Self::Run(why)
    }
}

impl From<Failure> for Trouble {
    fn from(why: Failure) -> Self {
        Self::Run(why.into())
    }
}

/// A network's error as a stage's.
pub(crate) fn failure(error: &NetError) -> StageError {
    match error {
        NetError::Stopped => StageError::Stopped,
        other => Failure::new(other.to_string()).into(),
    }
}
