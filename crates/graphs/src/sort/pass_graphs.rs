//! The two passes of a sort as values, and the graph of each.
//!
//! ```text
//!   PassOne   read -records-> partition -blocks-> write
//!             read -records-> partition -blocks-> send -wire-> receive -blocks-> write
//!   PassTwo   read -partitions-> sort -blocks-> write
//!             read -partitions-> sort -blocks-> send -wire-> receive -blocks-> write    with replicas
//! ```
//!
//! The one place where a plan becomes a pass: the sort runs these graphs, `benches::disk` and
//! `benches::cpu` edit them.

use std::sync::Arc;

use tonnage_disk::Disk;
use tonnage_net::Mesh;
use tonnage_pipeline::{Graph, Node};
use tonnage_records::Layout;
use tonnage_stages::boundaries::Boundaries;
use tonnage_stages::disk::modes::DiskModes;
use tonnage_stages::extent::{Extent, aligned};
use tonnage_stages::object::access::ObjectAccess;
use tonnage_stages::object::uploads::Uploads;
use tonnage_stages::output_file::{OnFinished, OutputFile};
use tonnage_stages::ports::{PARTITIONS, RECORDS};
use tonnage_stages::sink::{Target, WriteBlocks};
use tonnage_stages::source::ReadExtents;
use tonnage_stages::totals::Totals;
use tonnage_stages::work::{Partition, Sort, Unit};

use crate::cluster::exchange::Exchange;
use crate::cluster::replicas::HeldReplicas;
use crate::memory_plan::{Plan, buffers_of_receive};

/// Pass one: reads records, partitions them, and writes blocks.
#[derive(Clone, Debug)]
pub struct PassOne {
    /// Source.
    pub read: ReadExtents,
    /// Work.
    pub partition: Partition,
    /// On a cluster: to and from the other nodes.
    pub wire: Option<Exchange>,
    /// Sink.
    pub write: WriteBlocks,
}

impl PassOne {
    /// From extents of records, one lane per device, to `lanes` devices of `scratch`.
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
            lasting: match &scratch {
                Target::Scratch(scratch) => scratch.pool(),
                _ => None,
            },
            totals: Arc::new(Totals::default()),
        };
        // No transfer is longer than a block, so that a benchmark with longer buffers sends the
        // device the same transfers as the sort.
        let transfer_bytes = disk.transfer_bytes.min(plan.block_bytes);
        let write = WriteBlocks {
            disk: Disk {
                transfer_bytes,
                ..disk.clone()
            },
            target: scratch,
            lanes,
            record_bytes,
            inbox_bytes: plan.spare_blocks * plan.block_bytes,
            on_finished: OnFinished::default(),
            modes: Arc::new(DiskModes::default()),
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

    /// Numbers the partitions from `first_number` on.
    #[must_use]
    pub fn numbered_from(mut self, first_number: usize) -> Self {
        let lane = |place| Some((first_number + place) % self.write.lanes);
        let partitions = self.partition.boundaries.partitions();
        self.partition.lanes = Arc::new((0..partitions).map(lane).collect());
        self.partition.first_number = first_number;
        self
    }

    /// Sends the blocks of each partition to its owner; `here` is this node.
    #[must_use]
    pub fn between_nodes(mut self, mesh: Mesh, here: usize, owners: &[Option<usize>]) -> Self {
        let blocks = (self.partition.block_bytes, self.partition.spare_blocks);
        let write = &self.write;
        let wire = Exchange::of_blocks(mesh, here, write.record_bytes, blocks, write.lanes);
        self.partition.lanes = Arc::new(wire.lanes_to(owners));
        self.wire = Some(wire);
        self
    }

    /// The graph.
    #[must_use]
    pub fn graph(&self) -> Graph {
        let mut nodes = vec![
            Node::new("read", self.read.clone()),
            Node::new("partition", self.partition.clone()),
        ];
        nodes.extend(self.wire.iter().flat_map(Exchange::nodes));
        nodes.push(Node::new("write", self.write.clone()));
        Graph::chain(nodes)
    }
}

/// Reads extents of records, one buffer each.
#[must_use]
pub fn read_extents(
    disk: &Disk,
    plan: &Plan,
    record_bytes: usize,
    extents: Vec<Vec<Arc<Extent>>>,
) -> ReadExtents {
    let spans = extents.iter().flatten().map(|extent| extent.span());
    let largest = spans.max().unwrap_or(0);
    ReadExtents {
        disk: disk.clone(),
        lanes: Arc::new(extents),
        access: ObjectAccess::default(),
        next: Arc::default(),
        gives: RECORDS,
        record_bytes,
        buffers: plan.extent_buffers,
        buffer_bytes: aligned(plan.extent_bytes).max(largest),
        modes: Arc::new(DiskModes::default()),
    }
}

/// Pass two: reads partitions, sorts them, and writes them to files.
#[derive(Clone, Debug)]
pub struct PassTwo {
    /// Source.
    pub read: ReadExtents,
    /// Work.
    pub sort: Sort,
    /// On a cluster that keeps replicas: to and from the other nodes.
    pub wire: Option<Exchange>,
    /// Sink.
    pub write: WriteBlocks,
}

impl PassTwo {
    /// From partitions, one lane per device, to `files` on `outputs` devices.
    #[must_use]
    pub fn new(
        disk: &Disk,
        plan: &Plan,
        layout: &Layout,
        partitions: Vec<Vec<Arc<Extent>>>,
        units: Vec<Unit>,
        files: Vec<OutputFile>,
        outputs: usize,
    ) -> Self {
        let spans = units.iter().map(|unit| unit.extent.span());
        let largest = spans.max().unwrap_or(0);
        let record_bytes = layout.record_bytes;
        let read = ReadExtents {
            disk: disk.clone(),
            lanes: Arc::new(partitions),
            access: ObjectAccess::default(),
            next: Arc::default(),
            gives: PARTITIONS,
            record_bytes,
            buffers: plan.slots,
            buffer_bytes: largest,
            modes: Arc::new(DiskModes::default()),
        };
        let sort = Sort {
            units: Arc::new(units),
            layout: *layout,
            workers: plan.workers,
            buffers: plan.output_blocks,
            buffer_bytes: plan.output_block_bytes,
            totals: Arc::new(Totals::default()),
        };
        let write = WriteBlocks {
            disk: disk.clone(),
            target: Target::Files(Arc::new(files)),
            lanes: outputs,
            record_bytes,
            inbox_bytes: disk.depth * plan.output_block_bytes,
            on_finished: OnFinished::default(),
            modes: Arc::new(DiskModes::default()),
        };
        Self {
            read,
            sort,
            wire: None,
            write,
        }
    }

    /// The files that it writes.
    #[must_use]
    pub fn files(&self) -> Arc<Vec<OutputFile>> {
        match &self.write.target {
            Target::Files(files) => Arc::clone(files),
            Target::Scratch(_) | Target::Objects(_) | Target::Growing(_) => Arc::default(),
        }
    }

    /// Uploads the output to an object store instead, with as many requests as there were devices.
    #[must_use]
    pub fn uploaded(mut self, uploads: Arc<Uploads>) -> Self {
        self.write.inbox_bytes = self.sort.buffer_bytes; // What is put is in a worker's hands.
        self.write.target = Target::Objects(uploads);
        self
    }

    /// Also sends each output file to its keeper, if it has one, and writes the replicas that this
    /// node keeps.
    ///
    /// Every block is sent to the keeper before it is written here.
    #[must_use]
    pub fn with_replicas(
        mut self,
        mesh: Mesh,
        here: usize,
        keepers: &[Option<usize>],
        kept: HeldReplicas,
    ) -> Self {
        let block_bytes = self.sort.buffer_bytes;
        let mut wire = Exchange::new(mesh, Some(here), self.write.record_bytes, block_bytes);
        let keepers: Vec<Option<usize>> = keepers.iter().map(|to| to.or(Some(here))).collect();
        let lanes = wire.lanes_to(&keepers);
        let to_keeper = |unit: &Unit| Unit {
            lane: lanes[unit.file].unwrap_or_default(),
            ..unit.clone()
        };
        self.sort.units = Arc::new(self.sort.units.iter().map(to_keeper).collect());
        wire.send.keeps = true;
        wire.receive.numbers = Some(Arc::new(kept.numbers));
        wire.receive.next_lanes = self.write.lanes;
        wire.receive.buffers =
            buffers_of_receive(self.sort.buffers, wire.receive.buffers, self.write.lanes);
        let files = self.files().iter().cloned().chain(kept.files).collect();
        self.write.target = Target::Files(Arc::new(files));
        self.wire = Some(wire);
        self
    }

    /// The graph.
    #[must_use]
    pub fn graph(&self) -> Graph {
        let mut nodes = vec![
            Node::new("read", self.read.clone()),
            Node::new("sort", self.sort.clone()),
        ];
        nodes.extend(self.wire.iter().flat_map(Exchange::nodes));
        nodes.push(Node::new("write", self.write.clone()));
        Graph::chain(nodes)
    }
}
