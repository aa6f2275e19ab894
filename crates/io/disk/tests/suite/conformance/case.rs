//! A disk under test, and what it can do.

use tonnage_disk::{Disk, Engine, Faults, Queue, Rule};

use crate::common::Block;

/// A disk to test, and what to expect of it.
pub struct Case {
    pub disk: Disk,
    pub dir: tempfile::TempDir,
    pub engine: &'static str,
    /// Reads give what was written, and files can be seen in the directory.
    pub stores: bool,
    pub direct: bool,
    pub registers: bool,
}

impl Case {
    /// None if the machine lacks it and that was declared.
    pub fn new(engine: Engine, on: On, faults: Option<Faults>) -> Option<Case> {
        let lacking = std::env::var("TONNAGE_TEST_WITHOUT").unwrap_or_default();
        let needs = match on {
            On::Disk => "direct",
            On::Memory => "tmpfs",
        };
        let uring = engine == Engine::Uring;
        if lacking
            .split(',')
            .any(|name| name == needs || (uring && name == "io_uring"))
        {
            eprintln!("declared as lacking: {lacking}");
            return None;
        }
        let dir = match on {
            On::Disk => tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")),
            On::Memory => tempfile::tempdir_in("/dev/shm"),
        };
        Some(Case {
            disk: Disk {
                engine,
                depth: 3,
                transfer_bytes: 64 << 10,
                faults,
                ..Disk::default()
            },
            dir: dir.expect("a directory for the test"),
            engine: match engine {
                Engine::Uring => "io_uring",
                Engine::Threads => "threads",
                Engine::Blocking => "blocking",
                Engine::Null => "null",
                Engine::Auto => unreachable!("not a case of its own"),
            },
            stores: engine != Engine::Null,
            direct: engine == Engine::Null || on == On::Disk,
            registers: uring,
        })
    }

    pub fn queue(&self) -> Box<dyn Queue<Block>> {
        self.disk.queue(&[]).expect("a queue")
    }

    pub fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    /// The error of something that has to fail with one more fault.
    pub fn with(&self, rule: Rule) -> Disk {
        let mut faults = self.disk.faults.clone().unwrap_or_default();
        faults.rules.insert(0, rule);
        Disk {
            faults: Some(faults),
            counts: Default::default(),
            ..self.disk.clone()
        }
    }
}

#[derive(PartialEq)]
pub enum On {
    Disk,
    Memory,
}
