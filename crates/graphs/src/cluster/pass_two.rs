//! Pass two: sorts the partitions that a node owns, from the scratch of all rounds.
//!
//! Each partition becomes a file `part-00012`; one that was larger than memory, or needs no
//! sorting, has more: `part-00012-00001` and so on. The order of names is the order of keys. A file
//! gets its name when it is finished and durable, and is then added to a log, so that a restarted
//! node does not sort it again. In an object store that is when its upload completes. Where
//! replicas are kept, every block goes to the keeper before it is written here.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tonnage_disk::Disk;
use tonnage_object::{RequestCounts, Settings};
use tonnage_pipeline::RunHandle;
use tonnage_records::Layout;
use tonnage_stages::object::uploads::{Seal, Uploads};
use tonnage_stages::output_file::{OnFinished, OutputFile};
use tonnage_stages::scratch::Scratch;
use tonnage_stages::totals::Total;
use tonnage_stages::work::{ReceiveStats, SendStats};

use crate::cluster::exchange::{Exchange, connect};
use crate::cluster::finished_log::{FinishedLog, UNFINISHED};
use crate::cluster::replicas::Replicas;
use crate::error::JobError;
use crate::memory_plan::{Plan, Shape};
use crate::objects::object_input::{access, default_requests};
use crate::phases::{Phase, Watch, workers};
use crate::sort::external_sort::ExternalSort;
use crate::sort::pass_graphs::PassTwo;
use crate::sort::spilled_partition::SpilledPartition;

/// What to sort.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What the rounds of pass one left on this node.
    pub rounds: Vec<Round>,
    /// Which partitions.
    pub partitions: Vec<PartitionTask>,
    /// Where the output goes.
    pub output: Output,
    /// Directories for partitions that are larger than memory, one per device.
    pub scratch: Vec<PathBuf>,
    /// The log of finished files.
    pub finished: PathBuf,
    /// Replicas, if they are kept.
    #[serde(default)]
    pub copies: Option<Replicas>,
    /// Size of a record and place of its key.
    pub layout: Layout,
    /// Memory for all buffers and indexes.
    pub memory_bytes: usize,
    /// How to use the disks.
    #[serde(default)]
    pub disk: Disk,
    /// Concurrent requests to an object store.
    #[serde(default = "default_requests")]
    pub requests: usize,
}

/// Where the output goes.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Output {
    /// Directories, one per device.
    Directories(Vec<PathBuf>),
    /// A prefix of a bucket.
    Objects {
        /// The bucket.
        store: Settings,
        /// The prefix.
        prefix: String,
    },
}

/// What a round of pass one left.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Round {
    /// Its files, one per device.
    pub scratch: Vec<PathBuf>,
    /// Its index.
    pub index: PathBuf,
}

impl Round {
    /// Opens the scratch of each round.
    pub(crate) fn open_all(rounds: &[Self], disk: &Disk) -> Result<Vec<Scratch>, JobError> {
        let open = |round: &Self| {
            let scratch = Scratch::saved(disk, &round.scratch, &round.index);
            scratch.map_err(|why| JobError::file("read", &round.index, &why))
        };
        rounds.iter().map(open).collect()
    }
}

/// A partition to sort.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartitionTask {
    /// Its number.
    pub number: usize,
    /// Whether all its keys are equal.
    pub single: bool,
    /// The node that keeps a replica of its output, if any.
    #[serde(default)]
    pub keeper: Option<usize>,
}

/// The results of a node.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Totals of all files.
    pub written: Total,
    /// Bytes that were repartitioned.
    pub repartitioned_bytes: u64,
    /// What each connection sent of replicas.
    pub sent: Vec<SendStats>,
    /// What each connection received of replicas.
    pub received: Vec<ReceiveStats>,
    /// Requests to object stores.
    pub requests: RequestCounts,
    /// Seconds in total.
    pub seconds: f64,
    /// The runs.
    pub phases: Vec<Phase>,
}

/// Sorts.
///
/// # Errors
/// What is refused, what fails, or the cancellation; files that are finished by then stay.
pub fn run(config: &Config, handle: &RunHandle) -> Result<Outcome, JobError> {
    let watch = Watch::begin(handle);
    let rounds = Round::open_all(&config.rounds, &config.disk)?;
    let devices = config.rounds.first().map_or(1, |round| round.scratch.len());
    let spilled_partition = |wanted: &PartitionTask| SpilledPartition {
        number: wanted.number,
        blocks: rounds
            .iter()
            .flat_map(|round| round.take(wanted.number))
            .collect(),
        lane: wanted.number % devices,
        in_order: wanted.single,
    };
    let spilled: Vec<SpilledPartition> = config.partitions.iter().map(spilled_partition).collect();
    let access = access(config.requests)?;
    let outputs = match &config.output {
        Output::Directories(directories) => directories.len(),
        Output::Objects { .. } => access.requests,
    };
    let shape = Shape {
        bytes: spilled
            .iter()
            .map(|partition| partition.span() as u64)
            .sum(),
        record_bytes: config.layout.record_bytes,
        memory_bytes: config.memory_bytes,
        workers: workers(),
        devices: (1, devices, outputs),
        downloads: false, // It reads scratch.
        uploads: matches!(config.output, Output::Objects { .. }),
        endpoints: config
            .copies
            .as_ref()
            .map_or(1, |copies| copies.mesh.endpoints.len()),
        connections: 1,
    };
    let plan = Plan::new(&shape, &config.disk)?;
    let mut passes = ExternalSort::new(watch, &config.disk, access.clone(), config.layout, plan)?;
    let log = FinishedLog::open(&config.finished)?;
    let copies = config.copies.as_ref();
    let replica_log = copies
        .map(|copies| FinishedLog::open(&copies.finished))
        .transpose()?;
    let mesh = copies
        .map(|copies| connect(&copies.mesh, handle))
        .transpose()?;
    // An unlinked file, which costs nothing unless a partition is too large.
    let again = Arc::new(Scratch::create(&config.disk, &config.scratch, 0)?);
    let spilled = passes.divide(&again, spilled)?;
    let mut names: HashMap<usize, usize> = HashMap::new(); // how many a partition has so far
    let mut files = 0;
    let part = |number: usize| {
        let place = names.entry(number).or_default();
        (*place, files) = (*place + 1, files + 1);
        let name = name(number, *place - 1);
        match &config.output {
            Output::Directories(directories) => directories[(files - 1) % directories.len()]
                .join(name)
                .with_extension(UNFINISHED),
            Output::Objects { prefix, .. } => Path::new(prefix).join(name),
        }
    };
    let keepers: HashMap<usize, Option<usize>> = config
        .partitions
        .iter()
        .map(|wanted| (wanted.number, wanted.keeper))
        .collect();
    let part_bytes = passes.plan.output_block_bytes;
    let (mut files, mut wire) = (Arc::default(), None);
    let edit = |mut pass: PassTwo, partitions: Vec<usize>| {
        let own = pass.files();
        let totals = Arc::clone(&pass.sort.totals);
        if let Output::Objects { store, .. } = &config.output {
            let (parts, seal) = (own.to_vec(), Seal::EachWhenWhole);
            let uploads = Uploads::new(store, parts, part_bytes, seal, access.clone());
            pass = pass.uploaded(Arc::new(uploads));
            let store = store.clone();
            pass.write.on_finished = OnFinished::call(move |file| {
                let url = store.name(&own[file].path.to_string_lossy());
                log.note(url.as_ref(), totals_json(&totals.of(file)))
            });
            return Ok(pass);
        }
        if let (Some(copies), Some(mut mesh)) = (&config.copies, mesh) {
            let keepers = partitions.iter().map(|number| keepers[number]);
            let keepers: Vec<Option<usize>> = keepers.collect();
            let named: Vec<(OutputFile, String)> = own.iter().map(finished_name).collect();
            let kept = copies.exchange(&mut mesh, &named, &keepers, handle)?;
            pass = pass.with_replicas(mesh, copies.mesh.number, &keepers, kept);
        }
        (files, wire) = (pass.files(), pass.wire.clone());
        let all: Arc<Vec<OutputFile>> = Arc::clone(&files);
        pass.write.on_finished = OnFinished::call(move |file| match &replica_log {
            Some(replica_log) if file >= own.len() => replica_log.add(
                &all[file].path,
                json!({"bytes": all[file].bytes, "copy": true}),
            ),
            _ => log.add(&all[file].path, totals_json(&totals.of(file))),
        });
        Ok(pass)
    };
    let ran = passes.pass_two(spilled, (devices, outputs), part, edit);
    for file in files.iter() {
        let _none = fs::remove_file(&file.path); // Finished files have another name.
    }
    let written = ran?;
    let (sent, received) = wire.as_ref().map(Exchange::take_stats).unwrap_or_default();
    Ok(Outcome {
        written,
        repartitioned_bytes: passes.repartitioned_bytes,
        sent,
        received,
        requests: passes.access.counted(),
        seconds: passes.watch.epoch.elapsed().as_secs_f64(),
        phases: passes.phases,
    })
}

fn name(number: usize, place: usize) -> String {
    match place {
        0 => format!("part-{number:05}"),
        _ => format!("part-{number:05}-{place:05}"),
    }
}

/// A file, and the name that it gets when it is finished.
fn finished_name(file: &OutputFile) -> (OutputFile, String) {
    let finished = file.path.with_extension("");
    let name = finished.file_name().unwrap_or_default();
    (file.clone(), name.to_string_lossy().into_owned())
}

fn totals_json(holds: &Total) -> Value {
    json!({
        "records": holds.records,
        "bytes": holds.bytes,
        "checksum": format!("{:x}", holds.checksum),
    })
}
