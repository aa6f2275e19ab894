//! A stranger's tools: random numbers, a recorded handshake, and endpoints that connect at the same
//! time.

mod fuzz;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tonnage_net::Mesh;

use crate::support::{addresses, head, settings};

pub const HELLO: usize = 64;
pub const ANSWER: usize = 64;
const PROOF: usize = 32;

/// Descriptors that a stranger of this process holds on purpose.
pub static HELD: AtomicUsize = AtomicUsize::new(0);

/// Descriptors and threads belong to the process, so a test that counts them runs alone.
static PROCESS: RwLock<()> = RwLock::new(());

/// Waits until no other test runs.
pub fn exclusive() -> RwLockWriteGuard<'static, ()> {
    PROCESS.write().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until no test runs that has to be alone.
pub fn among_others() -> RwLockReadGuard<'static, ()> {
    PROCESS.read().unwrap_or_else(PoisonError::into_inner)
}

/// SplitMix64 (Steele, Lea, Flood, 2014). Tells its seed when a test fails.
pub struct Chance {
    seed: u64,
    state: u64,
}

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self { seed, state: seed }
    }

    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}

impl Drop for Chance {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("seed {}", self.seed);
        }
    }
}

/// What two endpoints of this secret said to each other once.
pub struct Recording {
    pub hello: [u8; HELLO],
    pub answer: [u8; ANSWER],
    pub proof: [u8; PROOF],
}

impl Recording {
    /// Records a handshake between two endpoints through a proxy.
    pub fn of(initiator: usize, responder: usize) -> Self {
        let endpoints = addresses(2);
        let proxy = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut seen = endpoints.clone();
        seen[responder] = proxy.local_addr().expect("an address");
        thread::scope(|scope| {
            let run = |number, endpoints| {
                scope.spawn(move || {
                    Mesh::connect(&settings(endpoints, number, 1), || false).expect("met")
                })
            };
            // Kept until all is recorded.
            let _meeting = (run(initiator, &seen), run(responder, &endpoints));
            pass(&proxy, endpoints[responder]).0
        })
    }
}

/// Relays a handshake; gives its messages and both connections, the initiator's first.
pub fn pass(proxy: &TcpListener, to: SocketAddr) -> (Recording, TcpStream, TcpStream) {
    let mut dialler = accept(proxy);
    let mut listener = connect_peer(to);
    let recorded = Recording {
        hello: pass_on(&mut dialler, &mut listener),
        answer: pass_on(&mut listener, &mut dialler),
        proof: pass_on(&mut dialler, &mut listener),
    };
    let [_welcome] = pass_on(&mut listener, &mut dialler);
    (recorded, dialler, listener)
}

fn pass_on<const BYTES: usize>(from: &mut TcpStream, to: &mut TcpStream) -> [u8; BYTES] {
    let mut message = [0; BYTES];
    from.read_exact(&mut message).expect("said");
    to.write_all(&message).expect("passed on");
    message
}

/// A connection to an endpoint that is about to listen.
pub fn connect_peer(target: SocketAddr) -> TcpStream {
    soon(|| TcpStream::connect(target))
}

/// A connection of an endpoint that is about to dial.
pub fn accept(listener: &TcpListener) -> TcpStream {
    listener.set_nonblocking(true).expect("set");
    let (stream, _) = soon(|| listener.accept());
    stream.set_nonblocking(false).expect("set");
    stream
}

fn soon<T>(mut what: impl FnMut() -> io::Result<T>) -> T {
    for _ in 0..20_000 {
        if let Ok(done) = what() {
            return done;
        }
        thread::sleep(Duration::from_millis(1));
    }
    panic!("no endpoint came");
}

/// Three endpoints meet and exchange frames. The first waits while `visit` is made to it so often;
/// half way the second joins, then the third, while all are visited. The caller is alone.
pub fn meet_despite(
    seed: u64,
    visits: usize,
    mut visit: impl FnMut(SocketAddr, &mut Chance) -> io::Result<()>,
) {
    let endpoints = addresses(3);
    let mut chance = Chance::new(seed);
    let met = AtomicUsize::new(0);
    let watch = Watch::begin();
    thread::scope(|scope| {
        let run = |number| {
            let (endpoints, met) = (&endpoints, &met);
            scope.spawn(move || {
                let mesh = Mesh::connect(&settings(endpoints, number, 2), || false);
                met.fetch_add(1, Relaxed);
                exchange(mesh.expect("all are there"), number, seed);
            });
        };
        run(0);
        drop(connect_peer(endpoints[0]));
        for done in 0..visits {
            // What becomes of a stranger is its own concern.
            let _failed = visit(endpoints[0], &mut chance);
            if done == visits / 2 {
                run(1);
            }
        }
        assert_eq!(met.load(Relaxed), 0, "they met without the third");
        run(2);
        while met.load(Relaxed) < endpoints.len() {
            for &endpoint in &endpoints {
                let _failed = visit(endpoint, &mut chance);
            }
        }
    });
    watch.end(endpoints.len() * PENDING + 100);
}

/// How many strangers an endpoint hears at once.
const PENDING: usize = 128;

/// Sends each peer frames by chance and checks all that come, to the byte.
pub fn exchange(mesh: Mesh, number: usize, seed: u64) {
    const FRAMES: u64 = 8;
    let frames = move |from: usize| {
        let mut chance = Chance::new(seed << 8 | from as u64);
        (0..FRAMES).map(move |place| {
            let len = chance.below(100_000);
            (place, chance.bytes(len))
        })
    };
    thread::scope(|scope| {
        for mut connection in mesh.outgoing {
            scope.spawn(move || {
                for (place, payload) in frames(number) {
                    connection
                        .send(head(place, &payload), &payload, || false)
                        .expect("sent");
                }
                connection.finish(|| false).expect("finished");
            });
        }
        let mut memory = vec![0; 100_000];
        for mut connection in mesh.incoming {
            for (place, payload) in frames(connection.peer()) {
                let got = connection.receive(&mut memory, || false).expect("received");
                assert_eq!(got, Some(head(place, &payload)));
                assert!(memory[..payload.len()] == payload);
            }
            assert_eq!(
                connection.receive(&mut memory, || false).expect("its end"),
                None
            );
        }
    });
}

/// Watches the process's descriptors and threads, apart from those that strangers use on purpose.
pub struct Watch {
    before: Holding,
    done: Arc<AtomicBool>,
    watching: JoinHandle<Holding>,
}

#[derive(Clone, Copy, Debug)]
struct Holding {
    descriptors: usize,
    threads: usize,
}

impl Holding {
    fn now() -> Self {
        let descriptors = entries("/proc/self/fd");
        Self {
            // Looked up later: while these are counted a stranger may open more.
            descriptors: descriptors.saturating_sub(HELD.load(Relaxed)),
            threads: entries("/proc/self/task"),
        }
    }
}

impl Watch {
    pub fn begin() -> Self {
        let (before, done) = (Holding::now(), Arc::new(AtomicBool::new(false)));
        let until = Arc::clone(&done);
        let watching = thread::spawn(move || {
            let mut most = Holding::now();
            while !until.load(Relaxed) {
                let now = Holding::now();
                most.descriptors = most.descriptors.max(now.descriptors);
                most.threads = most.threads.max(now.threads);
                thread::sleep(Duration::from_millis(5));
            }
            most
        });
        Self {
            before,
            done,
            watching,
        }
    }

    /// Asserts that there were never more than so many descriptors and two dozen threads beyond
    /// those at the beginning.
    pub fn end(self, descriptors: usize) {
        self.done.store(true, Relaxed);
        let (before, most) = (self.before, self.watching.join().expect("no panic"));
        assert!(
            most.descriptors <= before.descriptors + descriptors,
            "{before:?} {most:?}"
        );
        assert!(most.threads <= before.threads + 24, "{before:?} {most:?}");
    }
}

fn entries(directory: &str) -> usize {
    std::fs::read_dir(directory).expect("proc").count()
}

/// How many descriptors this process may have.
pub fn descriptors_allowed() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").expect("proc");
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let soft = line.and_then(|line| line.split_whitespace().nth(3));
    soft.and_then(|soft| soft.parse().ok()).expect("a number")
}
