//! Re-replication: sends finished output files to new keepers, where a replica was lost or never
//! made.
//!
//! ```text
//!   copy   read -blocks-> send -wire-> receive -blocks-> write
//! ```
//!
//! Pass two does the same as it sorts; here the files are on disk already.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;
use tonnage_disk::Disk;
use tonnage_pipeline::{Graph, Node, RunHandle};
use tonnage_stages::disk::modes::DiskModes;
use tonnage_stages::object::access::ObjectAccess;
use tonnage_stages::output_file::{OnFinished, OutputFile};
use tonnage_stages::ports::BLOCKS;
use tonnage_stages::sink::{Target, WriteBlocks};
use tonnage_stages::source::ReadExtents;
use tonnage_stages::work::{ReceiveStats, SendStats};

use crate::cluster::exchange::{Exchange, connect};
use crate::cluster::finished_log::FinishedLog;
use crate::cluster::replicas::Replicas;
use crate::error::JobError;
use crate::inputs::blocks_of;
use crate::memory_plan::{Plan, Shape, UNCOUNTED};
use crate::phases::{Phase, Watch, memory};

/// What to replicate.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Files of this node; none if it only keeps replicas.
    pub files: Vec<ReplicaTask>,
    /// The nodes, and where this one keeps replicas.
    pub copies: Replicas,
    /// Memory for all buffers.
    pub memory_bytes: usize,
    /// How to use the disks.
    #[serde(default)]
    pub disk: Disk,
}

/// A file to be replicated.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplicaTask {
    /// The file.
    pub path: PathBuf,
    /// Its name below the output.
    pub name: String,
    /// The node that keeps the replica.
    pub keeper: usize,
}

/// The results of a node.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// What each connection sent.
    pub sent: Vec<SendStats>,
    /// What each connection received.
    pub received: Vec<ReceiveStats>,
    /// Seconds in all.
    pub seconds: f64,
    /// The run.
    pub phases: Vec<Phase>,
}

/// Replicates.
///
/// # Errors
/// What is refused, what fails here (not at a peer), or the cancellation; replicas that are
/// finished by then stay.
pub fn run(config: &Config, handle: &RunHandle) -> Result<Outcome, JobError> {
    let watch = Watch::begin(handle);
    let (copies, here) = (&config.copies, config.copies.mesh.number);
    let look_at = |wanted: &ReplicaTask| {
        let about = fs::metadata(&wanted.path);
        let about = about.map_err(|why| JobError::file("read", &wanted.path, &why))?;
        Ok(OutputFile {
            path: wanted.path.clone(),
            bytes: about.len(),
        })
    };
    let own = config.files.iter().map(look_at);
    let own = own.collect::<Result<Vec<OutputFile>, JobError>>()?;
    let shape = Shape {
        bytes: own.iter().map(|file| file.bytes).sum(),
        record_bytes: 1,
        memory_bytes: config.memory_bytes,
        workers: 1,
        devices: (1, 1, copies.output.len()),
        downloads: false,
        uploads: false,
        endpoints: copies.mesh.endpoints.len(),
        connections: copies.mesh.connections,
    };
    let plan = Plan::new(&shape, &config.disk)?;
    let log = FinishedLog::open(&copies.finished)?;
    let mut mesh = connect(&copies.mesh, handle)?;
    let keepers: Vec<Option<usize>> = config.files.iter().map(|file| Some(file.keeper)).collect();
    let names = config.files.iter().map(|file| file.name.clone());
    let named: Vec<(OutputFile, String)> = own.iter().cloned().zip(names).collect();
    let kept = copies.exchange(&mut mesh, &named, &keepers, handle)?;
    let block_bytes = plan.output_block_bytes;
    let mut wire = Exchange::new(mesh, Some(here), UNCOUNTED, block_bytes);
    let lanes = wire.lanes_to(&keepers);
    let mut extents = vec![Vec::new(); wire.send.lanes.len()];
    for (number, (file, lane)) in own.iter().zip(lanes).enumerate() {
        extents[lane.unwrap_or_default()].extend(blocks_of(number, file, block_bytes));
    }
    let read = ReadExtents {
        disk: config.disk.clone(),
        access: ObjectAccess::default(),
        next: Arc::default(),
        buffers: plan.output_blocks.max(extents.len()),
        lanes: Arc::new(extents),
        gives: BLOCKS,
        record_bytes: UNCOUNTED,
        buffer_bytes: block_bytes,
        modes: Arc::new(DiskModes::default()),
    };
    wire.receive.numbers = Some(Arc::new(kept.numbers));
    wire.receive.next_lanes = copies.output.len();
    wire.receive.buffers += copies.output.len();
    // Replicas come after this node's own files, none of which is written.
    let files = Arc::new(own.iter().cloned().chain(kept.files).collect::<Vec<_>>());
    let all = Arc::clone(&files);
    let write = WriteBlocks {
        disk: config.disk.clone(),
        target: Target::Files(Arc::clone(&files)),
        lanes: copies.output.len(),
        record_bytes: UNCOUNTED,
        inbox_bytes: config.disk.depth * block_bytes,
        on_finished: OnFinished::call(move |file| {
            log.add(
                &all[file].path,
                json!({"bytes": all[file].bytes, "copy": true}),
            )
        }),
        modes: Arc::new(DiskModes::default()),
    };
    let [send, receive] = wire.nodes();
    let ends = (Node::new("read", read), Node::new("write", write));
    let graph = Graph::chain([ends.0, send, receive, ends.1]);
    let phase = watch.run("copy", &graph, &memory(graph.memory_bytes())?, None);
    for file in &files[own.len()..] {
        let _none = fs::remove_file(&file.path); // Finished files have another name.
    }
    let (sent, received) = wire.take_stats();
    Ok(Outcome {
        sent,
        received,
        phases: vec![phase?],
        seconds: watch.epoch.elapsed().as_secs_f64(),
    })
}
