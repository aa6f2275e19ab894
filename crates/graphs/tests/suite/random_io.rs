//! The random I/O benchmark: counts add up, offsets stay within the file, faults are reported.

use std::fs;
use std::path::PathBuf;

use crate::common::{disk, seeded};
use proptest::prelude::*;
use tonnage_disk::{Effect, Operation, Rule};
use tonnage_graphs::benches::random_io::{Config, Outcome, SegmentShare, Segments, run};
use tonnage_graphs::error::JobError;
use tonnage_pipeline::RunHandle;
use tonnage_stages::latencies::{LONGEST, error_bound, latencies};

const BLOCK: usize = 4096;

struct TestFile {
    root: tempfile::TempDir,
    file: PathBuf,
}

fn place(bytes: usize) -> TestFile {
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let file = root.path().join("file");
    fs::write(&file, vec![7; bytes]).expect("a file");
    TestFile { root, file }
}

fn config(place: &TestFile, outstanding: usize) -> Config {
    Config {
        files: vec![place.file.clone()],
        segments: None,
        flush_at_end: false,
        writes: false,
        durable_one_in: 0,
        block_bytes: BLOCK,
        outstanding,
        blocking: false,
        batched: true,
        seconds: 0.2,
        warm_up_seconds: 0.05,
        seed: 1,
        disk: disk(Vec::new()),
    }
}

fn outcome_of(config: &Config) -> Outcome {
    run(config, &RunHandle::default()).expect("a trial")
}

#[test]
fn what_is_counted_adds_up() {
    let place = place(64 * BLOCK);
    for (outstanding, blocking, batched) in [
        (1, false, true),
        (7, false, true),
        (7, false, false),
        (3, true, false),
    ] {
        let outcome = outcome_of(&Config {
            blocking,
            batched,
            ..config(&place, outstanding)
        });
        let stage = &outcome.phases[0].report.stages[0];
        let each: u64 = outcome
            .workers
            .iter()
            .flat_map(|one| &one.each_second)
            .sum();
        assert_eq!(each, stage.counters.records);
        assert_eq!(stage.counters.bytes, each * BLOCK as u64);
        assert_eq!(
            outcome.workers.len(),
            if blocking { outstanding } else { 1 }
        );
        let latency = &outcome.latency;
        assert!(0 < latency.count && latency.count < each, "{latency:?}");
        let binned: u64 = latency.bins.iter().map(|(_, count)| count).sum();
        assert_eq!(binned, latency.count);
        assert!(latency.percentiles.is_sorted_by_key(|(_, value)| *value));
    }
}

#[test]
fn writes_stay_within_the_file_and_reads_change_nothing() {
    let place = place(16 * BLOCK);
    let before = fs::read(&place.file).expect("the file");
    outcome_of(&config(&place, 4));
    assert!(fs::read(&place.file).expect("the file") == before);
    for durable_one_in in [0, 1, 64] {
        outcome_of(&Config {
            writes: true,
            durable_one_in,
            seconds: 0.3,
            ..config(&place, 4)
        });
        let after = fs::read(&place.file).expect("the file");
        assert_eq!(after.len(), before.len());
        assert!(after != before);
    }
}

/// Each block of each file is written once and read once, also of shared files.
#[test]
fn segments_cover_their_files() {
    for (workers, shared, outstanding_in_ring) in [(1, true, 3), (3, true, 1), (3, false, 1)] {
        let place = place(0);
        let blocking = outstanding_in_ring == 1;
        let files: Vec<PathBuf> = (0..if shared { 1 } else { workers })
            .map(|number| place.root.path().join(format!("file-{number}")))
            .collect();
        for writes in [true, false] {
            let outcome = outcome_of(&Config {
                files: files.clone(),
                segments: Some(Segments {
                    count: 2,
                    part_bytes: 5 * BLOCK as u64,
                    among: None,
                }),
                flush_at_end: writes,
                blocking,
                writes,
                warm_up_seconds: 0.0,
                ..config(
                    &place,
                    if blocking {
                        workers
                    } else {
                        outstanding_in_ring
                    },
                )
            });
            let blocks = (2 * 5 * workers) as u64;
            assert_eq!(outcome.phases[0].report.stages[0].counters.records, blocks);
            assert_eq!(outcome.latency.count, blocks);
        }
        let bytes = 2 * 5 * BLOCK * workers / files.len();
        for file in &files {
            let content = fs::read(file).expect("the file");
            assert_eq!(content.len(), bytes);
            // No block was left out: what is written is random, what is not is zero.
            let blank = content
                .chunks(BLOCK)
                .position(|block| block.iter().all(|&byte| byte == 0));
            assert_eq!(blank, None);
        }
    }
}

/// Of a file that others write too, parts that are not ours stay as they were.
#[test]
fn only_our_parts_of_a_common_file_are_written() {
    let (workers, parts, first) = (2, 5, 2);
    let place = place(2 * parts * BLOCK);
    let before = fs::read(&place.file).expect("the file");
    let among = |parts| Config {
        files: vec![place.file.clone()],
        segments: Some(Segments {
            count: 2,
            part_bytes: BLOCK as u64,
            among: Some(SegmentShare {
                parts,
                first: first as u64,
            }),
        }),
        writes: true,
        blocking: true,
        warm_up_seconds: 0.0,
        ..config(&place, workers)
    };
    assert_eq!(
        outcome_of(&among(parts as u64)).latency.count,
        2 * workers as u64
    );
    let after = fs::read(&place.file).expect("the file");
    for (at, (before, after)) in before.chunks(BLOCK).zip(after.chunks(BLOCK)).enumerate() {
        let ours = (first..first + workers).contains(&(at % parts));
        assert_eq!(before != after, ours, "block {at}");
    }
    for (parts, why) in [(3, "more than the"), (6, "write the file first")] {
        match run(&among(parts), &RunHandle::default()) {
            Err(JobError::Refused { why: said, .. }) => assert!(said.contains(why), "{said}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_cannot_be_used_is_refused() {
    let place = place(BLOCK);
    let refused = |change: &dyn Fn(&mut Config)| {
        let mut config = config(&place, 1);
        change(&mut config);
        match run(&config, &RunHandle::default()) {
            Err(JobError::Refused { why, .. }) => why,
            other => panic!("{other:?}"),
        }
    };
    assert!(refused(&|config| config.block_bytes = 2 * BLOCK).contains("use a larger file"));
    assert!(refused(&|config| config.block_bytes = 1000).contains("4096"));
    assert!(refused(&|config| config.seconds = f64::NAN).contains("is not a duration"));
    refused(&|config| config.outstanding = 0);
}

#[test]
fn an_error_names_stage_file_and_offset() {
    let place = place(16 * BLOCK);
    let rule = Rule {
        after_bytes: Some(20 * BLOCK as u64),
        ..Rule::new(Operation::Read, Effect::Error { errno: libc::EIO })
    };
    let failed = run(
        &Config {
            disk: disk(vec![rule]),
            ..config(&place, 4)
        },
        &RunHandle::default(),
    );
    match failed {
        Err(JobError::Failed {
            stage,
            file,
            offset,
            ..
        }) => {
            assert_eq!(stage.as_deref(), Some("operate"));
            assert_eq!(file.as_deref(), Some(place.file.as_path()));
            assert!(offset.is_some_and(|offset| offset.is_multiple_of(BLOCK as u64)));
        }
        other => panic!("{other:?}"),
    }
    assert!(place.root.path().exists());
}

#[test]
fn a_cancelled_trial_ends() {
    let place = place(16 * BLOCK);
    let handle = RunHandle::default();
    handle.cancel();
    let ended = run(
        &Config {
            seconds: 1e6,
            ..config(&place, 4)
        },
        &handle,
    );
    assert!(matches!(ended, Err(JobError::Cancelled)), "{ended:?}");
}

/// What the workers do before the first operation is no part of the time that a rate is of.
#[test]
fn a_rate_is_of_the_time_after_memory_was_filled() {
    let place = place(64 << 20);
    let trial = Config {
        block_bytes: 1 << 20,
        seconds: 0.1,
        warm_up_seconds: 0.0,
        ..config(&place, 64)
    };
    let outcome = outcome_of(&trial);
    assert!(outcome.seconds >= trial.seconds, "{}", outcome.seconds);
}

#[test]
fn as_many_writes_are_durable_as_were_asked_for() {
    let place = place(16 * BLOCK);
    for (durable_one_in, seconds, least, most) in
        [(0, 0.3, 0.0, 0.0), (1, 0.3, 1.0, 1.0), (4, 1.0, 0.15, 0.35)]
    {
        let outcome = outcome_of(&Config {
            writes: true,
            durable_one_in,
            seconds,
            ..config(&place, 4)
        });
        let records = outcome.phases[0].report.stages[0].counters.records;
        let share = outcome.durable_writes as f64 / records as f64;
        assert!(
            records > 20 && (least..=most).contains(&share),
            "{share} of {records}"
        );
    }
    // Reads are never.
    let reads = Config {
        durable_one_in: 1,
        ..config(&place, 4)
    };
    assert_eq!(outcome_of(&reads).durable_writes, 0);
}

proptest! {
    #![proptest_config(seeded(2000))]

    /// Each latency that the benchmarks' histogram gives back, as a bin, a percentile or the
    /// longest, is off by no more than it says; beyond its end it is the end.
    #[test]
    fn latencies_are_within_the_stated_error(
        nanoseconds in prop::collection::vec(1_u64..5_000_000_000_000, 1..20),
        percent in 0.1_f64..100.0,
    ) {
        let mut histogram = latencies();
        for value in &nanoseconds {
            histogram.saturating_record(*value);
        }
        let longest = LONGEST.as_nanos() as u64;
        let bound = error_bound(&histogram);
        let near = |kept: u64, value: u64| {
            let beyond = value > longest && kept >= longest;
            beyond || kept.abs_diff(value) as f64 <= bound * value as f64
        };
        let mut sorted = nanoseconds.clone();
        sorted.sort_unstable();
        let kept = histogram.iter_recorded().flat_map(|bin| {
            vec![bin.value_iterated_to(); bin.count_at_value() as usize]
        });
        for (kept, value) in kept.zip(&sorted) {
            prop_assert!(near(kept, *value), "{kept} {value}");
        }
        let rank = (percent / 100.0 * sorted.len() as f64).ceil().max(1.0) as usize;
        let value = sorted[rank - 1];
        let kept = histogram.value_at_percentile(percent);
        prop_assert!(near(kept, value), "{percent} %: {kept} {value}");
        let max = *sorted.last().expect("one at least");
        prop_assert!(near(histogram.max(), max), "{} {max}", histogram.max());
    }
}
