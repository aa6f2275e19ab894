//! The object store benchmark on the null store: what it counts, and how it ends.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tonnage_graphs::benches::object::{Config, Remove, Work, remove, run};
use tonnage_graphs::error::JobError;
use tonnage_object::{Effect, Engine, Faults, Method, Rule, Settings};
use tonnage_pipeline::{Arena, Graph, Node, RunHandle, RunOptions};
use tonnage_stages::object::request_log::Window;
use tonnage_stages::ports::BLOCKS;
use tonnage_stages::sink::Discard;
use tonnage_stages::source::Get;

fn store(rules: Vec<Rule>) -> Settings {
    Settings {
        bucket: "none".to_owned(),
        engine: Engine::Null,
        faults: Some(Faults { seed: 1, rules }),
        ..Settings::default()
    }
}

fn config(work: Work) -> Config {
    Config {
        store: store(Vec::new()),
        work,
        prefix: "tests/object-".to_owned(),
        chunk_bytes: 10_000,
        threads: 3,
        seconds: 0.3,
        warm_up_seconds: 0.1,
    }
}

const GET: Work = Work::Get {
    objects: 2,
    object_bytes: 35_000,
};

#[test]
fn what_is_done_is_counted_once() {
    for (work, graph) in [
        (GET, "get x3 -blocks-> discard x1"),
        (Work::Put, "generate x1 -blocks-> put x3"),
        (Work::Multipart, "generate x1 -blocks-> put x3"),
        (Work::LayOut { objects: 7 }, "generate x1 -blocks-> put x3"),
    ] {
        let mut config = config(work);
        if work == (Work::LayOut { objects: 7 }) {
            config.warm_up_seconds = 0.0; // It ends by itself, sooner.
        }
        let outcome = run(&config, &RunHandle::default()).expect("done");
        let phase = &outcome.phases[0];
        assert_eq!(phase.graph, graph);
        let (first, last) = (&phase.report.stages[0], &phase.report.stages[1]);
        assert_eq!(first.counters.bytes, last.counters.bytes);
        let done = last.counters.bytes / 10_000;
        assert_eq!(outcome.tally.requests, done);
        assert_eq!(outcome.tally.retries, 0);
        let each_second = outcome
            .workers
            .iter()
            .flat_map(|worker| &worker.each_second);
        assert_eq!(each_second.sum::<u64>(), done);
        assert!(outcome.latency.count <= done && outcome.latency.count > 0);
        assert_eq!(outcome.first_byte.count > 0, work == GET);
        assert_eq!(
            outcome.completing_seconds.is_some(),
            work == Work::Multipart
        );
        let rate = outcome.operations_per_second.expect("a rate");
        let window = config.seconds - config.warm_up_seconds;
        assert!(rate > 0.0 && rate * window <= done as f64 + 1e-6);
        if let Work::LayOut { objects } = work {
            assert_eq!(done, objects as u64);
        }
    }
}

#[test]
fn errors_that_pass_are_counted() {
    for (work, method) in [(GET, Method::Get), (Work::Put, Method::Put)] {
        let rule = Rule {
            path_contains: Some("object-0".to_owned()),
            times: Some(1),
            ..Rule::new(method, Effect::Status { status: 503 })
        };
        let mut config = config(work);
        config.store = store(vec![rule]);
        let tally = run(&config, &RunHandle::default()).expect("done").tally;
        assert!(tally.retries > 0);
        assert_eq!(tally.errors.values().sum::<u64>(), tally.retries);
    }
}

#[test]
fn an_error_that_stays_ends_the_trial_with_the_object_s_name() {
    for (work, method) in [
        (GET, Method::Get),
        (Work::Put, Method::Put),
        (Work::Multipart, Method::Put),
    ] {
        let rule = Rule {
            path_contains: Some("object-0".to_owned()),
            ..Rule::new(method, Effect::Status { status: 500 })
        };
        let mut config = config(work);
        config.store = store(vec![rule]);
        config.store.retries = 1;
        let Err(JobError::Failed { what, .. }) = run(&config, &RunHandle::default()) else {
            panic!("it went well");
        };
        assert!(what.contains("s3://none/tests/object-0000"), "{what}");
        assert!(what.ends_with("Injected: 500 (tried 2 times)"), "{what}");
    }
}

#[test]
fn a_store_that_denies_access_is_refused_with_a_fix() {
    for (status, fix) in [(403, "AWS_ACCESS_KEY_ID"), (404, "create it")] {
        let mut config = config(GET);
        config.store = store(vec![Rule::new(Method::Get, Effect::Status { status })]);
        match run(&config, &RunHandle::default()) {
            Err(JobError::Refused { why, .. }) => assert!(why.contains(fix), "{why}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let mut odd = Vec::new();
    for change in [
        |config: &mut Config| config.threads = 0,
        |config: &mut Config| config.chunk_bytes = 0,
        |config: &mut Config| config.seconds = -1.0,
        |config: &mut Config| config.chunk_bytes = 36_000,
        |config: &mut Config| config.store.patience_seconds = f64::NAN,
    ] {
        let mut config = config(GET);
        change(&mut config);
        odd.push(run(&config, &RunHandle::default()).map(drop));
    }
    let whole_bucket = Remove {
        store: store(Vec::new()),
        folder: "/".to_owned(),
    };
    odd.push(remove(&whole_bucket, &RunHandle::default()).map(drop));
    for ended in odd {
        assert!(matches!(ended, Err(JobError::Refused { .. })), "{ended:?}");
    }
}

#[test]
fn a_cancelled_trial_ends_though_no_answer_comes() {
    let stall = Effect::Stall {
        milliseconds: 3_600_000,
    };
    for (work, method) in [(GET, Method::Get), (Work::Multipart, Method::Put)] {
        let mut config = config(work);
        config.seconds = 3600.0;
        let put_grace = Duration::from_millis(200);
        config.store = store(vec![Rule {
            path_contains: Some("object-0".to_owned()),
            ..Rule::new(method, stall)
        }]);
        config.store.put_grace = put_grace;
        let handle = RunHandle::default();
        let ended = std::thread::scope(|scope| {
            let running = scope.spawn(|| run(&config, &handle));
            std::thread::sleep(Duration::from_millis(50));
            handle.cancel();
            running.join().expect("no panic")
        });
        assert!(matches!(ended, Err(JobError::Cancelled)), "{ended:?}");
    }
}

#[test]
fn chunks_are_taken_from_the_objects_in_turn() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let next = Arc::new(AtomicUsize::new(0));
    let get = Get {
        store: Arc::new(store(vec![Rule {
            path_contains: Some("/c".to_owned()),
            ..Rule::new(Method::Get, Effect::Status { status: 404 })
        }])),
        keys: Arc::new(["a", "b", "c"].map(|name| format!("tests/{name}")).to_vec()),
        chunks: 2,
        chunk_bytes: 100,
        workers: 1,
        window: Window {
            warm_up: Duration::ZERO,
            end: Duration::ZERO,
        },
        next: Arc::clone(&next),
        seen,
    };
    let discard = Discard { takes: BLOCKS };
    let graph = Graph::chain([Node::new("get", get), Node::new("discard", discard)]);
    let options = RunOptions {
        memory: Arc::new(Arena::map(1 << 20).expect("memory")),
        duration: None,
        sample_every: Duration::from_millis(10),
    };
    // The third request, which is for the third object, ends it.
    let ended = tonnage_pipeline::run(&graph, &options, &RunHandle::default());
    assert!(ended.expect_err("ended").to_string().contains("tests/c"));
    assert_eq!(next.load(std::sync::atomic::Ordering::Relaxed), 3);
}
