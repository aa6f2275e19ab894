//! Slow requests are hedged: the faster answer counts, and few requests are repeated.

use std::sync::Arc;

use tonnage_object::{
    Client, Effect, Engine, ErrorKind, Faults, HedgePolicy, Method, ObjectError, RequestCounts,
    Rule, Settings,
};

use crate::common::{BUCKET, Server, bytes};

const ETAG: Option<&str> = Some("\"0\"");
/// As long as no test waits.
const STALL: Effect = Effect::Stall {
    milliseconds: 30_000,
};

fn rule(path: &str, times: Option<u32>, effect: Effect) -> Rule {
    Rule {
        path_contains: Some(path.to_owned()),
        times,
        ..Rule::new(Method::Get, effect)
    }
}

fn client(hedge_policy: &Arc<HedgePolicy>, rules: Vec<Rule>) -> Client {
    client_that_repeats(hedge_policy, rules, 0)
}

fn client_that_repeats(
    hedge_policy: &Arc<HedgePolicy>,
    rules: Vec<Rule>,
    retries: usize,
) -> Client {
    let settings = Settings {
        bucket: BUCKET.to_owned(),
        engine: Engine::Null,
        faults: Some(Faults { seed: 1, rules }),
        retries,
        ..Settings::default()
    };
    Client::new(&settings)
        .expect("a client")
        .hedging(hedge_policy)
}

fn get(client: &Client, key: &str) -> Result<u64, ObjectError> {
    let done = client.get_range(key, ETAG, 0, &mut [1; 1000], || false);
    done.map(|done| done.requests)
}

/// A tail of so many requests that were all quick.
fn quick(requests: usize) -> Arc<HedgePolicy> {
    let hedge_policy = Arc::default();
    let client = client(&hedge_policy, Vec::new());
    for _ in 0..requests {
        assert_eq!(get(&client, "x").expect("got"), 1);
    }
    hedge_policy
}

#[test]
fn the_faster_of_two_counts() {
    let hedge_policy = quick(40);
    let client = client(&hedge_policy, vec![rule("slow", Some(1), STALL)]);
    let mut memory = [1; 1000];
    let done = client.get_range("slow", ETAG, 0, &mut memory, || false);
    assert_eq!(done.expect("got").requests, 2);
    assert_eq!(memory, [0; 1000]);
    let expected = RequestCounts {
        requests: 2,
        hedged: 1,
        ..RequestCounts::default()
    };
    assert_eq!(client.counts(), expected);
}

#[test]
fn one_that_fails_does_not_end_the_other() {
    let slow = Effect::Stall { milliseconds: 500 };
    let second_fails = vec![
        rule("slow", Some(1), slow),
        rule("slow", Some(2), Effect::Cut),
    ];
    let client = client(&quick(40), second_fails);
    assert_eq!(get(&client, "slow").expect("got"), 2);
    let counts = client.counts();
    assert_eq!((counts.hedged, counts.retries), (1, 0));
    assert_eq!(counts.errors[&ErrorKind::Broken], 1);
}

#[test]
fn what_failed_is_repeated_after_its_pause_and_not_before() {
    let rules = vec![rule("busy", Some(3), Effect::Status { status: 503 })];
    let client = client_that_repeats(&quick(40), rules, 3);
    assert_eq!(get(&client, "busy").expect("got"), 4);
    let counts = client.counts();
    assert_eq!((counts.hedged, counts.retries), (0, 3));
}

#[test]
fn few_are_asked_for_twice() {
    let slow = Effect::Stall { milliseconds: 100 };
    let client = client(&quick(40), vec![rule("slow", None, slow)]);
    for _ in 0..5 {
        get(&client, "slow").expect("got");
    }
    assert_eq!(client.counts().hedged, 2);
}

#[test]
fn neither_without_a_tail_nor_of_an_object_that_may_be_another() {
    let slow = || vec![rule("slow", None, Effect::Stall { milliseconds: 100 })];
    let early = client(&quick(5), slow());
    get(&early, "slow").expect("got");
    assert_eq!(early.counts().hedged, 0);
    let unknown = client(&quick(40), slow());
    let got = unknown.get_range("slow", None, 0, &mut [1; 10], || false);
    assert_eq!(got.expect("got").requests, 1);
}

#[test]
fn an_answer_that_stalls_halfway_is_gone_on_with() {
    let flags = ["-stalls", "0.03", "-stall", "2s", "-seed", "5"];
    let Some(server) = Server::start(&flags) else {
        return;
    };
    let hedge_policy = Arc::default();
    let client = Client::new(&server.settings()).expect("a client");
    let client = client.hedging(&hedge_policy);
    let whole = bytes(7, 1 << 20);
    client
        .put("x", whole.clone().into(), || false)
        .expect("put");
    let found = client.find("x").expect("asked").expect("there");
    for _ in 0..100 {
        let mut memory = vec![0; whole.len()];
        client
            .get_range("x", found.etag.as_deref(), 0, &mut memory, || false)
            .expect("got");
        assert!(memory == whole);
    }
    let counts = client.counts();
    assert!(counts.hedged > 0, "{counts:?}");
    assert_eq!((counts.retries, counts.errors.len()), (0, 0), "{counts:?}");
}
