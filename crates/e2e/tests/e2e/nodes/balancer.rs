//! A load balancer: one public address that leads to any node that listens, so that a running node gets the callback
//! for an order of a dead node.

use std::io;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Starts a balancer before these addresses, used in turn. Returns its address. It ends with the test process.
pub(crate) fn in_front_of(authorities: Vec<String>) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has free ports");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    thread::spawn(move || {
        for caller in listener.incoming().flatten() {
            let first = NEXT.fetch_add(1, Ordering::Relaxed);
            let mut turn = (0..authorities.len()).map(|n| &authorities[(first + n) % authorities.len()]);
            // If no node listens, the caller's connection is closed.
            if let Some(node) = turn.find_map(|authority| TcpStream::connect(authority).ok()) {
                _ = relay(caller, node);
            }
        }
    });
    url
}

fn relay(caller: TcpStream, node: TcpStream) -> io::Result<()> {
    let back = (node.try_clone()?, caller.try_clone()?);
    for (mut from, mut to) in [(caller, node), back] {
        thread::spawn(move || {
            _ = io::copy(&mut from, &mut to);
            // A side that still sends gets no reader.
            _ = to.shutdown(Shutdown::Both);
            _ = from.shutdown(Shutdown::Both);
        });
    }
    Ok(())
}
