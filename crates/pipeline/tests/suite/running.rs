//! Invariants of every run: bytes are conserved, memory is what was declared, lanes are kept, and
//! the probes and the timeline add up.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::common::{
    Acting, BYTES, PAGE, SinkCounts, chain, count, double, ends, options, sink, slow,
};
use proptest::prelude::*;
use tonnage_pipeline::{
    Counters, MemoryNeed, Routing, RunHandle, RunOptions, RunReport, WorkerPorts,
};

/// The sum that a sink finds of what `count` gives for these lengths.
fn sum(lens: &[usize]) -> u64 {
    let byte = |(place, at)| u64::from((place * 31 + at * 7) as u8);
    let bytes = |(place, &len): (usize, &usize)| (0..len).map(move |at| (place, at));
    lens.iter().enumerate().flat_map(bytes).map(byte).sum()
}

proptest! {
    #![proptest_config(crate::common::seeded(64))]

    #[test]
    fn bytes_are_conserved(
        lens in prop::collection::vec(0..=PAGE, 0..60),
        workers in prop::array::uniform3(1_usize..5),
        buffers in prop::array::uniform2(1_usize..6),
        inboxes in prop::array::uniform2(prop_oneof![Just(1), 1..3 * PAGE]),
        by_lane in any::<bool>(),
    ) {
        let seen = Arc::new(SinkCounts::default());
        let routing = if by_lane { Routing::ByLane } else { Routing::Any };
        let graph = chain([
            ("count", count(lens.clone()).workers(workers[0]).buffers(buffers[0])),
            ("double", double().workers(workers[1]).buffers(buffers[1]).inbox(inboxes[0])),
            ("sink", Acting { routing, ..sink(&seen).workers(workers[2]).inbox(inboxes[1]) }),
        ]);
        let (memory, handle) = (graph.memory_bytes(), RunHandle::default());
        let report = ends(graph, options(), &handle).expect("a report");
        let bytes = lens.iter().sum::<usize>() as u64;
        prop_assert_eq!(seen.buffers.load(SeqCst), 2 * lens.len() as u64);
        prop_assert_eq!(seen.bytes.load(SeqCst), 2 * bytes);
        prop_assert_eq!(seen.sum.load(SeqCst), 2 * sum(&lens));
        let moved: Vec<u64> = report.stages.iter().map(|stage| stage.counters.bytes).collect();
        prop_assert_eq!(moved, vec![bytes, 2 * bytes, 2 * bytes]);
        let records = report.stages.iter().map(|stage| stage.counters.records);
        prop_assert_eq!(records.collect::<Vec<_>>(), [1, 2, 2].map(|by| by * lens.len() as u64));
        prop_assert_eq!(handle.done_bytes(), 2 * bytes);
        prop_assert_eq!(report.memory_bytes, memory);
        if by_lane {
            let lanes = seen.lanes.lock().unwrap();
            prop_assert!(lanes.iter().all(|(worker, lane)| *worker == lane % workers[2]));
        }
    }
}

/// Progress adds up over the runs of one handle.
#[test]
fn done_bytes_add_up_over_runs() {
    let handle = RunHandle::default();
    for round in 1..4 {
        let end = sink(&Arc::new(SinkCounts::default()));
        let graph = chain([("count", count(vec![1000; 5])), ("sink", end)]);
        ends(graph, options(), &handle).expect("a report");
        assert_eq!(handle.done_bytes(), round * 5000);
    }
}

#[test]
fn buffers_of_a_lane_come_to_its_worker_in_order() {
    let order: Arc<Mutex<Vec<Vec<usize>>>> = Arc::new(Mutex::new(vec![Vec::new(); 3]));
    let noted = Arc::clone(&order);
    let act = move |ports: &mut WorkerPorts| {
        while let Some(buffer) = ports.receive()? {
            noted.lock().unwrap()[ports.worker()].push(buffer.lane);
        }
        Ok(())
    };
    let end = Acting {
        routing: Routing::ByLane,
        ..Acting::new(Some(BYTES), None, act).workers(3)
    };
    let graph = chain([("count", count(vec![10; 100]).buffers(4)), ("sink", end)]);
    ends(graph, options(), &RunHandle::default()).expect("a report");
    let expected = [0, 1, 2].map(|worker| (worker..100).step_by(3).collect::<Vec<_>>());
    assert_eq!(*order.lock().unwrap(), expected);
}

/// Every stage takes all it can get: exactly its own pool, no slot of which overlaps another.
#[test]
fn there_are_as_many_buffers_as_declared() {
    let slots: Arc<Mutex<Vec<(usize, usize)>>> = Arc::default();
    let ready = Arc::new(AtomicUsize::new(0));
    let hoard = |takes, gives, buffers: usize, pages: usize, workers: usize| {
        let (slots, ready) = (Arc::clone(&slots), Arc::clone(&ready));
        let act = move |ports: &mut WorkerPorts| {
            let (start, len) = ports.region();
            let mut held = Vec::new();
            while let Some(mut buffer) = ports.try_buffer()? {
                assert_eq!(buffer.capacity(), pages * PAGE);
                let at = buffer.slot_mut().as_ptr() as usize;
                assert!(at >= start && at + buffer.capacity() <= start + len);
                slots.lock().unwrap().push((at, buffer.capacity()));
                held.push(buffer);
            }
            // Nobody gives anything back before everybody has all.
            ready.fetch_add(1, SeqCst);
            while ready.load(SeqCst) < 6 {
                thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        };
        let memory = MemoryNeed {
            buffers,
            buffer_bytes: pages * PAGE,
            private_bytes: 7,
        };
        Acting {
            memory,
            ..Acting::new(takes, gives, act).workers(workers)
        }
    };
    let graph = chain([
        ("a", hoard(None, Some(BYTES), 3, 1, 1)),
        ("b", hoard(Some(BYTES), Some(BYTES), 5, 2, 3)),
        ("c", hoard(Some(BYTES), None, 2, 3, 2)),
    ]);
    let report = ends(graph, options(), &RunHandle::default()).expect("a report");
    assert_eq!(report.memory_bytes, (3 + 5 * 2 + 2 * 3) * PAGE + 3 * 7);
    let mut slots = slots.lock().unwrap().clone();
    slots.sort_unstable();
    assert_eq!(slots.len(), 3 + 5 + 2);
    assert!(
        slots
            .windows(2)
            .all(|pair| pair[0].0 + pair[0].1 <= pair[1].0),
        "{slots:?}"
    );
}

/// A buffer larger than an edge's bound passes, and so do buffers without a payload.
#[test]
fn no_bound_is_too_small_and_no_buffer_too_empty() {
    for inbox in [0, 1, PAGE] {
        let seen = Arc::new(SinkCounts::default());
        let graph = chain([
            ("count", count(vec![PAGE, 0, PAGE, 0, 0])),
            ("sink", sink(&seen).inbox(inbox)),
        ]);
        ends(graph, options(), &RunHandle::default()).expect("a report");
        assert_eq!(
            seen.buffers.load(SeqCst),
            5,
            "behind a bound of {inbox} bytes"
        );
    }
}

/// Every sleeper (for a buffer, for room or for a slot) is woken, however scarce they are.
#[test]
fn nobody_is_left_asleep_in_many_hand_overs() {
    for workers in [1, 2, 3] {
        let seen = Arc::new(SinkCounts::default());
        let graph = chain([
            ("count", count(vec![16; 20_000]).workers(workers).buffers(1)),
            ("double", double().workers(workers).inbox(1).buffers(1)),
            ("sink", sink(&seen).workers(workers).inbox(1)),
        ]);
        ends(graph, options(), &RunHandle::default()).expect("a report");
        assert_eq!(seen.buffers.load(SeqCst), 40_000, "{workers} workers");
    }
}

fn counters(report: &RunReport) -> Vec<Counters> {
    report.stages.iter().map(|stage| stage.counters).collect()
}

fn lived(counters: &Counters) -> f64 {
    counters.busy_seconds + counters.starved_seconds + counters.blocked_seconds
}

/// Where the time went tells which stage is the slow one.
#[test]
fn a_slow_stage_starves_those_behind_and_blocks_those_before() {
    let seen = Arc::new(SinkCounts::default());
    let graph = chain([
        ("count", count(vec![PAGE; 60])),
        ("slow", slow(Duration::from_millis(2))),
        ("sink", sink(&seen)),
    ]);
    let report = ends(graph, options(), &RunHandle::default()).expect("a report");
    let [source, slow, last] = counters(&report)[..] else {
        panic!("{report:?}")
    };
    assert_eq!(report.bottleneck, "slow");
    assert!(source.blocked_seconds > source.busy_seconds, "{source:?}");
    assert!(
        slow.busy_seconds > slow.blocked_seconds + slow.starved_seconds,
        "{slow:?}"
    );
    assert!(last.starved_seconds > last.busy_seconds, "{last:?}");
    assert_eq!((source.starved_seconds, last.blocked_seconds), (0.0, 0.0));
    // A sleeping thread is busy for the pipeline, but uses no processor.
    assert!(slow.cpu_seconds < slow.busy_seconds, "{slow:?}");
    for stage in [source, slow, last] {
        assert!(
            lived(&stage) <= report.seconds,
            "{stage:?} in {}",
            report.seconds
        );
    }
    // The sink lives as long as the run but for the start of its thread.
    assert!(
        lived(&last) >= report.seconds / 2.0,
        "{last:?} in {}",
        report.seconds
    );
}

/// A worker that waits for its own pool counts as blocked, too.
#[test]
fn workers_share_the_time_of_their_stage() {
    let seen = Arc::new(SinkCounts::default());
    let graph = chain([
        ("count", count(vec![PAGE; 90]).buffers(8)),
        (
            "slow",
            slow(Duration::from_millis(3)).workers(3).inbox(8 * PAGE),
        ),
        ("sink", sink(&seen)),
    ]);
    let report = ends(graph, options(), &RunHandle::default()).expect("a report");
    let [source, slow, _] = counters(&report)[..] else {
        panic!("{report:?}")
    };
    assert!(source.blocked_seconds > source.busy_seconds, "{source:?}");
    assert!(
        lived(&slow) <= 3.0 * report.seconds,
        "{slow:?} in {}",
        report.seconds
    );
    assert!(
        lived(&slow) >= 1.5 * report.seconds,
        "{slow:?} in {}",
        report.seconds
    );
}

#[test]
fn the_timeline_never_falls_and_ends_at_the_totals() {
    let seen = Arc::new(SinkCounts::default());
    let graph = chain([
        ("count", count(vec![PAGE; 3000]).workers(2).buffers(4)),
        ("double", double().workers(2)),
        ("sink", sink(&seen)),
    ]);
    let often = RunOptions {
        sample_every: Duration::from_micros(100),
        ..options()
    };
    let report = ends(graph, often, &RunHandle::default()).expect("a report");
    let parts = |stage: &Counters| {
        [
            stage.bytes as f64,
            stage.records as f64,
            stage.busy_seconds,
            stage.starved_seconds,
            stage.blocked_seconds,
            stage.cpu_seconds,
        ]
    };
    for pair in report.timeline.windows(2) {
        assert!(pair[0].seconds <= pair[1].seconds);
        for (before, after) in pair[0].stages.iter().zip(&pair[1].stages) {
            for (before, after) in parts(before).into_iter().zip(parts(after)) {
                assert!(before <= after, "{pair:?}");
            }
        }
    }
    let last = report.timeline.last().expect("one at least");
    assert_eq!(last.stages, counters(&report));
    assert!(last.seconds <= report.seconds);
}

/// However often it is asked for, the timeline keeps to its bound and spans the whole run.
#[test]
fn samples_are_thinned() {
    let source = Acting::new(None, Some(BYTES), |_: &mut WorkerPorts| {
        thread::sleep(Duration::from_millis(300));
        Ok(())
    });
    let graph = chain([
        ("source", source),
        ("sink", sink(&Arc::new(SinkCounts::default()))),
    ]);
    let always = RunOptions {
        sample_every: Duration::from_nanos(100),
        ..options()
    };
    let report = ends(graph, always, &RunHandle::default()).expect("a report");
    let samples = report.timeline.len();
    assert!((16..=4096).contains(&samples), "{samples} samples");
    let first = report.timeline[0].seconds;
    assert!(
        first < report.seconds / 2.0,
        "the beginning was forgotten: {first}"
    );
}
