//! The sort on failing disks: whatever fails, and whenever, it ends with an error that names what
//! and where, leaves no output, no scratch and no changed input, and the next run succeeds. Slow or
//! short transfers change nothing.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use crate::common::{KeyDistribution, SortDirs, disk, records, run, sorts};
use proptest::prelude::*;
use tonnage_disk::{Disk, Effect, Engine, Faults, Operation, Rule};
use tonnage_graphs::error::JobError;
use tonnage_graphs::sort::sort_job::{Config, Outcome};
use tonnage_pipeline::RunHandle;
use tonnage_records::Layout;

const LAYOUT: Layout = Layout::SORT_BENCHMARK;
const MEMORY: usize = 8 << 20;

/// Two inputs of about a megabyte, two devices for scratch, two for output.
fn place() -> SortDirs {
    let bytes = records(1, 22_000, &LAYOUT, KeyDistribution::Uniform);
    SortDirs::new(&[&bytes[..1_200_000], &bytes[1_200_000..]], 2, 2)
}

fn rule(operation: Operation, path: &str, effect: Effect) -> Rule {
    let path_contains = (!path.is_empty()).then(|| path.to_owned());
    Rule {
        path_contains,
        ..Rule::new(operation, effect)
    }
}

fn error(errno: i32) -> Effect {
    Effect::Error { errno }
}

/// What a failed sort said.
#[derive(Debug)]
struct JobFailure {
    what: String,
    stage: Option<String>,
    file: Option<PathBuf>,
    offset: Option<u64>,
}

/// A sort whose records all go to scratch.
fn through_scratch(place: &SortDirs, memory_bytes: usize) -> Config {
    Config {
        spill_all: true,
        ..place.config(LAYOUT, memory_bytes)
    }
}

/// After an error: nothing is left, nothing is changed, and without faults it works.
fn is_whole_again(place: &SortDirs, config: &Config, before: &[u8]) {
    assert_eq!(place.is_clean(), Ok(()));
    assert!(place.input() == before, "an input was modified");
    let healthy = Config {
        disk: disk(Vec::new()),
        ..config.clone()
    };
    sorts(place, &healthy).expect("sorted once the disk works");
    place.forget_output();
}

fn fails_with(place: &SortDirs, config: &Config) -> JobFailure {
    let before = place.input();
    let said = failure_of(run(config, &RunHandle::default()));
    is_whole_again(place, config, &before);
    said
}

fn failure_of(ended: Result<Outcome, JobError>) -> JobFailure {
    match ended {
        Err(JobError::Failed {
            what,
            stage,
            file,
            offset,
        }) => JobFailure {
            what,
            stage,
            file,
            offset,
        },
        other => panic!("{:?}", other.map(|outcome| outcome.records)),
    }
}

fn fails(rules: Vec<Rule>) -> (JobFailure, SortDirs) {
    let place = place();
    let config = Config {
        disk: disk(rules),
        ..through_scratch(&place, MEMORY)
    };
    (fails_with(&place, &config), place)
}

#[test]
fn a_bad_sector_of_an_input_is_named() {
    for at in [0, 700_000, 999_999] {
        let bad = rule(Operation::Read, "/in/00001", error(libc::EIO));
        let (said, place) = fails(vec![Rule {
            at_offset: Some(at),
            ..bad
        }]);
        assert_eq!(said.stage.as_deref(), Some("read"));
        assert_eq!(said.file.as_deref(), Some(place.inputs[1].as_path()));
        let offset = said.offset.expect("an offset");
        assert!(
            (offset..offset + (64 << 10)).contains(&at),
            "{at} is not at {said:?}"
        );
        assert!(
            said.what.contains("os error 5") && said.what.contains("00001"),
            "{said:?}"
        );
    }
}

#[test]
fn an_input_that_cannot_be_opened_is_named() {
    let (said, place) = fails(vec![rule(
        Operation::Open,
        "/in/00000",
        error(libc::EACCES),
    )]);
    assert_eq!(said.stage.as_deref(), Some("read"));
    assert_eq!(said.file.as_deref(), Some(place.inputs[0].as_path()));
}

#[test]
fn errors_of_scratch_are_named() {
    for (operation, stage) in [
        (Operation::Create, None),
        (Operation::Write, Some("write")),
        (Operation::Read, Some("read")),
    ] {
        for errno in [libc::EIO, libc::ENOSPC] {
            let (said, place) = fails(vec![rule(operation, "scratch1/(scratch)", error(errno))]);
            assert_eq!(said.stage.as_deref(), stage);
            assert_eq!(said.file, Some(place.scratch[1].join("(scratch)")));
            assert_eq!(said.offset.is_some(), stage.is_some(), "{said:?}");
            assert!(said.what.contains(&format!("os error {errno}")), "{said:?}");
        }
    }
}

#[test]
fn scratch_that_fills_up_half_way_fails_cleanly() {
    let full = rule(Operation::Write, "(scratch)", error(libc::ENOSPC));
    let (said, _) = fails(vec![Rule {
        after_bytes: Some(1_000_000),
        ..full
    }]);
    assert_eq!(said.stage.as_deref(), Some("write"));
}

/// A sample that misses sends partitions through scratch again, for which it has to grow.
#[test]
fn scratch_that_cannot_grow_fails_cleanly() {
    let bytes = records(2, 120_000, &LAYOUT, KeyDistribution::Sorted);
    let place = SortDirs::new(&[&bytes], 1, 1);
    let full = rule(Operation::Grow, "(scratch)", error(libc::ENOSPC));
    let config = Config {
        disk: disk(vec![full]),
        sample_chunks: Some(1),
        ..through_scratch(&place, 6 << 20)
    };
    let said = fails_with(&place, &config);
    assert_eq!(said.stage.as_deref(), Some("write"));
    assert!(said.what.contains("grow of"), "{said:?}");
}

#[test]
fn errors_of_the_output_are_named() {
    for (operation, errno) in [
        (Operation::Create, libc::ENOSPC),
        (Operation::Write, libc::ENOSPC),
        (Operation::Write, libc::EIO),
        (Operation::Sync, libc::EIO),
    ] {
        let (said, place) = fails(vec![rule(operation, "part-00001", error(errno))]);
        assert_eq!(said.stage.as_deref(), Some("write"), "{operation}");
        let file = said.file.expect("a file");
        assert!(
            file.starts_with(&place.output[1]) && file.ends_with("part-00001"),
            "{file:?}"
        );
        assert_eq!(said.offset.is_some(), operation == Operation::Write);
    }
}

/// A bit that changes between the passes is noticed, and what has it is not kept.
#[test]
fn scratch_that_reads_wrong_is_noticed() {
    let (said, _) = fails(vec![rule(Operation::Read, "(scratch)", Effect::Corrupt)]);
    assert!(
        said.what
            .contains("the sorted output does not match the input"),
        "{said:?}"
    );
    assert_eq!(said.stage, None);

    // On its second way through pass one, too.
    let bytes = records(3, 120_000, &LAYOUT, KeyDistribution::Sorted);
    let place = SortDirs::new(&[&bytes], 1, 1);
    let config = Config {
        disk: disk(vec![rule(Operation::Read, "(scratch)", Effect::Corrupt)]),
        sample_chunks: Some(1),
        ..through_scratch(&place, 6 << 20)
    };
    let said = fails_with(&place, &config);
    assert!(
        said.what
            .contains("the sorted output does not match the input"),
        "{said:?}"
    );
}

/// Nobody but the input's owner knows what it should have been: the checksum is there to compare.
#[test]
fn an_input_that_reads_wrong_shows_in_the_checksum() {
    let place = place();
    let healthy = through_scratch(&place, MEMORY);
    let checksum = run(&healthy, &RunHandle::default())
        .expect("sorted")
        .checksum;
    place.forget_output();
    let corrupt = rule(Operation::Read, "/in/", Effect::Corrupt);
    let config = Config {
        disk: disk(vec![corrupt]),
        ..healthy
    };
    let outcome = run(&config, &RunHandle::default()).expect("sorted");
    assert_ne!(outcome.checksum, checksum);
}

#[test]
fn short_interrupted_and_slow_transfers_change_nothing() {
    for engine in [Engine::Threads, Engine::Auto] {
        let place = place();
        let now_and_then = |operation, effect| Rule {
            probability: Some(0.3),
            ..Rule::new(operation, effect)
        };
        let rules = [Operation::Read, Operation::Write]
            .into_iter()
            .flat_map(|operation| {
                [
                    now_and_then(operation, Effect::Short),
                    now_and_then(operation, error(libc::EINTR)),
                    now_and_then(operation, error(libc::EAGAIN)),
                    now_and_then(operation, Effect::Stall { milliseconds: 1 }),
                ]
            });
        let disk = Disk {
            engine,
            ..disk(rules.collect())
        };
        let config = Config {
            disk,
            ..through_scratch(&place, MEMORY)
        };
        sorts(&place, &config).unwrap_or_else(|why| panic!("{engine:?}: {why}"));
    }
}

#[test]
fn refused_an_io_uring_it_sorts_with_threads_and_says_so() {
    let place = place();
    let refused = Rule::new(Operation::Setup, error(libc::EPERM));
    let disk = Disk {
        engine: Engine::Auto,
        ..disk(vec![refused])
    };
    let outcome = sorts(
        &place,
        &Config {
            disk,
            ..through_scratch(&place, MEMORY)
        },
    )
    .expect("sorted");
    for phase in &outcome.phases {
        assert!(!phase.disk_modes.is_empty());
        assert!(
            phase
                .disk_modes
                .iter()
                .all(|mode| mode.engine == "threads" && mode.why.is_some())
        );
    }
}

/// Stops the first write to scratch for a while, so that a test can act during that time.
fn pausing() -> Disk {
    let stall = rule(
        Operation::Read,
        "(scratch)",
        Effect::Stall { milliseconds: 800 },
    );
    disk(vec![Rule {
        at_offset: Some(0),
        ..stall
    }])
}

/// Sorts, and calls `act` once pass one writes, or later: pass two waits for a while.
fn while_paused(
    place: &SortDirs,
    config: &Config,
    act: impl FnOnce(&[PathBuf]) + Send,
) -> Result<Outcome, JobError> {
    let handle = RunHandle::default();
    let sampled = place.input().len() as u64; // at most
    thread::scope(|scope| {
        scope.spawn(|| {
            while handle.done_bytes() <= sampled {
                thread::sleep(Duration::from_millis(1));
            }
            act(&place.output);
        });
        run(config, &handle)
    })
}

#[test]
fn an_output_directory_that_vanishes_fails_cleanly() {
    let place = place();
    let config = Config {
        disk: pausing(),
        ..through_scratch(&place, MEMORY)
    };
    let before = place.input();
    let ended = while_paused(&place, &config, |output| {
        fs::remove_dir_all(&output[1]).expect("it goes")
    });
    let said = failure_of(ended);
    is_whole_again(&place, &config, &before);
    assert!(said.file.expect("a file").starts_with(&place.output[1]));
}

/// Scratch has no name, so its directory is not needed once it is open.
#[test]
fn a_scratch_directory_that_vanishes_changes_nothing() {
    let place = place();
    let config = Config {
        disk: pausing(),
        ..through_scratch(&place, MEMORY)
    };
    let input = place.input();
    let ended = while_paused(&place, &config, |_| {
        let gone = |directory: &PathBuf| fs::remove_dir(directory).expect("it goes");
        place.scratch.iter().for_each(gone);
    });
    ended.expect("sorted");
    assert_eq!(
        crate::common::is_sort_of(&place.result(), &input, &LAYOUT),
        Ok(())
    );
    assert!(
        !place.scratch[0].exists(),
        "it vanished too late to show anything"
    );
}

/// Publishing is all or nothing over all directories.
#[test]
fn an_output_that_cannot_be_published_is_taken_back() {
    let place = place();
    let config = Config {
        disk: pausing(),
        ..through_scratch(&place, MEMORY)
    };
    // The manifest cannot take a directory's name.
    let ended = while_paused(&place, &config, |output| {
        fs::create_dir(output[1].join("_tonnage.json")).expect("made")
    });
    match ended {
        Err(JobError::Failed { file, .. }) => assert_eq!(file.as_ref(), Some(&place.output[1])),
        other => panic!("{:?}", other.map(|outcome| outcome.records)),
    }
    fs::remove_dir(place.output[1].join("_tonnage.json")).expect("it is what it was");
    is_whole_again(&place, &config, &place.input());
}

#[test]
fn a_cancelled_sort_leaves_nothing() {
    let place = place();
    let before = place.input();
    let slowly = |operation| {
        let stall = Effect::Stall { milliseconds: 3 };
        Rule::new(operation, stall)
    };
    let rules = vec![slowly(Operation::Read), slowly(Operation::Write)];
    let config = Config {
        disk: disk(rules),
        ..through_scratch(&place, MEMORY)
    };
    let mut cancelled = 0;
    for pause in [0, 1, 3, 10, 30, 60, 100] {
        let handle = RunHandle::default();
        let canceller = handle.clone();
        let cancelling = thread::spawn(move || {
            thread::sleep(Duration::from_millis(pause));
            canceller.cancel();
        });
        match run(&config, &handle) {
            Err(JobError::Cancelled) => cancelled += 1,
            // It was faster: then it is whole.
            Ok(_) => assert_eq!(
                crate::common::is_sort_of(&place.result(), &before, &LAYOUT),
                Ok(())
            ),
            Err(other) => panic!("{other}"),
        }
        cancelling.join().expect("cancelled");
        place.forget_output();
        assert_eq!(place.is_clean(), Ok(()));
    }
    // Twice 2.2 MB in transfers of 64 KiB with a pause for each last longer than the first of
    // these.
    assert!(cancelled > 3, "{cancelled}");
    is_whole_again(&place, &config, &before);
}

fn any_operation() -> impl Strategy<Value = Operation> {
    use Operation::{Create, Grow, Open, Read, Setup, Sync, Write};
    prop::sample::select(vec![Setup, Open, Create, Grow, Sync, Read, Write])
}

/// Operations of a kind fail from some byte on, or some of them by chance, or those on one file.
fn any_rule() -> impl Strategy<Value = Rule> {
    let errno = prop::sample::select(vec![libc::EIO, libc::ENOSPC, libc::ENOMEM, libc::EINTR]);
    let effect = prop_oneof![
        4 => errno.prop_map(error),
        1 => Just(Effect::Short),
        1 => Just(Effect::Corrupt),
    ];
    // Corrupt input cannot be noticed, so faults of that kind are kept to scratch.
    let path = prop::sample::select(vec!["", "/in/", "(scratch)", "part-", "part-00003"]);
    let after = prop_oneof![Just(None), (0_u64..5_000_000).prop_map(Some)];
    let chance = prop_oneof![0.01..0.2, 0.2..0.7].prop_map(Some);
    (any_operation(), path, effect, after, chance).prop_map(
        |(operation, path, effect, after, chance)| {
            let corrupt = effect == Effect::Corrupt;
            let path = if corrupt { "(scratch)" } else { path };
            Rule {
                after_bytes: after,
                probability: chance,
                ..rule(operation, path, effect)
            }
        },
    )
}

proptest! {
    #![proptest_config(crate::common::seeded(24))]

    #[test]
    fn whatever_fails_it_is_sorted_or_nothing_is_left(
        rules in prop::collection::vec(any_rule(), 1..4),
        seed in any::<u64>(),
        missing_sample in any::<bool>(),
    ) {
        let place = place();
        let before = place.input();
        let faults = Some(Faults { seed, rules });
        let config = Config {
            disk: Disk { faults, ..disk(Vec::new()) },
            sample_chunks: missing_sample.then_some(1),
            ..through_scratch(&place, 4 << 20)
        };
        match run(&config, &RunHandle::default()) {
            Ok(_) => prop_assert_eq!(
                crate::common::is_sort_of(&place.result(), &before, &LAYOUT),
                Ok(())
            ),
            Err(JobError::Failed { .. }) => prop_assert_eq!(place.is_clean(), Ok(())),
            Err(other) => prop_assert!(false, "{}", other),
        }
        prop_assert!(place.input() == before, "an input was modified");
    }
}
