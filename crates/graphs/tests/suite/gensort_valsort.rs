//! `gensort` and `valsort` as graphs: known files of the sort benchmark, files as parts of one
//! sequence, and findings across their borders.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Random, disk, names};
use proptest::prelude::*;
use tempfile::TempDir;
use tonnage_disk::{Effect, Operation, Rule};
use tonnage_graphs::error::JobError;
use tonnage_graphs::objects::object_input::ObjectStorage;
use tonnage_graphs::sort::valsort::Finding;
use tonnage_graphs::sort::{gensort, valsort};
use tonnage_pipeline::RunHandle;
use tonnage_records::{Encoding, Layout, crc32};

fn directory() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory")
}

fn generation(records: u64, encoding: Encoding, files: Vec<PathBuf>) -> gensort::Config {
    let (start, disk) = ("0".to_owned(), disk(Vec::new()));
    gensort::Config {
        records,
        start,
        encoding,
        skew: false,
        files,
        disk,
    }
}

fn generate(config: &gensort::Config) -> Result<gensort::Outcome, JobError> {
    gensort::run(config, &RunHandle::default())
}

fn validate(inputs: Vec<PathBuf>, layout: Layout) -> valsort::Outcome {
    let config = valsort::Config {
        inputs,
        layout,
        disk: disk(Vec::new()),
        storage: ObjectStorage::default(),
    };
    valsort::run(&config, &RunHandle::default()).expect("validated")
}

fn md5(file: &Path) -> String {
    let sum = Command::new("md5sum")
        .arg(file)
        .output()
        .expect("md5sum of coreutils");
    String::from_utf8_lossy(&sum.stdout)[..32].to_owned()
}

fn paths(directory: &TempDir, count: usize) -> Vec<PathBuf> {
    (0..count)
        .map(|number| directory.path().join(format!("{number:03}")))
        .collect()
}

/// The sums are those of gensort 1.5 itself: `gensort 10000` and `gensort -a 10000`.
#[test]
fn the_files_are_those_of_gensort() {
    for (encoding, hash, checksum) in [
        (
            Encoding::Binary,
            "d18d9972df1922134968cd37626b9eef",
            "1392d240ca76",
        ),
        (
            Encoding::Ascii,
            "f681a471e13167f6ce40d310feb55875",
            "138005ce70eb",
        ),
    ] {
        let directory = directory();
        let files = paths(&directory, 1);
        let outcome = generate(&generation(10_000, encoding, files.clone())).expect("generated");
        assert_eq!((outcome.records, outcome.bytes), (10_000, 1_000_000));
        assert_eq!(md5(&files[0]), hash);
        let found = validate(files, Layout::SORT_BENCHMARK);
        assert_eq!(found.all.checksum, checksum);
        assert_eq!((found.all.records, found.bytes), (10_000, 1_000_000));
        assert_eq!(names(directory.path()), ["000"]);
    }
}

/// Also where there are more chunks than one a file, and more files than records.
#[test]
fn several_files_hold_what_one_would() {
    let directory = directory();
    for (records, count) in [(10_000, 7), (130_000, 3), (5, 8), (0, 2)] {
        let one = directory.path().join("one");
        generate(&generation(records, Encoding::Binary, vec![one.clone()])).expect("generated");
        let files = paths(&directory, count);
        generate(&generation(records, Encoding::Binary, files.clone())).expect("generated");
        let shares: Vec<usize> = files
            .iter()
            .map(|file| fs::read(file).expect("a file").len() / 100)
            .collect();
        assert!(
            shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1,
            "{shares:?}"
        );
        let several: Vec<u8> = files
            .iter()
            .flat_map(|file| fs::read(file).unwrap())
            .collect();
        assert!(
            several == fs::read(&one).expect("a file"),
            "{records} records in {count} files"
        );
    }
}

/// A sequence that starts late is the rest of one that starts at 0.
#[test]
fn a_start_skips_records() {
    let directory = directory();
    let files = paths(&directory, 2);
    generate(&generation(1000, Encoding::Ascii, files[..1].to_vec())).expect("generated");
    let late = generation(400, Encoding::Ascii, files[1..].to_vec());
    generate(&gensort::Config {
        start: "600".into(),
        ..late
    })
    .expect("generated");
    assert!(fs::read(&files[0]).unwrap()[60_000..] == fs::read(&files[1]).unwrap());
}

#[test]
fn a_generation_that_fails_leaves_what_was_there() {
    let directory = directory();
    let files = paths(&directory, 2);
    fs::write(&files[1], "earlier").expect("a file");
    for operation in [Operation::Create, Operation::Write, Operation::Sync] {
        let full = Effect::Error {
            errno: libc::ENOSPC,
        };
        let full = Rule {
            path_contains: Some("001".into()),
            ..Rule::new(operation, full)
        };
        let config = generation(10_000, Encoding::Binary, files.clone());
        match generate(&gensort::Config {
            disk: disk(vec![full]),
            ..config
        }) {
            Err(JobError::Failed { stage, file, .. }) => {
                assert_eq!(stage.as_deref(), Some("write"));
                assert!(file.expect("a file").to_string_lossy().contains("001"));
            }
            other => panic!("{:?}", other.map(|outcome| outcome.records)),
        }
        assert_eq!(names(directory.path()), ["001"]);
        assert_eq!(fs::read(&files[1]).expect("it stays"), b"earlier");
    }
}

#[test]
fn what_cannot_be_generated_is_refused() {
    let directory = directory();
    let file = directory.path().join("file");
    let missing = directory.path().join("missing/file");
    let whole = directory.path().to_owned();
    for files in [
        vec![],
        vec![whole],
        vec![missing],
        vec![file.clone(), file.clone()],
    ] {
        let refused = generate(&generation(10, Encoding::Binary, files));
        assert!(
            matches!(refused, Err(JobError::Refused { .. })),
            "{refused:?}"
        );
    }
    let config = generation(10, Encoding::Binary, vec![file]);
    let refused = generate(&gensort::Config {
        start: "-1".into(),
        ..config
    });
    assert!(
        matches!(refused, Err(JobError::Refused { .. })),
        "{refused:?}"
    );
    assert_eq!(names(directory.path()), Vec::<String>::new());
}

/// What is unordered, or a duplicate, only across the border of two files.
#[test]
fn borders_of_files_are_looked_at() {
    let directory = directory();
    let files = paths(&directory, 4);
    // Keys of one byte; the second file is empty.
    for (file, content) in files.iter().zip(["a.b.", "", "b.d.", "c.c."]) {
        fs::write(file, content).expect("a file");
    }
    let layout = Layout::new(2, 0, 1).expect("a layout");
    let found = validate(files.clone(), layout);
    let about = |finding: &Finding| {
        (
            finding.records,
            finding.unordered,
            finding.first_unordered,
            finding.duplicate_keys,
        )
    };
    assert_eq!(about(&found.all), (6, 1, Some(4), 2));
    let each: Vec<_> = found.files.iter().map(about).collect();
    assert_eq!(
        each,
        [
            (2, 0, None, 0),
            (0, 0, None, 0),
            (2, 0, None, 0),
            (2, 0, None, 1)
        ]
    );
    let named: Vec<_> = found
        .files
        .iter()
        .map(|finding| finding.file.clone().unwrap())
        .collect();
    assert_eq!(named, files);
    // By their directory they come in the order of their names.
    let found = validate(vec![directory.path().to_owned()], layout);
    assert_eq!(about(&found.all), (6, 1, Some(4), 2));
}

proptest! {
    #![proptest_config(crate::common::seeded(24))]

    /// Compared with the definition: each record against the one before it.
    #[test]
    fn junk_is_judged_as_by_the_definition(
        record in 1_usize..300,
        lens in prop::collection::vec(prop_oneof![0_usize..40, 0_usize..40_000], 1..5),
        few in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let layout = Layout::new(record, record / 3, (record / 2).max(1)).expect("a layout");
        let (directory, mut random) = (directory(), Random(seed));
        let files = paths(&directory, lens.len());
        let mut all = Vec::new();
        for (file, len) in files.iter().zip(&lens) {
            // At most ten megabytes, some of which are several extents.
            let mut bytes = vec![0; (*len).min(2_500_000 / record) * record];
            random.fill(&mut bytes);
            if few {
                bytes.iter_mut().for_each(|byte| *byte /= 200);
            }
            fs::write(file, &bytes).expect("a file");
            all.extend(bytes);
        }
        let records: Vec<&[u8]> = all.chunks(record).collect();
        let less = |at: &usize| layout.key(records[*at]) < layout.key(records[*at - 1]);
        let equal = |at: &usize| layout.key(records[*at]) == layout.key(records[*at - 1]);
        let checksum: u128 = records.iter().map(|record| u128::from(crc32(record))).sum();
        let found = validate(files, layout).all;
        prop_assert_eq!(found.records, records.len() as u64);
        prop_assert_eq!(found.checksum, format!("{checksum:x}"));
        prop_assert_eq!(found.unordered, (1..records.len()).filter(less).count() as u64);
        prop_assert_eq!(found.first_unordered, (1..records.len()).find(less).map(|at| at as u64));
        prop_assert_eq!(found.duplicate_keys, (1..records.len()).filter(equal).count() as u64);
    }
}
