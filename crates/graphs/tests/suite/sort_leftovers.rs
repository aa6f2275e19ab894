//! A sort removes what killed sorts left behind, and leaves alone what belongs to a running one.
//!
//! The leftovers are made by hand, as a kill at each step of publishing leaves them.
#![allow(
    unsafe_code,
    reason = "takes the lock that a running sort would have: one call"
)]

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use crate::common::{KeyDistribution, SortDirs, disk, names, records, run, sorts};
use tonnage_disk::{Effect, Operation, Rule};
use tonnage_graphs::AtomicOutput;
use tonnage_graphs::error::JobError;
use tonnage_graphs::objects::object_input::ObjectStorage;
use tonnage_graphs::sort::sort_job::Config;
use tonnage_graphs::sort::valsort;
use tonnage_pipeline::RunHandle;
use tonnage_records::Layout;

const LAYOUT: Layout = Layout::SORT_BENCHMARK;
const MEMORY: usize = 8 << 20;

fn place() -> SortDirs {
    let bytes = records(1, 20_000, &LAYOUT, KeyDistribution::Uniform);
    SortDirs::new(&[&bytes], 1, 1)
}

/// The hidden directory of a sort that was killed, with two parts in it.
fn hidden(place: &SortDirs) -> PathBuf {
    let hidden = place.output[0].join(".tonnage-unfinished-999999");
    fs::create_dir_all(&hidden).expect("a directory");
    for part in ["part-00000", "part-00001"] {
        fs::write(hidden.join(part), "unfinished").expect("a part");
    }
    hidden
}

fn list(hidden: &Path) {
    fs::write(hidden.join("parts.json"), r#"["part-00000", "part-00001"]"#).expect("a list");
}

fn publish(hidden: &Path, name: &str) {
    let to = hidden.parent().expect("the output").join(name);
    fs::rename(hidden.join(name), to).expect("published");
}

/// Whether nobody else has locked `directory`; it is, from then on.
fn locks(directory: &File) -> bool {
    // SAFETY: the descriptor is open; the call touches no memory.
    unsafe { libc::flock(directory.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

fn refusal(config: &Config) -> String {
    match run(config, &RunHandle::default()) {
        Err(JobError::Refused { why, .. }) => why,
        other => panic!("{:?}", other.map(|outcome| outcome.records)),
    }
}

#[test]
fn a_sort_killed_before_it_published_is_cleaned_up() {
    let place = place();
    hidden(&place);
    sorts(&place, &place.config(LAYOUT, MEMORY)).expect("sorted");
}

/// The list was begun but is not whole, so nothing had been published.
#[test]
fn a_sort_killed_while_it_listed_its_parts_is_cleaned_up() {
    for half in ["", r#"["part-000"#] {
        let place = place();
        fs::write(hidden(&place).join("parts.json"), half).expect("half a list");
        sorts(&place, &place.config(LAYOUT, MEMORY)).expect("sorted");
    }
}

#[test]
fn a_sort_killed_while_it_published_is_cleaned_up() {
    for published in [&[][..], &["part-00000"], &["part-00000", "part-00001"]] {
        let place = place();
        let hidden = hidden(&place);
        list(&hidden);
        published.iter().for_each(|name| publish(&hidden, name));
        sorts(&place, &place.config(LAYOUT, MEMORY)).expect("sorted");
    }
}

/// Parts that no list names are another job's output: they stay, and the sort is refused.
#[test]
fn only_listed_parts_are_taken_back() {
    let place = place();
    let hidden = hidden(&place);
    fs::write(place.output[0].join("part-00000"), "other").expect("a part");
    assert!(refusal(&place.config(LAYOUT, MEMORY)).contains("part-00000"));
    assert!(!hidden.exists());
    assert_eq!(
        fs::read(place.output[0].join("part-00000")).expect("it stays"),
        b"other"
    );
}

/// With its manifest the output is whole, whatever else was left to be done.
/// Parts in folders are withdrawn with the folders that were made for them, and no others.
#[test]
fn a_sort_into_folders_killed_while_it_published_is_cleaned_up() {
    let place = place();
    let (output, hidden) = (&place.output[0], hidden(&place));
    let names = r#"["a=1/b=2/part-00000", "a=1/b=3/part-00001", "a=2/b=1/part-00002"]"#;
    fs::write(hidden.join("parts.json"), names).expect("a list");
    for folder in ["a=1/b=2", "a=1/b=3", "other"] {
        fs::create_dir_all(output.join(folder)).expect("a folder");
    }
    fs::rename(hidden.join("part-00000"), output.join("a=1/b=2/part-00000")).expect("published");
    sorts(&place, &place.config(LAYOUT, MEMORY)).expect("sorted");
    assert!(!output.join("a=1").exists() && output.join("other").exists());
}

#[test]
fn a_sort_killed_after_its_manifest_keeps_its_output() {
    let place = place();
    let hidden = hidden(&place);
    list(&hidden);
    ["part-00000", "part-00001"]
        .iter()
        .for_each(|name| publish(&hidden, name));
    fs::write(place.output[0].join("_tonnage.json"), "{}").expect("a manifest");
    assert!(refusal(&place.config(LAYOUT, MEMORY)).contains("earlier output"));
    assert_eq!(
        names(&place.output[0]),
        ["_tonnage.json", "part-00000", "part-00001"]
    );
}

#[test]
fn what_a_killed_sort_left_in_scratch_goes_too() {
    let mut place = place();
    // Its output went to what is scratch now.
    std::mem::swap(&mut place.output, &mut place.scratch);
    hidden(&place);
    std::mem::swap(&mut place.output, &mut place.scratch);
    sorts(&place, &place.config(LAYOUT, MEMORY)).expect("sorted");
}

#[test]
fn what_is_locked_is_left_alone() {
    let place = place();
    let hidden = hidden(&place);
    list(&hidden);
    publish(&hidden, "part-00000");
    let lock = File::open(&hidden).expect("the directory");
    assert!(locks(&lock));
    let before = (names(&place.output[0]), names(&hidden));
    assert!(refusal(&place.config(LAYOUT, MEMORY)).contains("another job is writing to"));
    assert_eq!((names(&place.output[0]), names(&hidden)), before);
    // The lock is released, so it may be removed now.
    drop(lock);
    sorts(&place, &place.config(LAYOUT, MEMORY)).expect("sorted");
}

/// Two sorts at once: the second is refused and the first does not notice.
#[test]
fn a_running_sort_keeps_others_out() {
    let place = place();
    let stall = Rule::new(Operation::Write, Effect::Stall { milliseconds: 60 });
    let config = Config {
        disk: disk(vec![stall]),
        ..place.config(LAYOUT, MEMORY)
    };
    let (first, input) = (config.clone(), place.input());
    let sorting = thread::spawn(move || run(&first, &RunHandle::default()));
    let own = format!(".tonnage-unfinished-{}", std::process::id());
    let hidden = place.output[0].join(own);
    while !sorting.is_finished() && !File::open(&hidden).is_ok_and(|hidden| !locks(&hidden)) {
        thread::sleep(Duration::from_millis(1));
    }
    assert!(refusal(&config).contains("another job is writing to"));
    // Nor is half an output validated.
    let validate = valsort::Config {
        inputs: place.output.clone(),
        layout: LAYOUT,
        disk: disk(Vec::new()),
        storage: ObjectStorage::default(),
    };
    match valsort::run(&validate, &RunHandle::default()) {
        Err(JobError::Refused { why, .. }) => assert!(why.contains("unfinished output"), "{why}"),
        other => panic!("{:?}", other.map(|outcome| outcome.bytes)),
    }
    sorting.join().expect("it ends").expect("sorted");
    assert_eq!(
        crate::common::is_sort_of(&place.result(), &input, &LAYOUT),
        Ok(())
    );
}

/// However close to each other jobs begin, one gets the directory and the others are refused.
#[test]
fn of_jobs_that_begin_at_once_one_writes() {
    const JOBS: usize = 8;
    let place = place();
    fs::create_dir_all(&place.output[0]).expect("a directory");
    for _ in 0..100 {
        let begin = Barrier::new(JOBS);
        let end = Barrier::new(JOBS);
        let wrote: usize = thread::scope(|scope| {
            let job = || {
                begin.wait();
                let job = AtomicOutput::prepare(&place.output, "");
                // Nobody ends before all have tried.
                end.wait();
                match job {
                    Ok(job) => usize::from(job.part(0).parent().is_some_and(Path::is_dir)),
                    Err(JobError::Refused { why, .. }) => {
                        assert!(why.contains("another job "), "{why}");
                        0
                    }
                    Err(other) => panic!("{other:?}"),
                }
            };
            let jobs: Vec<_> = (0..JOBS).map(|_| scope.spawn(job)).collect();
            jobs.into_iter()
                .map(|job| job.join().expect("it ends"))
                .sum()
        });
        assert_eq!(wrote, 1);
        assert!(names(&place.output[0]).is_empty());
    }
}
