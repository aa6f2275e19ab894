//! What tests of endpoints on loopback share.

use std::net::{SocketAddr, TcpListener};

use tonnage_net::{Head, Secret, Settings};

/// Addresses that nobody listened on a moment ago.
pub fn addresses(count: usize) -> Vec<SocketAddr> {
    let listeners: Vec<TcpListener> = (0..count)
        .map(|_| TcpListener::bind("127.0.0.1:0").expect("a port"))
        .collect();
    listeners
        .iter()
        .map(|listener| listener.local_addr().expect("an address"))
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
