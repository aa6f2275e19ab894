//! One end of a one-way connection: sending or receiving.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::Duration;

use crate::error::NetError;
use crate::faults::{Effect, Fault};
use crate::frame::{HEAD_BYTES, Head, Kind, checksum};
use crate::settings::Settings;

/// How often a blocked socket checks whether to stop.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// A receiver sleeps until so much has arrived, or all that it waits for if that is less. By
/// default the kernel wakes it every few packets, which was 15 % of the cost of a byte over
/// loopback.
const WORTH_WAKING_BYTES: usize = 512 << 10;

/// The sending end.
#[derive(Debug)]
pub struct Outgoing {
    stream: TcpStream,
    peer: usize,
    name: String,
    sent: u64,
    checked: bool,
    fault: Option<Fault>,
}

/// The receiving end.
#[derive(Debug)]
pub struct Incoming {
    stream: TcpStream,
    peer: usize,
    name: String,
    received: u64,
    wakes_at: usize,         // bytes; 0 for what the kernel does unasked
    ahead: [u8; HEAD_BYTES], // beginning of the next head, read with the payload before it
    ahead_bytes: usize,
}

impl Outgoing {
    pub(crate) fn new(stream: TcpStream, peer: usize, settings: &Settings) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(POLL_INTERVAL))?;
        give_up_after(&stream, settings.patience());
        let fault = settings.faults.iter().find(|fault| fault.to == peer);
        Ok(Self {
            stream,
            peer,
            name: settings.name(peer),
            sent: 0,
            checked: settings.checked,
            fault: fault.copied(),
        })
    }

    /// The number of the peer.
    #[must_use]
    pub fn peer(&self) -> usize {
        self.peer
    }

    /// Sends a frame, unless `stopped` returns true.
    ///
    /// # Errors
    /// When the connection fails, naming the peer.
    pub fn send(
        &mut self,
        head: Head,
        payload: &[u8],
        stopped: impl Fn() -> bool,
    ) -> Result<(), NetError> {
        debug_assert_eq!(head.len as usize, payload.len());
        let mut bytes = if self.checked {
            let sum = checksum(&head.to_bytes(0, Kind::Checked), payload);
            head.to_bytes(sum, Kind::Checked)
        } else {
            head.to_bytes(0, Kind::Plain)
        };
        if let Some(Fault { effect, .. }) = self
            .fault
            .take_if(|fault| self.sent + payload.len() as u64 >= fault.after_bytes)
        {
            match effect {
                Effect::Stall { .. } => thread::sleep(effect.pause()),
                Effect::Garble => bytes[HEAD_BYTES - 1] ^= 0xff,
                Effect::Flip => bytes[20] ^= 1, // As if the payload that it was made of had been another.
                Effect::Cut => {
                    let _half = self.stream.write(&bytes[..HEAD_BYTES / 2]);
                    let _gone = self.stream.shutdown(Shutdown::Both);
                }
            }
        }
        self.write(&bytes, payload, stopped)?;
        self.sent += payload.len() as u64;
        Ok(())
    }

    /// Sends the end frame.
    ///
    /// # Errors
    /// When the connection has failed.
    pub fn finish(&mut self, stopped: impl Fn() -> bool) -> Result<(), NetError> {
        let end = Head {
            offset: self.sent,
            ..Head::default()
        };
        self.write(&end.to_bytes(0, Kind::End), &[], stopped)?;
        self.stream
            .shutdown(Shutdown::Write)
            .map_err(|why| self.broken(why))
    }

    fn write(
        &mut self,
        mut head: &[u8],
        mut rest: &[u8],
        stopped: impl Fn() -> bool,
    ) -> Result<(), NetError> {
        while !head.is_empty() || !rest.is_empty() {
            match self
                .stream
                .write_vectored(&[IoSlice::new(head), IoSlice::new(rest)])
            {
                Ok(0) => return Err(self.broken(io::ErrorKind::WriteZero.into())),
                Ok(moved) => {
                    let of_head = moved.min(head.len());
                    head = &head[of_head..];
                    rest = &rest[moved - of_head..];
                }
                Err(why) if is_transient(&why) && !stopped() => {}
                Err(why) if is_transient(&why) => return Err(NetError::Stopped),
                Err(why) => return Err(self.broken(why)),
            }
        }
        Ok(())
    }

    /// Segments that the kernel retransmitted; `None` where it does not say.
    #[must_use]
    pub fn retransmits(&self) -> Option<u64> {
        retransmits(&self.stream)
    }

    fn broken(&self, source: io::Error) -> NetError {
        NetError::Connection {
            doing: "sending to",
            peer: self.name.clone(),
            source,
        }
    }
}

impl Incoming {
    pub(crate) fn new(stream: TcpStream, peer: usize, settings: &Settings) -> io::Result<Self> {
        stream.set_read_timeout(Some(POLL_INTERVAL))?;
        give_up_after(&stream, settings.patience());
        Ok(Self {
            stream,
            peer,
            name: settings.name(peer),
            received: 0,
            wakes_at: 0,
            ahead: [0; HEAD_BYTES],
            ahead_bytes: 0,
        })
    }

    /// The number of the peer.
    #[must_use]
    pub fn peer(&self) -> usize {
        self.peer
    }

    /// Receives a frame's payload into the beginning of `memory`; `None` after the end frame.
    ///
    /// # Errors
    /// When the connection fails, the bytes are no frame or do not fit, or `stopped` returns true.
    pub fn receive(
        &mut self,
        memory: &mut [u8],
        stopped: impl Fn() -> bool,
    ) -> Result<Option<Head>, NetError> {
        let mut bytes = std::mem::take(&mut self.ahead);
        let begun = std::mem::take(&mut self.ahead_bytes);
        if begun + self.fill(&mut bytes[begun..], &mut [], &stopped)? < HEAD_BYTES {
            return Err(self.broken(io::ErrorKind::UnexpectedEof.into()));
        }
        let (head, sum, kind) = Head::from_bytes(&bytes).ok_or_else(|| {
            self.protocol_error("the data received is not the start of a frame".into())
        })?;
        if kind == Kind::End {
            let (sent, received) = (head.offset, self.received);
            return match sent == received {
                true => Ok(None),
                false => {
                    Err(self
                        .protocol_error(format!("{sent} bytes were sent, but {received} arrived")))
                }
            };
        }
        let (len, room) = (head.len as usize, memory.len());
        let payload = memory.get_mut(..len).ok_or_else(|| {
            self.protocol_error(format!(
                "a frame has {len} bytes, but there is room for {room}"
            ))
        })?;
        // One system call for both, and mostly one sleep, where frames follow each other.
        let mut ahead = [0; HEAD_BYTES];
        let filled = self.fill(payload, &mut ahead, &stopped)?;
        if filled < len {
            return Err(self.broken(io::ErrorKind::UnexpectedEof.into()));
        }
        if kind == Kind::Checked && checksum(&bytes, payload) != sum {
            return Err(self.protocol_error(format!("{len} received bytes differ from those sent")));
        }
        (self.ahead, self.ahead_bytes) = (ahead, filled - len);
        self.received += len as u64;
        Ok(Some(head))
    }

    /// An error for bytes that no peer sends.
    #[must_use]
    pub fn protocol_error(&self, what: String) -> NetError {
        NetError::Protocol {
            peer: self.name.clone(),
            what,
        }
    }

    /// Reads until `memory` is full or the stream ends, and into `more` what has arrived already;
    /// returns the sum.
    fn fill(
        &mut self,
        memory: &mut [u8],
        more: &mut [u8],
        stopped: &impl Fn() -> bool,
    ) -> Result<usize, NetError> {
        let mut filled = 0;
        while filled < memory.len() {
            self.wake_at((memory.len() - filled).min(WORTH_WAKING_BYTES));
            let rest = IoSliceMut::new(&mut memory[filled..]);
            match self
                .stream
                .read_vectored(&mut [rest, IoSliceMut::new(more)])
            {
                Ok(0) => break,
                Ok(moved) => filled += moved,
                Err(why) if is_transient(&why) && !stopped() => {}
                Err(why) if is_transient(&why) => return Err(NetError::Stopped),
                Err(why) => return Err(self.broken(why)),
            }
        }
        Ok(filled)
    }

    /// Has the kernel wake this thread when so much has arrived, or at the end.
    fn wake_at(&mut self, bytes: usize) {
        if self.wakes_at != bytes {
            wake_at(&self.stream, bytes);
            self.wakes_at = bytes;
        }
    }

    fn broken(&self, source: io::Error) -> NetError {
        NetError::Connection {
            doing: "receiving from",
            peer: self.name.clone(),
            source,
        }
    }
}

pub(crate) fn is_transient(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

/// Sets how much has to arrive before a waiting read returns. A kernel that refuses wakes the
/// reader earlier, which is harmless.
fn wake_at(stream: &TcpStream, bytes: usize) {
    set(stream, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes);
}

/// Has the kernel close the connection when the other side acknowledges nothing, or accepts
/// nothing, for about so long: the machine or the route is gone, or it hangs. A kernel that refuses
/// waits longer.
fn give_up_after(stream: &TcpStream, patience: Duration) {
    const PROBES: usize = 4; // after half of the time in silence, in the other half
    let seconds = patience.as_secs() as usize;
    let options = [
        (libc::TCP_USER_TIMEOUT, patience.as_millis() as usize),
        (libc::TCP_KEEPIDLE, (seconds / 2).max(1)),
        (libc::TCP_KEEPINTVL, (seconds / 2 / PROBES).max(1)),
        (libc::TCP_KEEPCNT, PROBES),
    ];
    for (option, value) in options {
        set(stream, libc::IPPROTO_TCP, option, value);
    }
    set(stream, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1);
}

#[allow(unsafe_code)] // One call: setsockopt.
fn set(stream: &TcpStream, level: libc::c_int, option: libc::c_int, value: usize) {
    let value = libc::c_int::try_from(value).unwrap_or(libc::c_int::MAX);
    // SAFETY: the descriptor is open; the kernel reads a number of this size and keeps no pointer.
    unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            std::mem::size_of_val(&value) as libc::socklen_t,
        );
    }
}

/// The kernel's count of retransmitted segments.
#[allow(unsafe_code)] // One call: getsockopt.
fn retransmits(stream: &TcpStream) -> Option<u64> {
    let mut about = std::mem::MaybeUninit::<libc::tcp_info>::zeroed();
    let mut len = std::mem::size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the descriptor is open; the kernel writes at most `len` bytes to `about`, which is
    // numbers only, for which zero is a value.
    let about = unsafe {
        let answer = libc::getsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            about.as_mut_ptr().cast(),
            &mut len,
        );
        (answer == 0).then(|| about.assume_init())
    }?;
    Some(about.tcpi_total_retrans.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::TcpListener;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

                /// However the network splits the bytes: within a head, a payload, or across both.
        #[test]
        fn frames_arrive_whole_in_pieces_of_any_size(
            lengths in prop::collection::vec(0_usize..60, 1..6),
            pieces in prop::collection::vec(1_usize..70, 1..12),
        ) {
            let frame = |(number, &len): (usize, &usize)| {
                let head = Head { number: number as u64, offset: 7, len: len as u32 };
                (head, vec![number as u8 + 1; len])
            };
            let frames: Vec<_> = lengths.iter().enumerate().map(frame).collect();
            let end = Head { offset: lengths.iter().sum::<usize>() as u64, ..Head::default() };
            let mut wire = Vec::new();
            for (head, payload) in &frames {
                let sum = checksum(&head.to_bytes(0, Kind::Checked), payload);
                wire.extend(head.to_bytes(sum, Kind::Checked));
                wire.extend(payload);
            }
            wire.extend(end.to_bytes(0, Kind::End));
            let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
            let address = listener.local_addr().expect("an address");
            thread::scope(|scope| {
                scope.spawn(|| {
                    let mut stream = TcpStream::connect(address).expect("it listens");
                    stream.set_nodelay(true).expect("a socket");
                    let mut at = 0;
                    for piece in pieces.iter().cycle() {
                        let end = wire.len().min(at + piece);
                        stream.write_all(&wire[at..end]).expect("it is read");
                        at = end;
                        if at == wire.len() {
                            break;
                        }
                        thread::sleep(Duration::from_micros(300));
                    }
                });
                let stream = listener.accept().expect("it dials").0;
                let settings = Settings {
                    endpoints: vec![address; 2],
                    number: 0,
                    connections: 1,
                    secret: crate::Secret::from_hex(&"07".repeat(32)).expect("64 digits"),
                    patience_seconds: 20.0,
                    handshake_timeout: crate::handshake_timeout(),
                    checked: true,
                    faults: Vec::new(),
                };
                let mut connection = Incoming::new(stream, 1, &settings).expect("a socket");
                let mut memory = [0; 60];
                for (head, payload) in &frames {
                    let got = connection.receive(&mut memory, || false).expect("a frame");
                    assert_eq!(got, Some(*head));
                    assert_eq!(&memory[..payload.len()], payload);
                }
                assert_eq!(connection.receive(&mut memory, || false).expect("its end"), None);
            });
        }
    }
}
