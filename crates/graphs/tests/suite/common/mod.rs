//! Shared by the tests of the sort: directories on a real disk, records, a trivial model of a sort,
//! and what has to hold after a failed job.

#![allow(dead_code, reason = "not every test file needs all of it")]

use std::collections::BTreeMap;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use proptest::test_runner::{Config as ProptestConfig, RngSeed};
use tempfile::TempDir;
use tonnage_disk::{Disk, Engine, Faults, Rule};
use tonnage_graphs::error::JobError;
use tonnage_graphs::objects::object_input::ObjectStorage;
use tonnage_graphs::sort::sort_job::{self, Config, Outcome};
use tonnage_graphs::{Plan, Shape};
use tonnage_net::{Secret, Settings};
use tonnage_pipeline::RunHandle;
use tonnage_records::Layout;

/// A generator of numbers that are the same in every run (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.number() % end as u64) as usize
    }

    pub fn fill(&mut self, bytes: &mut [u8]) {
        for part in bytes.chunks_mut(8) {
            part.copy_from_slice(&self.number().to_le_bytes()[..part.len()]);
        }
    }
}

/// The same cases in every run; `PROPTEST_RNG_SEED` gives others, `PROPTEST_CASES` more.
pub fn seeded(cases: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let rng_seed = match default.rng_seed {
        RngSeed::Random => RngSeed::Fixed(1),
        fixed => fixed,
    };
    let more = std::env::var_os("PROPTEST_CASES").map(|_| default.cases);
    ProptestConfig {
        cases: more.unwrap_or(cases),
        rng_seed,
        failure_persistence: None,
        ..default
    }
}

/// How keys are distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyDistribution {
    Uniform,
    AllEqual,
    HalfOneKey,
    FewDistinct,
    Sorted,
    Reversed,
    LongCommonPrefix,
}

pub const DISTRIBUTIONS: [KeyDistribution; 7] = [
    KeyDistribution::Uniform,
    KeyDistribution::AllEqual,
    KeyDistribution::HalfOneKey,
    KeyDistribution::FewDistinct,
    KeyDistribution::Sorted,
    KeyDistribution::Reversed,
    KeyDistribution::LongCommonPrefix,
];

/// Records with such keys; what is not key is random.
pub fn records(seed: u64, count: usize, layout: &Layout, keys: KeyDistribution) -> Vec<u8> {
    let mut random = Random(seed);
    let mut bytes = vec![0; count * layout.record_bytes];
    random.fill(&mut bytes);
    let place = layout.key_offset..layout.key_offset + layout.key_bytes;
    for record in bytes.chunks_exact_mut(layout.record_bytes) {
        let key = &mut record[place.clone()];
        match keys {
            KeyDistribution::Uniform | KeyDistribution::Sorted | KeyDistribution::Reversed => {}
            KeyDistribution::AllEqual => key.fill(7),
            KeyDistribution::HalfOneKey if random.below(2) == 0 => key.fill(200),
            KeyDistribution::HalfOneKey => {}
            KeyDistribution::FewDistinct => key.fill(random.below(3) as u8 * 100),
            KeyDistribution::LongCommonPrefix => {
                let last = key.len() - 1;
                key[..last].fill(9);
            }
        }
    }
    match keys {
        KeyDistribution::Sorted => sorted(&bytes, layout),
        KeyDistribution::Reversed => {
            let ascending = sorted(&bytes, layout);
            ascending
                .chunks_exact(layout.record_bytes)
                .rev()
                .collect::<Vec<_>>()
                .concat()
        }
        _ => bytes,
    }
}

/// The trivial model.
pub fn sorted(bytes: &[u8], layout: &Layout) -> Vec<u8> {
    let mut records: Vec<&[u8]> = bytes.chunks_exact(layout.record_bytes).collect();
    records.sort_by_key(|record| layout.key(record));
    records.concat()
}

/// Whether `output` is a sort of `input`: its keys in order, its records the same multiset.
pub fn is_sort_of(output: &[u8], input: &[u8], layout: &Layout) -> Result<(), String> {
    if output.len() != input.len() {
        return Err(format!("{} bytes became {}", input.len(), output.len()));
    }
    let model = sorted(input, layout);
    let keys = |bytes: &[u8]| -> Vec<u8> {
        let records = bytes.chunks_exact(layout.record_bytes);
        records
            .flat_map(|record| layout.key(record).to_vec())
            .collect()
    };
    let (got, expected) = (keys(output), keys(&model));
    if got != expected {
        let at = got
            .iter()
            .zip(&expected)
            .position(|(a, b)| a != b)
            .unwrap_or(0);
        return Err(format!(
            "the key of record {} is another",
            at / layout.key_bytes
        ));
    }
    let whole = |bytes| {
        let mut records: Vec<&[u8]> = <[u8]>::chunks_exact(bytes, layout.record_bytes).collect();
        records.sort_unstable();
        records
    };
    if whole(output) == whole(input) {
        Ok(())
    } else {
        Err("the records are others".to_owned())
    }
}

/// Directories of one sort, on the disk that the build is on.
pub struct SortDirs {
    pub root: TempDir,
    pub inputs: Vec<PathBuf>,
    pub output: Vec<PathBuf>,
    pub scratch: Vec<PathBuf>,
}

impl SortDirs {
    /// `files` of input, so many directories for output and scratch; neither exists yet.
    pub fn new(files: &[&[u8]], outputs: usize, scratches: usize) -> SortDirs {
        let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
        let at = |kind: &str, number: usize| root.path().join(format!("{kind}{number}"));
        fs::create_dir(root.path().join("in")).expect("a directory");
        let write = |(number, bytes): (usize, &&[u8])| {
            let path = root.path().join("in").join(format!("{number:05}"));
            fs::write(&path, bytes).expect("an input");
            path
        };
        let inputs = files.iter().enumerate().map(write).collect();
        let output = (0..outputs).map(|number| at("out", number)).collect();
        let scratch = (0..scratches).map(|number| at("scratch", number)).collect();
        SortDirs {
            root,
            inputs,
            output,
            scratch,
        }
    }

    /// A sort with so much memory, or twice as much until it is enough.
    pub fn config(&self, layout: Layout, memory_bytes: usize) -> Config {
        let disk = disk(Vec::new());
        let shape = |memory_bytes| Shape {
            bytes: self.input().len() as u64,
            record_bytes: layout.record_bytes,
            memory_bytes,
            workers: 2,
            devices: (1, self.scratch.len(), self.output.len()),
            downloads: false,
            uploads: false,
            endpoints: 1,
            connections: 1,
        };
        let enough = |memory: &usize| Plan::new(&shape(*memory), &disk).is_ok();
        let memories = std::iter::successors(Some(memory_bytes), |memory| Some(2 * memory));
        Config {
            inputs: self.inputs.clone(),
            output: self.output.clone(),
            scratch: self.scratch.clone(),
            layout,
            memory_bytes: memories.into_iter().find(enough).expect("some are"),
            disk: disk.clone(),
            storage: ObjectStorage::default(),
            sample_chunks: None,
            spill_all: false,
        }
    }

    /// All inputs, one behind the other.
    pub fn input(&self) -> Vec<u8> {
        self.inputs
            .iter()
            .flat_map(|path| fs::read(path).expect("an input"))
            .collect()
    }

    /// The output's parts in order, from all its directories; it has to be whole.
    pub fn result(&self) -> Vec<u8> {
        let mut parts = BTreeMap::new();
        let mut listed: Vec<String> = Vec::new();
        for directory in &self.output {
            let manifest = fs::read(directory.join("_tonnage.json")).expect("a manifest");
            let manifest: serde_json::Value = serde_json::from_slice(&manifest).expect("JSON");
            listed = serde_json::from_value(manifest["parts"].clone()).expect("names");
            for name in names(directory)
                .into_iter()
                .filter(|name| name.starts_with("part-"))
            {
                let bytes = fs::read(directory.join(&name)).expect("a part");
                assert!(parts.insert(name, bytes).is_none(), "a part is there twice");
            }
            assert_eq!(
                names(directory).iter().find(|name| name.starts_with('.')),
                None
            );
        }
        assert_eq!(parts.keys().cloned().collect::<Vec<String>>(), listed);
        parts.into_values().collect::<Vec<_>>().concat()
    }

    /// What a job that did not finish may leave: nothing.
    pub fn is_clean(&self) -> Result<(), String> {
        for directory in self.output.iter().chain(&self.scratch) {
            let left = if directory.exists() {
                names(directory)
            } else {
                Vec::new()
            };
            if !left.is_empty() {
                return Err(format!("{} holds {left:?}", directory.display()));
            }
        }
        Ok(())
    }

    pub fn forget_output(&self) {
        for directory in self.output.iter().filter(|directory| directory.exists()) {
            fs::remove_dir_all(directory).expect("it goes");
        }
    }
}

/// Unused loopback addresses. Their ports lie below those that the kernel assigns, and none is
/// returned twice, so a test that binds port 0 at the same time cannot get one of these.
pub fn addresses(count: usize) -> Vec<SocketAddr> {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    let first = std::process::id();
    std::iter::repeat_with(|| 10_000 + (first + TRIED.fetch_add(1, Relaxed)) % 20_000)
        .map(|port| SocketAddr::from(([127, 0, 0, 1], port as u16)))
        .filter(|address| TcpListener::bind(address).is_ok())
        .take(count)
        .collect()
}

/// How an endpoint meets those at these addresses, of which it is one.
pub fn mesh_settings(endpoints: &[SocketAddr], number: usize, connections: usize) -> Settings {
    Settings {
        endpoints: endpoints.to_vec(),
        number,
        connections,
        secret: Secret::from_hex(&"01".repeat(32)).expect("64 digits"),
        patience_seconds: 20.0,
        handshake_timeout: tonnage_net::handshake_timeout(),
        checked: true,
        faults: Vec::new(),
    }
}

/// The names in a directory, hidden ones too.
pub fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    let name = |entry: std::io::Result<fs::DirEntry>| {
        entry
            .expect("an entry")
            .file_name()
            .to_string_lossy()
            .into_owned()
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

/// A disk with small transfers, so that little data makes many, and with these faults.
pub fn disk(rules: Vec<Rule>) -> Disk {
    Disk {
        engine: Engine::Threads,
        depth: 4,
        transfer_bytes: 64 << 10,
        faults: (!rules.is_empty()).then_some(Faults { seed: 1, rules }),
        ..Disk::default()
    }
}

/// Sorts on a thread of its own, so that a hang fails the test instead of stopping it.
pub fn run(config: &Config, handle: &RunHandle) -> Result<Outcome, JobError> {
    let (done, result) = mpsc::channel();
    let (config, handle) = (config.clone(), handle.clone());
    thread::spawn(move || {
        use_two_processors();
        let _nobody_waits = done.send(sort_job::run(&config, &handle));
    });
    result
        .recv_timeout(Duration::from_secs(60))
        .expect("the sort does not end")
}

/// Makes a job of this thread the same on every machine: as many workers, as much memory.
#[allow(unsafe_code, reason = "two calls that std does not offer")]
fn use_two_processors() {
    let bytes = size_of::<libc::cpu_set_t>();
    // SAFETY: a set of bits, for which zero is a value; the calls read and write no more than it,
    // and the macros look only at numbers below its size.
    unsafe {
        let mut all: libc::cpu_set_t = std::mem::zeroed();
        let mut two = all;
        assert_eq!(libc::sched_getaffinity(0, bytes, &mut all), 0);
        let usable = (0..8 * bytes).filter(|&number| libc::CPU_ISSET(number, &all));
        usable
            .take(2)
            .for_each(|number| libc::CPU_SET(number, &mut two));
        assert_eq!(libc::sched_setaffinity(0, bytes, &two), 0);
    }
}

/// Sorts, and holds what came out against the model.
pub fn sorts(place: &SortDirs, config: &Config) -> Result<Outcome, String> {
    let input = place.input();
    let outcome = run(config, &RunHandle::default()).map_err(|why| why.to_string())?;
    if place.input() != input {
        return Err("an input was modified".to_owned());
    }
    is_sort_of(&place.result(), &input, &config.layout)?;
    let records = (input.len() / config.layout.record_bytes) as u64;
    if (outcome.records, outcome.bytes) != (records, input.len() as u64) {
        return Err(format!("reported {} records of {records}", outcome.records));
    }
    for phase in &outcome.phases {
        if phase.report.memory_bytes > config.memory_bytes {
            return Err(format!(
                "{} took {} bytes",
                phase.name, phase.report.memory_bytes
            ));
        }
    }
    for directory in &config.scratch {
        let left = names(directory);
        if !left.is_empty() {
            return Err(format!("scratch holds {left:?}"));
        }
    }
    Ok(outcome)
}
