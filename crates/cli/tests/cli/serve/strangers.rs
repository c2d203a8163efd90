//! Idle connections of clients without a key: they must leave room for tenants, health checks, callbacks, the store
//! and the provider.

use crate::serve::house::{BINARY, Daemon, House, get, run, until};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A timeout that is shorter than an idle connection may stay, and much longer than a response takes.
const SOON: Duration = Duration::from_secs(5);

fn key_and_hash() -> (String, String) {
    let made: serde_json::Value =
        serde_json::from_str(&run(&["tenant", "new", "team-a", "--json"]).out).unwrap();
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    (text("key"), format!("tenant.team-a.key_sha256={}", text("key_sha256")))
}

/// A connection that has sent this, got a response if it was a whole request, and stays open.
fn connected(to: &str, sent: &str) -> TcpStream {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream.write_all(sent.as_bytes()).unwrap();
    if sent.ends_with("\r\n\r\n") {
        assert!(stream.read(&mut [0; 4096]).unwrap() > 0, "no answer to {sent}");
    }
    stream
}

fn is_prompt(daemon: &Daemon, path: &str, key: &str) {
    let mut stream = TcpStream::connect(&daemon.http).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: {key}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap_or_else(|error| panic!("{path}: {error}"));
    assert!(text.starts_with("HTTP/1.1 200"), "{path}: {text}");
}

/// Trap: with connections_max = 200 and 260 idle connections, `/healthz` and `/callback/` time out for more than 30
/// s.
#[test]
fn idle_connections_without_a_key_keep_no_client_out() {
    let (key, hash) = key_and_hash();
    let house = House::new();
    let daemon = house.serve(&["--set", &hash, "--set", "listener.connections_max=200"]);
    let health = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for sent in [health, "", "GET /healthz HTTP/1.1\r\nHost: "] {
        let strangers: Vec<_> = (0..260).map(|_| connected(&daemon.http, sent)).collect();
        for path in ["/healthz", "/callback/none", "/v1/me"] {
            is_prompt(&daemon, path, &key);
        }
        drop(strangers);
    }
}

/// Trap: with as many connections as open files allowed, neither the provider nor the store can be reached.
#[test]
fn files_are_kept_back_for_the_store_and_the_provider() {
    let (key, hash) = key_and_hash();
    let house = House::new();
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "ulimit -n 128 && exec \"$0\" \"$@\"", BINARY, "serve", "--set", &hash]);
    house.settle(&mut command);
    let daemon = Daemon::start(command.stdin(Stdio::null()));
    // A tenant's connections are not closed to make room, so they are the ones that could take all files.
    let me = format!("GET /v1/me HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: {key}\r\n\r\n");
    let mut of_tenant: Vec<_> = (0..56).map(|_| connected(&daemon.http, &me)).collect();
    of_tenant.extend((0..200).map(|_| connected(&daemon.http, "")));
    let place =
        format!("/in.php?key={key}&method=userrecaptcha&googlekey=6Le-site&pageurl=https://example.com/");
    let taken = get(&daemon.http, &place).body;
    let id = taken.strip_prefix("OK|").unwrap_or_else(|| panic!("{taken}")).to_owned();
    until("an answer of the provider", || {
        let reply = get(&daemon.http, &format!("/res.php?key={key}&action=get&id={id}")).body;
        assert!(reply == "CAPCHA_NOT_READY" || reply.starts_with("OK|"), "{reply}");
        reply.starts_with("OK|").then_some(())
    });
    drop(of_tenant);
    let ended = daemon.end(Signal::TERM);
    let words = "only 128 files may be open at once, and listener.connections_max is 20000: at most 64 connections are";
    assert!(ended.err.contains(words), "{}", ended.err);
}
