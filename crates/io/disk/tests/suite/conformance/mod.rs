//! Conformance of disks: one suite, run for each engine on each kind of file system, and again with
//! every other transfer cut short.
//!
//! Each [`Case`] says what its disk cannot do; no test is left out. On a machine that lacks
//! something (io_uring, direct files, a file system in memory), the suite fails, unless
//! `TONNAGE_TEST_WITHOUT` names it (comma between names).

mod case;
use std::cell::Cell;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use crate::common::{Arena, Block};
use case::{Case, On};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tonnage_disk::{
    Completion, Direction, DiskError, DiskFile, Effect, Engine, Faults, Operation, Queue, Request,
    Rule, Segment,
};

/// Every other transfer moves only a part, and some are late.
fn short() -> Option<Faults> {
    let half = |operation| Rule {
        probability: Some(0.5),
        ..Rule::new(operation, Effect::Short)
    };
    let late = Effect::Stall { milliseconds: 1 };
    let late = Rule {
        probability: Some(0.1),
        ..Rule::new(Operation::Read, late)
    };
    Some(Faults {
        seed: 7,
        rules: vec![late, half(Operation::Read), half(Operation::Write)],
    })
}

macro_rules! suite {
    ($($test:ident)*) => {
        suite! { @cases [$($test)*]
            uring_on_disk: (Engine::Uring, On::Disk, None, false)
            uring_in_memory: (Engine::Uring, On::Memory, None, false)
            uring_cut_short: (Engine::Uring, On::Disk, short(), false)
            uring_in_memory_cut_short: (Engine::Uring, On::Memory, short(), false)
            deferred_on_disk: (Engine::Uring, On::Disk, None, true)
            deferred_in_memory: (Engine::Uring, On::Memory, None, true)
            deferred_cut_short: (Engine::Uring, On::Disk, short(), true)
            blocking_on_disk: (Engine::Blocking, On::Disk, None, false)
            blocking_in_memory: (Engine::Blocking, On::Memory, None, false)
            blocking_cut_short: (Engine::Blocking, On::Disk, short(), false)
            threads_on_disk: (Engine::Threads, On::Disk, None, false)
            threads_in_memory: (Engine::Threads, On::Memory, None, false)
            threads_cut_short: (Engine::Threads, On::Disk, short(), false)
            null: (Engine::Null, On::Disk, None, false)
            null_cut_short: (Engine::Null, On::Disk, short(), false)
        }
    };
    (@cases $tests:tt $($name:ident: ($($case:tt)*))*) => {
        $(suite! { @case $name ($($case)*) $tests })*
    };
    (@case $name:ident ($engine:expr, $on:expr, $faults:expr, $deferred:expr)
        [$($test:ident)*]) => {
        mod $name {
            use super::*;
            $(
                #[test]
                fn $test() {
                    if let Some(mut case) = Case::new($engine, $on, $faults) {
                        case.disk.deferred = $deferred;
                        super::$test(&case);
                    }
                }
            )*
        }
    };
}

suite! {
    mode_says_how
    random_segments_round_trip
    the_end_of_a_file_ends_the_read
    nothing_to_do_is_done
    memory_is_registered
    a_registered_arena_need_not_hold_all
    mistakes_are_told_by_the_completion
    an_error_names_path_and_offset_and_gives_the_memory_back
    other_requests_survive_an_error
    dropping_with_requests_outstanding
    dropping_a_queue_never_used
    grow_makes_room
    finish_cuts_and_keeps
    create_empties
    scratch_leaves_no_name
    no_space_at_create_leaves_no_file
    no_space_at_grow
    no_space_while_writing
    a_directory_that_vanished
}

fn segment(file: &Arc<DiskFile>, offset: u64, at: usize, len: usize) -> Segment {
    Segment {
        file: file.clone(),
        offset,
        at,
        len,
    }
}

/// Submits one request and waits for it.
fn run(
    queue: &mut dyn Queue<Block>,
    direction: Direction,
    memory: Block,
    segments: Vec<Segment>,
) -> Completion<Block> {
    queue.submit(Request {
        direction,
        memory,
        segments,
        tag: 5,
    });
    let completion = queue.wait().expect("something is outstanding");
    assert_eq!(completion.tag, 5);
    assert_eq!(queue.outstanding(), 0);
    completion
}

/// Bytes that differ from place to place.
fn pattern(seed: u64, bytes: &mut [u8]) {
    let mut state = seed | 1;
    for byte in bytes {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        *byte = (state >> 56) as u8;
    }
}

fn errno(result: Result<impl Sized, DiskError>) -> i32 {
    let error = result.err().expect("an error");
    error
        .source
        .raw_os_error()
        .unwrap_or_else(|| panic!("no number: {error}"))
}

fn fails(operation: Operation, errno: i32) -> Rule {
    Rule::new(operation, Effect::Error { errno })
}

fn mode_says_how(case: &Case) {
    let mut queue = case.queue();
    let file = case.disk.create(case.path("file"), 4096).unwrap();
    assert_eq!(file.is_direct(), case.direct);
    assert!(file.alignment() >= 4096 && file.alignment().is_power_of_two());
    run(
        &mut *queue,
        Direction::Write,
        Block::new(4096),
        vec![segment(&file, 0, 0, 4096)],
    )
    .result
    .unwrap();
    let mode = queue.mode();
    assert_eq!(
        (mode.engine.as_str(), mode.direct),
        (case.engine, case.direct)
    );
    assert!(!mode.registered);
    assert_eq!(
        mode.why.is_some(),
        case.engine == "threads" || !case.direct,
        "{mode:?}"
    );
}

/// One range of a random request, before it is fitted to the alignment.
#[derive(Clone, Debug)]
struct Range {
    file: usize,
    offset: u64,
    len: usize,
}

#[derive(Clone, Debug)]
struct Step {
    write: bool,
    ranges: Vec<Range>,
    seed: u64,
}

/// What an outstanding request will have done.
struct Expected {
    ranges: Vec<Range>,
    write: bool,
    moved: usize,
    /// What a read has to give, and where in the memory.
    contents: Vec<(usize, Vec<u8>)>,
}

fn steps(files: usize, bytes: u64) -> impl Strategy<Value = Vec<Step>> {
    let range = (0..files, 0..bytes + 10_000, 0..300_000usize)
        .prop_map(|(file, offset, len)| Range { file, offset, len });
    let step = (
        any::<bool>(),
        prop::collection::vec(range, 0..5),
        any::<u64>(),
    )
        .prop_map(|(write, ranges, seed)| Step {
            write,
            ranges,
            seed,
        });
    prop::collection::vec(step, 1..20)
}

/// Against files that are plain vectors. Several requests are outstanding at once,
/// except where the order would matter.
fn random_segments_round_trip(case: &Case) {
    const FILES: usize = 3;
    const BYTES: u64 = 500_003;
    let config = ProptestConfig {
        cases: 12,
        failure_persistence: None,
        ..Default::default()
    };
    let number = Cell::new(0);
    let mut runner = TestRunner::new_with_rng(
        config,
        proptest::test_runner::TestRng::deterministic_rng(
            proptest::test_runner::RngAlgorithm::ChaCha,
        ),
    );
    let outcome = runner.run(&steps(FILES, BYTES), |steps| {
        number.set(number.get() + 1);
        let files: [_; FILES] = std::array::from_fn(|index| {
            case.disk
                .create(case.path(&format!("{}-{index}", number.get())), BYTES)
                .unwrap()
        });
        round_trip(case, &files, steps);
        for file in &files {
            if case.stores {
                std::fs::remove_file(file.path()).unwrap();
            }
        }
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

fn round_trip(case: &Case, files: &[Arc<DiskFile>], steps: Vec<Step>) {
    let mut model = files
        .iter()
        .map(|file| vec![0u8; file.len() as usize])
        .collect::<Vec<_>>();
    let mut queue = case.queue();
    let mut expected = HashMap::<u64, Expected>::new();
    let settle = |completion: Completion<Block>, expected: &mut HashMap<u64, Expected>| {
        let tag = completion.tag;
        let Expected {
            moved, contents, ..
        } = expected.remove(&tag).expect("it was submitted");
        assert_eq!(completion.result.unwrap(), moved);
        for (at, bytes) in contents {
            let read = &completion.memory[at..at + bytes.len()];
            assert!(!case.stores || read == bytes, "other bytes");
        }
    };
    for (tag, step) in (0..).zip(steps) {
        let Step {
            write,
            ranges,
            seed,
        } = step;
        let mut fitted: Vec<Range> = Vec::new();
        for Range {
            file,
            mut offset,
            mut len,
        } in ranges
        {
            if files[file].is_direct() {
                let alignment = files[file].alignment();
                offset -= offset % alignment as u64;
                len -= len % alignment;
            }
            if write {
                // Not past the end, so that the length stays what the model has.
                let last = files[file].len() / 4096 * 4096;
                offset = offset.min(last);
                len = len.min((last - offset) as usize);
            }
            let range = Range { file, offset, len };
            // Two ranges of one request that overlap have no order either.
            if !write || fitted.iter().all(|other| !overlap(other, &range)) {
                fitted.push(range);
            }
        }
        let clashes = |expected: &HashMap<u64, Expected>| {
            expected.values().any(|other| {
                let overlaps = |one| fitted.iter().any(|two| overlap(one, two));
                (write || other.write) && other.ranges.iter().any(overlaps)
            })
        };
        while clashes(&expected) {
            settle(
                queue.wait().expect("what clashes is outstanding"),
                &mut expected,
            );
        }
        // Each range at the next aligned place in the memory.
        let mut places = Vec::new();
        let mut used = 0;
        for range in &fitted {
            places.push(used);
            used += range.len.next_multiple_of(4096);
        }
        let mut memory = Block::new(used);
        pattern(seed, &mut memory);
        let (mut moved, mut contents, mut segments) = (0, Vec::new(), Vec::new());
        for (Range { file, offset, len }, at) in fitted.iter().zip(places) {
            segments.push(segment(&files[*file], *offset, at, *len));
            let end = (*offset + *len as u64).min(files[*file].len()) as usize;
            let in_file = (*offset as usize).min(end)..end;
            moved += in_file.len();
            if write {
                model[*file][in_file].copy_from_slice(&memory[at..at + len]);
            } else {
                contents.push((at, model[*file][in_file].to_vec()));
            }
        }
        let ranges = fitted;
        expected.insert(
            tag,
            Expected {
                ranges,
                write,
                moved,
                contents,
            },
        );
        let direction = match (write, tag % 2) {
            (false, _) => Direction::Read,
            (true, 0) => Direction::Write,
            (true, _) => Direction::WriteDurably,
        };
        queue.submit(Request {
            direction,
            memory,
            segments,
            tag,
        });
        assert!(queue.in_flight() <= case.disk.depth);
        assert_eq!(queue.outstanding(), expected.len());
        if seed % 2 == 0
            && let Some(completion) = queue.ready()
        {
            settle(completion, &mut expected);
        }
    }
    while let Some(completion) = queue.wait() {
        assert!(queue.in_flight() <= case.disk.depth);
        settle(completion, &mut expected);
    }
    assert!(expected.is_empty());
    assert!(queue.ready().is_none());
    for (file, bytes) in files.iter().zip(model) {
        file.finish(bytes.len() as u64).unwrap();
        if case.stores {
            assert!(
                std::fs::read(file.path()).unwrap() == bytes,
                "other bytes in the file"
            );
        }
    }
}

fn overlap(one: &Range, two: &Range) -> bool {
    one.file == two.file
        && one.offset < two.offset + two.len as u64
        && two.offset < one.offset + one.len as u64
}

fn the_end_of_a_file_ends_the_read(case: &Case) {
    for bytes in [0, 1, 4095, 4096, 100_000, 131_072] {
        let mut contents = vec![0; bytes];
        pattern(9, &mut contents);
        std::fs::write(case.path("tail"), &contents).unwrap();
        let file = case.disk.open_read(case.path("tail")).unwrap();
        assert_eq!(file.len(), bytes as u64);
        assert_eq!(file.is_empty(), bytes == 0);
        // The second segment is to be read though the first ends early; the third
        // lies beyond the end.
        let segments = vec![
            segment(&file, 0, 0, 200_704),
            segment(&file, 0, 200_704, 4096),
            segment(&file, 1 << 20, 204_800, 4096),
        ];
        let memory = Block::new(208_896);
        let Completion { memory, result, .. } =
            run(&mut *case.queue(), Direction::Read, memory, segments);
        assert_eq!(result.unwrap(), bytes + bytes.min(4096));
        if case.stores {
            assert!(memory[..bytes] == contents);
            assert!(memory[200_704..][..bytes.min(4096)] == contents[..bytes.min(4096)]);
        }
    }
}

fn nothing_to_do_is_done(case: &Case) {
    let mut queue = case.queue();
    assert!(queue.wait().is_none());
    assert!(queue.ready().is_none());
    let file = case.disk.scratch(case.dir.path(), 0).unwrap();
    for segments in [
        vec![],
        vec![segment(&file, 0, 0, 0), segment(&file, 4096, 0, 0)],
    ] {
        let completion = run(&mut *queue, Direction::Write, Block::new(4096), segments);
        assert_eq!(completion.result.unwrap(), 0);
        assert_eq!(completion.memory.len(), 4096);
    }
}

fn memory_is_registered(case: &Case) {
    let arena = Arena::new(1 << 20);
    let mut queue = case.disk.queue(&[arena.region()]).unwrap();
    assert_eq!(
        queue.mode().registered,
        case.registers,
        "{:?}",
        queue.mode()
    );
    let file = case.disk.scratch(case.dir.path(), 1 << 20).unwrap();
    let mut memory = arena.block(400 << 10);
    pattern(1, &mut memory);
    let segments = vec![segment(&file, 8192, 0, 400 << 10)];
    let written = run(&mut *queue, Direction::Write, memory, segments.clone());
    assert_eq!(written.result.unwrap(), 400 << 10);
    let read = run(
        &mut *queue,
        Direction::Read,
        arena.block(400 << 10),
        segments,
    );
    assert_eq!(read.result.unwrap(), 400 << 10);
    assert!(!case.stores || read.memory[..] == written.memory[..]);
}

fn a_registered_arena_need_not_hold_all(case: &Case) {
    let arena = Arena::new(1 << 20);
    let mut queue = case.disk.queue(&[arena.region()]).unwrap();
    let file = case.disk.scratch(case.dir.path(), 1 << 20).unwrap();
    let mut memory = Block::new(200 << 10);
    pattern(1, &mut memory);
    let segments = vec![segment(&file, 8192, 0, 200 << 10)];
    let written = run(&mut *queue, Direction::Write, memory, segments.clone());
    assert_eq!(written.result.unwrap(), 200 << 10);
    let read = run(
        &mut *queue,
        Direction::Read,
        arena.block(200 << 10),
        segments,
    );
    assert!(!case.stores || read.memory[..] == written.memory[..]);
}

fn mistakes_are_told_by_the_completion(case: &Case) {
    let mut queue = case.queue();
    let file = case.disk.create(case.path("file"), 8192).unwrap();
    let mut refused = |offset, at, len| {
        let segments = vec![segment(&file, offset, at, len)];
        let completion = run(&mut *queue, Direction::Write, Block::new(8192), segments);
        assert_eq!(completion.memory.len(), 8192);
        completion.result.err().map(|error| error.to_string())
    };
    // Outside the memory; an overflow; beyond what a file can have.
    assert!(
        refused(0, 4096, 8192)
            .unwrap()
            .contains("outside the memory of 8192 bytes")
    );
    assert!(
        refused(0, usize::MAX - 4095, 8192)
            .unwrap()
            .contains("outside the memory")
    );
    assert!(
        refused(u64::MAX - 4095, 0, 4096)
            .unwrap()
            .contains("exceed the largest file")
    );
    // Not aligned: in the file, in the memory, in length.
    for (offset, at, len) in [(100, 0, 4096), (0, 8, 4096), (4096, 0, 5)] {
        let message = refused(offset, at, len);
        assert_eq!(message.is_some(), case.direct);
        if let Some(message) = message {
            let path = case.path("file");
            let start = format!("write of {} at offset {offset}: ", path.display());
            assert!(message.starts_with(&start), "{message}");
            assert!(message.contains("multiples of"), "{message}");
        }
    }
}

fn an_error_names_path_and_offset_and_gives_the_memory_back(case: &Case) {
    let rule = Rule {
        at_offset: Some(300_000),
        ..fails(Operation::Read, libc::EIO)
    };
    let disk = case.with(rule);
    let file = disk.create(case.path("broken"), 1 << 20).unwrap();
    let arena = Arena::new(1 << 20);
    let mut queue = disk.queue(&[arena.region()]).unwrap();
    let segments = vec![segment(&file, 0, 0, 1 << 20)];
    let completion = run(&mut *queue, Direction::Read, arena.block(1 << 20), segments);
    assert_eq!(completion.memory.len(), 1 << 20);
    assert_eq!(queue.in_flight(), 0);
    let error = completion.result.unwrap_err();
    assert_eq!(error.operation, Operation::Read);
    assert_eq!(error.path(), Some(case.path("broken").as_path()));
    assert_eq!(error.source.raw_os_error(), Some(libc::EIO));
    let offset = error.offset().unwrap();
    assert!((offset..offset + error.length()).contains(&300_000));
    assert!(error.length() <= 64 << 10);
    let path = case.path("broken");
    let message = format!(
        "read of {} at offset {offset}: Input/output error (os error 5)",
        path.display()
    );
    assert_eq!(error.to_string(), message);
}

fn other_requests_survive_an_error(case: &Case) {
    let rule = Rule {
        at_offset: Some(5),
        ..fails(Operation::Write, libc::EIO)
    };
    let disk = case.with(rule);
    let file = disk.scratch(case.dir.path(), 1 << 20).unwrap();
    let mut queue = disk.queue(&[]).unwrap();
    for tag in 0..4 {
        let segments = vec![segment(&file, tag << 18, 0, 1 << 18)];
        let memory = Block::new(1 << 18);
        queue.submit(Request {
            direction: Direction::Write,
            memory,
            segments,
            tag,
        });
    }
    let mut seen = 0;
    while let Some(completion) = queue.wait() {
        seen += 1;
        assert_eq!(completion.result.is_err(), completion.tag == 0);
    }
    assert_eq!(seen, 4);
}

fn dropping_with_requests_outstanding(case: &Case) {
    let arena = Arena::new(8 << 20);
    let file = case.disk.scratch(case.dir.path(), 8 << 20).unwrap();
    for direction in [Direction::Write, Direction::Read] {
        let mut queue = case.disk.queue(&[arena.region()]).unwrap();
        for tag in 0..4 {
            let segments = vec![segment(&file, tag << 20, 0, 1 << 20)];
            queue.submit(Request {
                direction,
                memory: arena.block(1 << 20),
                segments,
                tag,
            });
        }
        drop(queue);
        // All blocks were dropped, and with them their share of the arena.
        assert_eq!(Arc::strong_count(&arena), 1);
    }
}

fn dropping_a_queue_never_used(case: &Case) {
    drop(case.queue());
}

fn grow_makes_room(case: &Case) {
    let file = case.disk.create(case.path("file"), 4096).unwrap();
    file.grow(1 << 20).unwrap();
    assert_eq!(file.len(), 1 << 20);
    // Never less.
    file.grow(4096).unwrap();
    assert_eq!(file.len(), 1 << 20);
    if case.stores {
        assert_eq!(std::fs::metadata(file.path()).unwrap().len(), 1 << 20);
    }
    let mut memory = Block::new(8192);
    pattern(1, &mut memory);
    let segments = vec![segment(&file, (1 << 20) - 8192, 0, 8192)];
    let written = run(
        &mut *case.queue(),
        Direction::Write,
        memory,
        segments.clone(),
    );
    let read = run(
        &mut *case.queue(),
        Direction::Read,
        Block::new(8192),
        segments,
    );
    assert_eq!(read.result.unwrap(), 8192);
    assert!(!case.stores || read.memory[..] == written.memory[..]);
}

fn finish_cuts_and_keeps(case: &Case) {
    let file = case.disk.create(case.path("file"), 1 << 20).unwrap();
    let mut memory = Block::new(8192);
    pattern(1, &mut memory);
    let segments = vec![segment(&file, 0, 0, 8192)];
    let written = run(&mut *case.queue(), Direction::Write, memory, segments);
    file.finish(5000).unwrap();
    assert_eq!(file.len(), 5000);
    assert_eq!(case.path("file").exists(), case.stores);
    if case.stores {
        assert!(std::fs::read(case.path("file")).unwrap() == written.memory[..5000]);
    }
}

fn create_empties(case: &Case) {
    std::fs::write(case.path("file"), b"what was there").unwrap();
    let file = case.disk.create(case.path("file"), 0).unwrap();
    assert!(file.is_empty());
    assert_eq!(
        std::fs::read(case.path("file")).unwrap().is_empty(),
        case.stores
    );
}

fn scratch_leaves_no_name(case: &Case) {
    let names = || std::fs::read_dir(case.dir.path()).unwrap().count();
    let file = case.disk.scratch(case.dir.path(), 1 << 20).unwrap();
    assert_eq!((file.len(), names()), (1 << 20, 0));
    assert!(file.path().starts_with(case.dir.path()));
    drop(file);
    assert_eq!(names(), 0);
}

fn no_space_at_create_leaves_no_file(case: &Case) {
    let rule = Rule {
        after_bytes: Some(1 << 20),
        ..fails(Operation::Create, libc::ENOSPC)
    };
    let disk = case.with(rule);
    disk.create(case.path("fits"), 1 << 19).unwrap();
    let failed = disk.create(case.path("fits-not"), 1 << 20);
    let message = failed.as_ref().err().unwrap().to_string();
    let path = case.path("fits-not");
    assert!(message.starts_with(&format!("create of {}: No space left", path.display())));
    assert_eq!(errno(failed), libc::ENOSPC);
    assert!(!path.exists());
    assert_eq!(errno(disk.scratch(case.dir.path(), 1 << 20)), libc::ENOSPC);
    if case.stores {
        // For real, too: no disk has that much.
        assert!(case.disk.create(&path, 1 << 60).is_err());
        assert!(!path.exists());
        assert!(case.disk.scratch(case.dir.path(), 1 << 60).is_err());
    }
}

fn no_space_at_grow(case: &Case) {
    let disk = case.with(fails(Operation::Grow, libc::ENOSPC));
    let file = disk.create(case.path("file"), 4096).unwrap();
    assert_eq!(errno(file.grow(8192)), libc::ENOSPC);
    assert_eq!(file.len(), 4096);
}

fn no_space_while_writing(case: &Case) {
    let rule = Rule {
        after_bytes: Some(1 << 20),
        ..fails(Operation::Write, libc::ENOSPC)
    };
    let disk = case.with(rule);
    let file = disk.create(case.path("file"), 8 << 20).unwrap();
    let mut queue = disk.queue(&[]).unwrap();
    for tag in 0..8 {
        let segments = vec![segment(&file, tag << 20, 0, 1 << 20)];
        let memory = Block::new(1 << 20);
        queue.submit(Request {
            direction: Direction::Write,
            memory,
            segments,
            tag,
        });
    }
    let (mut written, mut refused) = (0, 0);
    while let Some(completion) = queue.wait() {
        match completion.result {
            Ok(_) => written += 1,
            failed => {
                refused += 1;
                assert_eq!(errno(failed), libc::ENOSPC);
            }
        }
    }
    assert!(written <= 1 && written + refused == 8);
}

fn a_directory_that_vanished(case: &Case) {
    let gone = case.path("gone");
    if case.stores {
        assert_eq!(
            errno(case.disk.create(gone.join("file"), 4096)),
            libc::ENOENT
        );
        assert_eq!(errno(case.disk.scratch(&gone, 4096)), libc::ENOENT);
    }
    let failed = case.disk.open_read(gone.join("file"));
    assert_eq!(
        failed.as_ref().unwrap_err().path(),
        Some(Path::new(&gone.join("file")))
    );
    assert_eq!(errno(failed), libc::ENOENT);
}
