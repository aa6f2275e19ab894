//! All connections of one endpoint: it dials every peer to send to it, and is dialled by each.
//!
//! Who dials says in 32 bytes which run it belongs to, who it is and which of its connections this
//! is, so that a stranger, or an endpoint of another run, is turned away. Peers start at different
//! times: dialling is repeated until they are there or the patience ends.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::NetError;
use crate::faults::Fault;
use crate::link::{Incoming, Outgoing};

const HELLO: [u8; 8] = *b"tonnage1";
const HELLO_BYTES: usize = 32;
/// Between two tries to reach a peer, and two looks for one that dials.
const PAUSE: Duration = Duration::from_millis(20);
/// A peer that dialled says who it is within this.
const HELLO_PATIENCE: Duration = Duration::from_secs(2);

/// Who takes part.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The addresses of all endpoints, in the order of their numbers.
    pub endpoints: Vec<SocketAddr>,
    /// The number of this one, which listens on its address.
    pub number: usize,
    /// Connections from each endpoint to each other.
    pub connections: usize,
    /// The same for all endpoints of a run, and for no other run.
    pub run: u64,
    /// Seconds to wait for all to come.
    pub patience_seconds: f64,
    /// What is to go wrong.
    #[serde(default)]
    pub faults: Vec<Fault>,
}

/// The connections of an endpoint.
#[derive(Debug)]
pub struct Mesh {
    /// To each peer, `connections` of them, in the order of the peers.
    pub outgoing: Vec<Outgoing>,
    /// From each peer, likewise.
    pub incoming: Vec<Incoming>,
}

impl Mesh {
    /// Connects with all peers.
    ///
    /// # Errors
    /// When the address cannot be listened on, or peers are missing when the patience ends; `stopped`.
    pub fn connect(settings: &Settings, stopped: impl Fn() -> bool) -> Result<Self, NetError> {
        let own = settings.endpoints[settings.number];
        let listen = |source| NetError::Listen {
            address: own.to_string(),
            source,
        };
        let listener = TcpListener::bind(own).map_err(listen)?;
        listener.set_nonblocking(true).map_err(listen)?;
        let patience = Duration::try_from_secs_f64(settings.patience_seconds);
        let deadline = Instant::now() + patience.unwrap_or(Duration::from_secs(1));
        let mut wanted: Vec<(usize, usize)> = settings.pairs().collect();
        wanted.reverse();
        let mut outgoing = Vec::new();
        let mut incoming: HashMap<(usize, usize), Incoming> = HashMap::new();
        let expected = wanted.len();
        let mut last = String::new();
        while outgoing.len() < expected || incoming.len() < expected {
            if stopped() {
                return Err(NetError::Stopped);
            }
            if Instant::now() >= deadline {
                return Err(settings.missing(&wanted, &incoming, &last));
            }
            let mut idle = true;
            while let Some(&(peer, connection)) = wanted.last() {
                match settings.dial(peer, connection) {
                    Ok(link) => outgoing.push(link),
                    Err(why) => {
                        last = why.to_string();
                        break;
                    }
                }
                wanted.pop();
                idle = false;
            }
            while let Ok((stream, from)) = listener.accept() {
                idle = false;
                // Who does not say a proper hello is no peer: its connection is dropped.
                if let Ok((key, link)) = settings.welcome(stream, from) {
                    incoming.entry(key).or_insert(link);
                }
            }
            if idle {
                thread::sleep(PAUSE);
            }
        }
        let mut incoming: Vec<_> = incoming.into_iter().collect();
        incoming.sort_unstable_by_key(|(key, _)| *key);
        Ok(Self {
            outgoing,
            incoming: incoming.into_iter().map(|(_, link)| link).collect(),
        })
    }
}

impl Settings {
    /// Every peer with every connection's number.
    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let peers = (0..self.endpoints.len()).filter(|&peer| peer != self.number);
        peers.flat_map(|peer| (0..self.connections).map(move |connection| (peer, connection)))
    }

    fn name(&self, peer: usize) -> String {
        format!("endpoint {peer} ({})", self.endpoints[peer])
    }

    fn dial(&self, peer: usize, connection: usize) -> io::Result<Outgoing> {
        let mut stream = TcpStream::connect_timeout(&self.endpoints[peer], HELLO_PATIENCE)?;
        let mut hello = [0; HELLO_BYTES];
        hello[..8].copy_from_slice(&HELLO);
        hello[8..16].copy_from_slice(&self.run.to_le_bytes());
        hello[16..24].copy_from_slice(&(self.number as u64).to_le_bytes());
        hello[24..].copy_from_slice(&(connection as u64).to_le_bytes());
        stream.write_all(&hello)?;
        let fault = self.faults.iter().find(|fault| fault.to == peer);
        Outgoing::new(stream, peer, self.name(peer), fault.copied())
    }

    fn welcome(
        &self,
        mut stream: TcpStream,
        from: SocketAddr,
    ) -> io::Result<((usize, usize), Incoming)> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(HELLO_PATIENCE))?;
        let mut hello = [0; HELLO_BYTES];
        stream.read_exact(&mut hello)?;
        let number = |at: usize| u64::from_le_bytes(*hello[at..].first_chunk().expect("within"));
        let key = (number(16) as usize, number(24) as usize);
        let known = hello[..8] == HELLO && number(8) == self.run;
        if !known || !self.pairs().any(|pair| pair == key) {
            let what = format!("{from} belongs to another run");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        Ok((key, Incoming::new(stream, key.0, self.name(key.0))?))
    }

    fn missing(
        &self,
        wanted: &[(usize, usize)],
        incoming: &HashMap<(usize, usize), Incoming>,
        last: &str,
    ) -> NetError {
        if let Some(&(peer, _)) = wanted.last() {
            let what = format!("not reached in {} s: {last}", self.patience_seconds);
            return NetError::Meet {
                peer: self.name(peer),
                what,
            };
        }
        let absent = self.pairs().find(|pair| !incoming.contains_key(pair));
        NetError::Meet {
            peer: absent.map_or_else(String::new, |(peer, _)| self.name(peer)),
            what: format!("has not dialled in {} s", self.patience_seconds),
        }
    }
}
