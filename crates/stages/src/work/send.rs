//! `send`: blocks to the nodes that own them, one thread per connection.
//!
//! Worker i has connection i of the mesh and sends the buffers of lane i. Waiting for the peer is
//! like waiting for a device, so it counts as busy. The edge to the next stage of the graph is the
//! network: what is sent here leaves `receive` on another node. This node's own blocks have a lane,
//! too, whose worker passes them on. Where replicas are sent, each block continues here after it
//! was sent.
//!
//! A job continues without a lost peer: its blocks are dropped, and the statistics say so.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tonnage_net::{Head, NetError, Outgoing};
use tonnage_pipeline::{Buffer, Failure, Port, Routing, Stage, StageError, StageSpec, WorkerPorts};

use crate::ports::{BLOCKS, WIRE};
use crate::work::connection_slots::{ConnectionSlot, ConnectionSlots, TransferError, failure};

/// Sends blocks.
#[derive(Clone, Debug)]
pub struct SendBlocks {
    /// The connections, one per worker.
    pub lanes: ConnectionSlots<Outgoing>,
    /// Size of a record, for counting.
    pub record_bytes: usize,
    /// Bytes that may wait for each connection.
    pub inbox_bytes: usize,
    /// Whether replicas are sent: each block then also continues in the lane of local blocks.
    pub keeps: bool,
    /// Whether a failing connection ends alone, and not the run.
    pub tolerates_loss: bool,
    /// Statistics of each connection, in no order.
    pub sent: Arc<Mutex<Vec<SendStats>>>,
}

/// What a connection sent.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SendStats {
    /// Number of the peer.
    pub peer: usize,
    /// Payload bytes.
    pub bytes: u64,
    /// Segments that the kernel retransmitted; `None` where it does not say.
    pub retransmits: Option<u64>,
    /// Why the connection ended early.
    pub lost: Option<String>,
}

impl StageSpec for SendBlocks {
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

    fn start(&self, worker: usize, _flow: &WorkerPorts) -> Result<Box<dyn Stage>, Failure> {
        Ok(match ConnectionSlot::take(&self.lanes, worker)? {
            ConnectionSlot::Peer(connection) => Box::new(Sender {
                send: self.clone(),
                connection,
                bytes: 0,
            }),
            _ => Box::new(PassThrough),
        })
    }
}

/// Passes on what stays on this node.
struct PassThrough;

impl Stage for PassThrough {
    fn run(&mut self, ports: &mut WorkerPorts) -> Result<(), StageError> {
        while let Some(buffer) = ports.receive()? {
            ports.send(buffer)?;
        }
        Ok(())
    }
}

struct Sender {
    send: SendBlocks,
    connection: Outgoing,
    bytes: u64,
}

impl Stage for Sender {
    fn run(&mut self, ports: &mut WorkerPorts) -> Result<(), StageError> {
        let lost = match self.send_all(ports) {
            Err(TransferError::Net(why))
                if self.send.tolerates_loss && !matches!(why, NetError::Stopped) =>
            {
                while let Some(buffer) = ports.receive()? {
                    self.leave(buffer, ports)?;
                }
                Some(why.to_string())
            }
            Err(TransferError::Net(why)) => return Err(failure(&why)),
            Err(TransferError::Run(why)) => return Err(why),
            Ok(()) => None,
        };
        let sent = SendStats {
            peer: self.connection.peer(),
            bytes: self.bytes,
            retransmits: self.connection.retransmits(),
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
    fn send_all(&mut self, ports: &mut WorkerPorts) -> Result<(), TransferError> {
        while let Some(buffer) = ports.receive()? {
            let sent = self.send_one(&buffer, ports);
            self.leave(buffer, ports)?; // If it was not sent, too: the copy is lost, and not the block.
            sent?;
        }
        Ok(self.connection.finish(|| ports.check().is_err())?)
    }

    fn send_one(&mut self, buffer: &Buffer, ports: &WorkerPorts) -> Result<(), TransferError> {
        let head = Head {
            number: buffer.number as u64,
            offset: buffer.offset,
            len: u32::try_from(buffer.len)
                .map_err(|_| Failure::new("a block is larger than 4 GiB"))?,
        };
        self.connection
            .send(head, buffer.payload(), || ports.check().is_err())?;
        self.bytes += buffer.len as u64;
        ports.add_moved(buffer.len, buffer.len / self.send.record_bytes);
        Ok(())
    }

    /// Ends the use of a block, sent or not: passes it on if it stays here, too.
    fn leave(&self, mut buffer: Buffer, ports: &mut WorkerPorts) -> Result<(), StageError> {
        if self.send.keeps {
            buffer.lane = self.send.lanes.len() - 1; // that of what stays is the last one
            ports.send(buffer)?;
        }
        Ok(())
    }
}
