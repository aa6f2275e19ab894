//! Faults follow their rules, the same for the same seed; a disk that is refused its preferred
//! engine says so; and flags of the kernel (page cache, durability) take effect.

#![allow(unsafe_code, reason = "asks the kernel what is in the page cache")]

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;

use crate::common::Block;
use tonnage_disk::{
    Direction, Disk, DiskFile, Effect, Engine, Faults, Operation, Queue, Region, Request, Rule,
    Segment,
};

const BYTES: usize = 1 << 20;

fn dir() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory for the test")
}

fn disk(seed: u64, rules: Vec<Rule>) -> Disk {
    let faults = Some(Faults { seed, rules });
    Disk {
        engine: Engine::Threads,
        depth: 4,
        transfer_bytes: 16 << 10,
        faults,
        ..Disk::default()
    }
}

fn run(
    disk: &Disk,
    file: &Arc<DiskFile>,
    direction: Direction,
    memory: Block,
) -> (Block, Option<u64>) {
    let mut queue = disk.queue(&[]).unwrap();
    let segments = vec![Segment {
        file: file.clone(),
        offset: 0,
        at: 0,
        len: BYTES,
    }];
    queue.submit(Request {
        direction,
        memory,
        segments,
        tag: 0,
    });
    let completion = queue.wait().unwrap();
    (
        completion.memory,
        completion.result.err().map(|error| error.offset().unwrap()),
    )
}

/// Where zeros read from a disk are not zero.
fn corrupted(seed: u64) -> Vec<(usize, u8)> {
    let rule = Rule {
        probability: Some(0.3),
        ..Rule::new(Operation::Read, Effect::Corrupt)
    };
    let disk = disk(seed, vec![rule]);
    let file = disk
        .create(dir().path().join("file"), BYTES as u64)
        .unwrap();
    let (memory, error) = run(&disk, &file, Direction::Read, Block::new(BYTES));
    assert_eq!(error, None);
    let wrong = |(_, byte): &(usize, u8)| *byte != 0;
    memory.iter().copied().enumerate().filter(wrong).collect()
}

#[test]
fn the_same_seed_corrupts_the_same_bits() {
    let first = corrupted(1);
    // 64 transfers, of which about 19 are hit, each in one bit.
    assert!((8..32).contains(&first.len()), "{}", first.len());
    assert!(first.iter().all(|(_, byte)| byte.is_power_of_two()));
    assert_eq!(first, corrupted(1));
    assert_ne!(first, corrupted(2));
}

/// Every transfer is finished through the page cache, and does not stay there.
#[test]
fn the_page_cache_is_left_clean() {
    let short = |operation| Rule::new(operation, Effect::Short);
    for engine in [Engine::Threads, Engine::Auto] {
        let rules = vec![short(Operation::Read), short(Operation::Write)];
        let disk = Disk {
            engine,
            ..disk(1, rules)
        };
        let dir = dir();
        let file = disk.create(dir.path().join("file"), BYTES as u64).unwrap();
        for direction in [Direction::Write, Direction::Read] {
            assert_eq!(run(&disk, &file, direction, Block::new(BYTES)).1, None);
            // A few may be, if the kernel was just busy with them: it is only advised.
            let left = cached_pages(file.path());
            assert!(
                left <= BYTES / 4096 / 16,
                "{left} pages: {engine:?} {direction:?}"
            );
        }
    }
}

/// What a queue had open is closed when it is dropped, not some time after: its file system can be
/// unmounted. A lease on writing is given only on what nobody else has open.
#[test]
fn a_dropped_queue_leaves_its_file() {
    for deferred in [false, true] {
        let disk = Disk {
            deferred,
            ..Disk::default()
        };
        let dir = dir();
        let path = dir.path().join("file");
        let file = disk.create(&path, BYTES as u64).unwrap();
        assert_eq!(
            run(&disk, &file, Direction::Read, Block::new(BYTES)).1,
            None
        );
        drop(file);
        let alone = File::open(&path).unwrap();
        // SAFETY: takes numbers only, one of them a descriptor that is open.
        let answer = unsafe { libc::fcntl(alone.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK) };
        assert_eq!(answer, 0, "{deferred}: {}", std::io::Error::last_os_error());
    }
}

/// The kernel writes what is to be durable, and leaves the rest for later.
#[test]
fn what_was_written_durably_is_not_dirty() {
    for (engine, deferred) in [
        (Engine::Blocking, false),
        (Engine::Threads, false),
        (Engine::Auto, false),
        (Engine::Auto, true),
    ] {
        let disk = Disk {
            engine,
            deferred,
            page_cache: true,
            ..Disk::default()
        };
        let dir = dir();
        let file = disk.create(dir.path().join("file"), BYTES as u64).unwrap();
        let dirty = [Direction::Write, Direction::WriteDurably].map(|direction| {
            assert_eq!(run(&disk, &file, direction, Block::new(BYTES)).1, None);
            dirty_pages(file.path())
        });
        let [Some(later), Some(durable)] = dirty else {
            eprintln!("left out: this kernel does not tell which pages are dirty (cachestat)");
            return;
        };
        assert!(later > 0 && durable == 0, "{engine:?}: {later}, {durable}");
    }
}

/// None if the kernel is older than 6.5.
fn dirty_pages(path: &Path) -> Option<u64> {
    const CACHESTAT: libc::c_long = 451;
    let file = File::open(path).unwrap();
    let range = [0_u64; 2];
    let mut about = [0_u64; 5];
    // SAFETY: an open descriptor, a range of two numbers that is read, and five that are written.
    let answer = unsafe {
        libc::syscall(
            CACHESTAT,
            file.as_raw_fd(),
            range.as_ptr(),
            about.as_mut_ptr(),
            0,
        )
    };
    (answer == 0).then_some(about[1])
}

fn cached_pages(path: &Path) -> usize {
    let file = File::open(path).unwrap();
    let mut pages = [0u8; BYTES / 4096];
    // SAFETY: a new mapping of `BYTES` bytes that nobody accesses; the kernel writes a
    // byte for each page of it (or of fewer, larger ones) to `pages`.
    unsafe {
        let flags = libc::MAP_SHARED;
        let start = libc::mmap(
            std::ptr::null_mut(),
            BYTES,
            libc::PROT_READ,
            flags,
            file.as_raw_fd(),
            0,
        );
        assert_ne!(start, libc::MAP_FAILED);
        assert_eq!(libc::mincore(start, BYTES, pages.as_mut_ptr()), 0);
        libc::munmap(start, BYTES);
    }
    pages.iter().filter(|page| *page & 1 == 1).count()
}

#[test]
fn rules_choose_by_path() {
    let rule = Rule {
        path_contains: Some("bad".to_owned()),
        ..Rule::new(Operation::Write, Effect::Error { errno: libc::EIO })
    };
    let disk = disk(1, vec![rule]);
    let dir = dir();
    for (name, error) in [("bad", true), ("good", false)] {
        let file = disk.create(dir.path().join(name), BYTES as u64).unwrap();
        let failed = run(&disk, &file, Direction::Write, Block::new(BYTES))
            .1
            .is_some();
        assert_eq!(failed, error);
    }
}

#[test]
fn what_the_kernel_cancels_or_interrupts_is_done_again() {
    for errno in [libc::EINTR, libc::EAGAIN, libc::ECANCELED] {
        let again = Effect::Error { errno };
        let rule = Rule {
            probability: Some(0.7),
            ..Rule::new(Operation::Read, again)
        };
        let disk = disk(1, vec![rule]);
        let file = disk
            .create(dir().path().join("file"), BYTES as u64)
            .unwrap();
        assert_eq!(
            run(&disk, &file, Direction::Read, Block::new(BYTES)).1,
            None
        );
    }
}

#[test]
fn clones_of_a_disk_count_together() {
    let full = Effect::Error {
        errno: libc::ENOSPC,
    };
    let after = BYTES as u64;
    let rule = Rule {
        after_bytes: Some(after),
        ..Rule::new(Operation::Write, full)
    };
    let disk = disk(1, vec![rule]);
    let file = disk
        .create(dir().path().join("file"), BYTES as u64)
        .unwrap();
    assert_eq!(
        run(&disk, &file, Direction::Write, Block::new(BYTES)).1,
        None
    );
    assert_eq!(
        run(&disk.clone(), &file, Direction::Write, Block::new(BYTES)).1,
        Some(0)
    );
}

#[test]
fn opening_and_syncing_fail_too() {
    let broken = |operation| Rule::new(operation, Effect::Error { errno: libc::EIO });
    let disk = disk(1, vec![broken(Operation::Open), broken(Operation::Sync)]);
    let dir = dir();
    let path = dir.path().join("file");
    let error = disk
        .create(&path, 0)
        .unwrap()
        .finish(0)
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        format!(
            "sync of {}: Input/output error (os error 5)",
            path.display()
        )
    );
    let error = disk.open_read(&path).unwrap_err().to_string();
    assert_eq!(
        error,
        format!(
            "open of {}: Input/output error (os error 5)",
            path.display()
        )
    );
}

#[test]
fn refused_an_io_uring_it_takes_threads_and_says_so() {
    let refused = Rule::new(Operation::Setup, Effect::Error { errno: libc::EPERM });
    let mut disk = Disk {
        engine: Engine::Auto,
        ..disk(1, vec![refused])
    };
    let queue: Box<dyn Queue<Block>> = disk.queue(&[]).unwrap();
    assert_eq!(queue.mode().engine, "threads");
    assert_eq!(
        queue.mode().why.unwrap(),
        "io_uring_setup: Operation not permitted (os error 1)"
    );
    // A disk that requires io_uring gets an error.
    disk.engine = Engine::Uring;
    let error = disk.queue::<Block>(&[]).err().unwrap();
    assert_eq!(
        error.to_string(),
        "setup: io_uring_setup: Operation not permitted (os error 1)"
    );
    assert_eq!(error.path(), None);
}

#[test]
fn refused_registration_it_goes_on_and_says_so() {
    let disk = Disk::default();
    // Nothing is mapped there.
    let queue: Box<dyn Queue<Block>> = disk
        .queue(&[Region {
            start: 4096,
            len: 4096,
        }])
        .unwrap();
    let mode = queue.mode();
    assert!(!mode.registered);
    // On a machine without io_uring, that is the reason.
    assert!(mode.why.unwrap().starts_with("io_uring_"));
}

#[test]
fn a_queue_of_nothing_is_refused() {
    for disk in [
        Disk {
            depth: 0,
            ..Disk::default()
        },
        Disk {
            transfer_bytes: 0,
            ..Disk::default()
        },
    ] {
        let error = disk.queue::<Block>(&[]).err().unwrap().to_string();
        assert!(error.ends_with("must be at least 1"), "{error}");
    }
}

#[test]
fn settings_go_through_text() {
    let mut all = disk(3, vec![Rule::new(Operation::Grow, Effect::Short)]);
    all.faults.as_mut().unwrap().rules.push(Rule {
        path_contains: Some("x".to_owned()),
        at_offset: Some(1),
        after_bytes: Some(2),
        probability: Some(0.5),
        ..Rule::new(Operation::Read, Effect::Stall { milliseconds: 5 })
    });
    let text = serde_json::to_string(&all).unwrap();
    assert_eq!(serde_json::from_str::<Disk>(&text).unwrap(), all);
    assert_eq!(serde_json::from_str::<Disk>("{}").unwrap(), Disk::default());
    let written = r#"{"engine": "uring", "faults": {"rules": [
        {"operation": "write", "after_bytes": 100, "effect": {"error": {"errno": 28}}},
        {"operation": "read", "effect": "corrupt"}]}}"#;
    let disk = serde_json::from_str::<Disk>(written).unwrap();
    assert_eq!(disk.engine, Engine::Uring);
    assert_eq!(
        disk.faults.unwrap().rules[0].effect,
        Effect::Error { errno: 28 }
    );
    // A condition misspelt would make a rule fire always.
    assert!(serde_json::from_str::<Disk>(&written.replace("after_bytes", "after")).is_err());
}
