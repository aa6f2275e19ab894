//! Runs a graph: a thread per worker, a sampler for the timeline, one end for all.
//!
//! The first failure stops every stage and is the one reported. Stopping sets one flag and wakes
//! every queue and pool; workers then return at their next wait. A stage awaits its I/O in flight,
//! so nothing touches the memory once the run has ended.

use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::arena::Arena;
use crate::buffer::Pool;
use crate::edge::Edge;
use crate::error::{Failure, RunError, StageError};
use crate::graph::{Drawing, Graph};
use crate::probe::{Counters, Probe, Sample};
use crate::run_handle::{RunHandle, Waiter};
use crate::stage::StageSpec;
use crate::worker_ports::WorkerPorts;

/// Most samples kept; at the limit every second one is dropped and the interval doubles.
const SAMPLES_AT_MOST: usize = 4096;

/// How a run is bounded and watched.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Memory for all stages: their buffers lie in it, and their private memory counts
    /// against its size. Consecutive runs may share it; the kernel then finds and clears its pages
    /// only once.
    pub memory: Arc<Arena>,
    /// Sources end after this long at the latest; `None` runs to the end of the input.
    pub duration: Option<Duration>,
    /// How often the timeline is sampled at first.
    pub sample_every: Duration,
}

/// What one stage did in a run.
#[derive(Clone, Debug, Serialize)]
pub struct StageReport {
    /// The stage.
    #[serde(flatten)]
    pub stage: Drawing,
    /// What it did.
    #[serde(flatten)]
    pub counters: Counters,
}

/// What a run did.
#[derive(Clone, Debug, Serialize)]
pub struct RunReport {
    /// Wall-clock seconds from the first thread's start to the last one's end.
    pub seconds: f64,
    /// Each stage, in the graph's order.
    pub stages: Vec<StageReport>,
    /// The stage whose workers were busy for the largest share of their time.
    pub bottleneck: String,
    /// Memory that the graph used.
    pub memory_bytes: usize,
    /// All stages over time.
    pub timeline: Vec<Sample>,
}

/// Runs `graph` to its end on threads of its own.
///
/// # Errors
/// A graph that does not check, the first failure of a stage, or the cancellation.
pub fn run(graph: &Graph, options: &RunOptions, handle: &RunHandle) -> Result<RunReport, RunError> {
    graph.check(options.memory.bytes())?;
    let wiring = Wiring::new(graph, handle, options)?;
    handle.begin(wiring.waiters());
    let epoch = wiring.epoch;
    let failure: Mutex<Option<(String, Failure)>> = Mutex::new(None);
    let timeline = thread::scope(|scope| {
        let (ended, end) = mpsc::channel::<()>();
        let sampler = scope.spawn(|| sample(&wiring, handle, options.sample_every, end));
        let mut workers = Vec::new();
        for (node, worker_ports) in graph.nodes().iter().zip(wiring.worker_ports.iter()) {
            for ports in worker_ports
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .drain(..)
            {
                let failure = &failure;
                let name = format!("{} {}", node.name, ports.worker);
                let fail = move |why: Failure| {
                    let mut first = failure.lock().unwrap_or_else(PoisonError::into_inner);
                    first.get_or_insert((node.name.clone(), why));
                    drop(first);
                    handle.stop();
                };
                let worker = thread::Builder::new()
                    .name(name)
                    .spawn_scoped(scope, move || work(node.spec.as_ref(), ports, fail));
                match worker {
                    Ok(handle) => workers.push(handle),
                    Err(source) => {
                        handle.stop();
                        return Err(RunError::System {
                            what: "starting a thread",
                            source,
                        });
                    }
                }
            }
        }
        for worker in workers {
            worker
                .join()
                .unwrap_or_else(|panic| panic::resume_unwind(panic));
        }
        drop(ended);
        Ok(sampler.join().unwrap_or_default())
    })?;
    let seconds = epoch.elapsed().as_secs_f64();
    handle.begin(Vec::new());
    if let Some((stage, failure)) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(RunError::Failed { stage, failure });
    }
    if handle.is_cancelled() {
        return Err(RunError::Cancelled);
    }
    let counters = wiring.counters();
    let stages: Vec<StageReport> = graph
        .drawing()
        .into_iter()
        .zip(counters)
        .map(|(stage, counters)| StageReport { stage, counters })
        .collect();
    let share = |stage: &StageReport| stage.counters.busy_seconds / stage.stage.workers as f64;
    let bottleneck = stages.iter().max_by(|a, b| share(a).total_cmp(&share(b)));
    let bottleneck = bottleneck.map_or_else(String::new, |stage| stage.stage.name.clone());
    Ok(RunReport {
        seconds,
        stages,
        bottleneck,
        memory_bytes: graph.memory_bytes(),
        timeline,
    })
}

fn work(spec: &dyn StageSpec, mut ports: WorkerPorts, fail: impl FnOnce(Failure)) {
    ports.probe.begin();
    let probe = Arc::clone(&ports.probe);
    // However the worker ends, its probe stops and the next stage learns of the end.
    struct WorkerGuard(Option<Arc<Edge>>, Arc<Probe>);
    impl Drop for WorkerGuard {
        fn drop(&mut self) {
            self.1.depth(0);
            self.1.end();
            if let Some(edge) = &self.0 {
                edge.close_one();
            }
        }
    }
    let _ending = WorkerGuard(ports.output.clone(), probe);
    let work = || spec.start(ports.worker, &ports)?.run(&mut ports);
    // Reported before the next stage sees the end of its input, which may make that stage fail,
    // too.
    match panic::catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(()) | Err(StageError::Stopped)) => {}
        Ok(Err(StageError::Failed(why))) => fail(why),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            let text = text.unwrap_or("see above");
            fail(Failure::new(format!("a worker panicked: {text}")));
        }
    }
}

fn sample(
    wiring: &Wiring,
    handle: &RunHandle,
    mut every: Duration,
    end: mpsc::Receiver<()>,
) -> Vec<Sample> {
    let mut samples = Vec::new();
    let before = handle.done_bytes();
    let mut next = every;
    loop {
        let wait = next.saturating_sub(wiring.epoch.elapsed());
        let running = end.recv_timeout(wait) == Err(mpsc::RecvTimeoutError::Timeout);
        let stages = wiring.counters();
        let done = stages.last().map_or(0, |last| last.bytes);
        handle.set_done_bytes(before + done);
        samples.push(Sample {
            seconds: wiring.epoch.elapsed().as_secs_f64(),
            stages,
        });
        if !running {
            return samples;
        }
        if samples.len() >= SAMPLES_AT_MOST {
            let mut place = 0;
            samples.retain(|_| {
                place += 1;
                place % 2 == 0
            });
            every *= 2;
        }
        next += every;
    }
}

/// The graph's edges, pools and probes, made once before the threads start.
struct Wiring {
    epoch: Instant,
    worker_ports: Vec<Mutex<Vec<WorkerPorts>>>,
    edges: Vec<Arc<Edge>>,
    pools: Vec<Option<Arc<Pool>>>,
    probes: Vec<Vec<Arc<Probe>>>,
}

impl Wiring {
    fn new(graph: &Graph, handle: &RunHandle, options: &RunOptions) -> Result<Self, RunError> {
        let nodes = graph.nodes();
        let need: usize = nodes
            .iter()
            .map(|node| node.spec.memory())
            .map(|memory| memory.buffers * memory.buffer_bytes)
            .sum();
        // The stages' private memory comes out of the budget, too: pages that the previous
        // graph touched and this one does not need make room for it.
        let private: usize = nodes
            .iter()
            .map(|node| node.spec.memory().private_bytes)
            .sum();
        let kept = options.memory.bytes().saturating_sub(private);
        options.memory.release_from(need.max(kept));
        let mut at = 0;
        let mut pools = Vec::new();
        for node in nodes {
            let memory = node.spec.memory();
            let carved = (memory.buffers > 0).then(|| {
                let pool = Pool::carve(&options.memory, at, memory.buffers, memory.buffer_bytes);
                at += memory.buffers * memory.buffer_bytes;
                pool
            });
            pools.push(node.spec.lasting_pool().or(carved));
        }
        let edge = |pair: &[crate::graph::Node]| {
            let (from, to) = (&pair[0].spec, &pair[1].spec);
            Arc::new(Edge::new(
                from.workers(),
                to.workers(),
                to.routing(),
                to.inbox_bytes(),
            ))
        };
        let edges: Vec<Arc<Edge>> = nodes.windows(2).map(edge).collect();
        let epoch = Instant::now();
        let mut worker_ports = Vec::new();
        let mut probes = Vec::new();
        for (place, node) in nodes.iter().enumerate() {
            let of_stage: Vec<Arc<Probe>> = (0..node.spec.workers())
                .map(|_| Arc::new(Probe::new(epoch)))
                .collect();
            let ports = |(worker, probe): (usize, &Arc<Probe>)| WorkerPorts {
                worker,
                input: place
                    .checked_sub(1)
                    .map(|before| Arc::clone(&edges[before])),
                output: edges.get(place).cloned(),
                pool: pools[place].clone(),
                region: (options.memory.start(), need),
                probe: Arc::clone(probe),
                handle: handle.clone(),
                deadline: options.duration.map(|duration| epoch + duration),
                input_ended: false,
            };
            worker_ports.push(Mutex::new(of_stage.iter().enumerate().map(ports).collect()));
            probes.push(of_stage);
        }
        Ok(Self {
            epoch,
            worker_ports,
            edges,
            pools,
            probes,
        })
    }

    fn waiters(&self) -> Vec<Waiter> {
        let edges = self.edges.iter().cloned().map(Waiter::Edge);
        edges
            .chain(self.pools.iter().flatten().cloned().map(Waiter::Pool))
            .collect()
    }

    fn counters(&self) -> Vec<Counters> {
        let sum = |of_stage: &Vec<Arc<Probe>>| {
            let mut counters = Counters::default();
            of_stage
                .iter()
                .for_each(|probe| probe.add_to(&mut counters));
            counters
        };
        self.probes.iter().map(sum).collect()
    }
}
