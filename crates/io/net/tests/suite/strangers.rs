//! A stranger at the ports of connecting endpoints changes nothing that they send each other, and
//! takes a bounded number of descriptors and threads. The attacks here were thought of;
//! `stranger/fuzz.rs` tries random ones.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use crate::stranger::{ANSWER, HELLO, Recording, Watch, accept, exchange, exclusive, meet_despite};
use crate::support::{HANDSHAKE_TIMEOUT, addresses, secret, settings};
use tonnage_net::{Mesh, Settings};

#[test]
fn random_bytes() {
    let _alone = exclusive();
    meet_despite(1, 300, |target, chance| {
        let mut stream = TcpStream::connect(target)?;
        let len = chance.below(300);
        stream.write_all(&chance.bytes(len))
    });
}

#[test]
fn half_a_hello() {
    let _alone = exclusive();
    let recorded = Recording::of(1, 0);
    let mut held = Vec::new();
    meet_despite(2, 300, |target, chance| {
        let mut stream = TcpStream::connect(target)?;
        stream.write_all(&recorded.hello[..chance.below(HELLO)])?;
        held.truncate(100);
        held.insert(0, stream);
        Ok(())
    });
}

/// The hello that a peer once said, and then what it said to the answer that it got.
#[test]
fn a_replayed_handshake() {
    let _alone = exclusive();
    let recorded = Recording::of(1, 0);
    meet_despite(3, 100, |target, chance| {
        let mut stream = TcpStream::connect(target)?;
        stream.write_all(&recorded.hello)?;
        if chance.below(2) == 0 {
            stream.read_exact(&mut [0; ANSWER])?;
            stream.write_all(&recorded.proof)?;
        } else {
            stream.write_all(&recorded.proof)?;
            stream.read_exact(&mut [0; ANSWER])?;
        }
        assert!(!matches!(stream.read(&mut [0]), Ok(1)), "it was accepted");
        Ok(())
    });
}

/// What the listener proves itself with, given back to it.
#[test]
fn a_reflected_proof() {
    let _alone = exclusive();
    let recorded = Recording::of(1, 0);
    meet_despite(4, 100, |target, _| {
        let mut stream = TcpStream::connect(target)?;
        stream.write_all(&recorded.hello)?;
        let mut answer = [0; ANSWER];
        stream.read_exact(&mut answer)?;
        stream.write_all(&answer[ANSWER / 2..])?;
        assert!(!matches!(stream.read(&mut [0]), Ok(1)), "it was accepted");
        Ok(())
    });
}

#[test]
fn a_wrong_secret() {
    let _alone = exclusive();
    meet_despite(5, 12, |target, _| {
        let wrong = Settings {
            secret: secret(8),
            patience_seconds: 0.1,
            ..settings(&[target, addresses(1)[0]], 1, 1)
        };
        let why = Mesh::connect(&wrong, || false).expect_err("a stranger");
        assert!(why.to_string().contains("endpoint 0"), "{why}");
        Ok(())
    });
}

/// The connection is reset: what the endpoint has answered is never read.
#[test]
fn hello_and_reset() {
    let _alone = exclusive();
    let recorded = Recording::of(1, 0);
    meet_despite(6, 100, |target, _| {
        let mut stream = TcpStream::connect(target)?;
        stream.write_all(&recorded.hello)?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.peek(&mut [0]).map(drop)
    });
}

/// Those that are crowded out hear it; those that are not hold their places for a while.
#[test]
fn ten_thousand_that_say_nothing() {
    let _alone = exclusive();
    let most = crate::stranger::descriptors_allowed().saturating_sub(400);
    let mut held = Vec::new();
    meet_despite(7, 10_000, |target, chance| {
        let stream = TcpStream::connect(target)?;
        if held.len() == most {
            held.swap_remove(chance.below(most));
        }
        held.push(stream);
        crate::stranger::HELD.store(held.len(), Relaxed);
        Ok(())
    });
    crate::stranger::HELD.store(0, Relaxed);
}

#[test]
fn a_byte_now_and_then() {
    let _alone = exclusive();
    let recorded = Recording::of(1, 0);
    let mut slow: Vec<(TcpStream, usize)> = Vec::new();
    meet_despite(8, 300, |target, chance| {
        slow.retain_mut(|(stream, sent)| {
            *sent += 1;
            *sent < HELLO && stream.write_all(&recorded.hello[*sent - 1..*sent]).is_ok()
        });
        thread::sleep(Duration::from_millis(1 + chance.below(5) as u64));
        if slow.len() < 100 {
            slow.push((TcpStream::connect(target)?, 0));
        }
        Ok(())
    });
}

/// Each byte comes in time for the next, but not the whole hello.
#[test]
fn who_is_slow_is_turned_away() {
    let _alone = exclusive();
    let recorded = Recording::of(1, 0);
    let endpoints = addresses(2);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let waiting =
            scope.spawn(|| Mesh::connect(&settings(&endpoints, 0, 1), || done.load(Relaxed)));
        let mut stream = crate::stranger::connect_peer(endpoints[0]);
        for byte in recorded.hello {
            thread::sleep(HANDSHAKE_TIMEOUT / 32);
            let _hung_up = stream.write_all(&[byte]);
        }
        let timeout = Some(Duration::from_secs(1));
        stream.set_read_timeout(timeout).expect("set");
        let answered = matches!(stream.read(&mut [0]), Ok(1));
        done.store(true, Relaxed);
        assert!(!answered, "it was heard to the end");
        assert!(waiting.join().expect("no panic").is_err());
    });
}

/// A peer with the secret connects a second time: the first connection stays.
#[test]
fn a_second_of_the_same() {
    let _alone = exclusive();
    let endpoints = addresses(3);
    let proxy = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut seen = endpoints.clone();
    seen[0] = proxy.local_addr().expect("an address");
    let twin = Settings {
        patience_seconds: 0.5,
        ..settings(&[endpoints[0], addresses(1)[0]], 1, 1)
    };
    thread::scope(|scope| {
        let run = |number, endpoints| {
            scope.spawn(move || {
                let mesh = Mesh::connect(&settings(endpoints, number, 1), || false);
                exchange(mesh.expect("all are there"), number, 9);
            })
        };
        run(0, &endpoints);
        run(1, &seen);
        let (_, mut first, mut welcomed) = crate::stranger::pass(&proxy, endpoints[0]);
        let why = Mesh::connect(&twin, || false).expect_err("its place is taken");
        assert!(why.to_string().contains("closed the connection"), "{why}");
        run(2, &endpoints);
        std::io::copy(&mut first, &mut welcomed).expect("passed on");
        welcomed.shutdown(Shutdown::Write).expect("open");
    });
}

/// Strangers that took the place of a peer hear no more than a hello. The peer comes later.
#[test]
fn a_stranger_that_listens() {
    let _alone = exclusive();
    let recorded = Recording::of(0, 1);
    let replies: [&[u8]; 4] = [
        b"",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        &recorded.answer,
        &[1; 500],
    ];
    for (place, reply) in replies.into_iter().enumerate() {
        for hangs_up in [true, false] {
            let endpoints = addresses(2);
            let watch = Watch::begin();
            let stranger = TcpListener::bind(endpoints[1]).expect("nobody is there");
            thread::scope(|scope| {
                let first = scope.spawn(|| Mesh::connect(&settings(&endpoints, 0, 1), || false));
                for _ in 0..2 {
                    let mut stream = accept(&stranger);
                    stream.write_all(reply).expect("written");
                    if hangs_up {
                        let _gone = stream.shutdown(Shutdown::Write);
                    }
                    let mut heard = Vec::new();
                    let _reset = stream.read_to_end(&mut heard);
                    assert!(
                        heard.len() <= HELLO,
                        "{place}: {} bytes were sent",
                        heard.len()
                    );
                }
                drop(stranger);
                let second = Mesh::connect(&settings(&endpoints, 1, 1), || false);
                let first = first.join().expect("no panic");
                let (first, second) = (first.expect("met"), second.expect("met"));
                let one = scope.spawn(move || exchange(second, 1, 10));
                exchange(first, 0, 10);
                one.join().expect("no panic");
            });
            watch.end(20);
        }
    }
}

#[test]
fn who_is_not_reached_for_strangers_is_named_with_why() {
    let _alone = exclusive();
    for (reply, why) in [
        (&[7; 100][..], "does not have this run's secret"),
        (b"", "does not answer"),
    ] {
        let endpoints = addresses(2);
        let stranger = TcpListener::bind(endpoints[1]).expect("nobody is there");
        stranger.set_nonblocking(true).expect("set");
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut held = Vec::new();
                while !done.load(Relaxed) {
                    if let Ok((mut stream, _)) = stranger.accept() {
                        let _gone = stream.write_all(reply);
                        held.push(stream);
                    }
                    thread::sleep(Duration::from_millis(1));
                }
            });
            let impatient = Settings {
                patience_seconds: 1.0,
                ..settings(&endpoints, 0, 1)
            };
            let why_not = Mesh::connect(&impatient, || false).expect_err("no peer");
            done.store(true, Relaxed);
            let message = why_not.to_string();
            assert!(
                message.starts_with("endpoint 1") && message.contains(why),
                "{message}"
            );
        });
    }
}

/// A process that may have few descriptors, and has none left for a while.
#[test]
fn a_lack_of_descriptors_passes() {
    let _alone = exclusive();
    let this = std::env::current_exe().expect("this test");
    let script = "ulimit -n 200 && exec \"$0\" --ignored --exact strangers::without_descriptors";
    let child = Command::new("sh")
        .args(["-c", script])
        .arg(this)
        .output()
        .expect("run");
    let output = String::from_utf8_lossy(&child.stdout);
    assert!(
        child.status.success() && output.contains("1 passed"),
        "{output}"
    );
}

#[test]
#[ignore = "a_lack_of_descriptors_passes runs it, with few of them"]
fn without_descriptors() {
    let endpoints = addresses(2);
    thread::scope(|scope| {
        let first = scope.spawn(|| Mesh::connect(&settings(&endpoints, 0, 2), || false));
        let mut idle = vec![crate::stranger::connect_peer(endpoints[0])];
        let mut files = Vec::new();
        while let Ok(file) = std::fs::File::open("/dev/null") {
            files.push(file);
        }
        for _ in 0..10 {
            files.pop();
            idle.extend(TcpStream::connect(endpoints[0]));
        }
        thread::sleep(Duration::from_millis(200)); // some looks without any
        assert!(!first.is_finished());
        drop(files);
        let second = Mesh::connect(&settings(&endpoints, 1, 2), || false).expect("met");
        let first = first.join().expect("no panic").expect("met");
        scope.spawn(move || exchange(second, 1, 11));
        exchange(first, 0, 11);
    });
}
