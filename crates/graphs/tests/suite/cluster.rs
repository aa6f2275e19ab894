//! Nodes on loopback sort together: if any is lost in a round, the following rounds still bring
//! each record exactly once.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread;

use proptest::prelude::*;
use tonnage_disk::{Operation, Rule};
use tonnage_graphs::cluster::replicas::Replicas;
use tonnage_graphs::cluster::{boundaries, pass_one, pass_two, re_replicate, sample};
use tonnage_graphs::error::JobError;
use tonnage_net::{Effect, Fault, Settings};
use tonnage_pipeline::RunHandle;
use tonnage_records::Layout;
use tonnage_stages::boundaries::Bound;

use crate::common::{
    DISTRIBUTIONS, KeyDistribution, addresses, disk, is_sort_of, mesh_settings, records, seeded,
};

const LAYOUT: Layout = Layout::SORT_BENCHMARK;
const MEMORY: usize = 16 << 20;
const BLOCK: usize = 8 << 10;

/// The input, which node reads which of its files, and what the rounds have left.
struct Cluster {
    room: tempfile::TempDir,
    input: Vec<u8>,
    files: Vec<PathBuf>,
    bounds: Vec<Bound>,
    single: Vec<bool>,
    rounds: usize,
}

impl Cluster {
    /// Files of so many records, sampled, with boundaries for about so many partitions.
    fn new(counts: &[usize], keys: KeyDistribution, partitions: usize) -> Self {
        let room = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
        let (mut input, mut files) = (Vec::new(), Vec::new());
        for (number, &count) in counts.iter().enumerate() {
            let bytes = records(number as u64, count, &LAYOUT, keys);
            let path = room.path().join(format!("input-{number}"));
            fs::write(&path, &bytes).expect("an input");
            input.extend(bytes);
            files.push(path);
        }
        let mut cluster = Self {
            room,
            input,
            files,
            bounds: Vec::new(),
            single: Vec::new(),
            rounds: 0,
        };
        let samples: Vec<PathBuf> = (0..cluster.files.len())
            .map(|number| cluster.sampled(number))
            .collect();
        let config = boundaries::Config {
            samples,
            layout: LAYOUT,
            partitions,
        };
        let found = boundaries::run(&config, &RunHandle::default()).expect("boundaries");
        (cluster.bounds, cluster.single) = (found.bounds, found.single);
        cluster
    }

    fn sampled(&self, number: usize) -> PathBuf {
        let keys = self.room.path().join(format!("keys-{number}"));
        let config = sample::Config {
            splits: self.splits(&[number]),
            chunks: 16,
            keys: keys.clone(),
            layout: LAYOUT,
            memory_bytes: MEMORY,
            disk: disk(Vec::new()),
            requests: 1,
        };
        let outcome = sample::run(&config, &RunHandle::default()).expect("sampled");
        let bytes = fs::metadata(&keys).expect("keys").len();
        assert_eq!(bytes, (outcome.keys * LAYOUT.key_bytes) as u64);
        keys
    }

    fn splits<T: for<'a> serde::Deserialize<'a>>(&self, files: &[usize]) -> Vec<T> {
        let split = |&file: &usize| {
            let path = &self.files[file];
            let bytes = fs::metadata(path).expect("an input").len();
            let split = serde_json::json!({"path": path, "offset": 0, "bytes": bytes});
            serde_json::from_value(split).expect("a split")
        };
        files.iter().map(split).collect()
    }

    fn partitions(&self) -> usize {
        self.single.len()
    }

    /// An endpoint's part in the next round.
    fn part(
        &self,
        number: usize,
        reads: &[Vec<usize>],
        owners: &[Option<usize>],
        endpoints: &[SocketAddr],
    ) -> pass_one::Config {
        let place = self
            .room
            .path()
            .join(format!("round-{}-{number}", self.rounds));
        fs::create_dir(&place).expect("a directory");
        pass_one::Config {
            mesh: mesh_settings(endpoints, number, 2),
            splits: self.splits(&reads[number]),
            bounds: self.bounds.clone(),
            owners: owners.to_vec(),
            scratch: vec![place.join("0"), place.join("1")],
            room_bytes: 1 << 20,
            index: place.join("index"),
            block_bytes: BLOCK,
            layout: LAYOUT,
            memory_bytes: MEMORY,
            disk: disk(Vec::new()),
            requests: 1,
        }
    }

    /// A round: each endpoint reads these files, partitions have these owners.
    fn round(
        &mut self,
        reads: &[Vec<usize>],
        owners: &[Option<usize>],
        faults: &BTreeMap<usize, Vec<Fault>>,
    ) -> Vec<Result<pass_one::Outcome, JobError>> {
        let endpoints = addresses(reads.len());
        let configs: Vec<_> = (0..reads.len())
            .map(|number| {
                let mut config = self.part(number, reads, owners, &endpoints);
                config.mesh.faults = faults.get(&number).cloned().unwrap_or_default();
                config
            })
            .collect();
        self.rounds += 1;
        run_together(&configs, |config| {
            pass_one::run(config, &RunHandle::default())
        })
    }

    /// The directories of an endpoint's output.
    fn output(&self, endpoint: usize) -> Vec<PathBuf> {
        let path = |name| self.room.path().join(format!("out-{endpoint}-{name}"));
        ["a", "b"].map(path).to_vec()
    }

    /// Pass two of these partitions from what the rounds left at an endpoint.
    fn second(&self, endpoint: usize, owned: &[usize]) -> pass_two::Config {
        let place = |round: usize| self.room.path().join(format!("round-{round}-{endpoint}"));
        let output = self.output(endpoint);
        output
            .iter()
            .for_each(|path| fs::create_dir(path).expect("a directory"));
        let rounds = (0..self.rounds).filter(|&round| place(round).join("index").exists());
        pass_two::Config {
            rounds: rounds
                .map(|round| pass_two::Round {
                    scratch: vec![place(round).join("0"), place(round).join("1")],
                    index: place(round).join("index"),
                })
                .collect(),
            partitions: owned
                .iter()
                .map(|&number| pass_two::PartitionTask {
                    number,
                    single: self.single[number],
                    keeper: None,
                })
                .collect(),
            output: pass_two::Output::Directories(output),
            scratch: vec![self.room.path().to_owned()],
            finished: self.room.path().join(format!("finished-{endpoint}")),
            copies: None,
            layout: LAYOUT,
            memory_bytes: MEMORY / 4,
            disk: disk(Vec::new()),
            requests: 1,
        }
    }

    /// Where an endpoint keeps copies, and how it meets the others.
    fn copies(&self, number: usize, endpoints: &[SocketAddr], faults: Vec<Fault>) -> Replicas {
        let directory = |name| self.room.path().join(format!("copies-{number}-{name}"));
        Replicas {
            mesh: Settings {
                faults,
                ..mesh_settings(endpoints, number, 1)
            },
            output: ["a", "b"].map(directory).to_vec(),
            finished: self.room.path().join(format!("copied-{number}")),
        }
    }

    /// Pass two at all endpoints, each of which keeps copies of the one before it.
    fn pass_two_with_copies(
        &self,
        owners: &[Option<usize>],
        count: usize,
        faults: &BTreeMap<usize, Vec<Fault>>,
    ) -> Vec<pass_two::Outcome> {
        let endpoints = addresses(count);
        let config = |number: usize| {
            let mut config = self.second(number, &owned(owners, number));
            let faults = faults.get(&number).cloned().unwrap_or_default();
            config.copies = Some(self.copies(number, &endpoints, faults));
            let keeper = Some((number + 1) % count);
            config
                .partitions
                .iter_mut()
                .for_each(|wanted| wanted.keeper = keeper);
            config
        };
        let configs: Vec<_> = (0..count).map(config).collect();
        run_together(&configs, |config| {
            pass_two::run(config, &RunHandle::default()).expect("sorted")
        })
    }

    /// Replicas that an endpoint keeps, by name; all are on its list, and nothing else is there.
    fn kept_replicas(&self, endpoint: usize) -> BTreeMap<String, Vec<u8>> {
        let copies = self.copies(endpoint, &[], Vec::new());
        let files = of_directories(&copies.output);
        let listed = listed(&copies.finished);
        let sizes = files
            .iter()
            .map(|(name, bytes)| (name.clone(), bytes.len() as u64));
        assert_eq!(listed, sizes.collect());
        files
    }

    /// Sorts what the rounds left at an endpoint of these partitions; gives its files by name.
    fn pass_two(&self, endpoint: usize, owned: &[usize]) -> BTreeMap<String, Vec<u8>> {
        let config = self.second(endpoint, owned);
        let outcome = pass_two::run(&config, &RunHandle::default()).expect("sorted");
        let files = of_directories(&self.output(endpoint));
        let bytes: usize = files.values().map(Vec::len).sum();
        assert_eq!(outcome.written.bytes, bytes as u64);
        let sizes = files
            .iter()
            .map(|(name, bytes)| (name.clone(), bytes.len() as u64));
        assert_eq!(listed(&config.finished), sizes.collect());
        files
    }

    /// All endpoints' outputs in the order of their names are a sort of the input.
    fn is_sorted(&self, owners: &[Option<usize>]) -> Result<(), String> {
        let mut files = BTreeMap::new();
        let last = owners.iter().flatten().max().copied().unwrap_or(0);
        for endpoint in 0..=last {
            for (name, bytes) in self.pass_two(endpoint, &owned(owners, endpoint)) {
                assert!(files.insert(name, bytes).is_none(), "a partition twice");
            }
        }
        let output = files.into_values().collect::<Vec<_>>().concat();
        is_sort_of(&output, &self.input, &LAYOUT)
    }
}

/// The partitions of an endpoint.
fn owned(owners: &[Option<usize>], endpoint: usize) -> Vec<usize> {
    let places = owners.iter().enumerate();
    places
        .filter(|(_, owner)| **owner == Some(endpoint))
        .map(|(place, _)| place)
        .collect()
}

/// The bytes of the files on a list, by name.
fn listed(list: &Path) -> BTreeMap<String, u64> {
    let text = fs::read_to_string(list).expect("a list");
    let file = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let path = Path::new(line["path"].as_str().expect("a path")).to_owned();
        let name = path.file_name().expect("a name").to_string_lossy();
        (name.into_owned(), line["bytes"].as_u64().expect("a number"))
    };
    text.lines().map(file).collect()
}

/// Runs what each configuration asks for, all at once.
fn run_together<C: Sync, T: Send>(configs: &[C], run: impl Fn(&C) -> T + Copy + Send) -> Vec<T> {
    thread::scope(|scope| {
        let running: Vec<_> = configs
            .iter()
            .map(|config| scope.spawn(move || run(config)))
            .collect();
        running
            .into_iter()
            .map(|each| each.join().expect("no panic"))
            .collect()
    })
}

fn of_directories(directories: &[PathBuf]) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for directory in directories {
        for name in crate::common::names(directory) {
            let bytes = fs::read(directory.join(&name)).expect("a file");
            files.insert(name, bytes);
        }
    }
    files
}

/// Partitions go around the endpoints.
fn around(partitions: usize, endpoints: usize) -> Vec<Option<usize>> {
    (0..partitions)
        .map(|place| Some(place % endpoints))
        .collect()
}

proptest! {
    #![proptest_config(seeded(10))]

    #[test]
    fn endpoints_sort_together(
        counts in prop::collection::vec(prop_oneof![Just(0_usize), 1_usize..5000], 2..5),
        keys in prop::sample::select(DISTRIBUTIONS.to_vec()),
        partitions in 1_usize..24,
    ) {
        let mut cluster = Cluster::new(&counts, keys, partitions);
        let owners = around(cluster.partitions(), counts.len());
        let reads: Vec<Vec<usize>> = (0..counts.len()).map(|file| vec![file]).collect();
        let done = cluster.round(&reads, &owners, &BTreeMap::new());
        let (mut read, mut gathered) = (0, 0);
        for outcome in done {
            let outcome = outcome.map_err(|why| TestCaseError::fail(why.to_string()))?;
            prop_assert!(outcome.sent.iter().all(|sent| sent.lost.is_none()));
            prop_assert!(outcome.received.iter().all(|from| from.lost.is_none()));
            read += outcome.read.bytes;
            gathered += outcome.partitions.iter().sum::<u64>();
        }
        prop_assert_eq!((read, gathered), (cluster.input.len() as u64, cluster.input.len() as u64));
        prop_assert_eq!(cluster.is_sorted(&owners), Ok(()));
    }
}

proptest! {
    #![proptest_config(seeded(6))]

    #[test]
    fn copies_are_what_was_copied(
        counts in prop::collection::vec(prop_oneof![Just(0_usize), 1_usize..5000], 2..4),
        keys in prop::sample::select(DISTRIBUTIONS.to_vec()),
        partitions in 1_usize..12,
    ) {
        let mut cluster = Cluster::new(&counts, keys, partitions);
        let owners = around(cluster.partitions(), counts.len());
        let reads: Vec<Vec<usize>> = (0..counts.len()).map(|file| vec![file]).collect();
        cluster.round(&reads, &owners, &BTreeMap::new());
        let outcomes = cluster.pass_two_with_copies(&owners, counts.len(), &BTreeMap::new());
        let mut output = BTreeMap::new();
        for (endpoint, outcome) in outcomes.into_iter().enumerate() {
            prop_assert!(outcome.sent.iter().all(|sent| sent.lost.is_none()));
            let files = of_directories(&cluster.output(endpoint));
            prop_assert_eq!(&files, &cluster.kept_replicas((endpoint + 1) % counts.len()));
            output.extend(files);
        }
        let output = output.into_values().collect::<Vec<_>>().concat();
        prop_assert_eq!(is_sort_of(&output, &cluster.input, &LAYOUT), Ok(()));
    }
}

#[test]
fn a_copy_that_its_keeper_lost_is_made_again_of_the_file() {
    let mut cluster = Cluster::new(&[6000, 6000], KeyDistribution::Uniform, 12);
    let owners = around(cluster.partitions(), 2);
    cluster.round(&[vec![0], vec![1]], &owners, &BTreeMap::new());
    let cut = Fault {
        to: 1,
        after_bytes: 200_000,
        effect: Effect::Cut,
    };
    let done = cluster.pass_two_with_copies(&owners, 2, &BTreeMap::from([(0, vec![cut])]));
    assert!(done[0].sent[0].lost.is_some() && done[1].received[0].lost.is_some());
    // Its own files are whole nevertheless, and the other direction is not concerned.
    let (own, others) = (cluster.output(0), cluster.output(1));
    let files = of_directories(&own);
    let output: BTreeMap<_, _> = files
        .clone()
        .into_iter()
        .chain(of_directories(&others))
        .collect();
    let output = output.into_values().collect::<Vec<_>>().concat();
    assert_eq!(is_sort_of(&output, &cluster.input, &LAYOUT), Ok(()));
    assert_eq!(of_directories(&others), cluster.kept_replicas(0));
    let before = cluster.kept_replicas(1);
    assert!(!before.is_empty() && before.len() < files.len());
    // A file may be called anything.
    let missing = files.keys().find(|name| !before.contains_key(*name));
    let missing = missing.expect("one at least");
    for directory in &own {
        let (path, other) = (directory.join(missing), format!("{missing}.parquet"));
        if path.exists() {
            fs::rename(&path, directory.join(other)).expect("renamed");
        }
    }
    let files = of_directories(&own);
    let endpoints = addresses(2);
    let config = |number: usize| re_replicate::Config {
        files: own
            .iter()
            .flat_map(|directory| {
                let names = crate::common::names(directory).into_iter();
                let missing = names.filter(|name| number == 0 && !before.contains_key(name));
                missing.map(|name| re_replicate::ReplicaTask {
                    path: directory.join(&name),
                    name,
                    keeper: 1,
                })
            })
            .collect(),
        copies: cluster.copies(number, &endpoints, Vec::new()),
        memory_bytes: MEMORY / 4,
        disk: disk(Vec::new()),
    };
    for outcome in run_together(&[config(0), config(1)], |config| {
        re_replicate::run(config, &RunHandle::default()).expect("copied")
    }) {
        assert!(outcome.received.iter().all(|from| from.lost.is_none()));
    }
    assert_eq!(cluster.kept_replicas(1), files);
}

#[test]
fn what_a_lost_endpoint_was_to_send_another_one_sends_and_each_record_is_there_once() {
    let mut cluster = Cluster::new(&[4000, 4000, 4000], KeyDistribution::Uniform, 9);
    let owners: Vec<Option<usize>> = (0..cluster.partitions())
        .map(|place| Some(place % 2))
        .collect();
    let cut = |to| Fault {
        to,
        after_bytes: 60_000,
        effect: Effect::Cut,
    };
    // The third endpoint is lost to both others in the middle of what it sends.
    let faults = BTreeMap::from([(2, vec![cut(0), cut(1)])]);
    let reads = [vec![0], vec![1], vec![2]];
    let done = cluster.round(&reads, &owners, &faults);
    for (number, outcome) in done.into_iter().enumerate() {
        let outcome = outcome.expect("it continues");
        let lost = |peer| {
            let mut from = outcome
                .received
                .iter()
                .filter(move |from| from.peer == peer);
            from.any(|from| from.lost.is_some())
        };
        assert_eq!((lost(0), lost(1), lost(2)), (false, false, number < 2));
        let sent: Vec<bool> = outcome
            .sent
            .iter()
            .map(|sent| sent.lost.is_some())
            .collect();
        assert!(
            sent.iter().all(|&lost| lost == (number == 2)),
            "{number}: {sent:?}"
        );
    }
    // What it read, the first one reads again; what it sent is not there twice.
    let again = cluster.round(&[vec![2], vec![]], &owners, &BTreeMap::new());
    again.into_iter().for_each(|outcome| {
        outcome.expect("nobody is lost");
    });
    assert_eq!(cluster.is_sorted(&owners), Ok(()));
}

#[test]
fn what_a_lost_owner_had_is_sent_to_others_and_nothing_else() {
    let mut cluster = Cluster::new(&[3000, 3000, 3000], KeyDistribution::Uniform, 12);
    let owners = around(cluster.partitions(), 3);
    let done = cluster.round(&[vec![0], vec![1], vec![2]], &owners, &BTreeMap::new());
    let partitions = done
        .into_iter()
        .nth(2)
        .expect("three")
        .expect("whole")
        .partitions;
    // Now the third is gone, with its scratch; its partitions get other owners.
    fs::remove_dir_all(cluster.room.path().join("round-0-2")).expect("it goes");
    let wanted: Vec<Option<usize>> = owners
        .iter()
        .enumerate()
        .map(|(place, owner)| (*owner == Some(2)).then_some(place % 2))
        .collect();
    let again = cluster.round(&[vec![0, 2], vec![1]], &wanted, &BTreeMap::new());
    let again: u64 = again
        .into_iter()
        .flat_map(|outcome| outcome.expect("whole").partitions)
        .sum();
    assert_eq!(again, partitions.iter().sum::<u64>());
    let now: Vec<Option<usize>> = owners
        .iter()
        .zip(&wanted)
        .map(|(first, then)| then.or(*first))
        .collect();
    assert_eq!(cluster.is_sorted(&now), Ok(()));
}

#[test]
fn what_was_changed_on_its_way_is_not_taken() {
    let mut cluster = Cluster::new(&[2000, 2000], KeyDistribution::Uniform, 4);
    let owners = around(cluster.partitions(), 2);
    let flip = Fault {
        to: 1,
        after_bytes: 30_000,
        effect: Effect::Flip,
    };
    let faults = BTreeMap::from([(0, vec![flip])]);
    let done = cluster.round(&[vec![0], vec![1]], &owners, &faults);
    let second = done.into_iter().nth(1).expect("two").expect("it continues");
    let lost: Vec<&str> = second
        .received
        .iter()
        .filter_map(|from| from.lost.as_deref())
        .collect();
    assert!(
        lost[0].contains("received bytes differ from those sent"),
        "{lost:?}"
    );
    // Only what it has sent to itself is in its index.
    let others = around(cluster.partitions(), 2);
    let read_again = others
        .iter()
        .map(|owner| owner.filter(|&owner| owner == 1))
        .collect::<Vec<_>>();
    cluster.round(&[vec![0], vec![]], &read_again, &BTreeMap::new());
    assert_eq!(cluster.is_sorted(&owners), Ok(()));
}

/// An index is believed when a machine comes back: also of a loss of power.
#[test]
fn nothing_is_indexed_that_is_not_durable() {
    let cluster = Cluster::new(&[500], KeyDistribution::Uniform, 4);
    let owners = around(cluster.partitions(), 1);
    let mut config = cluster.part(0, &[vec![0]], &owners, &addresses(1));
    let rule = Rule {
        path_contains: Some("round-0-0/1".to_owned()),
        ..Rule::new(
            Operation::Sync,
            tonnage_disk::Effect::Error { errno: libc::EIO },
        )
    };
    config.disk = disk(vec![rule]);
    let failed = pass_one::run(&config, &RunHandle::default()).expect_err("it is not durable");
    let JobError::Failed { file, .. } = failed else {
        panic!("{failed}");
    };
    assert_eq!(file.as_ref(), Some(&config.scratch[1]));
    assert!(!config.index.exists());
}

#[test]
fn an_index_that_is_not_whole_is_refused() {
    let mut cluster = Cluster::new(&[500, 500], KeyDistribution::Uniform, 4);
    let owners = around(cluster.partitions(), 2);
    cluster.round(&[vec![0], vec![1]], &owners, &BTreeMap::new());
    let index = cluster.room.path().join("round-0-0/index");
    let bytes = fs::read(&index).expect("an index");
    for damaged in [
        &bytes[..bytes.len() - 16],
        &[&bytes[..20], &[1], &bytes[21..]].concat(),
    ] {
        fs::write(&index, damaged).expect("written");
        let files = [
            cluster.room.path().join("round-0-0/0"),
            cluster.room.path().join("round-0-0/1"),
        ];
        let read = tonnage_stages::scratch::Scratch::saved(&disk(Vec::new()), &files, &index);
        assert!(
            read.expect_err("damaged")
                .to_string()
                .contains("is damaged")
        );
    }
}
