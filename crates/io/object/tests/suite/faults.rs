//! Failing requests: transient errors are retried and counted, permanent ones reported.

use std::collections::BTreeMap;

use bytes::Bytes;
use tonnage_object::{
    Client, Effect, Engine, ErrorKind, Faults, Method, ObjectError, RequestCounts, Rule, Settings,
};

use crate::common::{BUCKET, Server, bytes};

fn running() -> bool {
    false
}

fn faulty(rules: Vec<Rule>) -> Settings {
    Settings {
        bucket: BUCKET.to_owned(),
        engine: Engine::Null,
        faults: Some(Faults { seed: 1, rules }),
        retries: 2,
        ..Settings::default()
    }
}

fn times(times: u32, method: Method, effect: Effect) -> Rule {
    Rule {
        times: Some(times),
        ..Rule::new(method, effect)
    }
}

fn get(client: &Client) -> Result<u64, ObjectError> {
    let mut memory = vec![0; 1000];
    client
        .get_range("x", None, 0, &mut memory, running)
        .map(|done| done.requests)
}

fn failure_of(settings: &Settings) -> (ErrorKind, u64, String) {
    match get(&Client::new(settings).expect("a client")) {
        Err(ObjectError::Failed {
            kind,
            requests,
            what,
            ..
        }) => (kind, requests, what),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_passes_is_repeated_and_counted() {
    for (effect, kind) in [
        (Effect::Status { status: 500 }, ErrorKind::Server),
        (Effect::Status { status: 503 }, ErrorKind::Throttled),
        (Effect::Status { status: 429 }, ErrorKind::Throttled),
        (Effect::Cut, ErrorKind::Broken),
    ] {
        let settings = faulty(vec![
            times(2, Method::Get, effect),
            times(1, Method::Put, effect),
        ]);
        let client = Client::new(&settings).expect("a client");
        assert_eq!(get(&client).expect("got in the end"), 3);
        let put = client
            .put("x", Bytes::from_static(b"abc"), running)
            .expect("put in the end");
        assert_eq!(put.requests, 2);
        let expected = RequestCounts {
            requests: 5,
            retries: 3,
            hedged: 0,
            errors: BTreeMap::from([(kind, 3)]),
        };
        assert_eq!(client.counts(), expected);
    }
}

#[test]
fn what_goes_on_is_told_with_how_often_it_was_tried() {
    let always = |effect| faulty(vec![Rule::new(Method::Get, effect)]);
    let (kind, requests, what) = failure_of(&always(Effect::Status { status: 503 }));
    assert_eq!((kind, requests), (ErrorKind::Throttled, 3));
    assert_eq!(what, "Injected: 503");
    assert_eq!(failure_of(&always(Effect::Cut)).1, 3);
}

#[test]
fn what_will_not_pass_is_not_repeated() {
    for (status, kind) in [
        (403, ErrorKind::Denied),
        (404, ErrorKind::Missing),
        (400, ErrorKind::Refused),
    ] {
        let settings = faulty(vec![Rule::new(Method::Get, Effect::Status { status })]);
        let (message, requests, _) = failure_of(&settings);
        assert_eq!((message, requests), (kind, 1));
    }
}

#[test]
fn fewer_bytes_than_were_asked_for_are_an_error() {
    let (_, _, what) = failure_of(&faulty(vec![Rule::new(Method::Get, Effect::Short)]));
    assert_eq!(what, "only 999 of 1000 bytes arrived");
}

#[test]
fn what_is_missing_of_an_answer_is_asked_for_again() {
    let settings = faulty(vec![times(1, Method::Get, Effect::Short)]);
    let client = Client::new(&settings).expect("a client");
    // The byte that is missing is asked for twice: it is another range, whose first answer is
    // short.
    assert_eq!(get(&client).expect("got in the end"), 3);
    assert_eq!(client.counts().errors[&ErrorKind::Broken], 2);
}

#[test]
fn what_is_slow_is_waited_for() {
    let stall = Effect::Stall { milliseconds: 250 };
    let client = Client::new(&faulty(vec![Rule::new(Method::Get, stall)])).expect("a client");
    assert_eq!(get(&client).expect("got"), 1);
}

#[test]
fn the_same_seed_gives_the_same_faults() {
    let fails = |seed: u64, name: &str| {
        let mut settings = faulty(vec![Rule {
            probability: Some(0.3),
            ..Rule::new(Method::Get, Effect::Status { status: 404 })
        }]);
        settings.faults.as_mut().expect("faults").seed = seed;
        let client = Client::new(&settings).expect("a client");
        let failed = |_| {
            client
                .get_range(name, None, 0, &mut [0; 10], running)
                .is_err()
        };
        (0..200).map(failed).collect::<Vec<bool>>()
    };
    let one = fails(1, "x");
    let share = one.iter().filter(|failed| **failed).count();
    assert!((30..90).contains(&share), "{share}");
    assert_eq!(one, fails(1, "x"));
    assert_ne!(one, fails(2, "x"));
    assert_ne!(one, fails(1, "y"));
}

#[test]
fn a_server_s_own_errors_are_met_and_counted() {
    let flags = ["-errors", "0.2", "-cuts", "0.2", "-seed", "3"];
    let Some(server) = Server::start(&flags) else {
        return;
    };
    let mut settings = server.settings();
    settings.retries = 20;
    let client = Client::new(&settings).expect("a client");
    let whole = bytes(7, 2_000_000);
    client
        .put("x", whole.clone().into(), running)
        .expect("put in the end");
    for at in (0..whole.len()).step_by(100_000) {
        let mut memory = vec![0; 100_000];
        client
            .get_range("x", None, at as u64, &mut memory, running)
            .expect("got in the end");
        assert!(memory == whole[at..at + memory.len()]);
    }
    let counts = client.counts();
    assert_eq!(counts.requests, 21 + counts.retries);
    assert_eq!(counts.retries, counts.errors.values().sum::<u64>());
    let kinds: Vec<ErrorKind> = counts.errors.into_keys().collect();
    assert!(kinds.contains(&ErrorKind::Broken), "{kinds:?}");
    let known = [ErrorKind::Broken, ErrorKind::Throttled, ErrorKind::Server];
    assert!(kinds.iter().all(|kind| known.contains(kind)), "{kinds:?}");
}

#[test]
fn a_server_that_does_not_answer_in_time_is_given_up() {
    let Some(server) = Server::start(&["-first-byte", "1h"]) else {
        return;
    };
    let mut settings = server.settings();
    (settings.patience_seconds, settings.retries) = (0.2, 1);
    let client = Client::new(&settings).expect("a client");
    match client.put("x", bytes(8, 10).into(), running) {
        Err(ObjectError::Failed { kind, requests, .. }) => {
            assert_eq!((kind, requests), (ErrorKind::Timeout, 2))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_was_completed_though_nobody_said_so_is_there() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let mut settings = server.settings();
    let lost = Rule {
        path_contains: Some("uploadId".to_owned()),
        ..times(1, Method::Post, Effect::Lost)
    };
    settings.faults = Some(Faults {
        seed: 1,
        rules: vec![lost],
    });
    let client = Client::new(&settings).expect("a client");
    let upload = client.begin_upload("x", running).expect("begun");
    let (part, _) = client
        .put_part(&upload, 0, bytes(9, 1000).into(), running)
        .expect("put");
    client
        .complete(&upload, 1000, [part], running)
        .expect("completed");
    let found = client.find("x").expect("asked").expect("there");
    assert_eq!(found.bytes, 1000);
    assert_eq!(client.counts().retries, 1);
}
