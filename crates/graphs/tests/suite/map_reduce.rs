//! Each block from the host is in the index once, in its partition, for any sizes and any number of
//! nodes; and the host gets it back whole.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use proptest::prelude::*;
use tonnage_disk::{Effect, Operation, Rule};
use tonnage_graphs::cluster::pass_two::Round;
use tonnage_graphs::error::JobError;
use tonnage_graphs::host_queue::HostQueue;
use tonnage_graphs::map_reduce::{pass_one, pass_two};
use tonnage_graphs::{HostBlock, PartitionBlocks};
use tonnage_net::Settings;
use tonnage_pipeline::RunHandle;
use tonnage_stages::sink::ToHost;
use tonnage_stages::totals::Total;

use crate::common::{Random, addresses, disk, mesh_settings, seeded};
use crate::edits::{Passes, passes};

const BLOCK: usize = 64 << 10;
const MEMORY: usize = 2 << 20;
const NEVER: fn() -> bool = || false;

/// Blocks of each partition, sorted, since they come in any order.
type Blocks = BTreeMap<usize, Vec<Vec<u8>>>;

/// Files on so many devices.
fn files(place: &Path, devices: usize) -> Vec<PathBuf> {
    (0..devices)
        .map(|number| place.join(number.to_string()))
        .collect()
}

fn config(place: &Path, owners: Vec<Option<usize>>, mesh: Option<Settings>) -> pass_one::Config {
    pass_one::Config {
        mesh,
        owners,
        scratch: files(place, 2),
        index: place.join("index"),
        block_bytes: BLOCK,
        memory_bytes: MEMORY,
        disk: disk(Vec::new()),
    }
}

fn give(config: &pass_one::Config, blocks: &[HostBlock]) -> Result<pass_one::Outcome, JobError> {
    let queue = Arc::new(HostQueue::new(BLOCK));
    thread::scope(|scope| {
        scope.spawn(|| {
            for block in blocks {
                if queue.put(block.clone(), block.1.len(), NEVER).is_err() {
                    return; // The job reports why.
                }
            }
            queue.close();
        });
        pass_one::run(config, &queue, &RunHandle::default())
    })
}

/// What is taken of a round at `place`.
fn taking(place: &Path, partitions: Vec<usize>, portion_bytes: usize) -> pass_two::Config {
    pass_two::Config {
        rounds: vec![Round {
            scratch: files(place, 2),
            index: place.join("index"),
        }],
        partitions,
        portion_bytes,
        memory_bytes: 4 * portion_bytes.max(MEMORY),
        disk: disk(Vec::new()),
    }
}

/// What was left of partitions, and in how many portions it came.
fn take(config: &pass_two::Config) -> (Blocks, usize) {
    let queue: Arc<HostQueue<PartitionBlocks>> = Arc::new(HostQueue::new(1));
    thread::scope(|scope| {
        let reading = scope.spawn(|| pass_two::run(config, &queue, &RunHandle::default()));
        let (mut blocks, mut portions) = (Blocks::new(), 0);
        while let Ok(Some(taken)) = queue.take(NEVER) {
            let of_partition = blocks.entry(taken.partition).or_default();
            of_partition.extend(taken.blocks().map(<[u8]>::to_vec));
            portions += 1;
        }
        blocks.values_mut().for_each(|blocks| blocks.sort());
        let outcome = reading.join().expect("no panic").expect("it reads");
        let bytes: usize = blocks.values().flatten().map(Vec::len).sum();
        assert_eq!(outcome.taken.bytes, bytes as u64);
        (blocks, portions)
    })
}

fn host_blocks(partitions: usize, lengths: &[usize], seed: u64) -> Vec<HostBlock> {
    let mut random = Random(seed);
    let block = |&len: &usize| {
        let mut block = vec![0; len];
        random.fill(&mut block);
        (random.below(partitions), block)
    };
    lengths.iter().map(block).collect()
}

fn by_partition<'a>(blocks: impl IntoIterator<Item = &'a HostBlock>) -> Blocks {
    let mut found = Blocks::new();
    for (partition, block) in blocks {
        if !block.is_empty() {
            found.entry(*partition).or_default().push(block.clone());
        }
    }
    found.values_mut().for_each(|blocks| blocks.sort());
    found
}

fn room() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory")
}

proptest! {
    #![proptest_config(seeded(10))]

    #[test]
    fn what_is_given_is_taken(
        partitions in 1_usize..20,
        lengths in prop::collection::vec(prop_oneof![0_usize..200, 1..=BLOCK], 0..80),
        portion_bytes in prop::sample::select(vec![BLOCK + 8192, 300_000, 8 << 20]),
        seed in any::<u64>(),
    ) {
        let (room, blocks) = (room(), host_blocks(partitions, &lengths, seed));
        let done = give(&config(room.path(), vec![Some(0); partitions], None), &blocks);
        let done = done.map_err(|why| TestCaseError::fail(why.to_string()))?;
        let expected = by_partition(&blocks);
        for partition in 0..partitions {
            let bytes: usize = expected.get(&partition).into_iter().flatten().map(Vec::len).sum();
            prop_assert_eq!(done.round.partitions[partition], bytes as u64);
            prop_assert_eq!(done.came[partition], done.given[partition]);
            prop_assert_eq!(done.came[partition].bytes, bytes as u64);
            prop_assert!(done.spans[partition] >= bytes as u64);
        }
        let (taken, portions) = take(&taking(room.path(), (0..partitions).collect(), portion_bytes));
        prop_assert_eq!(&taken, &expected);
        // What fits into one portion comes in one.
        if done.spans.iter().all(|&span| span <= portion_bytes as u64) {
            prop_assert_eq!(portions, taken.len());
        }
    }

    #[test]
    fn endpoints_give_each_other_what_is_theirs(
        lengths in prop::collection::vec(prop::collection::vec(1..=BLOCK, 0..40), 2..4),
        partitions in 1_usize..12,
    ) {
        let room = room();
        let count = lengths.len();
        let owners: Vec<Option<usize>> = (0..partitions).map(|place| Some(place % count)).collect();
        let endpoints = addresses(count);
        let blocks: Vec<Vec<HostBlock>> = (0_u64..)
            .zip(&lengths)
            .map(|(seed, lengths)| host_blocks(partitions, lengths, seed))
            .collect();
        let place = |number: usize| room.path().join(number.to_string());
        let done: Vec<_> = thread::scope(|scope| {
            let run = |number: usize| {
                fs::create_dir(place(number)).expect("a directory");
                let mesh = mesh_settings(&endpoints, number, 2);
                let config = config(&place(number), owners.clone(), Some(mesh));
                let blocks = &blocks[number];
                scope.spawn(move || give(&config, blocks))
            };
            let running: Vec<_> = (0..count).map(run).collect();
            running.into_iter().map(|each| each.join().expect("no panic")).collect()
        });
        let (mut given, mut came) = (vec![Total::default(); partitions], vec![Total::default(); partitions]);
        for outcome in done {
            let outcome = outcome.map_err(|why| TestCaseError::fail(why.to_string()))?;
            prop_assert!(outcome.round.received.iter().all(|from| from.lost.is_none()));
            given.iter_mut().zip(&outcome.given).for_each(|(sum, each)| sum.add(each));
            came.iter_mut().zip(&outcome.came).for_each(|(sum, each)| sum.add(each));
        }
        prop_assert_eq!(came, given);
        let mut taken = Blocks::new();
        for number in 0..count {
            let owned = (number..partitions).step_by(count).collect();
            taken.extend(take(&taking(&place(number), owned, 8 << 20)).0);
        }
        prop_assert_eq!(taken, by_partition(blocks.iter().flatten()));
    }
}

/// The job's graphs are the sort's, edited: all that is not `given` or `taken` is the sort's own
/// stage.
#[test]
fn the_graphs_are_edits_of_the_sorts() {
    let Passes { one, two, .. } = passes(1 << 30, 64 << 20, 2, [1, 2, 1]);
    let queue = Arc::new(HostQueue::new(BLOCK));
    let graph = pass_one::with_host_blocks(&one, &queue).expect("the stages that it replaces");
    assert_eq!(graph.nodes()[1..], one.graph().nodes()[2..]);
    assert_eq!(graph.draw(), "from_host x1 -blocks-> write x2");
    graph.check(usize::MAX).expect("it fits together");
    let taken = ToHost {
        portions: Arc::default(),
        queue: Arc::new(HostQueue::new(1)),
        totals: Arc::default(),
    };
    let graph = pass_two::to_host(&two, taken).expect("the stages that it replaces");
    assert_eq!(graph.nodes()[..1], two.graph().nodes()[..1]);
    assert_eq!(graph.draw(), "read x1 -partitions-> to_host x1");
    graph.check(usize::MAX).expect("it fits together");
}

#[test]
fn what_does_not_fit_is_refused_and_nobody_waits() {
    let room = room();
    for (block, why) in [
        ((0, vec![1; BLOCK + 1]), "a block has 65537 bytes"),
        ((7, vec![1]), "for partition 7, but there are only 2"),
    ] {
        // Many more follow: the producer learns that the job has ended.
        let blocks = vec![block; 100];
        let failed = give(&config(room.path(), vec![Some(0); 2], None), &blocks);
        let failed = failed.expect_err("it does not fit").to_string();
        assert!(failed.contains(why), "{failed}");
    }
}

#[test]
fn a_disk_that_fails_ends_it_and_nobody_waits() {
    let room = room();
    let failing = pass_one::Config {
        disk: disk(vec![Rule::new(
            Operation::Write,
            Effect::Error { errno: 28 },
        )]),
        ..config(room.path(), vec![Some(0); 4], None)
    };
    let blocks = host_blocks(4, &[BLOCK; 200], 1);
    let failed = give(&failing, &blocks).expect_err("the disk is full");
    assert!(
        matches!(&failed, JobError::Failed { file: Some(_), .. }),
        "{failed:?}"
    );
}

#[test]
fn who_cancels_need_not_close() {
    let room = room();
    let (queue, handle) = (Arc::new(HostQueue::new(BLOCK)), RunHandle::default());
    let config = config(room.path(), vec![Some(0)], None);
    let ended = thread::scope(|scope| {
        let running = scope.spawn(|| pass_one::run(&config, &queue, &handle));
        queue
            .put((0, vec![1; 100]), 100, NEVER)
            .expect("it is open");
        handle.cancel();
        running.join().expect("no panic")
    });
    assert!(matches!(ended, Err(JobError::Cancelled)), "{ended:?}");
    assert!(queue.put((0, vec![1]), 1, NEVER).is_err());
}

#[test]
fn more_devices_than_portions_are_read_in_turn() {
    let (room, partitions, devices) = (room(), 8, 5);
    let blocks: Vec<HostBlock> = (0..20)
        .flat_map(|_| (0..partitions).map(|partition| (partition, vec![1; BLOCK])))
        .collect();
    let on_devices = pass_one::Config {
        scratch: files(room.path(), devices),
        ..config(room.path(), vec![Some(0); partitions], None)
    };
    give(&on_devices, &blocks).expect("given");
    let portion_bytes = 20 * BLOCK;
    let mut three = taking(room.path(), (0..partitions).collect(), portion_bytes);
    three.rounds[0].scratch = on_devices.scratch;
    three.memory_bytes = 3 * portion_bytes;
    assert_eq!(take(&three), (by_partition(&blocks), partitions));
    three.memory_bytes = portion_bytes - BLOCK;
    let queue = Arc::new(HostQueue::new(1));
    let refused = pass_two::run(&three, &queue, &RunHandle::default()).expect_err("too little");
    assert!(
        refused
            .to_string()
            .contains("are not enough for a sort buffer"),
        "{refused}"
    );
}

#[test]
fn a_block_that_no_portion_holds_is_refused() {
    let room = room();
    give(
        &config(room.path(), vec![Some(0)], None),
        &host_blocks(1, &[BLOCK], 1),
    )
    .expect("given");
    let config = taking(room.path(), vec![0], BLOCK);
    let queue = Arc::new(HostQueue::new(1));
    let refused = pass_two::run(&config, &queue, &RunHandle::default()).expect_err("too long");
    assert!(
        refused
            .to_string()
            .contains("does not fit into a sort buffer")
    );
}
