//! `gensort`: writes the sort benchmark's records to files (`generate -> write`).

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use serde::{Deserialize, Serialize};
use tonnage_disk::Disk;
use tonnage_pipeline::{Graph, Node, RunHandle};
use tonnage_records::{Encoding, Generator};
use tonnage_stages::disk::modes::DiskModes;
use tonnage_stages::output_file::{OnFinished, OutputFile};
use tonnage_stages::ports::BLOCKS;
use tonnage_stages::sink::{Target, WriteBlocks};
use tonnage_stages::source::{Chunk, Content, Generate};

use crate::error::{JobError, setting_error, usage_error};
use crate::free_space::check_writable;
use crate::phases::{Phase, Watch, memory, workers};

/// Size of the sort benchmark's records.
const RECORD_BYTES: usize = 100;
/// Records in a chunk: 4,096,000 bytes, whole records that end at an aligned offset.
const CHUNK_RECORDS: u64 = 40 * 1024;

/// What to generate.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// How many records.
    pub records: u64,
    /// Number of the first, in decimal (up to 128 bits).
    pub start: String,
    /// Binary or ASCII.
    pub encoding: Encoding,
    /// Whether keys are skewed.
    pub skew: bool,
    /// The files; they share the records evenly and in order.
    pub files: Vec<PathBuf>,
    /// How to use the disks.
    #[serde(default)]
    pub disk: Disk,
}

/// The results.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Records.
    pub records: u64,
    /// Bytes.
    pub bytes: u64,
    /// Seconds until everything was durable.
    pub seconds: f64,
    /// The run.
    pub phases: Vec<Phase>,
}

/// Generates records.
///
/// # Errors
/// What is refused, what fails, or the cancellation; the files are removed then.
pub fn run(config: &Config, handle: &RunHandle) -> Result<Outcome, JobError> {
    let watch = Watch::begin(handle);
    let start = config.start.parse::<u128>().map_err(|why| {
        setting_error(
            "start",
            format!("{}: {why}; use a number below 2^128", config.start),
        )
    })?;
    if config.files.is_empty() {
        return Err(usage_error("specify at least one file"));
    }
    let unfinished = Unfinished::claim(&config.files)?;
    let (files, chunks) = layout(config.records, &unfinished.paths);
    let workers = workers();
    let generate = Generate {
        generator: Arc::new(Generator::new(config.encoding, config.skew, start)),
        content: Content::Fresh,
        chunks: Arc::new(chunks),
        gives: BLOCKS,
        record_bytes: RECORD_BYTES,
        workers,
        lanes_apart: false,
        buffers: workers + 6,
        buffer_bytes: CHUNK_RECORDS as usize * RECORD_BYTES,
        next: Arc::new(AtomicUsize::new(0)),
    };
    for file in files.iter().filter(|file| file.bytes == 0) {
        fs::File::create(&file.path).map_err(|why| JobError::file("create", &file.path, &why))?;
    }
    let modes = Arc::new(DiskModes::default());
    let write = WriteBlocks {
        on_finished: OnFinished::default(),
        disk: config.disk.clone(),
        target: Target::Files(Arc::new(files)),
        lanes: 1,
        record_bytes: RECORD_BYTES,
        inbox_bytes: 2 * CHUNK_RECORDS as usize * RECORD_BYTES,
        modes: Arc::clone(&modes),
    };
    let graph = Graph::chain([Node::new("generate", generate), Node::new("write", write)]);
    let mut phase = watch.run("generate", &graph, &memory(graph.memory_bytes())?, None)?;
    phase.disk_modes = modes.distinct();
    unfinished.publish(&config.files)?;
    Ok(Outcome {
        records: config.records,
        bytes: config.records * RECORD_BYTES as u64,
        seconds: watch.epoch.elapsed().as_secs_f64(),
        phases: vec![phase],
    })
}

/// The files with their lengths, and the chunks that fill them, in the order of their records.
fn layout(records: u64, paths: &[PathBuf]) -> (Vec<OutputFile>, Vec<Chunk>) {
    let count = paths.len() as u64;
    let (mut files, mut chunks, mut first) = (Vec::new(), Vec::new(), 0);
    for (number, path) in paths.iter().enumerate() {
        let share = records / count + u64::from((number as u64) < records % count);
        for begin in (0..share).step_by(CHUNK_RECORDS as usize) {
            chunks.push(Chunk {
                number,
                offset: begin * RECORD_BYTES as u64,
                len: CHUNK_RECORDS.min(share - begin) as usize * RECORD_BYTES,
                lane: 0,
                first_record: first + begin,
            });
        }
        first += share;
        files.push(OutputFile {
            path: path.clone(),
            bytes: share * RECORD_BYTES as u64,
        });
    }
    (files, chunks)
}

fn directory_of(file: &Path) -> &Path {
    let parent = file.parent().unwrap_or(Path::new("/"));
    if parent.as_os_str().is_empty() {
        Path::new(".")
    } else {
        parent
    }
}

/// Files under unfinished names, removed unless published.
struct Unfinished {
    paths: Vec<PathBuf>,
}

impl Unfinished {
    fn claim(files: &[PathBuf]) -> Result<Self, JobError> {
        let mut paths: Vec<PathBuf> = Vec::new();
        for file in files {
            let Some(name) = file.file_name() else {
                return Err(usage_error(format!(
                    "{} is not a file name",
                    file.display()
                )));
            };
            // Links are not followed: a new file gets this name.
            if fs::symlink_metadata(file).is_ok_and(|about| !about.is_file()) {
                return Err(usage_error(format!(
                    "{} exists and is not a regular file; use another name",
                    file.display()
                )));
            }
            let parent = directory_of(file);
            if !parent.is_dir() {
                let (file, parent) = (file.display(), parent.display());
                return Err(usage_error(format!(
                    "{file}: directory {parent} does not exist; create it first"
                )));
            }
            check_writable(parent).map_err(|why| {
                usage_error(format!(
                    "{}: {why}; use a file in another directory",
                    file.display()
                ))
            })?;
            let hidden = format!(".{}.unfinished", name.to_string_lossy());
            let path = file.with_file_name(hidden);
            if paths.contains(&path) {
                return Err(usage_error(format!(
                    "{} is specified twice",
                    file.display()
                )));
            }
            match fs::remove_file(&path) {
                Err(why) if why.kind() != std::io::ErrorKind::NotFound => {
                    let show = file.display();
                    return Err(usage_error(format!("{show}: {why}")));
                }
                _ => paths.push(path),
            }
        }
        Ok(Self { paths })
    }

    fn publish(mut self, files: &[PathBuf]) -> Result<(), JobError> {
        for (unfinished, file) in self.paths.iter().zip(files) {
            fs::rename(unfinished, file).map_err(|why| JobError::file("rename", file, &why))?;
        }
        self.paths.clear();
        // The names are durable when their directories are.
        let mut directories: Vec<&Path> = files.iter().map(|file| directory_of(file)).collect();
        directories.sort_unstable();
        directories.dedup();
        for directory in directories {
            fs::File::open(directory)
                .and_then(|open| open.sync_all())
                .map_err(|why| JobError::file("flush", directory, &why))?;
        }
        Ok(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        for path in &self.paths {
            let _never_made = fs::remove_file(path);
        }
    }
}
