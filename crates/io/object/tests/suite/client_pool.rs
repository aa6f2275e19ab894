//! Reused clients have open connections, share the hedge policy, and do not count earlier requests
//! again.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use tonnage_object::{
    ClientPool, Effect, Engine, Faults, Method, ObjectError, RequestCounts, Rule, Settings,
};

use crate::common::{BUCKET, Server, bytes};

/// Connections of this process, or any other here, to this server.
fn connections(settings: &Settings) -> usize {
    let endpoint = settings.endpoint.as_deref().expect("an address");
    let (_, port) = endpoint.rsplit_once(':').expect("a port");
    let remote = format!("0100007F:{:04X}", port.parse::<u16>().expect("a number"));
    let table = fs::read_to_string("/proc/net/tcp").expect("the kernel's table");
    let established = |line: &&str| {
        let mut columns = line.split_whitespace().skip(2);
        columns.next() == Some(&remote) && columns.next() == Some("01")
    };
    table.lines().filter(established).count()
}

#[test]
fn the_next_has_the_connection() {
    let Some(server) = Server::start(&[]) else {
        return;
    };
    let (settings, clients) = (server.settings(), ClientPool::default());
    let mut writer = clients.take(&settings).expect("a client");
    let put = writer.put("one", bytes(1, 100).into(), || false);
    put.expect("put");
    assert_eq!(writer.count().requests, 1);
    clients.give(writer);
    for _ in 0..3 {
        let mut client = clients.take(&settings).expect("a client");
        let got = client.get_range("one", None, 0, &mut [0; 100], || false);
        got.expect("got");
        assert_eq!(client.count().requests, 1);
        clients.give(client);
    }
    assert_eq!(connections(&settings), 1);
}

#[test]
fn they_know_the_tail_and_are_counted_once() {
    let store = |bucket: &str| Settings {
        bucket: bucket.to_owned(),
        engine: Engine::Null,
        ..Settings::default()
    };
    let clients = ClientPool::default();
    let get = |store: &Settings, times: usize| {
        let mut client = clients.take(store).expect("a client");
        for _ in 0..times {
            let got = client.get_range("x", Some("\"0\""), 0, &mut [1; 10], || false);
            got.expect("got");
        }
        let counted = client.count();
        clients.give(client);
        counted
    };
    assert_eq!(get(&store(BUCKET), 40).requests, 40);
    assert_eq!(get(&store(BUCKET), 2).requests, 2);
    assert_eq!(get(&store("another"), 1).requests, 1);
    let stall = Effect::Stall {
        milliseconds: 30_000,
    };
    let slow = Settings {
        faults: Some(Faults {
            seed: 1,
            rules: vec![Rule {
                times: Some(1),
                ..Rule::new(Method::Get, stall)
            }],
        }),
        ..store(BUCKET)
    };
    let expected = RequestCounts {
        requests: 2,
        hedged: 1,
        ..RequestCounts::default()
    };
    assert_eq!(get(&slow, 1), expected);
}

#[test]
fn how_soon_an_answer_begins_is_known_before_it_is_whole() {
    let Some(server) = Server::start(&["-stalls", "1", "-stall", "300s"]) else {
        return;
    };
    let (settings, clients) = (server.settings(), ClientPool::default());
    let client = clients.take(&settings).expect("a client");
    let put = client.put("one", bytes(1, 1 << 20).into(), || false);
    put.expect("put");
    assert_eq!(clients.first_byte(), None);
    let enough = AtomicBool::new(false);
    let got = thread::scope(|scope| {
        let get = || {
            client.get_range("one", None, 0, &mut vec![0; 1 << 20], || {
                enough.load(Relaxed)
            })
        };
        let getting = scope.spawn(get);
        while clients.first_byte().is_none() && !getting.is_finished() {
            thread::sleep(Duration::from_millis(5));
        }
        enough.store(true, Relaxed);
        getting.join().expect("no panic")
    });
    assert!(matches!(got, Err(ObjectError::Stopped)), "{got:?}");
    let first = clients.first_byte().expect("it has begun");
    assert!(first > Duration::ZERO && clients.received() < 1 << 20);
}
