//! A benchmark's graph is the job's graph, edited: each of its stages is the job's own stage with
//! the job's settings, or one of `generate`, `deal` and `discard`, in the job's order.
//!
//! Passes of many shapes give the graphs. Passes with one changed setting show that the comparison
//! can fail.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use crate::common::disk;
use proptest::prelude::*;
use tonnage_disk::Disk;
use tonnage_graphs::benches::{cpu, disk};
use tonnage_graphs::sort::pass_graphs::{PassOne, PassTwo};
use tonnage_graphs::{Plan, Shape};
use tonnage_pipeline::{Graph, Port};
use tonnage_records::{Encoding, Generator, Layout};
use tonnage_stages::boundaries::Boundaries;
use tonnage_stages::extent::{Extent, FileRef, Piece};
use tonnage_stages::output_file::OutputFile;
use tonnage_stages::ports::{PARTITIONS, RECORDS};
use tonnage_stages::scratch::Scratch;
use tonnage_stages::sink::Target;
use tonnage_stages::source::{Chunk, Content, Generate};
use tonnage_stages::work::Unit;

/// Stages that are in a benchmark and in no job.
const ADDED: [&str; 3] = ["generate", "deal", "discard"];

/// What a sort of `bytes` would run, without its files.
pub struct Passes {
    pub one: PassOne,
    pub two: PassTwo,
    plan: Plan,
    _root: tempfile::TempDir,
}

pub fn passes(bytes: u64, memory_bytes: usize, workers: usize, devices: [usize; 3]) -> Passes {
    let (layout, disk) = (Layout::SORT_BENCHMARK, disk(Vec::new()));
    let [inputs, scratches, outputs] = devices;
    let shape = Shape {
        bytes,
        record_bytes: layout.record_bytes,
        memory_bytes,
        workers,
        devices: (inputs, scratches, outputs),
        downloads: false,
        uploads: false,
        endpoints: 1,
        connections: 1,
    };
    let plan = Plan::new(&shape, &disk).expect("a plan");
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let directories = vec![root.path().to_owned(); scratches];
    let scratch = Arc::new(Scratch::create(&disk, &directories, 0).expect("scratch"));
    let mut keys = vec![0; 100_000];
    Generator::new(Encoding::Binary, false, 0).fill(0, &mut keys);
    let keys: Vec<u8> = keys
        .chunks(100)
        .flat_map(|record| record[..10].to_vec())
        .collect();
    let boundaries = Boundaries::from_sample(&keys, &layout, plan.partitions);
    let lanes: Vec<Vec<Arc<Extent>>> = (0..inputs)
        .map(|lane| vec![extent(lane, plan.extent_bytes)])
        .collect();
    let target = Target::Scratch(scratch);
    let one = PassOne::new(
        &disk,
        &plan,
        100,
        lanes.clone(),
        boundaries,
        target,
        scratches,
    );
    let unit = Unit {
        extent: extent(0, 1000),
        file: 0,
        lane: 0,
    };
    let files = vec![OutputFile {
        path: root.path().join("part"),
        bytes,
    }];
    let two = PassTwo::new(&disk, &plan, &layout, lanes, vec![unit], files, outputs);
    Passes {
        one,
        two,
        plan,
        _root: root,
    }
}

fn extent(number: usize, len: usize) -> Arc<Extent> {
    let pieces = vec![Piece {
        file: FileRef::Path(Path::new("in").into()),
        offset: 0,
        len,
        crc: None,
    }];
    Arc::new(Extent {
        number,
        offset: 0,
        in_order: false,
        pieces,
    })
}

fn generate(gives: Port, len: usize, buffers: usize) -> Generate {
    let chunk = Chunk {
        number: 0,
        offset: 0,
        len,
        lane: 0,
        first_record: 0,
    };
    Generate {
        generator: Arc::new(Generator::new(Encoding::Binary, false, 0)),
        content: Content::Reused,
        chunks: Arc::new(vec![chunk]),
        gives,
        record_bytes: 100,
        workers: 1,
        lanes_apart: false,
        buffers,
        buffer_bytes: len.next_multiple_of(4096),
        next: Arc::new(AtomicUsize::new(0)),
    }
}

/// Whether `graph` differs from `job` by nothing but stages left out and the added ones.
fn is_edit_of(graph: &Graph, job: &Graph) -> Result<(), String> {
    let mut rest = job.nodes().iter();
    for node in graph.nodes() {
        if ADDED.contains(&node.name.as_str()) && node.spec.kind() == node.name {
            continue;
        }
        // The search continues after the last match, so a stage out of order is not found.
        let same = rest.find(|other| other.name == node.name);
        let same = same.ok_or_else(|| format!("{} is not in the job, or not there", node.name))?;
        if same != node {
            return Err(format!("{node:?} is {same:?} in the job"));
        }
    }
    Ok(())
}

fn names(graph: &Graph) -> Vec<&str> {
    graph
        .nodes()
        .iter()
        .map(|node| node.name.as_str())
        .collect()
}

/// Each benchmark's graph, the names it should have, and the job's graph.
fn benchmarks(passes: &Passes) -> Vec<(Graph, &'static [&'static str], Graph)> {
    let Passes { one, two, plan, .. } = passes;
    let bytes = 1 << 24;
    let records = generate(RECORDS, plan.extent_bytes, plan.extent_buffers);
    let partition = generate(PARTITIONS, 1000, plan.slots);
    let (job_one, job_two) = (one.graph(), two.graph());
    let read_write = disk::read_write(one).expect("a graph");
    let read_only = disk::read_only(one).expect("a graph");
    let write_only = disk::write_only(one, bytes).expect("a graph");
    let partitioning = cpu::partitioning(one, records).expect("a graph");
    let sorting = cpu::sorting(two, partition).expect("a graph");
    vec![
        (read_write, &["read", "deal", "write"], job_one.clone()),
        (read_only, &["read", "discard"], job_one.clone()),
        (write_only, &["generate", "write"], job_one.clone()),
        (
            disk::headroom(one, bytes),
            &["generate", "discard"],
            job_one.clone(),
        ),
        (partitioning, &["generate", "partition", "discard"], job_one),
        (sorting, &["generate", "sort", "discard"], job_two),
    ]
}

proptest! {
    #![proptest_config(crate::common::seeded(16))]

    #[test]
    fn benchmarks_are_edits_of_the_job(
        bytes in 1_u64..2_000_000_000_000,
        memory in (256_usize << 20)..(8 << 30),
        workers in 1_usize..9,
        devices in prop::array::uniform3(1_usize..4),
    ) {
        let passes = passes(bytes, memory, workers, devices);
        for (graph, expected, job) in benchmarks(&passes) {
            prop_assert_eq!(names(&graph), expected.to_vec());
            prop_assert_eq!(is_edit_of(&graph, &job), Ok(()));
            // It fits together, as a graph that could run.
            prop_assert_eq!(graph.check(usize::MAX), Ok(()));
        }
    }
}

type Change<T> = (&'static str, fn(&mut T));

/// Every setting of a stage counts: a pass with one of them changed is another job.
#[test]
fn a_changed_setting_is_noticed() {
    let changes: [Change<PassOne>; 15] = [
        ("read", |pass| pass.read.disk.depth += 1),
        ("read", |pass| pass.read.disk.transfer_bytes *= 2),
        ("read", |pass| pass.read.buffers += 1),
        ("read", |pass| pass.read.buffer_bytes += 4096),
        ("read", |pass| {
            pass.read.lanes = Arc::new(vec![Vec::new(); 2])
        }),
        ("read", |pass| pass.read.gives = PARTITIONS),
        ("partition", |pass| pass.partition.workers += 1),
        ("partition", |pass| pass.partition.block_bytes += 4096),
        ("partition", |pass| pass.partition.spare_blocks += 1),
        ("partition", |pass| {
            pass.partition.lanes = Arc::new(vec![None])
        }),
        ("partition", |pass| {
            let one = Boundaries::from_sample(&[], &Layout::SORT_BENCHMARK, 1);
            pass.partition.boundaries = Arc::new(one);
        }),
        ("write", |pass| pass.write.disk = Disk::default()),
        ("write", |pass| pass.write.lanes += 1),
        ("write", |pass| pass.write.inbox_bytes += 1),
        ("write", |pass| {
            pass.write.target = Target::Files(Arc::default())
        }),
    ];
    let passes = passes(1 << 30, 256 << 20, 2, [2, 2, 1]);
    for (place, (stage, change)) in changes.into_iter().enumerate() {
        let mut changed = passes.one.clone();
        change(&mut changed);
        let job = changed.graph();
        let mut noticed = 0;
        for (graph, names, _) in benchmarks(&passes).into_iter().take(5) {
            let same = is_edit_of(&graph, &job);
            assert_eq!(
                same.is_err(),
                names.contains(&stage),
                "change {place} of {stage}: {same:?}"
            );
            noticed += usize::from(same.is_err());
        }
        assert!(noticed > 0, "change {place} of {stage}");
    }
    let changes: [fn(&mut PassTwo); 4] = [
        |pass| pass.sort.workers += 1,
        |pass| pass.sort.buffers += 1,
        |pass| pass.sort.buffer_bytes += 4096,
        |pass| pass.sort.layout.key_bytes += 1,
    ];
    for (place, change) in changes.into_iter().enumerate() {
        let mut changed = passes.two.clone();
        change(&mut changed);
        let (sorting, ..) = benchmarks(&passes).pop().expect("the last one");
        assert_eq!(is_edit_of(&sorting, &passes.two.graph()), Ok(()));
        assert!(
            is_edit_of(&sorting, &changed.graph()).is_err(),
            "change {place}"
        );
    }
}

#[test]
fn another_order_or_a_stage_of_another_job_is_noticed() {
    let passes = passes(1 << 30, 256 << 20, 2, [1, 1, 1]);
    let job = passes.one.graph();
    let turned = Graph::chain(job.nodes().iter().rev().cloned());
    assert!(is_edit_of(&turned, &job).is_err());
    let twice = Graph::chain(job.nodes().iter().chain(&job.nodes()[..1]).cloned());
    assert!(is_edit_of(&twice, &job).is_err());
    assert!(is_edit_of(&passes.two.graph(), &job).is_err());
    assert_eq!(is_edit_of(&job, &job), Ok(()));
}
