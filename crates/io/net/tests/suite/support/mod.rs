//! Shared by tests of endpoints on loopback.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use tonnage_net::{Head, Secret, Settings};

/// Short, since tests wait for handshakes that never end.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_millis(400);

/// Unused loopback addresses. Their ports lie below those that the kernel assigns, and none is
/// returned twice, so a test that binds port 0 at the same time cannot get one of these.
pub fn addresses(count: usize) -> Vec<SocketAddr> {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    let first = std::process::id();
    std::iter::repeat_with(|| 10_000 + (first + TRIED.fetch_add(1, Relaxed)) % 20_000)
        .map(|port| SocketAddr::from(([127, 0, 0, 1], port as u16)))
        .filter(|address| TcpListener::bind(address).is_ok())
        .take(count)
        .collect()
}

pub fn secret(byte: u8) -> Secret {
    Secret::from_hex(&format!("{byte:02x}").repeat(32)).expect("64 digits")
}

pub fn settings(endpoints: &[SocketAddr], number: usize, connections: usize) -> Settings {
    Settings {
        endpoints: endpoints.to_vec(),
        number,
        connections,
        secret: secret(7),
        patience_seconds: 20.0,
        handshake_timeout: HANDSHAKE_TIMEOUT,
        checked: false,
        faults: Vec::new(),
    }
}

pub fn head(number: u64, payload: &[u8]) -> Head {
    Head {
        number,
        offset: 3 * number,
        len: payload.len() as u32,
    }
}
