//! The sort from an object store to an object store: whatever happens to requests, the output is a
//! sort of the input; and however it ends, nothing unfinished is left.
//!
//! The store is a real server; faults are injected on the client's side, by a seed.

use std::cell::Cell;
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use tonnage_disk::Rule as DiskRule;
use tonnage_graphs::cluster::{boundaries, pass_one, pass_two, sample};
use tonnage_graphs::error::JobError;
use tonnage_graphs::objects::object_input::ObjectStorage;
use tonnage_graphs::objects::object_upload;
use tonnage_graphs::sort::sort_job::{Config, Outcome};
use tonnage_graphs::sort::valsort;
use tonnage_object::{Client, Effect, Faults, Method, Rule, Settings};
use tonnage_pipeline::RunHandle;
use tonnage_records::Layout;

use crate::common::{
    DISTRIBUTIONS, KeyDistribution, addresses, disk, is_sort_of, names, records, run,
};

#[path = "../../../io/object/tests/suite/common/mod.rs"]
mod server;

use server::{BUCKET, Server};

const LAYOUT: Layout = Layout::SORT_BENCHMARK;
/// Parts have 5 MiB, of which each worker fills one.
const MEMORY: usize = 64 << 20;

fn running() -> bool {
    false
}

/// A server with objects of records in `in/`, and a directory for scratch.
struct Store {
    server: Server,
    scratch: tempfile::TempDir,
    input: Vec<u8>,
}

impl Store {
    fn new(counts: &[usize], keys: KeyDistribution) -> Option<Self> {
        let server = Server::start(&[])?;
        let client = Client::new(&server.settings()).expect("a client");
        let mut input = Vec::new();
        for (number, &count) in counts.iter().enumerate() {
            let bytes = records(number as u64, count, &LAYOUT, keys);
            let key = format!("in/{number:05}");
            let put = client.put(&key, bytes.clone().into(), running);
            put.expect("put");
            input.extend(bytes);
        }
        let scratch = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
        Some(Self {
            server,
            scratch,
            input,
        })
    }

    fn settings(&self, rules: Vec<Rule>) -> Settings {
        Settings {
            faults: (!rules.is_empty()).then_some(Faults { seed: 1, rules }),
            retries: 10,
            ..self.server.settings()
        }
    }

    fn config(&self, rules: Vec<Rule>) -> Config {
        let url = |folder: &str| PathBuf::from(format!("s3://{BUCKET}/{folder}"));
        Config {
            inputs: vec![url("in/")],
            output: vec![url("out/")],
            scratch: vec![self.scratch.path().join("scratch")],
            layout: LAYOUT,
            memory_bytes: MEMORY,
            disk: disk(Vec::<DiskRule>::new()),
            storage: ObjectStorage {
                store: self.settings(rules),
                requests: 3,
            },
            sample_chunks: None,
            spill_all: true,
        }
    }

    /// The objects of a folder in the order of their names.
    fn objects(&self, folder: &str) -> Vec<(String, Vec<u8>)> {
        let client = Client::new(&self.server.settings()).expect("a client");
        let mut found = client.list(folder).expect("listed");
        found.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        let content = |key: &str, bytes: u64| {
            let mut content = vec![0; bytes as usize];
            if bytes > 0 {
                let got = client.get_range(key, None, 0, &mut content, running);
                got.expect("got");
            }
            content
        };
        found
            .into_iter()
            .map(|found| (found.key.clone(), content(&found.key, found.bytes)))
            .collect()
    }

    /// What was sorted is all there, and there is nothing else.
    fn is_sorted(&self) -> Result<(), String> {
        let mut objects = self.objects("out");
        let manifest = objects
            .iter()
            .position(|(key, _)| key == "out/_tonnage.json");
        let (_, manifest) = objects.remove(manifest.ok_or("there is no manifest")?);
        let manifest: serde_json::Value = serde_json::from_slice(&manifest).expect("JSON");
        let listed = manifest["parts"].as_array().expect("a list").iter();
        let listed: Vec<String> = listed
            .map(|name| format!("out/{}", name.as_str().expect("a name")))
            .collect();
        let (keys, contents): (Vec<String>, Vec<Vec<u8>>) = objects.into_iter().unzip();
        assert_eq!(keys, listed);
        assert_eq!(self.server.unfinished(), Vec::<PathBuf>::new());
        is_sort_of(&contents.concat(), &self.input, &LAYOUT)
    }

    /// What a job that did not finish may leave: nothing.
    fn is_clean(&self) {
        assert_eq!(self.objects("out"), []);
        assert_eq!(self.server.unfinished(), Vec::<PathBuf>::new());
        let scratch = self.scratch.path().join("scratch");
        assert!(!scratch.exists() || names(&scratch).is_empty());
    }
}

fn sorted(config: &Config) -> Outcome {
    run(config, &RunHandle::default()).expect("sorted")
}

fn refusal(config: &Config) -> String {
    let ended = run(config, &RunHandle::default());
    ended.expect_err("it cannot be sorted").to_string()
}

/// A sample that misses, of records that are in order: two partitions have nearly all of them, so
/// that their objects have several parts.
fn of_long_objects(mut config: Config) -> Config {
    (config.sample_chunks, config.memory_bytes) = (Some(1), 2 * MEMORY);
    config
}

/// One in ten requests of each kind meets this.
fn on_a_tenth(effect: Effect) -> Vec<Rule> {
    [Method::Get, Method::Put, Method::Post]
        .into_iter()
        // What is put is not answered with a body.
        .filter(|method| effect != Effect::Short || *method == Method::Get)
        .map(|method| Rule {
            probability: Some(0.1),
            ..Rule::new(method, effect)
        })
        .collect()
}

#[test]
fn whatever_keys_there_are_they_come_out_in_order() {
    for keys in DISTRIBUTIONS {
        let Some(store) = Store::new(&[20_000, 0, 1, 30_000], keys) else {
            return;
        };
        let outcome = sorted(&store.config(Vec::new()));
        assert_eq!(store.is_sorted(), Ok(()), "{keys:?}");
        assert_eq!(outcome.bytes, store.input.len() as u64);
        assert_eq!(outcome.requests.retries, 0);
        let validate = valsort::Config {
            inputs: vec![format!("s3://{BUCKET}/out").into()],
            layout: LAYOUT,
            disk: disk(Vec::new()),
            storage: store.config(Vec::new()).storage,
        };
        let judged = valsort::run(&validate, &RunHandle::default()).expect("judged");
        assert_eq!((judged.all.unordered, judged.all.records), (0, 50_001));
        assert_eq!(judged.all.checksum, outcome.checksum);
    }
}

#[test]
fn whatever_a_tenth_of_requests_meets_it_is_a_sort() {
    for effect in [
        Effect::Status { status: 503 },
        Effect::Status { status: 500 },
        Effect::Cut,
        Effect::Short,
        Effect::Stall { milliseconds: 200 },
    ] {
        let Some(store) = Store::new(&[150_000, 150_000], KeyDistribution::Sorted) else {
            return;
        };
        let outcome = sorted(&of_long_objects(store.config(on_a_tenth(effect))));
        assert_eq!(store.is_sorted(), Ok(()), "{effect:?}");
        let failed: u64 = outcome.requests.errors.values().sum();
        assert_eq!(failed, outcome.requests.retries);
        assert_eq!(
            failed > 0,
            !matches!(effect, Effect::Stall { .. }),
            "{effect:?}"
        );
    }
}

#[test]
fn an_object_of_several_parts_is_their_whole() {
    let Some(store) = Store::new(&[300_000], KeyDistribution::Sorted) else {
        return;
    };
    let config = of_long_objects(store.config(Vec::new()));
    let outcome = sorted(&config);
    assert_eq!(store.is_sorted(), Ok(()));
    let objects = store.objects("out");
    let longest = objects.iter().map(|(_, bytes)| bytes.len()).max();
    assert!(longest > Some(2 * outcome.plan.output_block_bytes));
    for phase in &outcome.phases {
        assert!(phase.report.memory_bytes <= config.memory_bytes);
    }
}

#[test]
fn an_error_that_stays_leaves_nothing_and_names_the_object() {
    for (method, part, said) in [
        (Method::Get, "in/00001", "getting s3://tests/in/00001"),
        (
            Method::Put,
            "out/part-00001",
            "a part of s3://tests/out/part-00001",
        ),
        (
            Method::Post,
            "out/part-00000?uploads",
            "beginning to put s3://tests/out/part-00000",
        ),
        (
            Method::Post,
            "out/part-00002?uploadId",
            "completing s3://tests/out/part-00002",
        ),
        (
            Method::Put,
            "_tonnage.json",
            "putting s3://tests/out/_tonnage.json",
        ),
    ] {
        let Some(store) = Store::new(&[100_000, 100_000], KeyDistribution::Uniform) else {
            return;
        };
        let rule = Rule {
            path_contains: Some(part.to_owned()),
            ..Rule::new(method, Effect::Status { status: 500 })
        };
        let mut config = store.config(vec![rule]);
        config.storage.store.retries = 1;
        let told = refusal(&config);
        assert!(told.contains(said), "{told}");
        assert!(told.contains("tried 2 times"), "{told}");
        store.is_clean();
        sorted(&store.config(Vec::new()));
        assert_eq!(store.is_sorted(), Ok(()));
    }
}

#[test]
fn a_cancelled_sort_leaves_no_upload_and_no_object() {
    let stall = Effect::Stall {
        milliseconds: 3_600_000,
    };
    for (method, part) in [
        (Method::Get, "in/00000"),
        (Method::Put, "out/part-00000"),
        (Method::Post, "out/part-00001?uploadId"),
    ] {
        let Some(store) = Store::new(&[100_000, 100_000], KeyDistribution::Uniform) else {
            return;
        };
        let rule = Rule {
            path_contains: Some(part.to_owned()),
            ..Rule::new(method, stall)
        };
        let (mut config, handle) = (store.config(vec![rule]), RunHandle::default());
        config.storage.store.put_grace = Duration::from_millis(500);
        let ended = thread::scope(|scope| {
            let running = scope.spawn(|| run(&config, &handle));
            thread::sleep(Duration::from_secs(1));
            handle.cancel();
            running.join().expect("no panic")
        });
        assert!(matches!(ended, Err(JobError::Cancelled)), "{ended:?}");
        store.is_clean();
    }
}

#[test]
fn what_cannot_be_sorted_is_refused() {
    let Some(store) = Store::new(&[1000], KeyDistribution::Uniform) else {
        return;
    };
    let changed = |change: fn(&mut Config)| {
        let mut config = store.config(Vec::new());
        change(&mut config);
        match run(&config, &RunHandle::default()) {
            Err(JobError::Refused { why, .. }) => why,
            other => panic!("{other:?}"),
        }
    };
    let empty = changed(|config| config.inputs = vec!["s3://tests/nothing/".into()]);
    assert!(empty.contains("s3://tests/nothing"), "{empty}");
    let filled = changed(|config| config.output = vec!["s3://tests/in".into()]);
    assert!(filled.contains("contains in/00000"), "{filled}");
    let nowhere = changed(|config| config.output = vec!["s3://nowhere/out".into()]);
    assert!(nowhere.contains("the bucket does not exist"), "{nowhere}");
    let several = changed(|config| config.output.push("s3://tests/other".into()));
    assert!(several.contains("a single URL"), "{several}");
    let long = changed(|config| config.layout.record_bytes = 77);
    assert!(
        long.contains("not a multiple of the record size (77)"),
        "{long}"
    );
    let none = changed(|config| config.storage.requests = 0);
    assert!(none.contains("is not from 1 to"), "{none}");
    store.is_clean();
}

#[test]
fn an_input_without_records_is_an_output_without_records() {
    let Some(store) = Store::new(&[0], KeyDistribution::Uniform) else {
        return;
    };
    assert_eq!(sorted(&store.config(Vec::new())).records, 0);
    assert_eq!(store.is_sorted(), Ok(()));
}

/// An endpoint alone: its splits are of objects, and each object of its output is there when it is
/// whole.
fn endpoint(store: &Store, splits: &[serde_json::Value]) -> (sample::Outcome, pass_two::Outcome) {
    let room = store.scratch.path();
    let run = |what: &str| room.join(what);
    let common = serde_json::json!({"layout": LAYOUT, "memory_bytes": MEMORY, "requests": 3});
    let with = |more: serde_json::Value| {
        let mut all = common.clone();
        let (all_fields, more) = (all.as_object_mut().expect("a map"), more);
        all_fields.extend(more.as_object().expect("a map").clone());
        all
    };
    let mut config: sample::Config = serde_json::from_value(with(serde_json::json!({
        "splits": [], "chunks": 64, "keys": run("keys"),
    })))
    .expect("a configuration");
    config.splits = of_store(store, splits);
    let sampled = sample::run(&config, &RunHandle::default()).expect("sampled");
    let wanted = boundaries::Config {
        samples: vec![run("keys")],
        layout: LAYOUT,
        partitions: 5,
    };
    let wanted = boundaries::run(&wanted, &RunHandle::default()).expect("boundaries");
    let address = addresses(1)[0];
    let owners = vec![Some(0); wanted.single.len()];
    let mut config: pass_one::Config = serde_json::from_value(with(serde_json::json!({
        "mesh": {
            "endpoints": [address], "number": 0, "connections": 1,
            "secret": "01".repeat(32), "patience_seconds": 5.0, "checked": true,
        },
        "splits": [], "bounds": wanted.bounds, "owners": owners, "scratch": [run("blocks")],
        "room_bytes": 1 << 20, "index": run("index"), "block_bytes": 64 << 10,
    })))
    .expect("a configuration");
    config.splits = of_store(store, splits);
    pass_one::run(&config, &RunHandle::default()).expect("divided");
    let partitions: Vec<serde_json::Value> = wanted
        .single
        .iter()
        .enumerate()
        .map(|(number, single)| serde_json::json!({"number": number, "single": single}))
        .collect();
    let mut config: pass_two::Config = serde_json::from_value(with(serde_json::json!({
        "rounds": [{"scratch": [run("blocks")], "index": run("index")}],
        "partitions": partitions, "output": [], "scratch": [room], "finished": run("finished"),
    })))
    .expect("a configuration");
    config.output = pass_two::Output::Objects {
        store: store.settings(on_a_tenth(Effect::Status { status: 503 })),
        prefix: "out".to_owned(),
    };
    let written = pass_two::run(&config, &RunHandle::default()).expect("sorted");
    (sampled, written)
}

/// Splits of a real store, whose keys are in no JSON.
fn of_store(store: &Store, splits: &[serde_json::Value]) -> Vec<tonnage_graphs::cluster::Split> {
    let split = |value: &serde_json::Value| {
        let mut split = serde_json::from_value(value.clone()).expect("a split");
        if let tonnage_graphs::cluster::Split::Object { store: of, .. } = &mut split {
            **of = store.settings(Vec::new());
        }
        split
    };
    splits.iter().map(split).collect()
}

#[test]
fn an_endpoint_sorts_splits_of_objects_into_objects() {
    let Some(store) = Store::new(&[90_000, 110_000], KeyDistribution::Uniform) else {
        return;
    };
    let client = Client::new(&store.server.settings()).expect("a client");
    let found = client.list("in").expect("listed");
    let half = |found: &tonnage_object::ObjectInfo, offset: u64, bytes: u64| {
        serde_json::json!({
            "store": {"bucket": BUCKET}, "key": found.key, "etag": found.etag,
            "offset": offset, "bytes": bytes,
        })
    };
    let middle = 4_321_000;
    let splits: Vec<serde_json::Value> = found
        .iter()
        .flat_map(|one| [half(one, 0, middle), half(one, middle, one.bytes - middle)])
        .collect();
    let (sampled, written) = endpoint(&store, &splits);
    assert!(sampled.requests.requests > 0);
    assert!(written.requests.requests > 5);
    let objects = store.objects("out");
    let list = fs::read_to_string(store.scratch.path().join("finished")).expect("a list");
    let mut listed: Vec<String> = list
        .lines()
        .map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).expect("JSON");
            line["path"].as_str().expect("a url").to_owned()
        })
        .collect();
    listed.sort();
    let urls = objects
        .iter()
        .map(|(key, _)| format!("s3://{BUCKET}/{key}"));
    assert_eq!(listed, urls.collect::<Vec<String>>());
    let contents: Vec<Vec<u8>> = objects.into_iter().map(|(_, bytes)| bytes).collect();
    assert_eq!(
        is_sort_of(&contents.concat(), &store.input, &LAYOUT),
        Ok(())
    );
    assert_eq!(store.server.unfinished(), Vec::<PathBuf>::new());
}

#[test]
fn a_file_is_put_whole_or_not_at_all() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    // On a disk, which direct I/O needs.
    let directory = tempfile::TempDir::with_prefix_in("upload-", env!("CARGO_TARGET_TMPDIR"));
    let directory = directory.expect("a directory");
    let content: Vec<u8> = (0..13 << 20).map(|at: u32| (at % 251) as u8).collect();
    let path = directory.path().join("part");
    fs::write(&path, &content).expect("written");
    let requests = Cell::new(4);
    let put = |bytes: usize, memory_bytes: usize, rules: Vec<Rule>| {
        fs::write(&path, &content[..bytes]).expect("written");
        let config = serde_json::json!({
            "path": path, "name": "part", "memory_bytes": memory_bytes, "requests": requests.get(),
            "place": {"store": {}, "folder": "out"},
        });
        let mut config: object_upload::Config =
            serde_json::from_value(config).expect("a configuration");
        config.place.store = Settings {
            faults: Some(Faults { seed: 3, rules }),
            ..server.settings()
        };
        object_upload::run(&config, &RunHandle::default())
    };
    let client = Client::new(&server.settings()).expect("a client");
    let stored = || {
        let found = client.find("out/part").expect("asked")?;
        let mut memory = vec![0; found.bytes as usize];
        let got = client.get_range("out/part", None, 0, &mut memory, running);
        got.expect("got");
        Some(memory)
    };
    for (bytes, memory) in [(1, 10 << 20), (5 << 20, 10 << 20), (13 << 20, 40 << 20)] {
        let done = put(bytes, memory, Vec::new()).expect("put");
        assert_eq!(done.bytes, bytes as u64);
        assert!(stored().expect("there") == content[..bytes]);
        client.remove("out/part").expect("removed");
    }
    proptest!(ProptestConfig::with_cases(12), |(
        bytes in 1..content.len(),
        memory in 10_usize << 20..600 << 20,
        at_once in 1..40_usize,
    )| {
        requests.set(at_once);
        put(bytes, memory, Vec::new()).expect("put");
        prop_assert!(stored().expect("there") == content[..bytes]);
        client.remove("out/part").expect("removed");
    });
    requests.set(4);
    let fails = Rule {
        path_contains: Some("partNumber=2".to_owned()),
        ..Rule::new(Method::Put, Effect::Status { status: 403 })
    };
    assert!(put(13 << 20, 10 << 20, vec![fails]).is_err());
    assert!(stored().is_none());
    let left = client.uploads("out").expect("listed").expect("told");
    assert_eq!(left, []);
    let small = put(1, 6 << 20, Vec::new()).expect_err("no two parts");
    assert!(small.to_string().starts_with("memory: "), "{small}");
}
