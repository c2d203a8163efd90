//! The daemon under systemd: a socket that is already open, and notices about the daemon's state.

use crate::serve::house::{BINARY, Daemon, House, get};
use rustix::process::Signal;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::Duration;

fn heard(socket: &UnixDatagram) -> String {
    let mut bytes = [0; 64];
    let read = socket.recv(&mut bytes).unwrap();
    String::from_utf8(bytes[..read].to_vec()).unwrap()
}

#[test]
fn systemd_hears_that_we_are_ready_alive_and_ending() {
    let house = House::new();
    let path = house.path("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let daemon =
        house.serve_with(&[], &[("NOTIFY_SOCKET", path.to_str().unwrap()), ("WATCHDOG_USEC", "200000")]);
    assert_eq!(heard(&socket), "READY=1");
    assert_eq!(heard(&socket), "WATCHDOG=1");
    assert_eq!(heard(&socket), "WATCHDOG=1", "and again");
    assert_eq!(daemon.end(Signal::TERM).code, Some(0));
    let rest: Vec<String> =
        std::iter::from_fn(|| Some(heard(&socket))).take_while(|word| word != "STOPPING=1").collect();
    assert!(rest.iter().all(|word| word == "WATCHDOG=1"), "{rest:?}");
}

/// A command whose third file is the socket, as systemd passes it.
fn activated(house: &House, listener: TcpListener) -> Command {
    let mut command = Command::new("/bin/sh");
    let script = "LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=http exec \"$0\" serve 3<&0 </dev/null";
    command.args(["-c", script, BINARY]);
    house.settle(&mut command);
    command.stdin(Stdio::from(OwnedFd::from(listener)));
    command
}

#[test]
fn a_socket_that_systemd_has_opened_is_listened_on() {
    let house = House::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let daemon = Daemon::start(&mut activated(&house, listener));
    assert_eq!(daemon.http, at);
    assert_eq!(get(&at, "/res.php?action=get").status, 200);
    assert_eq!(daemon.end(Signal::TERM).code, Some(0));
}

#[test]
fn a_socket_that_is_open_to_all_is_refused_where_no_key_is_needed() {
    let house = House::new();
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let output = activated(&house, listener).output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(4), "{err}");
    assert!(err.contains("quittance tenant new"), "{err}");
}
