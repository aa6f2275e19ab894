//! Connects to a peer: its connections are made one after another, each retried until it succeeds.
//!
//! A stranger that listens in the peer's place (it sends no valid proof, hangs up, or is silent) is
//! treated as a peer that is not there yet, and gets no frame.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use crate::connection::{Outgoing, POLL_INTERVAL, is_transient};
use crate::error::NetError;
use crate::handshake::{ConnectionId, Initiator, WELCOME};
use crate::settings::Settings;

/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// All connections to a peer.
///
/// # Errors
/// When it is not reached by the deadline, with the error of the last attempt; `stopped`.
pub(crate) fn connect_peer(
    settings: &Settings,
    peer: usize,
    deadline: Instant,
    stopped: &impl Fn() -> bool,
) -> Result<Vec<Outgoing>, NetError> {
    let one = |connection| {
        let mut last = String::from("no time was left");
        while !stopped() {
            let now = Instant::now();
            if now >= deadline {
                return Err(NetError::Connect {
                    peer: settings.name(peer),
                    what: format!("not reached in {} s: {last}", settings.patience_seconds),
                });
            }
            match connect(settings, peer, connection, deadline, stopped) {
                Ok(connection) => return Ok(connection),
                // An attempt that the deadline ended says nothing.
                Err(why) if Instant::now() < deadline => last = why.to_string(),
                Err(_) => {}
            }
            thread::sleep(PAUSE);
        }
        Err(NetError::Stopped)
    };
    (0..settings.connections).map(one).collect()
}

/// One attempt.
fn connect(
    settings: &Settings,
    peer: usize,
    connection: usize,
    deadline: Instant,
    stopped: &impl Fn() -> bool,
) -> io::Result<Outgoing> {
    let patience = settings
        .handshake_timeout
        .min(deadline.saturating_duration_since(Instant::now()));
    let mut stream = TcpStream::connect_timeout(&settings.endpoints[peer], patience)?;
    stream.set_read_timeout(Some(POLL_INTERVAL))?;
    let handshake = Initiator::new(ConnectionId {
        initiator: settings.number,
        responder: peer,
        connection,
    });
    stream.write_all(handshake.hello())?;
    let until = deadline.min(Instant::now() + settings.handshake_timeout);
    let answer = hear(&mut stream, until, stopped)?;
    let proof = handshake
        .proof(&answer, &settings.secret)
        .ok_or_else(|| invalid("the listener there does not have this run's secret"))?;
    stream.write_all(&proof)?;
    // Only the responder, which is the peer by now, decides whether the proof was in time. Giving
    // up earlier could leave the peer with a connection that nobody has.
    if hear(&mut stream, deadline, stopped)? != WELCOME {
        return Err(invalid(
            "the listener there sent an unexpected reply in the handshake",
        ));
    }
    Outgoing::new(stream, peer, settings)
}

/// Reads so many bytes, however slowly they arrive.
fn hear<const BYTES: usize>(
    stream: &mut TcpStream,
    until: Instant,
    stopped: &impl Fn() -> bool,
) -> io::Result<[u8; BYTES]> {
    let mut heard = [0; BYTES];
    let mut filled = 0;
    while filled < BYTES {
        if stopped() || Instant::now() >= until {
            let what = "the listener there does not answer";
            return Err(io::Error::new(io::ErrorKind::TimedOut, what));
        }
        match stream.read(&mut heard[filled..]) {
            Ok(0) => {
                let what = "the listener there closed the connection";
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
            }
            Ok(moved) => filled += moved,
            Err(why) if is_transient(&why) => {}
            Err(why) => return Err(why),
        }
    }
    Ok(heard)
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
