//! Ranges of objects by several concurrent requests: they hold the object's bytes, or fail with a
//! reason.

use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use tonnage_object::{
    Client, Effect, Engine, Faults, Method, ObjectError, ParallelReader, Rule, Settings,
};

use crate::common::{BUCKET, Server, bytes};

const MIB: usize = 1 << 20;

fn faulty(rules: Vec<Rule>) -> Settings {
    Settings {
        engine: Engine::Null,
        faults: Some(Faults { seed: 1, rules }),
        retries: 0,
        ..Settings::default()
    }
}

#[test]
fn parts_hold_what_the_object_does() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let (settings, whole) = (server.settings(), bytes(1, 9 * MIB + 17));
    let client = Client::new(&settings).expect("a client");
    let put = client.put("at/one", whole.clone().into(), || false);
    put.expect("put");
    let found = client.find("at/one").expect("asked").expect("there");
    proptest!(ProptestConfig::with_cases(24), |(
        offset in 0..whole.len(),
        len in 0..9 * MIB,
        at_once in 1..9_usize,
    )| {
        let len = len.min(whole.len() - offset);
        let ranges = ParallelReader::new(&settings, at_once);
        let mut memory = vec![1; len];
        let etag = found.etag.as_deref();
        ranges.read(BUCKET, "at/one", etag, offset as u64, &mut memory).expect("read");
        prop_assert!(memory == whole[offset..offset + len]);
        let count = len.div_ceil(MIB).clamp(1, at_once);
        let asked = len.div_ceil(len.div_ceil(count).max(1)) as u64;
        let counts = ranges.counts();
        prop_assert_eq!(counts.requests - counts.hedged, asked);
    });
    let put = client.put("at/one", bytes(2, 9 * MIB).into(), || false);
    put.expect("put");
    let ranges = ParallelReader::new(&settings, 4);
    let why = ranges.read(
        BUCKET,
        "at/one",
        found.etag.as_deref(),
        0,
        &mut vec![0; 5 * MIB],
    );
    let why = why.expect_err("another object");
    assert_eq!(why.changed(), Some("s3://tests/at/one"), "{why}");
}

#[test]
fn a_failure_of_one_range_is_told() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let settings = server.settings();
    let client = Client::new(&settings).expect("a client");
    let put = client.put("at/short", bytes(1, 3 * MIB).into(), || false);
    put.expect("put");
    // Of four ranges the last begins where the object ends.
    let why =
        ParallelReader::new(&settings, 4).read(BUCKET, "at/short", None, 0, &mut vec![0; 4 * MIB]);
    let why = why.expect_err("it ends before").to_string();
    assert!(why.contains("s3://tests/at/short"), "{why}");
}

#[test]
fn who_waits_can_be_stopped() {
    let delayed = Rule::new(
        Method::Get,
        Effect::Stall {
            milliseconds: 20_000,
        },
    );
    let ranges = ParallelReader::new(&faulty(vec![delayed]), 4);
    thread::scope(|scope| {
        let reading = scope.spawn(|| ranges.read(BUCKET, "x", None, 0, &mut vec![0; 4 * MIB]));
        thread::sleep(Duration::from_millis(50));
        ranges.stop();
        let why = reading.join().expect("no panic");
        assert!(matches!(why, Err(ObjectError::Stopped)), "{why:?}");
    });
}
