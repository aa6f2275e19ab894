//! The two passes of a sort as values, and the graph of each.
//!
//! ```text
//!   PassOne   read -records-> partition -blocks-> write
//!             read -records-> partition -blocks-> send -wire-> receive -blocks-> write
//!   PassTwo   read -partitions-> sort -blocks-> write
//! ```
//!
//! The one place where a pass is put together from a plan: the sort runs these graphs, `disk_bench`
//! and `cpu_bench` edit them.

use std::collections::BTreeMap;
use std::iter::Cycle;
use std::sync::Arc;
use std::vec::IntoIter;

use tonnage_disk::Disk;
use tonnage_net::Mesh;
use tonnage_pipeline::{Graph, Node};
use tonnage_records::Layout;
use tonnage_stages::boundaries::Boundaries;
use tonnage_stages::extent::{Extent, aligned};
use tonnage_stages::ledger::{Ledger, Modes};
use tonnage_stages::sink::{OnWhole, Target, Write};
use tonnage_stages::source::{Fetch, Read};
use tonnage_stages::work::{Lane, Partition, Receive, Send, Sort, Unit};
use tonnage_stages::{PARTITIONS, RECORDS};

use crate::plan::Plan;

/// Pass one: where records come from, how they are divided, where blocks go.
#[derive(Clone, Debug)]
pub struct PassOne {
    /// Source.
    pub read: Read,
    /// Work.
    pub partition: Partition,
    /// On a fleet: to and from the other endpoints.
    pub wire: Option<(Send, Receive)>,
    /// Sink.
    pub write: Write,
}

impl PassOne {
    /// From extents of records, in a lane for each device, to `lanes` devices of `scratch`.
    #[must_use]
    pub fn new(
        disk: &Disk,
        plan: &Plan,
        record_bytes: usize,
        extents: Vec<Vec<Arc<Extent>>>,
        boundaries: Boundaries,
        scratch: Target,
        lanes: usize,
    ) -> Self {
        let partition = Partition {
            lanes: Arc::default(),
            boundaries: Arc::new(boundaries),
            first_number: 0,
            record_bytes,
            workers: plan.workers,
            block_bytes: plan.block_bytes,
            spare_blocks: plan.spare_blocks,
            ledger: Arc::new(Ledger::default()),
        };
        // No transfer is longer than a block, so that a benchmark which writes longer buffers
        // sends the device what the sort does.
        let transfer_bytes = disk.transfer_bytes.min(plan.block_bytes);
        let write = Write {
            disk: Disk {
                transfer_bytes,
                ..disk.clone()
            },
            target: scratch,
            lanes,
            record_bytes,
            inbox_bytes: plan.spare_blocks * plan.block_bytes,
            on_whole: OnWhole::default(),
            modes: Arc::new(Modes::default()),
        };
        let read = read_extents(disk, plan, record_bytes, extents);
        let pass = Self {
            read,
            partition,
            wire: None,
            write,
        };
        pass.numbered_from(0)
    }

    /// Gives the partitions numbers from this one on.
    #[must_use]
    pub fn numbered_from(mut self, first_number: usize) -> Self {
        let lane = |place| Some((first_number + place) % self.write.lanes);
        let partitions = self.partition.boundaries.partitions();
        self.partition.lanes = Arc::new((0..partitions).map(lane).collect());
        self.partition.first_number = first_number;
        self
    }

    /// Sends the blocks of each partition to the endpoint that owns it, `here` for this one.
    ///
    /// It goes on without a peer that is lost: what came of it is not whole then, what belongs to it
    /// goes nowhere.
    #[must_use]
    pub fn across(mut self, mesh: Mesh, here: usize, owners: &[Option<usize>]) -> Self {
        let mut lanes: BTreeMap<usize, Vec<usize>> = BTreeMap::new(); // by endpoint
        for (lane, link) in mesh.outgoing.iter().enumerate() {
            lanes.entry(link.peer()).or_default().push(lane);
        }
        lanes.insert(here, vec![mesh.outgoing.len()]);
        // A peer's connections take its partitions in turn.
        let mut turns: BTreeMap<usize, Cycle<IntoIter<usize>>> = lanes
            .into_iter()
            .map(|(endpoint, lanes)| (endpoint, lanes.into_iter().cycle()))
            .collect();
        let lane = |owner: &Option<usize>| turns.get_mut(owner.as_ref()?)?.next();
        self.partition.lanes = Arc::new(owners.iter().map(lane).collect());
        let (record_bytes, block_bytes) = (self.write.record_bytes, self.partition.block_bytes);
        let links = mesh.incoming.len();
        let send = Send {
            lanes: Lane::all(mesh.outgoing, true),
            record_bytes,
            inbox_bytes: (self.partition.spare_blocks / (links + 1)).max(1) * block_bytes,
            outlives: true,
            sent: Arc::default(),
        };
        let receive = Receive {
            lanes: Lane::all(mesh.incoming, true),
            here,
            next_lanes: self.write.lanes,
            record_bytes,
            // As many on their way to the disk as there are of what stays here, one in the hands of
            // each connection at least.
            buffers: self.partition.spare_blocks.max(links + self.write.lanes),
            buffer_bytes: block_bytes,
            outlives: true,
            received: Arc::default(),
        };
        self.wire = Some((send, receive));
        self
    }

    /// The graph.
    #[must_use]
    pub fn graph(&self) -> Graph {
        let mut nodes = vec![
            Node::new("read", self.read.clone()),
            Node::new("partition", self.partition.clone()),
        ];
        if let Some((send, receive)) = &self.wire {
            nodes.push(Node::new("send", send.clone()));
            nodes.push(Node::new("receive", receive.clone()));
        }
        nodes.push(Node::new("write", self.write.clone()));
        Graph::chain(nodes)
    }
}

/// Reads extents of records, a slot of memory for each.
#[must_use]
pub fn read_extents(
    disk: &Disk,
    plan: &Plan,
    record_bytes: usize,
    extents: Vec<Vec<Arc<Extent>>>,
) -> Read {
    let spans = extents.iter().flatten().map(|extent| extent.span());
    let largest = spans.max().unwrap_or(0);
    Read {
        disk: disk.clone(),
        lanes: Arc::new(extents),
        fetch: Fetch::default(),
        next: Arc::default(),
        gives: RECORDS,
        record_bytes,
        buffers: plan.extent_buffers,
        buffer_bytes: aligned(plan.extent_bytes).max(largest),
        modes: Arc::new(Modes::default()),
    }
}

/// Pass two: where partitions come from, how they are sorted, where they go.
#[derive(Clone, Debug)]
pub struct PassTwo {
    /// Source.
    pub read: Read,
    /// Work.
    pub sort: Sort,
    /// Sink.
    pub write: Write,
}

impl PassTwo {
    /// From partitions, in a lane for each device, to `target` on `outputs` devices, or by as many
    /// requests.
    #[must_use]
    pub fn new(
        disk: &Disk,
        plan: &Plan,
        layout: &Layout,
        partitions: Vec<Vec<Arc<Extent>>>,
        units: Vec<Unit>,
        target: Target,
        outputs: usize,
    ) -> Self {
        let spans = units.iter().map(|unit| unit.extent.span());
        let largest = spans.max().unwrap_or(0);
        let record_bytes = layout.record_bytes;
        let read = Read {
            disk: disk.clone(),
            lanes: Arc::new(partitions),
            fetch: Fetch::default(),
            next: Arc::default(),
            gives: PARTITIONS,
            record_bytes,
            buffers: plan.slots,
            buffer_bytes: largest,
            modes: Arc::new(Modes::default()),
        };
        let sort = Sort {
            units: Arc::new(units),
            layout: *layout,
            workers: plan.workers,
            buffers: plan.output_blocks,
            buffer_bytes: plan.output_block_bytes,
            ledger: Arc::new(Ledger::default()),
        };
        let queued = match target {
            Target::Objects(_) => 1, // What is put is in a worker's hands.
            _ => disk.depth,
        };
        let write = Write {
            disk: disk.clone(),
            target,
            lanes: outputs,
            record_bytes,
            inbox_bytes: queued * plan.output_block_bytes,
            on_whole: OnWhole::default(),
            modes: Arc::new(Modes::default()),
        };
        Self { read, sort, write }
    }

    /// The graph.
    #[must_use]
    pub fn graph(&self) -> Graph {
        Graph::chain([
            Node::new("read", self.read.clone()),
            Node::new("sort", self.sort.clone()),
            Node::new("write", self.write.clone()),
        ])
    }
}
