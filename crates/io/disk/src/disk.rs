//! The settings of a disk, and the files and queues made from them.

use std::io;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::engine::Backend;
use crate::engine::blocking::Blocking;
use crate::engine::faulty::Faulty;
use crate::engine::null::Null;
use crate::engine::threads::Threads;
use crate::engine::uring::{Uring, with_call_name};
use crate::error::{DiskError, Operation};
use crate::faults::{Faults, Injector, OperationCounts};
use crate::file::{self, DiskFile};
use crate::memory::{Memory, Region};
use crate::queue::Queue;
use crate::scheduler::Scheduler;

/// What moves the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// io_uring, or threads where it is refused.
    #[default]
    Auto,
    /// io_uring, or an error.
    Uring,
    /// Threads with blocking calls.
    Threads,
    /// The calling thread with blocking calls, one after another.
    Blocking,
    /// Nothing: no byte is read or written, no file made.
    Null,
}

/// How to use a disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Disk {
    /// What moves the bytes.
    pub engine: Engine,
    /// Most transfers of one queue in the kernel.
    pub depth: usize,
    /// Largest transfer. (For a direct file, rounded down to its alignment.)
    pub transfer_bytes: usize,
    /// Through the page cache, as most programs do, instead of past it.
    pub page_cache: bool,
    /// Whether a ring handles completions only when it is waited for: least CPU, for small
    /// transfers.
    pub deferred: bool,
    /// Injected faults.
    pub faults: Option<Faults>,
    /// Operations so far, of this disk and its clones.
    #[serde(skip)]
    pub counts: OperationCounts,
}

impl Default for Disk {
    fn default() -> Disk {
        Disk {
            engine: Engine::Auto,
            depth: 16,
            transfer_bytes: 1 << 20,
            page_cache: false,
            deferred: false,
            faults: None,
            counts: OperationCounts::default(),
        }
    }
}

impl Disk {
    /// A queue, for use by one thread. Memory in the regions is registered with the kernel if it
    /// allows that.
    pub fn queue<M: Memory>(&self, regions: &[Region]) -> Result<Box<dyn Queue<M>>, DiskError> {
        for (name, value) in [
            ("depth", self.depth),
            ("transfer_bytes", self.transfer_bytes),
        ] {
            if value == 0 {
                let problem = format!("{name} must be at least 1");
                return Err(DiskError::setup(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    problem,
                )));
            }
        }
        let (mut backend, why) = self.backend(regions).map_err(DiskError::setup)?;
        if let Some(injector) = self.injector() {
            backend = Box::new(Faulty::new(backend, injector));
        }
        Ok(Box::new(Scheduler::new(
            backend,
            self.depth,
            self.transfer_bytes,
            why,
        )))
    }

    /// The engine, and why it is not the preferred one.
    fn backend(&self, regions: &[Region]) -> io::Result<(Box<dyn Backend>, Option<String>)> {
        let threads = |why| Ok((Box::new(Threads::new(self.depth)?) as Box<dyn Backend>, why));
        match self.engine {
            Engine::Null => Ok((Box::new(Null::default()), None)),
            Engine::Blocking => Ok((Box::new(Blocking::default()), None)),
            Engine::Threads => threads(Some("threads were requested".to_owned())),
            Engine::Uring => self.uring(regions),
            Engine::Auto => self
                .uring(regions)
                .or_else(|refused| threads(Some(refused.to_string()))),
        }
    }

    fn uring(&self, regions: &[Region]) -> io::Result<(Box<dyn Backend>, Option<String>)> {
        if let Some(injector) = self.injector() {
            let refused = injector.control(Operation::Setup, Path::new(""), 0);
            refused.map_err(|error| with_call_name("io_uring_setup", &error.source))?;
        }
        let (uring, why) = Uring::new(self.depth, self.deferred, regions)?;
        Ok((Box::new(uring), why))
    }

    /// Opens a file (or block device) for reading.
    pub fn open_read(&self, path: impl AsRef<Path>) -> Result<Arc<DiskFile>, DiskError> {
        self.open(path.as_ref(), libc::O_RDONLY)
    }

    fn open(&self, path: &Path, access: i32) -> Result<Arc<DiskFile>, DiskError> {
        if self.engine != Engine::Null {
            return DiskFile::open_with(path, access, self.page_cache, self.injector());
        }
        self.null(Operation::Open, path, 0)?;
        // The real file's length is read, so that the work is the same.
        let about = std::fs::metadata(path)
            .map_err(|source| DiskError::file(Operation::Open, path, 0, source))?;
        Ok(DiskFile::null(path, about.len(), self.injector()))
    }

    /// Opens a file (or block device) for reading and for overwriting.
    pub fn open_update(&self, path: impl AsRef<Path>) -> Result<Arc<DiskFile>, DiskError> {
        self.open(path.as_ref(), libc::O_RDWR)
    }

    /// Creates a file with room for `bytes`, or truncates an existing one. It can be read, too. If
    /// there is no room, no file is left.
    pub fn create(&self, path: impl AsRef<Path>, bytes: u64) -> Result<Arc<DiskFile>, DiskError> {
        let path = path.as_ref();
        if self.engine != Engine::Null {
            return DiskFile::create_with(path, bytes, self.page_cache, self.injector());
        }
        self.null(Operation::Create, path, bytes)?;
        Ok(DiskFile::null(path, bytes, self.injector()))
    }

    /// Creates an unlinked file in a directory, with room for `bytes`, for reading and writing. It
    /// vanishes when it is dropped or the process is killed.
    pub fn scratch(&self, dir: impl AsRef<Path>, bytes: u64) -> Result<Arc<DiskFile>, DiskError> {
        let dir = dir.as_ref();
        if self.engine != Engine::Null {
            return DiskFile::scratch_with(dir, bytes, self.injector());
        }
        let path = file::scratch_path(dir);
        self.null(Operation::Create, &path, bytes)?;
        Ok(DiskFile::null(&path, bytes, self.injector()))
    }

    /// Faults apply to the null disk, too.
    fn null(&self, operation: Operation, path: &Path, bytes: u64) -> Result<(), DiskError> {
        self.injector()
            .map_or(Ok(()), |injector| injector.control(operation, path, bytes))
    }

    fn injector(&self) -> Option<Injector> {
        self.faults
            .as_ref()
            .map(|faults| Injector::new(faults, &self.counts))
    }
}
