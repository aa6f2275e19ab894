//! Accepts the peers that connect, and no stranger.
//!
//! An unauthenticated connection gets little: a nonblocking socket, room for one message, and a
//! limited time for the handshake. Their number is bounded; one more evicts the oldest from the
//! address with the most connections, so a crowd from one address evicts itself. An evicted peer
//! notices and connects again. A stranger is no error: its socket is closed. Sockets are polled at
//! short intervals instead of waited for, which costs a few thousand reads a second while there is
//! a crowd.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, ErrorKind::InvalidData, ErrorKind::UnexpectedEof, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::{Duration, Instant};

use crate::connection::{Incoming, is_transient};
use crate::error::NetError;
use crate::handshake::{ConnectionId, HELLO_BYTES, PROOF_BYTES, Responder, WELCOME};
use crate::settings::Settings;

/// Most handshakes in progress. Peers make one connection at a time, so this suffices for as many
/// peers at once, and leaves most of the 1024 descriptors that a process usually may have.
const MOST_PENDING: usize = 128;
/// Most connections accepted before pending ones are polled again: a peer is polled several times
/// before it can be evicted.
const MOST_TAKEN: usize = 16;
/// Pause between two polls if the last found nothing.
const PAUSE: Duration = Duration::from_millis(5);

/// Connections that the kernel queues until they are accepted, if it allows so many. From a full
/// queue a peer would come out a second later, at its next SYN.
const MOST_QUEUED: libc::c_int = 4096;

/// Peer and connection.
type Key = (usize, usize);

/// Listens on this endpoint's own address.
#[allow(unsafe_code)] // One call: listen.
pub(crate) fn listen(own: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(own)?;
    listener.set_nonblocking(true)?;
    // It listens already, with a queue of 128; the second call changes that. A kernel that refuses
    // leaves it unchanged. SAFETY: the descriptor is open, the rest is a number.
    unsafe { libc::listen(listener.as_raw_fd(), MOST_QUEUED) };
    Ok(listener)
}

/// The connections of all peers, in order. Then the listener is closed.
///
/// # Errors
/// When a peer has not connected by the deadline; `stopped`.
pub(crate) fn accept_peers(
    settings: &Settings,
    listener: TcpListener,
    deadline: Instant,
    stopped: &impl Fn() -> bool,
) -> Result<Vec<Incoming>, NetError> {
    let expected = settings.peers().count() * settings.connections;
    let mut acceptor = Acceptor {
        settings,
        listener,
        pending: Vec::new(),
        accepted: BTreeMap::new(),
        rejected: 0,
    };
    while acceptor.accepted.len() < expected {
        if stopped() {
            return Err(NetError::Stopped);
        }
        if Instant::now() >= deadline {
            return Err(acceptor.missing());
        }
        let taken = acceptor.take();
        if !acceptor.hear() && !taken {
            thread::sleep(PAUSE);
        }
    }
    Ok(acceptor.accepted.into_values().collect())
}

struct Acceptor<'a> {
    settings: &'a Settings,
    listener: TcpListener,
    pending: Vec<PendingHandshake>, // oldest first
    accepted: BTreeMap<Key, Incoming>,
    rejected: u64,
}

/// A connection without a valid proof so far.
struct PendingHandshake {
    stream: TcpStream,
    from: IpAddr,
    until: Instant,
    heard: [u8; HELLO_BYTES],
    filled: usize,
    answered: Option<(Key, Responder)>,
}

/// The progress of a handshake.
enum HandshakeStep {
    Nothing,
    Hello,
    Proof(Key),
}

impl Acceptor<'_> {
    /// Accepts waiting connections; returns whether there were any.
    fn take(&mut self) -> bool {
        let mut any = false;
        for _ in 0..MOST_TAKEN {
            match self.listener.accept() {
                Ok((stream, from)) => {
                    any = true;
                    if self.pending.len() == MOST_PENDING {
                        self.evict();
                    }
                    if let Ok(one) =
                        PendingHandshake::new(stream, from.ip(), self.settings.handshake_timeout)
                    {
                        self.pending.push(one);
                    }
                }
                Err(why) if why.kind() == io::ErrorKind::WouldBlock => break,
                // Out of descriptors: evict one of these. If others hold them, retry later.
                Err(why) if matches!(why.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
                    self.evict();
                    break;
                }
                Err(_) => {} // the initiator is gone, for example
            }
        }
        any
    }

    /// Polls all pending handshakes; returns whether any progressed.
    fn hear(&mut self) -> bool {
        let mut any = false;
        for mut one in std::mem::take(&mut self.pending) {
            match one.hear(self.settings) {
                Ok(HandshakeStep::Nothing) => self.pending.push(one),
                Ok(HandshakeStep::Hello) => {
                    any = true;
                    self.pending.push(one);
                }
                // Of two with the same key the first stays.
                Ok(HandshakeStep::Proof(key)) if !self.accepted.contains_key(&key) => {
                    any = true;
                    if let Ok(connection) = one.welcome(key, self.settings) {
                        self.accepted.insert(key, connection);
                    }
                }
                Ok(HandshakeStep::Proof(_)) | Err(_) => {
                    any = true;
                    self.rejected += 1;
                }
            }
        }
        any
    }

    fn evict(&mut self) {
        if let Some(place) = eviction_candidate(self.pending.iter().map(|one| one.from)) {
            self.pending.remove(place);
            self.rejected += 1;
        }
    }

    fn missing(&self) -> NetError {
        let absent = self.settings.peers().find(|&peer| {
            (0..self.settings.connections)
                .any(|connection| !self.accepted.contains_key(&(peer, connection)))
        });
        let mut what = format!("has not connected in {} s", self.settings.patience_seconds);
        if self.rejected > 0 {
            what += &format!("; strangers rejected: {}", self.rejected);
        }
        NetError::Connect {
            peer: absent.map_or_else(String::new, |peer| self.settings.name(peer)),
            what,
        }
    }
}

impl PendingHandshake {
    fn new(stream: TcpStream, from: IpAddr, timeout: Duration) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            from,
            until: Instant::now() + timeout,
            heard: [0; HELLO_BYTES],
            filled: 0,
            answered: None,
        })
    }

    /// Reads what has arrived, and answers a hello.
    ///
    /// # Errors
    /// When it is a stranger, or the time is up.
    fn hear(&mut self, settings: &Settings) -> io::Result<HandshakeStep> {
        let message = match self.answered {
            None => HELLO_BYTES,
            Some(_) => PROOF_BYTES,
        };
        while self.filled < message {
            match self.stream.read(&mut self.heard[self.filled..message]) {
                Ok(0) => return Err(UnexpectedEof.into()),
                Ok(moved) => self.filled += moved,
                Err(why) if is_transient(&why) && Instant::now() < self.until => {
                    return Ok(HandshakeStep::Nothing);
                }
                Err(why) => return Err(why),
            }
        }
        self.filled = 0;
        match &self.answered {
            None => {
                let key = key(&self.heard, settings).ok_or(InvalidData)?;
                let responder = Responder::new(&self.heard);
                // Nothing was sent before, so the kernel has room for this.
                self.stream.write_all(&responder.answer(&settings.secret))?;
                self.answered = Some((key, responder));
                Ok(HandshakeStep::Hello)
            }
            Some((key, responder)) => {
                let proof = self.heard.first_chunk().expect("longer");
                let proved = responder.is_proof(proof, &settings.secret);
                proved
                    .then_some(HandshakeStep::Proof(*key))
                    .ok_or(InvalidData.into())
            }
        }
    }

    fn welcome(mut self, key: Key, settings: &Settings) -> io::Result<Incoming> {
        self.stream.set_nonblocking(false)?;
        self.stream.write_all(&WELCOME)?;
        Incoming::new(self.stream, key.0, settings)
    }
}

/// The peer and connection of a hello; `None` if it is from no peer of this endpoint.
fn key(hello: &[u8; HELLO_BYTES], settings: &Settings) -> Option<Key> {
    let id = ConnectionId::in_hello(hello)?;
    let known = id.responder == settings.number
        && id.initiator != settings.number
        && id.initiator < settings.endpoints.len()
        && id.connection < settings.connections;
    known.then_some((id.initiator, id.connection))
}

/// The connection to evict: the oldest from the address with the most.
fn eviction_candidate(from: impl Iterator<Item = IpAddr> + Clone) -> Option<usize> {
    let mut count: HashMap<IpAddr, usize> = HashMap::new();
    for address in from.clone() {
        *count.entry(address).or_default() += 1;
    }
    let most = count.values().max().copied()?;
    from.clone().position(|address| count[&address] == most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handshake::Initiator;
    use crate::secret::Secret;

    #[test]
    fn a_crowd_crowds_out_itself() {
        let from = |letters: &str| {
            let address = |letter| IpAddr::from([10, 0, 0, letter]);
            eviction_candidate(letters.bytes().map(address))
        };
        assert_eq!(from(""), None);
        assert_eq!(from("a"), Some(0));
        assert_eq!(from("abcbd"), Some(1));
        assert_eq!(from("aabb"), Some(0));
        assert_eq!(from("pqcccccr"), Some(2));
    }

    #[test]
    fn only_peers_have_a_key_and_only_where_they_mean_to_be() {
        let settings = Settings {
            endpoints: vec![SocketAddr::from(([127, 0, 0, 1], 1)); 3],
            number: 1,
            connections: 2,
            secret: Secret::from_hex(&"07".repeat(32)).expect("64 digits"),
            patience_seconds: 1.0,
            handshake_timeout: crate::handshake_timeout(),
            checked: false,
            faults: Vec::new(),
        };
        let key = |initiator, responder, connection| {
            let initiator = Initiator::new(ConnectionId {
                initiator,
                responder,
                connection,
            });
            key(initiator.hello(), &settings)
        };
        assert_eq!(key(0, 1, 1), Some((0, 1)));
        assert_eq!(key(2, 1, 0), Some((2, 0)));
        for [initiator, responder, connection] in [
            [0, 2, 0],
            [1, 1, 0],
            [3, 1, 0],
            [0, 1, 2],
            [usize::MAX, 1, 0],
            [0, 1, usize::MAX],
        ] {
            assert_eq!(key(initiator, responder, connection), None);
        }
    }
}
