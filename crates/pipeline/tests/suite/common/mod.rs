//! Small stages for test graphs: what a stage does is a closure, the rest is fields.

#![allow(dead_code, reason = "not every test file needs every stage")]

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use proptest::test_runner::{Config as ProptestConfig, RngSeed};
use serde_json::{Value, json};
use tonnage_pipeline::{
    Arena, Failure, Graph, MemoryNeed, Node, Port, Routing, RunError, RunHandle, RunOptions,
    RunReport, Stage, StageError, StageSpec, WorkerPorts, run,
};

/// What flows in most of the tests.
pub const BYTES: Port = Port("bytes");
/// Something else.
pub const WORDS: Port = Port("words");
/// The smallest buffer there is.
pub const PAGE: usize = 4096;

pub type Act = Arc<dyn Fn(&mut WorkerPorts) -> Result<(), StageError> + Send + Sync>;

/// A stage whose workers all do `act`.
#[derive(Clone)]
pub struct Acting {
    pub takes: Option<Port>,
    pub gives: Option<Port>,
    pub workers: usize,
    pub routing: Routing,
    pub inbox_bytes: usize,
    pub memory: MemoryNeed,
    pub config: Value,
    pub act: Act,
}

impl Acting {
    pub fn new(
        takes: Option<Port>,
        gives: Option<Port>,
        act: impl Fn(&mut WorkerPorts) -> Result<(), StageError> + Send + Sync + 'static,
    ) -> Acting {
        Acting {
            takes,
            gives,
            workers: 1,
            routing: Routing::Any,
            inbox_bytes: PAGE,
            memory: MemoryNeed::default(),
            config: json!({}),
            act: Arc::new(act),
        }
    }

    pub fn workers(self, workers: usize) -> Acting {
        Acting { workers, ..self }
    }

    pub fn inbox(self, inbox_bytes: usize) -> Acting {
        Acting {
            inbox_bytes,
            ..self
        }
    }

    pub fn buffers(self, buffers: usize) -> Acting {
        let memory = MemoryNeed {
            buffers,
            buffer_bytes: PAGE,
            private_bytes: 0,
        };
        Acting { memory, ..self }
    }
}

impl StageSpec for Acting {
    fn kind(&self) -> &'static str {
        "acting"
    }

    fn config(&self) -> Value {
        self.config.clone()
    }

    fn input(&self) -> Option<Port> {
        self.takes
    }

    fn output(&self) -> Option<Port> {
        self.gives
    }

    fn workers(&self) -> usize {
        self.workers
    }

    fn routing(&self) -> Routing {
        self.routing
    }

    fn inbox_bytes(&self) -> usize {
        self.inbox_bytes
    }

    fn memory(&self) -> MemoryNeed {
        self.memory
    }

    fn start(&self, _worker: usize, _flow: &WorkerPorts) -> Result<Box<dyn Stage>, Failure> {
        Ok(Box::new(Worker(Arc::clone(&self.act))))
    }
}

struct Worker(Act);

impl Stage for Worker {
    fn run(&mut self, ports: &mut WorkerPorts) -> Result<(), StageError> {
        (self.0)(ports)
    }
}

/// Gives one buffer for each length, in turn over all workers; lanes count up.
pub fn count(lens: Vec<usize>) -> Acting {
    let next = AtomicUsize::new(0);
    let act = move |ports: &mut WorkerPorts| {
        loop {
            let place = next.fetch_add(1, SeqCst);
            let Some(&len) = lens.get(place) else {
                return Ok(());
            };
            let mut buffer = ports.buffer()?;
            for (at, byte) in buffer.slot_mut()[..len].iter_mut().enumerate() {
                *byte = (place * 31 + at * 7) as u8;
            }
            (buffer.len, buffer.lane, buffer.number) = (len, place, place);
            ports.add_moved(len, 1);
            ports.send(buffer)?;
        }
    };
    Acting::new(None, Some(BYTES), act).buffers(2)
}

/// Gives buffers until its time is up.
pub fn endless() -> Acting {
    let act = |ports: &mut WorkerPorts| {
        while !ports.time_is_up() {
            let mut buffer = ports.buffer()?;
            buffer.len = PAGE;
            ports.add_moved(PAGE, 0);
            ports.send(buffer)?;
        }
        Ok(())
    };
    Acting::new(None, Some(BYTES), act).buffers(2)
}

/// Gives everything twice, in buffers of its own.
pub fn double() -> Acting {
    let act = |ports: &mut WorkerPorts| {
        while let Some(buffer) = ports.receive()? {
            for _ in 0..2 {
                let mut copy = ports.buffer()?;
                copy.append(buffer.payload());
                (copy.lane, copy.number) = (buffer.lane, buffer.number);
                ports.add_moved(copy.len, 1);
                ports.send(copy)?;
            }
        }
        Ok(())
    };
    Acting::new(Some(BYTES), Some(BYTES), act).buffers(2)
}

/// Passes on what comes, each after `pause`.
pub fn slow(pause: Duration) -> Acting {
    let act = move |ports: &mut WorkerPorts| {
        while let Some(buffer) = ports.receive()? {
            thread::sleep(pause);
            ports.add_moved(buffer.len, 1);
            ports.send(buffer)?;
        }
        Ok(())
    };
    Acting::new(Some(BYTES), Some(BYTES), act)
}

/// Passes on `good` buffers, then applies the closure to the next.
pub fn spoilt(
    good: usize,
    end: impl Fn() -> Result<(), StageError> + Send + Sync + 'static,
) -> Acting {
    let seen = AtomicUsize::new(0);
    let act = move |ports: &mut WorkerPorts| {
        while let Some(buffer) = ports.receive()? {
            if seen.fetch_add(1, SeqCst) == good {
                return end();
            }
            ports.send(buffer)?;
        }
        Ok(())
    };
    Acting::new(Some(BYTES), Some(BYTES), act)
}

/// What a sink has seen.
#[derive(Debug, Default)]
pub struct SinkCounts {
    pub buffers: AtomicU64,
    pub bytes: AtomicU64,
    /// Sum of all bytes, the same in any order.
    pub sum: AtomicU64,
    /// Worker and lane of each buffer.
    pub lanes: Mutex<Vec<(usize, usize)>>,
}

/// Takes everything and notes it.
pub fn sink(seen: &Arc<SinkCounts>) -> Acting {
    let seen = Arc::clone(seen);
    let act = move |ports: &mut WorkerPorts| {
        while let Some(buffer) = ports.receive()? {
            seen.buffers.fetch_add(1, SeqCst);
            seen.bytes.fetch_add(buffer.len as u64, SeqCst);
            seen.sum.fetch_add(
                buffer.payload().iter().map(|&byte| u64::from(byte)).sum(),
                SeqCst,
            );
            seen.lanes
                .lock()
                .unwrap()
                .push((ports.worker(), buffer.lane));
            ports.add_moved(buffer.len, 1);
        }
        Ok(())
    };
    Acting::new(Some(BYTES), None, act)
}

/// The same cases in every run; `PROPTEST_RNG_SEED` gives others, `PROPTEST_CASES` more.
pub fn seeded(cases: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let rng_seed = match default.rng_seed {
        RngSeed::Random => RngSeed::Fixed(1),
        fixed => fixed,
    };
    let more = std::env::var_os("PROPTEST_CASES").map(|_| default.cases);
    ProptestConfig {
        cases: more.unwrap_or(cases),
        rng_seed,
        failure_persistence: None,
        ..default
    }
}

pub fn memory(bytes: usize) -> Arc<Arena> {
    Arc::new(Arena::map(bytes).expect("memory"))
}

pub fn options() -> RunOptions {
    RunOptions {
        memory: memory(1 << 20),
        duration: None,
        sample_every: Duration::from_millis(1),
    }
}

pub fn chain<const N: usize>(stages: [(&str, Acting); N]) -> Graph {
    Graph::chain(stages.map(|(name, stage)| Node::new(name, stage)))
}

/// Runs a graph on a thread of its own, so that a hang fails the test instead of stopping it.
pub fn ends(graph: Graph, options: RunOptions, handle: &RunHandle) -> Result<RunReport, RunError> {
    let (done, result) = mpsc::channel();
    let handle = handle.clone();
    thread::spawn(move || done.send(run(&graph, &options, &handle)));
    // Far longer than any run here: a run that takes so long hangs.
    result
        .recv_timeout(Duration::from_secs(30))
        .expect("the run does not end")
}
