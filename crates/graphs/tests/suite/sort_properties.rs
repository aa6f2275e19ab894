//! The sort against a trivial model (read all, sort by key), over layouts, distributions, numbers
//! of files, devices, memory sizes, engines and samples; and what it refuses before it begins.

use std::fs;

use crate::common::{
    DISTRIBUTIONS, KeyDistribution, Random, SortDirs, disk, names, records, run, sorts,
};
use proptest::prelude::*;
use tonnage_disk::{Disk, Engine};
use tonnage_graphs::error::JobError;
use tonnage_graphs::sort::sort_job::{Config, Outcome};
use tonnage_pipeline::RunHandle;
use tonnage_records::Layout;

const MIB: usize = 1 << 20;

/// `count` records in `files` files of random lengths, some of them empty.
fn split(bytes: &[u8], record: usize, files: usize, seed: u64) -> Vec<&[u8]> {
    let (count, mut random) = (bytes.len() / record, Random(seed));
    let mut cuts: Vec<usize> = (1..files).map(|_| random.below(count + 1)).collect();
    cuts.extend([0, count]);
    cuts.sort_unstable();
    cuts.windows(2)
        .map(|pair| &bytes[pair[0] * record..pair[1] * record])
        .collect()
}

fn again(outcome: &Outcome) -> usize {
    outcome
        .phases
        .iter()
        .filter(|phase| phase.name == "pass_one_again")
        .count()
}

fn refusal(config: &Config) -> String {
    match run(config, &RunHandle::default()) {
        Err(why @ JobError::Refused { .. }) => why.to_string(),
        other => panic!("{other:?}"),
    }
}

/// Layouts with short keys, keys longer than an entry's 12 bytes and than a boundary's 16.
fn any_layout() -> impl Strategy<Value = Layout> {
    (1_usize..300, 0.0..1.0, 0.0..1.0).prop_map(|(record, offset, len)| {
        let key_offset = (record as f64 * offset) as usize;
        let most = record - key_offset;
        let key_bytes = 1 + (most.min(40) as f64 * len) as usize;
        Layout::new(record, key_offset, key_bytes.min(most)).expect("a layout")
    })
}

proptest! {
    #![proptest_config(crate::common::seeded(16))]

    #[test]
    fn it_sorts_whatever_comes(
        layout in any_layout(),
        bytes in prop_oneof![0_usize..2000, 0_usize..2 * MIB, 4 * MIB..8 * MIB],
        keys in prop::sample::select(DISTRIBUTIONS.to_vec()),
        files in 1_usize..20,
        outputs in 1_usize..4,
        scratches in 1_usize..4,
        memory in 3 * MIB..12 * MIB,
        engine in prop_oneof![Just(Engine::Auto), Just(Engine::Threads)],
        sample_chunks in prop_oneof![3 => Just(None), 1 => Just(Some(1))],
        spill_all in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let bytes = records(seed, bytes / layout.record_bytes, &layout, keys);
        let place = SortDirs::new(&split(&bytes, layout.record_bytes, files, seed), outputs, scratches);
        let config = Config {
            disk: Disk { engine, ..disk(Vec::new()) },
            sample_chunks,
            spill_all,
            ..place.config(layout, memory)
        };
        let sorted = sorts(&place, &config);
        prop_assert!(sorted.is_ok(), "{}", sorted.unwrap_err());
    }
}

#[test]
fn what_fits_into_memory_does_not_go_to_scratch() {
    let layout = Layout::SORT_BENCHMARK;
    let bytes = records(3, 20_000, &layout, KeyDistribution::Uniform);
    let place = SortDirs::new(&[&bytes], 2, 2);
    for (memory, spill_all, is_held) in [
        (32 * MIB, false, true),
        (32 * MIB, true, false),
        (3 * MIB, false, false),
    ] {
        let config = Config {
            spill_all,
            ..place.config(layout, memory)
        };
        let outcome = sorts(&place, &config).expect("sorted");
        assert_eq!(outcome.spilled_bytes == 0, is_held, "{outcome:?}");
        place.forget_output();
    }
}

/// Memory for a few of many partitions; a sample of one chunk, so that partitions are too large.
#[test]
fn partitions_larger_than_memory_are_partitioned_again() {
    let layout = Layout::new(64, 8, 20).expect("a layout");
    for keys in DISTRIBUTIONS {
        let bytes = records(1, 5 * MIB / 64, &layout, keys);
        let place = SortDirs::new(&split(&bytes, 64, 5, 1), 2, 2);
        let config = Config {
            sample_chunks: Some(1),
            ..place.config(layout, 6 * MIB)
        };
        let outcome = sorts(&place, &config).unwrap_or_else(|why| panic!("{keys:?}: {why}"));
        // A chunk of sorted records says nothing of the others.
        if matches!(keys, KeyDistribution::Sorted | KeyDistribution::Reversed) {
            assert!(again(&outcome) > 0, "{keys:?}");
            assert!(outcome.repartitioned_bytes > 0, "{keys:?}");
        }
    }
}

/// One key so frequent that its records fit in no memory are copied, in parts.
#[test]
fn a_frequent_key_may_be_larger_than_memory() {
    for (record, memory, bytes) in [
        (100, 6 * MIB, 12 * MIB),
        (64, 6 * MIB, 12 * MIB),
        (4096, 8 * MIB, 12 * MIB),
        (100, 256 * MIB, 20 * MIB),
    ] {
        let layout = Layout::new(record, 0, 10).expect("a layout");
        let bytes = records(2, bytes / record, &layout, KeyDistribution::AllEqual);
        let place = SortDirs::new(&[&bytes], 1, 1);
        let sorted = sorts(&place, &place.config(layout, memory));
        sorted.unwrap_or_else(|why| panic!("records of {record}, memory {memory}: {why}"));
    }
}

/// Memories from far too small to ample: refused with a size that would do, or kept.
#[test]
fn every_memory_is_refused_or_kept() {
    let layout = Layout::SORT_BENCHMARK;
    let bytes = records(3, 3 * MIB / 100, &layout, KeyDistribution::HalfOneKey);
    let place = SortDirs::new(&[&bytes], 1, 1);
    let mut kept = 0;
    for memory in [
        1,
        4096,
        100_000,
        MIB / 2,
        MIB,
        2 * MIB,
        4 * MIB,
        20 * MIB,
        400 * MIB,
    ] {
        let config = Config {
            memory_bytes: memory,
            ..place.config(layout, MIB)
        };
        match sorts(&place, &config) {
            Ok(_) => kept += 1,
            Err(why) => assert!(
                why.contains("bytes are not enough") && why.contains("MiB"),
                "{memory}: {why}"
            ),
        }
        place.forget_output();
    }
    assert!(kept >= 4, "{kept}");
}

#[test]
fn no_record_and_one_record_are_sorted() {
    let layout = Layout::SORT_BENCHMARK;
    let one = records(4, 1, &layout, KeyDistribution::Uniform);
    for files in [
        vec![],
        vec![&[][..]],
        vec![&[][..]; 3],
        vec![&one[..]],
        vec![&[], &one[..], &[]],
    ] {
        let place = SortDirs::new(&files, 2, 1);
        let outcome = sorts(&place, &place.config(layout, 8 * MIB)).expect("sorted");
        assert_eq!(outcome.records, files.concat().len() as u64 / 100);
    }
}

#[test]
fn over_a_thousand_small_files_are_one_input() {
    let layout = Layout::new(10, 2, 4).expect("a layout");
    let bytes = records(5, 3_000, &layout, KeyDistribution::Uniform);
    let place = SortDirs::new(&split(&bytes, 10, 1_200, 5), 1, 1);
    // By their directory, whose hidden files are none of the input.
    let directory = place.root.path().join("in");
    fs::write(directory.join("_SUCCESS"), "x").expect("a marker");
    fs::write(directory.join(".hidden"), "x").expect("a marker");
    let config = Config {
        inputs: vec![directory],
        ..place.config(layout, 16 * MIB)
    };
    sorts(&place, &config).expect("sorted");
}

#[test]
fn what_was_sorted_can_be_sorted_again() {
    let layout = Layout::SORT_BENCHMARK;
    let bytes = records(6, 30_000, &layout, KeyDistribution::Uniform);
    let mut place = SortDirs::new(&[&bytes], 2, 1);
    sorts(&place, &place.config(layout, 8 * MIB)).expect("sorted");
    let first = place.result();
    let inputs = std::mem::replace(&mut place.output, vec![place.root.path().join("again")]);
    let config = Config {
        inputs,
        ..place.config(layout, 8 * MIB)
    };
    run(&config, &RunHandle::default()).expect("sorted");
    // Keys are distinct here, so there is only one order.
    assert_eq!(place.result(), first);
}

#[test]
fn a_record_cut_short_is_refused_with_its_place() {
    let layout = Layout::SORT_BENCHMARK;
    let whole = records(7, 5, &layout, KeyDistribution::Uniform);
    let place = SortDirs::new(&[&whole, &whole[..299]], 1, 1);
    let why = refusal(&place.config(layout, 8 * MIB));
    assert!(
        why.contains(&place.inputs[1].display().to_string()),
        "{why}"
    );
    assert!(why.contains("99 extra bytes at offset 200"), "{why}");
    assert_eq!(place.is_clean(), Ok(()));
}

#[test]
fn what_is_not_there_or_no_file_is_refused() {
    let place = SortDirs::new(&[&[0; 100]], 1, 1);
    let layout = Layout::SORT_BENCHMARK;
    let missing = place.root.path().join("missing");
    let fifo = place.root.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.expect("mkfifo").success());
    let device = std::path::PathBuf::from("/dev/null");
    for input in [missing, fifo, device] {
        let config = Config {
            inputs: vec![input.clone()],
            ..place.config(layout, 8 * MIB)
        };
        let why = refusal(&config);
        assert!(why.contains(&input.display().to_string()), "{why}");
    }
    for (setting, config) in [
        (
            "output: ",
            Config {
                output: vec![],
                ..place.config(layout, 8 * MIB)
            },
        ),
        (
            "scratch: ",
            Config {
                scratch: vec![],
                ..place.config(layout, 8 * MIB)
            },
        ),
    ] {
        assert!(refusal(&config).starts_with(setting));
    }
    // A directory's place is taken by a file.
    let taken = vec![place.inputs[0].clone()];
    refusal(&Config {
        output: taken.clone(),
        ..place.config(layout, 8 * MIB)
    });
    refusal(&Config {
        scratch: taken,
        ..place.config(layout, 8 * MIB)
    });
    assert_eq!(place.is_clean(), Ok(()));
}

/// In any of the directories; and what else is in them stays.
#[test]
fn an_earlier_output_is_refused_and_kept() {
    let layout = Layout::SORT_BENCHMARK;
    let bytes = records(8, 100, &layout, KeyDistribution::Uniform);
    for name in ["part-00000", "part-x", "_tonnage.json"] {
        let place = SortDirs::new(&[&bytes], 2, 1);
        fs::create_dir(&place.output[1]).expect("a directory");
        fs::write(place.output[1].join(name), "earlier").expect("a file");
        let why = refusal(&place.config(layout, 8 * MIB));
        assert!(
            why.contains("earlier output") && why.contains(name),
            "{why}"
        );
        assert_eq!(names(&place.output[1]), [name]);
        assert!(!place.output[0].exists(), "made for nothing");
    }
    // One directory given twice would be two outputs in one.
    let place = SortDirs::new(&[&bytes], 1, 1);
    let twice = vec![place.output[0].clone(), place.output[0].clone()];
    refusal(&Config {
        output: twice,
        ..place.config(layout, 8 * MIB)
    });
    assert_eq!(place.is_clean(), Ok(()));
}

#[test]
fn other_files_in_the_directories_stay() {
    let layout = Layout::SORT_BENCHMARK;
    let bytes = records(9, 100, &layout, KeyDistribution::Uniform);
    let place = SortDirs::new(&[&bytes], 1, 1);
    for directory in [&place.output[0], &place.scratch[0]] {
        fs::create_dir(directory).expect("a directory");
        fs::write(directory.join("notes.txt"), "mine").expect("a file");
    }
    run(&place.config(layout, 8 * MIB), &RunHandle::default()).expect("sorted");
    assert_eq!(names(&place.scratch[0]), ["notes.txt"]);
    let left = names(&place.output[0]);
    assert_eq!(
        left.iter().filter(|name| *name == "notes.txt").count(),
        1,
        "{left:?}"
    );
}

/// Records so small, or so large, that a block of pass one is more than pass two has memory for.
#[test]
fn blocks_larger_than_a_partition_may_be_are_divided() {
    for (record, key, memory) in [
        (1, 1, 9 * MIB),
        (1, 1, 3 * MIB),
        (7, 1, 6 * MIB),
        (3, 2, 4 * MIB),
    ] {
        for keys in [KeyDistribution::AllEqual, KeyDistribution::HalfOneKey] {
            let layout = Layout::new(record, 0, key).expect("a layout");
            let bytes = records(10, MIB / 2 / record, &layout, keys);
            let place = SortDirs::new(&split(&bytes, record, 3, 10), 2, 3);
            let sorted = sorts(&place, &place.config(layout, memory));
            sorted.unwrap_or_else(|why| panic!("{keys:?} of {record} in {memory}: {why}"));
        }
    }
}
