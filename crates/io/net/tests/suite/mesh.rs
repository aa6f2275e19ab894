//! Endpoints on loopback: frames arrive whole and in order, and every failure is reported with the
//! name of the peer.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use crate::stranger::among_others;
use crate::support::{addresses, head, secret, settings};
use proptest::prelude::*;
use tonnage_net::{Effect, Fault, Mesh, NetError, Settings};

fn connect(settings: &Settings) -> Mesh {
    Mesh::connect(settings, || false).expect("all are there")
}

/// Two endpoints with one connection each way, the first with these faults.
fn pair(faults: Vec<Fault>) -> (Mesh, Mesh) {
    let endpoints = addresses(2);
    let first = Settings {
        checked: faults.iter().any(|fault| fault.effect == Effect::Flip),
        faults,
        ..settings(&endpoints, 0, 1)
    };
    let second = settings(&endpoints, 1, 1);
    thread::scope(|scope| {
        let first = scope.spawn(move || connect(&first));
        let second = scope.spawn(move || connect(&second));
        (
            first.join().expect("no panic"),
            second.join().expect("no panic"),
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn frames_arrive_whole_and_in_order(
        endpoints in 2_usize..4,
        connections in 1_usize..3,
        lengths in prop::collection::vec(0_usize..200_000, 0..8),
    ) {
        let _shared = among_others();
        let addresses = addresses(endpoints);
        let payload = |from: usize, place: usize, len: usize| vec![(16 * from + place) as u8; len];
        thread::scope(|scope| {
            for number in 0..endpoints {
                let (addresses, lengths) = (&addresses, &lengths);
                scope.spawn(move || {
                    let Mesh { outgoing, incoming } = connect(&settings(addresses, number, connections));
                    assert_eq!(outgoing.len(), (endpoints - 1) * connections);
                    assert_eq!(incoming.len(), outgoing.len());
                    thread::scope(|scope| {
                        for mut connection in outgoing {
                            scope.spawn(move || {
                                for (place, &len) in lengths.iter().enumerate() {
                                    let payload = payload(number, place, len);
                                    connection.send(head(place as u64, &payload), &payload, || false)
                                        .expect("sent");
                                }
                                connection.finish(|| false).expect("finished");
                                assert!(connection.retransmits().is_some());
                            });
                        }
                        for mut connection in incoming {
                            let mut memory = vec![0; 200_000];
                            for (place, &len) in lengths.iter().enumerate() {
                                let expected = payload(connection.peer(), place, len);
                                let got = connection.receive(&mut memory, || false).expect("received");
                                assert_eq!(got, Some(head(place as u64, &expected)));
                                assert!(memory[..len] == expected);
                            }
                            assert_eq!(connection.receive(&mut memory, || false).expect("its end"), None);
                        }
                    });
                });
            }
        });
    }
}

fn send(mesh: &mut Mesh, bytes: usize) -> Result<(), NetError> {
    let payload = vec![1; bytes];
    mesh.outgoing[0].send(head(0, &payload), &payload, || false)
}

/// Whatever the receiver sleeps for, a frame is given though nothing follows it.
#[test]
fn a_frame_waits_for_nothing_behind_it() {
    let _shared = among_others();
    const MARK: usize = 512 << 10; // what the receiver sleeps for
    let (mut first, mut second) = pair(Vec::new());
    let mut memory = vec![0; 3 * MARK];
    for len in [0, 1, MARK - 1, MARK, MARK + 1, 2 * MARK + 17] {
        let payload = vec![7; len];
        let sent = head(len as u64, &payload);
        thread::scope(|scope| {
            scope.spawn(|| {
                first.outgoing[0]
                    .send(sent, &payload, || false)
                    .expect("sent")
            });
            let got = second.incoming[0].receive(&mut memory, || false);
            assert_eq!(got.expect("received"), Some(sent));
            assert!(memory[..len] == payload);
        });
    }
}

#[test]
fn a_connection_cut_in_a_frame_is_no_end() {
    let _shared = among_others();
    let cut = Fault {
        to: 1,
        after_bytes: 2000,
        effect: Effect::Cut,
    };
    let (mut first, mut second) = pair(vec![cut]);
    send(&mut first, 1000).expect("before the fault");
    assert!(matches!(
        send(&mut first, 1000),
        Err(NetError::Connection { .. })
    ));
    let mut memory = vec![0; 1000];
    let connection = &mut second.incoming[0];
    assert!(
        connection
            .receive(&mut memory, || false)
            .expect("whole")
            .is_some()
    );
    let why = connection.receive(&mut memory, || false).expect_err("cut");
    assert!(matches!(why, NetError::Connection { .. }));
    assert!(why.to_string().contains("endpoint 0"), "{why}");
}

#[test]
fn what_is_no_frame_is_noticed() {
    let _shared = among_others();
    let garble = Fault {
        to: 1,
        after_bytes: 0,
        effect: Effect::Garble,
    };
    let (mut first, mut second) = pair(vec![garble]);
    send(&mut first, 1000).expect("sent");
    let why = second.incoming[0].receive(&mut [0; 1000], || false);
    assert!(matches!(why, Err(NetError::Protocol { .. })), "{why:?}");
}

#[test]
fn a_payload_that_changed_on_its_way_is_noticed() {
    let _shared = among_others();
    let flip = Fault {
        to: 1,
        after_bytes: 2000,
        effect: Effect::Flip,
    };
    let (mut first, mut second) = pair(vec![flip]);
    let mut receive = || second.incoming[0].receive(&mut [0; 1000], || false);
    send(&mut first, 1000).expect("sent");
    assert!(receive().expect("as it was sent").is_some());
    send(&mut first, 1000).expect("sent");
    let why = receive().expect_err("not as it was sent").to_string();
    assert!(
        why.contains("1000 received bytes differ from those"),
        "{why}"
    );
}

/// A process that ends closes its connections as one does that has sent all.
#[test]
fn a_connection_that_closes_between_frames_is_no_end() {
    let _shared = among_others();
    let (mut first, mut second) = pair(Vec::new());
    send(&mut first, 1000).expect("sent");
    drop(first);
    let mut receive = || second.incoming[0].receive(&mut [0; 1000], || false);
    assert!(receive().expect("whole").is_some());
    assert!(matches!(receive(), Err(NetError::Connection { .. })));
}

#[test]
fn a_frame_that_does_not_fit_is_refused() {
    let _shared = among_others();
    let (mut first, mut second) = pair(Vec::new());
    send(&mut first, 1001).expect("sent");
    let why = second.incoming[0].receive(&mut [0; 1000], || false);
    assert!(why.expect_err("too long").to_string().contains("1001"));
}

#[test]
fn a_stalled_peer_keeps_nobody_from_stopping() {
    let _shared = among_others();
    let stall = Fault {
        to: 1,
        after_bytes: 0,
        effect: Effect::Stall { milliseconds: 300 },
    };
    let (mut first, mut second) = pair(vec![stall]);
    let stopped = AtomicBool::new(false);
    thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            let mut memory = vec![0; 1000];
            let connection = &mut second.incoming[0];
            let got = connection
                .receive(&mut memory, || false)
                .expect("late, but there");
            assert!(got.is_some());
            connection.receive(&mut memory, || stopped.load(Relaxed))
        });
        send(&mut first, 1000).expect("sent");
        stopped.store(true, Relaxed);
        let ended = receiving.join().expect("no panic");
        assert!(matches!(ended, Err(NetError::Stopped)), "{ended:?}");
    });
}

/// A sender whose peer reads nothing stops on request.
#[test]
fn a_full_connection_keeps_nobody_from_stopping() {
    let _shared = among_others();
    let (mut first, _second) = pair(Vec::new());
    let payload = vec![0; 1 << 20];
    let stopped = AtomicBool::new(false);
    thread::scope(|scope| {
        let sending = scope.spawn(|| {
            loop {
                let sent =
                    first.outgoing[0].send(head(0, &payload), &payload, || stopped.load(Relaxed));
                if let Err(why) = sent {
                    return why;
                }
            }
        });
        thread::sleep(std::time::Duration::from_millis(200));
        stopped.store(true, Relaxed);
        assert!(matches!(
            sending.join().expect("no panic"),
            NetError::Stopped
        ));
    });
}

#[test]
fn strangers_are_turned_away() {
    let _shared = among_others();
    let endpoints = addresses(2);
    let (first, second) = (settings(&endpoints, 0, 1), settings(&endpoints, 1, 1));
    let other_run = Settings {
        secret: secret(8),
        patience_seconds: 1.0,
        ..settings(&[addresses(1)[0], endpoints[1]], 0, 1)
    };
    thread::scope(|scope| {
        let waiting = scope.spawn(move || connect(&second));
        let lost = scope.spawn(move || Mesh::connect(&other_run, || false));
        let why = lost.join().expect("no panic").expect_err("another run");
        assert!(why.to_string().contains("endpoint 1"), "{why}");
        let mut stranger = TcpStream::connect(endpoints[1]).expect("the endpoint listens");
        stranger.write_all(&[b'x'; 100]).expect("written");
        let first = connect(&first);
        let second = waiting.join().expect("no panic");
        assert_eq!((first.incoming.len(), second.incoming.len()), (1, 1));
    });
}

#[test]
fn who_is_missing_is_named() {
    let _shared = among_others();
    let endpoints = addresses(3);
    let alone = Settings {
        patience_seconds: 0.3,
        ..settings(&endpoints, 1, 2)
    };
    let why = Mesh::connect(&alone, || false)
        .expect_err("alone")
        .to_string();
    assert!(why.contains("endpoint 0") && why.contains("0.3 s"), "{why}");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let own = taken.local_addr().expect("an address");
    let why = Mesh::connect(&settings(&[own, endpoints[0]], 0, 1), || false);
    assert!(matches!(why, Err(NetError::Listen { .. })), "{why:?}");
}

#[test]
fn settings_are_read_with_a_secret_and_show_none() {
    let _shared = among_others();
    let digits = "5a".repeat(32);
    let text = format!(
        r#"{{"endpoints": ["127.0.0.1:1", "[::1]:2"], "number": 1, "connections": 2,
            "secret": "{digits}", "patience_seconds": 30.0}}"#
    );
    let settings: Settings = serde_json::from_str(&text).expect("settings");
    assert_eq!((settings.number, settings.endpoints.len()), (1, 2));
    assert!(!format!("{settings:?}").contains("5a"));
    let without = text.replace("secret", "run");
    assert!(serde_json::from_str::<Settings>(&without).is_err());
}
