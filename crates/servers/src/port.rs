//! Private ports. They are below the range that systems use for outgoing connections, so that no outgoing connection
//! takes the port of a killed server before it restarts.

use std::net::{Ipv4Addr, TcpListener};
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

const PORTS_FROM: u16 = 10_000;
const PORTS: u16 = 10_000;

/// A free loopback port, returned once in this process. Another process can still take it; the servers here then try
/// the next one.
///
/// # Panics
/// If all ports are taken.
#[must_use]
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let begin = u16::try_from(process::id().wrapping_mul(131) % u32::from(PORTS)).expect("it is below PORTS");
    (0..PORTS)
        .map(|_| PORTS_FROM + (begin + NEXT.fetch_add(1, Ordering::Relaxed) % PORTS) % PORTS)
        .find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
        .expect("not all ports of loopback are taken")
}
