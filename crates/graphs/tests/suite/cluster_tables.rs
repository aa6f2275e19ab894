//! Nodes on loopback sort lines together, wherever splits cut them: the output is every line once,
//! in order.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use proptest::prelude::*;
use serde_json::{Value, json};
use tonnage_graphs::cluster::tables::{boundaries, pass_one, pass_two, sample};
use tonnage_pipeline::RunHandle;

use crate::common::{addresses, names, seeded};

const MEMORY: usize = 32 << 20;

/// A sort of lines by all their bytes, with what each step has left.
struct LineSort {
    room: tempfile::TempDir,
    /// By node.
    splits: Vec<Vec<Value>>,
    bounds: Value,
    single: Vec<bool>,
    sizes: Value,
}

fn config<T: for<'a> serde::Deserialize<'a>>(value: Value) -> T {
    serde_json::from_value(value).expect("a configuration")
}

fn format() -> Value {
    let key = json!({"name": "line", "place": null, "kind": "bytes", "descending": false, "nulls_first": false});
    json!({"text": {
        "keys": [key], "delimiter": 10, "quote": null, "header": "", "suffix": ".txt",
    }})
}

impl LineSort {
    /// Splits of a file of so many bytes, dealt out to nodes; sampled, with boundaries.
    fn new(text: &[u8], nodes: usize, split_bytes: usize) -> Self {
        let room = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
        let path = room.path().join("input");
        fs::write(&path, text).expect("an input");
        let mut splits = vec![Vec::new(); nodes];
        for (number, offset) in (0..text.len()).step_by(split_bytes).enumerate() {
            let bytes = split_bytes.min(text.len() - offset);
            let file = json!({"path": path, "offset": offset, "bytes": bytes});
            splits[number % nodes].push(json!({"file": file}));
        }
        let mut sort = Self {
            room,
            splits,
            bounds: Value::Null,
            single: Vec::new(),
            sizes: Value::Null,
        };
        let samples: Vec<PathBuf> = (0..nodes).map(|node| sort.sampled(node)).collect();
        let wanted = json!({
            "samples": samples, "unique": false, "memory_bytes": MEMORY, "workers": 2,
            "endpoints": nodes, "connections": 1, "devices": [1, 1],
            "requests": {"downloads": 0, "uploads": 0},
        });
        let found = boundaries::run(&config(wanted), &RunHandle::default()).expect("boundaries");
        sort.bounds = serde_json::to_value(&found.bounds).expect("JSON");
        sort.sizes = json!({"block_bytes": found.block_bytes, "row_bytes": found.row_bytes});
        sort.single = found.single;
        sort
    }

    fn place(&self, name: &str, node: usize) -> PathBuf {
        let place = self.room.path().join(format!("{name}-{node}"));
        fs::create_dir_all(&place).expect("a directory");
        place
    }

    fn sampled(&self, node: usize) -> PathBuf {
        let sample = self.place("sample", node).join("sample");
        let wanted = json!({
            "splits": self.splits[node], "chunks": 16, "sample": sample, "format": format(),
            "stable": false, "unique": false, "split_bytes": 4096, "memory_bytes": MEMORY,
        });
        sample::run(&config(wanted), &RunHandle::default()).expect("a sample");
        sample
    }

    /// A round in which all nodes read what they have; partitions go around.
    fn round(&self) -> Vec<pass_one::Outcome> {
        let endpoints = addresses(self.splits.len());
        let part = |node: usize| {
            let place = self.place("scratch", node);
            let mesh = json!({"endpoints": endpoints, "number": node, "connections": 1, "secret": "01".repeat(32), "patience_seconds": 20.0, "checked": true});
            let owners: Vec<usize> = (0..self.single.len())
                .map(|number| number % self.splits.len())
                .collect();
            json!({
                "mesh": mesh, "splits": self.splits[node], "format": format(),
                "stable": false, "split_bytes": 4096, "bounds": self.bounds, "owners": owners,
                "scratch": [place.join("device")], "room_bytes": 1 << 20,
                "index": place.join("index"), "block_bytes": self.sizes["block_bytes"],
                "row_bytes": self.sizes["row_bytes"], "memory_bytes": MEMORY,
            })
        };
        let configs: Vec<pass_one::Config> = (0..self.splits.len())
            .map(|node| config(part(node)))
            .collect();
        thread::scope(|scope| {
            let run = |each| scope.spawn(move || pass_one::run(each, &RunHandle::default()));
            let running: Vec<_> = configs.iter().map(run).collect();
            let ended = running
                .into_iter()
                .map(|each| each.join().expect("no panic"));
            ended.collect::<Result<_, _>>().expect("a round")
        })
    }

    /// Pass two of a node; gives its files by name.
    fn pass_two(&self, node: usize) -> BTreeMap<String, Vec<u8>> {
        let (place, output) = (self.place("scratch", node), self.place("out", node));
        let owned = (0..self.single.len()).filter(|number| number % self.splits.len() == node);
        let partitions: Vec<Value> = owned
            .map(|number| json!({"number": number, "single": self.single[number]}))
            .collect();
        let wanted = json!({
            "rounds": [{"scratch": [place.join("device")], "index": place.join("index")}],
            "partitions": partitions, "format": format(), "stable": false, "unique": false,
            "output": [output], "file_bytes": 1 << 20, "scratch": [place],
            "finished": place.join("finished"), "block_bytes": self.sizes["block_bytes"],
            "row_bytes": self.sizes["row_bytes"], "memory_bytes": MEMORY,
        });
        pass_two::run(&config(wanted), &RunHandle::default()).expect("sorted");
        let read = |name: String| (name.clone(), fs::read(output.join(&name)).expect("a file"));
        let files: BTreeMap<String, Vec<u8>> = names(&output).into_iter().map(read).collect();
        assert_eq!(
            logged(&place.join("finished")),
            files.keys().cloned().collect::<Vec<_>>()
        );
        files
    }
}

/// The names of the files in a log.
fn logged(log: &Path) -> Vec<String> {
    let text = fs::read_to_string(log).expect("a log");
    let name = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let path = PathBuf::from(line["path"].as_str().expect("a path"));
        path.file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned()
    };
    let mut names: Vec<String> = text.lines().map(name).collect();
    names.sort();
    names
}

proptest! {
    #![proptest_config(seeded(10))]

    #[test]
    fn nodes_sort_lines_together(
        lines in prop::collection::vec("[abc]{0,40}", 1..3000),
        ends_with_newline in any::<bool>(),
        nodes in 1_usize..4,
        split_bytes in 1_usize..20_000,
    ) {
        let mut text = lines.join("\n").into_bytes();
        if ends_with_newline || text.last().is_none_or(|&byte| byte == b'\n') {
            text.push(b'\n');
        }
        let split_bytes = split_bytes.max(text.len() / 50);
        let sort = LineSort::new(&text, nodes, split_bytes);
        let read: u64 = sort.round().iter().map(|outcome| outcome.round.read.records).sum();
        let text = text.strip_suffix(b"\n").unwrap_or(&text);
        let mut expected: Vec<&[u8]> = text.split(|&byte| byte == b'\n').collect();
        prop_assert_eq!(read, expected.len() as u64);
        expected.sort_unstable();
        let expected: Vec<u8> = expected.iter().flat_map(|line| [line, &b"\n"[..]].concat()).collect();
        let files: BTreeMap<String, Vec<u8>> =
            (0..nodes).flat_map(|node| sort.pass_two(node)).collect();
        prop_assert_eq!(files.into_values().collect::<Vec<_>>().concat(), expected);
    }
}
