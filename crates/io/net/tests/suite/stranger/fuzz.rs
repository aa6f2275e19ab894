//! Fuzzing: recorded handshakes with random changes, sent to the port of a waiting endpoint and in
//! the place of a peer that it connects to.
//!
//!     TONNAGE_FUZZ_SECONDS=60 cargo test --release -p tonnage-net --test suite fuzz -- --nocapture

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use tonnage_net::{Mesh, Settings};

use super::{ANSWER, Chance, HELLO, Recording, Watch, accept, connect_peer, exchange, exclusive};
use crate::support::{addresses, settings};

const VISITORS: u64 = 3;

/// The first endpoint waits and dials all the time. Then its peer comes.
#[test]
fn fuzz() {
    let _alone = exclusive();
    let seconds = std::env::var("TONNAGE_FUZZ_SECONDS").unwrap_or_else(|_| "1".into());
    let seconds: f64 = seconds.parse().expect("a number of seconds");
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    let (as_dialler, as_listener) = (Recording::of(1, 0), Recording::of(0, 1));
    let endpoints = addresses(2);
    let (visits, visited) = (AtomicU64::new(0), AtomicU64::new(0));
    let watch = Watch::begin();
    thread::scope(|scope| {
        let patient = Settings {
            patience_seconds: seconds + 20.0,
            ..settings(&endpoints, 0, 2)
        };
        let first = scope.spawn(move || Mesh::connect(&patient, || false));
        drop(connect_peer(endpoints[0]));
        let strangers: Vec<_> = (0..VISITORS)
            .map(|_| {
                scope.spawn(|| {
                    while Instant::now() < until {
                        let mut chance = Chance::new(2 * visits.fetch_add(1, Relaxed));
                        let _failed = visit(endpoints[0], &mut chance, &as_dialler);
                    }
                })
            })
            .collect();
        let listener = TcpListener::bind(endpoints[1]).expect("nobody is there");
        while Instant::now() < until {
            let mut chance = Chance::new(2 * visited.fetch_add(1, Relaxed) + 1);
            let stream = accept(&listener);
            let _failed = be_visited(stream, &mut chance, &as_listener);
        }
        drop(listener);
        for stranger in strangers {
            stranger.join().expect("its checks hold");
        }
        let second = Mesh::connect(&settings(&endpoints, 1, 2), || false).expect("met");
        let first = first.join().expect("no panic").expect("met");
        scope.spawn(move || exchange(second, 1, 12));
        exchange(first, 0, 12);
    });
    watch.end(200);
    let (visits, visited) = (visits.into_inner(), visited.into_inner());
    assert!(visits > 0 && visited > 0);
    println!("strangers that dialled: {visits}; that listened: {visited}");
}

/// Sends something to a listener, which answers a hello at most.
fn visit(target: SocketAddr, chance: &mut Chance, recorded: &Recording) -> io::Result<()> {
    let mut stream = TcpStream::connect(target)?;
    let mut transcript = match chance.below(4) {
        0 => Vec::new(),
        1 => recorded.hello.to_vec(),
        _ => [&recorded.hello[..], &recorded.proof].concat(),
    };
    // Sometimes as it was: a mere repetition.
    for _ in 0..chance.below(3) {
        change(&mut transcript, chance);
    }
    let mut heard = say(&mut stream, &transcript, chance)?;
    if chance.below(3) > 0 {
        stream.shutdown(Shutdown::Write)?;
        let ended = stream.read_to_end(&mut heard);
        assert!(heard.len() <= ANSWER, "{} bytes were sent", heard.len());
        ended?;
    }
    Ok(())
}

/// Sends something to an initiator, which sends its hello and no more.
fn be_visited(mut stream: TcpStream, chance: &mut Chance, recorded: &Recording) -> io::Result<()> {
    let mut transcript = match chance.below(4) {
        0 => Vec::new(),
        1 => [&recorded.answer[..], &[1]].concat(),
        _ => recorded.answer.to_vec(),
    };
    for _ in 0..chance.below(3) {
        change(&mut transcript, chance);
    }
    let mut heard = say(&mut stream, &transcript, chance)?;
    stream.shutdown(Shutdown::Write)?;
    let ended = stream.read_to_end(&mut heard);
    assert!(heard.len() <= HELLO, "{} bytes were sent", heard.len());
    ended.map(drop)
}

/// Says it in pieces; gives what was answered between them.
fn say(stream: &mut TcpStream, transcript: &[u8], chance: &mut Chance) -> io::Result<Vec<u8>> {
    let mut heard = Vec::new();
    let mut rest = transcript;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(1 + chance.below(rest.len()));
        stream.write_all(piece)?;
        rest = after;
        if chance.below(4) == 0 {
            let mut some = [0; 2 * ANSWER];
            stream.set_read_timeout(Some(Duration::from_millis(1 + chance.below(10) as u64)))?;
            if let Ok(moved) = stream.read(&mut some) {
                heard.extend_from_slice(&some[..moved]);
            }
        }
    }
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    Ok(heard)
}

fn change(transcript: &mut Vec<u8>, chance: &mut Chance) {
    let at = chance.below(transcript.len() + 1);
    match chance.below(5) {
        0 => transcript.truncate(at),
        1 => transcript.extend(chance.bytes(at)),
        2 => {
            let more = chance.bytes(32);
            transcript.splice(at..at, more);
        }
        3 => transcript.extend_from_within(at..),
        _ => {
            if let Some(byte) = transcript.get_mut(at) {
                *byte ^= 1 << chance.below(8);
            }
        }
    }
}
