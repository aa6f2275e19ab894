//! `receive`: blocks from other nodes, one thread per connection.
//!
//! It ends when every peer has sent its end frame. What this node sends to itself arrives by the
//! edge of the graph, at a worker that passes it on.
//!
//! A job continues without a lost peer; what arrived from it carries its number.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tonnage_net::{Incoming, NetError};
use tonnage_pipeline::{
    Failure, MemoryNeed, Port, Routing, Stage, StageError, StageSpec, WorkerPorts,
};

use crate::ports::{BLOCKS, WIRE};
use crate::work::connection_slots::{ConnectionSlot, ConnectionSlots, TransferError, failure};

/// Receives blocks.
#[derive(Clone, Debug)]
pub struct Receive {
    /// The connections, one per worker.
    pub lanes: ConnectionSlots<Incoming>,
    /// The number of this node.
    pub here: usize,
    /// The number of a block here, by peer and number there; if `None`, both numbers are the same.
    pub numbers: Option<Arc<BTreeMap<(usize, usize), usize>>>,
    /// Lanes of the next stage; a buffer's number determines its lane.
    pub next_lanes: usize,
    /// Size of a record, for counting.
    pub record_bytes: usize,
    /// Buffers of its own.
    pub buffers: usize,
    /// Size of each; at least the largest block.
    pub buffer_bytes: usize,
    /// Whether a failing connection ends alone, and not the run.
    pub tolerates_loss: bool,
    /// Statistics of each connection, in no order.
    pub received: Arc<Mutex<Vec<ReceiveStats>>>,
}

/// What a connection received.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ReceiveStats {
    /// Number of the peer.
    pub peer: usize,
    /// Payload bytes.
    pub bytes: u64,
    /// Why the connection ended early.
    pub lost: Option<String>,
}

impl StageSpec for Receive {
    fn kind(&self) -> &'static str {
        "receive"
    }

    fn config(&self) -> Value {
        json!({
            "connections": self.lanes.len(),
            "record_bytes": self.record_bytes,
            "buffers": self.buffers,
            "buffer_bytes": self.buffer_bytes,
        })
    }

    fn input(&self) -> Option<Port> {
        Some(WIRE)
    }

    fn output(&self) -> Option<Port> {
        Some(BLOCKS)
    }

    fn workers(&self) -> usize {
        self.lanes.len()
    }

    fn routing(&self) -> Routing {
        Routing::ByLane
    }

    fn memory(&self) -> MemoryNeed {
        MemoryNeed {
            buffers: self.buffers,
            buffer_bytes: self.buffer_bytes,
            private_bytes: 0,
        }
    }

    fn start(&self, worker: usize, _flow: &WorkerPorts) -> Result<Box<dyn Stage>, Failure> {
        Ok(match ConnectionSlot::take(&self.lanes, worker)? {
            ConnectionSlot::Peer(connection) => Box::new(Receiver {
                receive: self.clone(),
                connection,
                bytes: 0,
            }),
            _ => Box::new(PassThrough {
                here: self.here,
                next_lanes: self.next_lanes,
            }),
        })
    }
}

/// Passes on what this node sent to itself.
struct PassThrough {
    here: usize,
    next_lanes: usize,
}

impl Stage for PassThrough {
    fn run(&mut self, ports: &mut WorkerPorts) -> Result<(), StageError> {
        while let Some(mut buffer) = ports.receive()? {
            (buffer.peer, buffer.lane) = (self.here, buffer.number % self.next_lanes);
            ports.send(buffer)?;
        }
        Ok(())
    }
}

struct Receiver {
    receive: Receive,
    connection: Incoming,
    bytes: u64,
}

impl Stage for Receiver {
    fn run(&mut self, ports: &mut WorkerPorts) -> Result<(), StageError> {
        let lost = match self.receive_all(ports) {
            Err(TransferError::Net(why))
                if self.receive.tolerates_loss && !matches!(why, NetError::Stopped) =>
            {
                Some(why.to_string())
            }
            Err(TransferError::Net(why)) => return Err(failure(&why)),
            Err(TransferError::Run(why)) => return Err(why),
            Ok(()) => None,
        };
        let received = ReceiveStats {
            peer: self.connection.peer(),
            bytes: self.bytes,
            lost,
        };
        let mut all = self
            .receive
            .received
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        all.push(received);
        Ok(())
    }
}

impl Receiver {
    fn receive_all(&mut self, ports: &mut WorkerPorts) -> Result<(), TransferError> {
        loop {
            let mut buffer = ports.buffer()?;
            let stopped = || ports.check().is_err();
            let Some(head) = self.connection.receive(buffer.slot_mut(), stopped)? else {
                return Ok(());
            };
            buffer.len = head.len as usize;
            buffer.number = self.number(head.number as usize)?;
            buffer.offset = head.offset;
            buffer.peer = self.connection.peer();
            buffer.lane = buffer.number % self.receive.next_lanes;
            self.bytes += buffer.len as u64;
            ports.add_moved(buffer.len, buffer.len / self.receive.record_bytes);
            ports.send(buffer)?;
        }
    }

    fn number(&self, there: usize) -> Result<usize, NetError> {
        let Some(numbers) = &self.receive.numbers else {
            return Ok(there);
        };
        let number = numbers.get(&(self.connection.peer(), there)).copied();
        number.ok_or_else(|| {
            self.connection
                .protocol_error(format!("a block of file {there}, which was not announced"))
        })
    }
}
