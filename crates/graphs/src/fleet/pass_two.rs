//! Pass two of the partitions that an endpoint owns, from the scratch of all rounds.
//!
//! A partition's output is a file of its own, `part-00012`, and of one that was larger than memory, or
//! needs no sorting, `part-00012-00001` and so on as well: the order of names is the order of keys.
//! Each is named when it is whole and durable, and then a line is added to a list of what it holds:
//! so whoever is started again does not do it again. In an object store that is when its upload is
//! completed.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;
use tonnage_disk::Disk;
use tonnage_object::{Settings, Tally};
use tonnage_pipeline::{Control, Failure};
use tonnage_records::Layout;
use tonnage_stages::ledger::{Ledger, Total};
use tonnage_stages::scratch::Scratch;
use tonnage_stages::sink::{OnWhole, OutputFile, Target};
use tonnage_stages::uploads::{Seal, Uploads};

use crate::cut::Cut;
use crate::job::{JobError, Phase, Watch, memory, workers};
use crate::plan::{Plan, Shape};
use crate::two_pass::TwoPass;
use crate::volumes::{fetch, usual_requests};

/// What a file is called until it is whole.
const UNFINISHED: &str = "unfinished";

/// What to sort.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What the rounds of pass one left here.
    pub rounds: Vec<Round>,
    /// Which partitions.
    pub partitions: Vec<Wanted>,
    /// Where the output goes.
    pub output: Output,
    /// Directories for partitions that are larger than memory, one a device.
    pub scratch: Vec<PathBuf>,
    /// The list of files that are whole.
    pub finished: PathBuf,
    /// Size of a record and place of its key.
    pub layout: Layout,
    /// Memory for all buffers and indexes.
    pub memory_bytes: usize,
    /// How to use the disks.
    #[serde(default)]
    pub disk: Disk,
    /// Requests to an object store at once.
    #[serde(default = "usual_requests")]
    pub requests: usize,
}

/// Where the output goes.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Output {
    /// To directories, one a device.
    Directories(Vec<PathBuf>),
    /// To a folder of a bucket.
    Objects {
        /// The bucket.
        store: Settings,
        /// The folder.
        prefix: String,
    },
}

/// What a round left.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Round {
    /// Its files, one a device.
    pub scratch: Vec<PathBuf>,
    /// What lies where in them.
    pub index: PathBuf,
}

/// A partition to sort.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// Its number.
    pub number: usize,
    /// Whether all its keys are equal.
    pub single: bool,
}

/// What an endpoint did.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// What all files hold together.
    pub written: Total,
    /// Bytes that had to be partitioned again.
    pub repartitioned_bytes: u64,
    /// What was asked of object stores.
    pub requests: Tally,
    /// Seconds in all.
    pub seconds: f64,
    /// The runs.
    pub phases: Vec<Phase>,
}

/// Sorts.
///
/// # Errors
/// What is refused, what fails, or the cancellation; files that are whole by then stay.
pub fn run(config: &Config, control: &Control) -> Result<Outcome, JobError> {
    let watch = Watch::begin(control);
    let rounds = config.rounds.iter().map(|round| {
        let scratch = Scratch::saved(&config.disk, &round.scratch, &round.index);
        scratch.map_err(|why| JobError::file("reading", &round.index, &why))
    });
    let rounds = rounds.collect::<Result<Vec<Scratch>, JobError>>()?;
    let devices = config.rounds.first().map_or(1, |round| round.scratch.len());
    let cut = |wanted: &Wanted| Cut {
        number: wanted.number,
        blocks: rounds
            .iter()
            .flat_map(|round| round.take(wanted.number))
            .collect(),
        lane: wanted.number % devices,
        in_order: wanted.single,
    };
    let cuts: Vec<Cut> = config.partitions.iter().map(cut).collect();
    let fetch = fetch(config.requests)?;
    let outputs = match &config.output {
        Output::Directories(directories) => directories.len(),
        Output::Objects { .. } => fetch.requests,
    };
    let shape = Shape {
        bytes: cuts.iter().map(|cut| cut.span() as u64).sum(),
        record_bytes: config.layout.record_bytes,
        memory_bytes: config.memory_bytes,
        workers: workers(),
        devices: (1, devices, outputs),
        uploads: matches!(config.output, Output::Objects { .. }),
        endpoints: 1,
    };
    let plan = Plan::new(&shape, &config.disk)?;
    let mut passes = TwoPass {
        watch,
        disk: config.disk.clone(),
        fetch: fetch.clone(),
        layout: config.layout,
        memory: memory(plan.memory_bytes)?,
        plan,
        phases: Vec::new(),
        repartitioned_bytes: 0,
    };
    // Of a nameless file, which costs nothing unless a partition is too large.
    let again = Arc::new(Scratch::create(&config.disk, &config.scratch, 0)?);
    let cuts = passes.divide(&again, cuts)?;
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
    let open = || {
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(&config.finished)
    };
    let list = open().map_err(|why| JobError::file("opening", &config.finished, &why))?;
    let part_bytes = passes.plan.output_block_bytes;
    let sink = |files: Vec<OutputFile>, ledger: &Arc<Ledger>| {
        let (told, ledger) = (files.clone(), Arc::clone(ledger));
        match &config.output {
            Output::Directories(_) => {
                let whole = move |number: usize| {
                    let path = &told[number].path;
                    name_it(&list, path, &ledger.of(number)).map_err(|why| {
                        Failure::at(path, 0, format!("naming {}: {why}", path.display()))
                    })
                };
                (Target::Files(Arc::new(files)), OnWhole::call(whole))
            }
            Output::Objects { store, .. } => {
                let urls = store.clone();
                let whole = move |number: usize| {
                    let url = urls.name(&told[number].path.to_string_lossy());
                    tell(&list, url.as_ref(), &ledger.of(number))
                        .map_err(|why| Failure::new(format!("noting {url}: {why}")))
                };
                let seal = Seal::EachWhenWhole;
                let uploads = Uploads::new(store, files, part_bytes, seal, fetch.clone());
                (Target::Objects(Arc::new(uploads)), OnWhole::call(whole))
            }
        }
    };
    let written = passes.pass_two(cuts, (devices, outputs), part, sink)?;
    Ok(Outcome {
        written,
        repartitioned_bytes: passes.repartitioned_bytes,
        requests: passes.fetch.counted(),
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

/// Names a file that is whole, and says so in the list.
fn name_it(list: &File, unfinished: &Path, holds: &Total) -> io::Result<()> {
    let path = unfinished.with_extension("");
    fs::rename(unfinished, &path)?;
    tell(list, &path, holds)
}

/// Adds a line to the list.
fn tell(mut list: &File, path: &Path, holds: &Total) -> io::Result<()> {
    let line = json!({
        "path": path,
        "records": holds.records,
        "bytes": holds.bytes,
        "checksum": format!("{:x}", holds.checksum),
    });
    list.write_all(format!("{line}\n").as_bytes())?;
    list.sync_data()
}
