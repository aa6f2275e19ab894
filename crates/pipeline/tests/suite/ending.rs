//! How runs end early: a failure, a panic, a cancellation, a time limit. None may hang.
//!
//! Every run has its own thread and a time limit, see `common::ends`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use crate::common::{
    Acting, BYTES, PAGE, SinkCounts, chain, count, double, endless, ends, options, sink,
};
use crate::common::{slow, spoilt};
use tonnage_pipeline::{Failure, Graph, RunError, RunHandle, RunOptions, StageError, WorkerPorts};

fn end() -> Acting {
    sink(&Arc::new(SinkCounts::default()))
}

fn failure_of(graph: Graph) -> (String, Failure) {
    match ends(graph, options(), &RunHandle::default()) {
        Err(RunError::Failed { stage, failure }) => (stage, failure),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_stage_that_fails_stops_all_and_is_the_one_reported() {
    let failure = Failure::at(Path::new("/data/x"), 4096, "broken");
    for good in [0, 1, 20] {
        let broken = failure.clone();
        let bad = spoilt(good, move || Err(broken.clone().into()));
        let graph = chain([
            ("endless", endless()),
            ("before", double()),
            ("bad", bad),
            ("after", double()),
            ("sink", end()),
        ]);
        assert_eq!(failure_of(graph), ("bad".into(), failure.clone()));
    }
}

/// A stage may notice that its input ended too early, and complain. It is not the one to blame.
#[test]
fn a_failure_that_follows_from_another_is_not_the_one_reported() {
    for _ in 0..50 {
        let bad = spoilt(3, || Err(Failure::new("first").into()));
        let complains = Acting::new(Some(BYTES), None, |ports: &mut WorkerPorts| {
            while ports.receive()?.is_some() {}
            Err(Failure::new("too little came").into())
        });
        let graph = chain([
            ("endless", endless()),
            ("bad", bad),
            ("complains", complains),
        ]);
        assert_eq!(failure_of(graph), ("bad".into(), Failure::new("first")));
    }
}

#[test]
fn a_stage_that_cannot_start_is_reported() {
    struct Refusing(Acting);
    impl tonnage_pipeline::StageSpec for Refusing {
        fn kind(&self) -> &'static str {
            "refusing"
        }
        fn config(&self) -> serde_json::Value {
            self.0.config()
        }
        fn input(&self) -> Option<tonnage_pipeline::Port> {
            self.0.input()
        }
        fn output(&self) -> Option<tonnage_pipeline::Port> {
            self.0.output()
        }
        fn workers(&self) -> usize {
            2
        }
        fn start(
            &self,
            _worker: usize,
            _flow: &WorkerPorts,
        ) -> Result<Box<dyn tonnage_pipeline::Stage>, Failure> {
            Err(Failure::new("there is no disk"))
        }
    }
    let graph = chain([("endless", endless())])
        .drain(tonnage_pipeline::Node::new("refusing", Refusing(end())));
    assert_eq!(
        failure_of(graph),
        ("refusing".into(), Failure::new("there is no disk"))
    );
}

/// Wherever it happens: first, middle, last, while others wait for room, for input or for buffers.
#[test]
fn a_panic_ends_the_run_and_names_the_stage() {
    let panics = || spoilt(2, || panic!("as the test wants it"));
    let source = Acting::new(None, Some(BYTES), |_: &mut WorkerPorts| {
        panic!("as the test wants it")
    });
    let last = Acting {
        gives: None,
        ..spoilt(0, || panic!("as the test wants it"))
    };
    for (graph, place) in [
        (
            chain([("source", source), ("double", double()), ("sink", end())]),
            0,
        ),
        (
            chain([
                ("endless", endless()),
                ("middle", panics()),
                ("sink", end()),
            ]),
            1,
        ),
        (
            chain([
                ("endless", endless()),
                ("middle", panics().workers(3)),
                ("sink", end()),
            ]),
            1,
        ),
        (
            chain([("endless", endless()), ("double", double()), ("sink", last)]),
            2,
        ),
    ] {
        let blamed = graph.nodes()[place].name.clone();
        let (stage, failure) = failure_of(graph);
        assert_eq!(stage, blamed);
        assert!(failure.what.contains("panicked"), "{failure:?}");
    }
}

/// Waits for a buffer that never comes, since it holds the only one.
fn waits_for_a_buffer() -> Acting {
    let act = |ports: &mut WorkerPorts| {
        let _only = ports.buffer()?;
        ports.buffer().map(drop)
    };
    Acting::new(Some(BYTES), None, act).buffers(1)
}

/// Gives nothing until it is stopped, without a wait of the pipeline's.
fn idle() -> Acting {
    let act = |ports: &mut WorkerPorts| {
        loop {
            drop(ports.try_buffer()?);
            thread::sleep(Duration::from_micros(100));
        }
    };
    Acting::new(None, Some(BYTES), act).buffers(1)
}

#[test]
fn a_cancel_from_outside_ends_whatever_wait_there_is() {
    let graphs: [fn() -> Graph; 4] = [
        // Starved.
        || {
            chain([
                ("idle", idle()),
                ("double", double().workers(3)),
                ("sink", end()),
            ])
        },
        // Blocked: the last stage waits for a buffer, those before it for room.
        || {
            chain([
                ("a", endless()),
                ("b", double().workers(2)),
                ("c", waits_for_a_buffer()),
            ])
        },
        // Blocked in the pool: all buffers wait before a stage that takes none.
        || chain([("a", endless()), ("c", waits_for_a_buffer().inbox(1 << 20))]),
        // Busy.
        || {
            chain([
                ("a", endless().workers(2)),
                ("b", double()),
                ("sink", end()),
            ])
        },
    ];
    for graph in graphs {
        // From "before anything has begun" to "everybody waits".
        for pause in [0, 50, 500, 5_000, 20_000] {
            let handle = RunHandle::default();
            let canceller = handle.clone();
            let cancelling = thread::spawn(move || {
                thread::sleep(Duration::from_micros(pause));
                canceller.cancel();
            });
            let ended = ends(graph(), options(), &handle);
            assert!(matches!(ended, Err(RunError::Cancelled)), "{ended:?}");
            cancelling.join().unwrap();
        }
    }
}

#[test]
fn a_cancelled_control_runs_nothing_more() {
    let handle = RunHandle::default();
    handle.cancel();
    assert!(handle.is_cancelled());
    let seen = Arc::new(SinkCounts::default());
    let graph = chain([("count", count(vec![PAGE; 100])), ("sink", sink(&seen))]);
    let ended = ends(graph, options(), &handle);
    assert!(matches!(ended, Err(RunError::Cancelled)), "{ended:?}");
    assert_eq!(seen.buffers.load(SeqCst), 0);
}

/// A failure stops one run; the next one under the same handle is not stopped.
#[test]
fn a_control_outlives_a_failure() {
    let handle = RunHandle::default();
    let bad = spoilt(1, || Err(Failure::new("broken").into()));
    let graph = chain([("endless", endless()), ("bad", bad), ("sink", end())]);
    assert!(matches!(
        ends(graph, options(), &handle),
        Err(RunError::Failed { .. })
    ));
    let seen = Arc::new(SinkCounts::default());
    let graph = chain([("count", count(vec![PAGE; 10])), ("sink", sink(&seen))]);
    ends(graph, options(), &handle).expect("nothing stops it");
    assert_eq!(seen.buffers.load(SeqCst), 10);
}

#[test]
fn a_timed_run_ends_and_loses_nothing() {
    let seen = Arc::new(SinkCounts::default());
    let timed = RunOptions {
        duration: Some(Duration::from_millis(50)),
        ..options()
    };
    let pause = Duration::from_micros(100);
    let graph = chain([
        ("endless", endless()),
        ("slow", slow(pause)),
        ("sink", sink(&seen)),
    ]);
    let report = ends(graph, timed, &RunHandle::default()).expect("a report");
    assert!(report.seconds >= 0.05, "it ended early: {}", report.seconds);
    // What had begun when the time was up still arrived.
    let moved: Vec<u64> = report
        .stages
        .iter()
        .map(|stage| stage.counters.bytes)
        .collect();
    assert_eq!(moved, [seen.bytes.load(SeqCst); 3]);
    assert!(moved[0] > 0);
}

/// On a busy machine the time can be up before a source has begun.
#[test]
fn a_timed_run_moves_something_however_short_it_is() {
    let seen = Arc::new(SinkCounts::default());
    let timed = RunOptions {
        duration: Some(Duration::ZERO),
        ..options()
    };
    let graph = chain([("endless", endless()), ("sink", sink(&seen))]);
    ends(graph, timed, &RunHandle::default()).expect("a report");
    assert_eq!(seen.bytes.load(SeqCst), PAGE as u64);
}

/// Stages that hold buffers when the run is stopped return them before the memory is freed.
#[test]
fn a_stopped_stage_may_still_touch_its_buffers() {
    let touched = Arc::new(AtomicBool::new(false));
    let note = Arc::clone(&touched);
    let holds = Acting::new(Some(BYTES), None, move |ports: &mut WorkerPorts| {
        let mut held = Vec::new();
        let stopped = loop {
            match ports.receive() {
                Ok(Some(buffer)) => held.push(buffer),
                Ok(None) => return Ok(()),
                Err(stopped) => break stopped,
            }
        };
        thread::sleep(Duration::from_millis(20));
        held.iter_mut().for_each(|buffer| buffer.slot_mut().fill(1));
        note.store(!held.is_empty(), SeqCst);
        Err(stopped)
    });
    let source = Acting::new(None, Some(BYTES), |ports: &mut WorkerPorts| {
        for _ in 0..3 {
            let buffer = ports.buffer()?;
            ports.send(buffer)?;
        }
        thread::sleep(Duration::from_millis(20));
        Err::<(), StageError>(Failure::new("broken").into())
    });
    let graph = chain([("source", source.buffers(3)), ("holds", holds)]);
    assert_eq!(failure_of(graph), ("source".into(), Failure::new("broken")));
    assert!(touched.load(SeqCst));
}
