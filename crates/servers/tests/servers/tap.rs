//! Tests of the relay that can be cut.

use quittance_servers::{Redis, Tap, free_port};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

fn ping(stream: &mut TcpStream) -> Option<[u8; 7]> {
    stream.write_all(b"PING\r\n").ok()?;
    let mut reply = [0; 7];
    stream.read_exact(&mut reply).ok().map(|()| reply)
}

#[test]
fn a_tap_relays_until_it_is_cut_and_again_when_it_is_fixed() {
    let redis = Redis::start(&[]);
    let tap = Tap::in_front_of(redis.port());
    let call = || TcpStream::connect(("127.0.0.1", tap.port()));
    let mut line = call().unwrap();
    assert_eq!(ping(&mut line).as_ref(), Some(b"+PONG\r\n"));
    tap.cut();
    assert!(ping(&mut line).is_none(), "the line is dead");
    assert!(call().is_err(), "and no other is to be had");
    tap.repair();
    assert_eq!(ping(&mut call().unwrap()).as_ref(), Some(b"+PONG\r\n"));
    assert_eq!(redis.command(&["ping"]), "PONG", "the server never knew");
}

#[test]
fn no_two_free_ports_are_the_same() {
    let mut ports: Vec<u16> = (0..100).map(|_| free_port()).collect();
    assert!(ports.iter().all(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()));
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), 100);
}
