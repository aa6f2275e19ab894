//! Runs the two passes of a sort: graph after graph, in one memory, with a report of each.
//!
//! Pass one partitions the records by key, pass two sorts each partition in memory. Nothing is
//! merged: the sorted partitions follow one another.
//!
//! Shared by the sort on one machine and a node's part on a cluster: keys from samples, pass one,
//! repartitioning of partitions that are larger than memory, pass two.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tonnage_disk::Disk;
use tonnage_pipeline::{Arena, Graph, Node};
use tonnage_records::Layout;
use tonnage_stages::boundaries::Boundaries;
use tonnage_stages::disk::modes::DiskModes;
use tonnage_stages::extent::{ALIGNMENT, Extent, aligned};
use tonnage_stages::object::access::ObjectAccess;
use tonnage_stages::output_file::OutputFile;
use tonnage_stages::scratch::Scratch;
use tonnage_stages::sink::{SampleKeys, Target};
use tonnage_stages::source::ReadExtents;
use tonnage_stages::totals::Total;
use tonnage_stages::work::Unit;

use crate::error::JobError;
use crate::memory_plan::Plan;
use crate::phases::{Phase, Watch, memory};
use crate::sort::pass_graphs::{PassOne, PassTwo, read_extents};
use crate::sort::spilled_partition::SpilledPartition;

/// Sampled chunks per partition.
pub const CHUNKS_PER_PARTITION: usize = 4;
/// Fewest and most sampled chunks.
pub const CHUNKS: (usize, usize) = (64, 4096);
/// Length of a sampled chunk: as cheap to read as a single record.
const CHUNK_BYTES: usize = 16 << 10;
/// Most records of a chunk: a million keys in memory suffice.
const CHUNK_RECORDS: usize = 256;
/// Most rounds of repartitioning. Each divides by the number of partitions that fit into memory, so
/// a second round is rare already.
const ROUNDS: usize = 8;
/// Size of the parts in which a partition of equal keys is copied; at least that of an upload's.
const COPIED_BYTES: usize = 16 << 20;

/// Length of a sampled chunk; at least one record.
#[must_use]
pub fn chunk_bytes(record_bytes: usize) -> usize {
    CHUNK_BYTES
        .min(CHUNK_RECORDS * record_bytes)
        .max(record_bytes)
}

/// Both passes, within one memory.
pub struct ExternalSort {
    /// Runs the graphs.
    pub watch: Watch,
    /// How to use the disks.
    pub disk: Disk,
    /// How to read objects.
    pub access: ObjectAccess,
    /// Size of a record and place of its key.
    pub layout: Layout,
    /// How the memory is divided.
    pub plan: Plan,
    /// The memory.
    pub memory: Arc<Arena>,
    /// Phases so far.
    pub phases: Vec<Phase>,
    /// Bytes that were repartitioned.
    pub repartitioned_bytes: u64,
}

impl ExternalSort {
    /// Nothing has run yet.
    ///
    /// # Errors
    /// When there is not so much memory.
    pub fn new(
        watch: Watch,
        disk: &Disk,
        access: ObjectAccess,
        layout: Layout,
        plan: Plan,
    ) -> Result<Self, JobError> {
        Ok(Self {
            watch,
            disk: disk.clone(),
            access,
            layout,
            memory: memory(plan.memory_bytes)?,
            plan,
            phases: Vec::new(),
            repartitioned_bytes: 0,
        })
    }

    /// The keys of sampled extents.
    ///
    /// # Errors
    /// What fails, or the cancellation.
    pub fn keys(&mut self, sample: Vec<Vec<Arc<Extent>>>) -> Result<Vec<u8>, JobError> {
        let spans = sample.iter().flatten().map(|extent| extent.span());
        let largest = spans.max().unwrap_or(0);
        let fit = self.plan.memory_bytes / 2 / largest.max(1);
        let read = ReadExtents {
            buffers: fit.clamp(1, 4 * self.disk.depth) + sample.len(),
            buffer_bytes: largest,
            access: self.access.clone(),
            ..read_extents(&self.disk, &self.plan, self.layout.record_bytes, sample)
        };
        let found = Arc::new(Mutex::new(Vec::new()));
        let keys = SampleKeys {
            layout: self.layout,
            found: Arc::clone(&found),
        };
        let modes = Arc::clone(&read.modes);
        let graph = Graph::chain([Node::new("read", read), Node::new("keys", keys)]);
        self.phase("sample", &graph, &[&modes])?;
        let mut keys = found.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(std::mem::take(&mut keys))
    }

    /// Divides extents among partitions; gives the partitions and the total that was divided.
    ///
    /// # Errors
    /// What fails, or the cancellation.
    pub fn pass_one(
        &mut self,
        name: &str,
        extents: Vec<Vec<Arc<Extent>>>,
        boundaries: Boundaries,
        scratch: &Arc<Scratch>,
        first_number: usize,
    ) -> Result<(Vec<SpilledPartition>, Total), JobError> {
        let record = self.layout.record_bytes;
        // A second round may have more partitions than planned; then blocks are shorter.
        let open = self.plan.workers * boundaries.partitions().max(self.plan.partitions);
        let planned = self.plan.workers * self.plan.partitions * self.plan.block_bytes;
        let block_bytes = (planned / open / ALIGNMENT * ALIGNMENT).max(aligned(record));
        let plan = Plan {
            block_bytes,
            ..self.plan.clone()
        };
        let (target, lanes) = (Target::Scratch(Arc::clone(scratch)), scratch.devices());
        let disk = &self.disk;
        let mut pass = PassOne::new(disk, &plan, record, extents, boundaries, target, lanes)
            .numbered_from(first_number);
        pass.read.access = self.access.clone();
        self.phase(name, &pass.graph(), &[&pass.read.modes, &pass.write.modes])?;
        let boundaries = &pass.partition.boundaries;
        let partition = |place: usize| SpilledPartition {
            number: first_number + place,
            blocks: scratch.take(first_number + place),
            lane: (first_number + place) % lanes,
            in_order: boundaries.is_single(place),
        };
        let spilled = (0..boundaries.partitions()).map(partition).collect();
        Ok((spilled, pass.partition.totals.total()))
    }

    /// Repartitions what is too large for pass two.
    ///
    /// # Errors
    /// What fails, or the cancellation.
    pub fn divide(
        &mut self,
        scratch: &Arc<Scratch>,
        mut spilled: Vec<SpilledPartition>,
    ) -> Result<Vec<SpilledPartition>, JobError> {
        let mut next_number = spilled.len();
        for _ in 0..ROUNDS {
            let too_large = |partition: &SpilledPartition| {
                !partition.in_order && partition.span() > self.plan.slot_bytes
            };
            if !spilled.iter().any(too_large) {
                return Ok(spilled);
            }
            let (slot_bytes, mut divided) = (self.plan.slot_bytes, Vec::new());
            for partition in spilled {
                if partition.in_order || partition.span() <= slot_bytes {
                    divided.push(partition);
                } else {
                    let again = self.partition_again(partition, scratch, next_number)?;
                    next_number += again.len();
                    divided.extend(again);
                }
            }
            spilled = divided;
        }
        Err(JobError::failure(format!(
            "partitions are still too large for {} bytes of memory after repeated splitting; use more memory",
            self.plan.memory_bytes
        )))
    }

    fn partition_again(
        &mut self,
        partition: SpilledPartition,
        scratch: &Arc<Scratch>,
        first_number: usize,
    ) -> Result<Vec<SpilledPartition>, JobError> {
        let bytes: u64 = partition.blocks.iter().map(|block| block.len as u64).sum();
        self.repartitioned_bytes += bytes;
        // A larger share than in the first sample, which missed here.
        let chunks = CHUNKS.0 * CHUNKS_PER_PARTITION;
        let record = self.layout.record_bytes;
        let sample = vec![partition.sample(chunks, chunk_bytes(record) / record * record)];
        let whole = vec![partition.divided(self.plan.extent_bytes)];
        let wanted = (2 * bytes / (self.plan.slot_bytes as u64).max(1) + 2) as usize;
        // At least three, so that a dominant key gets a partition of its own.
        let keys = self.keys(sample)?;
        let partitions = wanted.min(self.plan.partitions.max(3));
        let boundaries = Boundaries::from_sample(&keys, &self.layout, partitions);
        let name = "pass_one_again";
        let (mut spilled, _) = self.pass_one(name, whole, boundaries, scratch, first_number)?;
        spilled
            .iter_mut()
            .for_each(|part| part.number = partition.number);
        Ok(spilled)
    }

    /// Sorts every partition into its output files, from `scratches` devices to `outputs` devices.
    /// `part` gives the path of each file, by the number of its partition. `edit` may change the
    /// pass before it runs; it also gets each file's partition. Gives the total of all files.
    ///
    /// # Errors
    /// What fails, or the cancellation.
    pub fn pass_two(
        &mut self,
        spilled: Vec<SpilledPartition>,
        (scratches, outputs): (usize, usize),
        mut part: impl FnMut(usize) -> PathBuf,
        edit: impl FnOnce(PassTwo, Vec<usize>) -> Result<PassTwo, JobError>,
    ) -> Result<Total, JobError> {
        let spilled: Vec<SpilledPartition> = spilled
            .into_iter()
            .filter(|partition| !partition.blocks.is_empty())
            .collect();
        let mut files = Vec::with_capacity(spilled.len());
        let mut units: Vec<Unit> = Vec::new();
        let mut partitions = Vec::new(); // by file
        let mut lanes: Vec<Vec<Arc<Extent>>> = vec![Vec::new(); scratches];
        for partition in spilled {
            let (number, lane) = (partition.number, partition.lane);
            // Each copied part is a file of its own, since files are written from aligned offsets
            // and parts end at records.
            let most = COPIED_BYTES.max(self.plan.output_block_bytes);
            let most = self.plan.slot_bytes.min(most);
            for mut extent in partition.extents(most, self.layout.record_bytes) {
                let file = files.len();
                partitions.push(number);
                extent.number = units.len();
                files.push(OutputFile {
                    path: part(number),
                    bytes: extent.len() as u64,
                });
                let extent = Arc::new(extent);
                lanes[lane].push(Arc::clone(&extent));
                units.push(Unit {
                    extent,
                    file,
                    lane: file % outputs,
                });
            }
        }
        let (disk, plan, layout) = (&self.disk, &self.plan, &self.layout);
        let pass = PassTwo::new(disk, plan, layout, lanes, units, files, outputs);
        let pass = edit(pass, partitions)?;
        let modes = [&pass.read.modes, &pass.write.modes];
        self.phase("pass_two", &pass.graph(), &modes)?;
        Ok(pass.sort.totals.total())
    }

    /// Runs a graph.
    ///
    /// # Errors
    /// What fails, or the cancellation.
    pub fn phase(
        &mut self,
        name: &str,
        graph: &Graph,
        modes: &[&Arc<DiskModes>],
    ) -> Result<(), JobError> {
        let phase = self.watch.run_on_disks(name, graph, &self.memory, modes)?;
        self.phases.push(phase);
        Ok(())
    }
}
