//! Tests of the daemon as a process, with the mock provider as another: what it prints, how it ends, which callers it
//! accepts, and what it never shows. Whole clients are in `crates/e2e`.

mod alerts;
mod house;
mod mock;
mod pools;
mod provider_states;
mod secrets;
mod strangers;
mod systemd;
mod tls;

use house::{House, get, run, until};
use rustix::process::Signal;
use std::io::Write;
use std::net::{TcpListener, TcpStream};

#[test]
fn it_says_where_it_listens_and_ends_politely_on_a_signal() {
    for signal in [Signal::TERM, Signal::INT] {
        let house = House::new();
        let daemon = house.serve(&[]);
        assert!(
            daemon.printed.starts_with("listening on http://127.0.0.1:")
                && daemon.printed.ends_with("ready\n")
        );
        assert_eq!(daemon.printed.lines().count(), 2, "{}", daemon.printed);
        assert_eq!(get(&daemon.http, "/res.php?action=get").status, 200);
        let ended = daemon.end(signal);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.err.contains("ending") && ended.err.contains("ended"), "{ended:?}");
        assert!(TcpStream::connect(&ended.http).is_err(), "no connection is accepted any more");
    }
}

#[test]
fn requests_in_progress_are_answered_before_it_ends() {
    let house = House::new();
    let daemon = house.serve(&[]);
    let mut inside = TcpStream::connect(&daemon.http).unwrap();
    inside.write_all(b"GET /res.php?action=get HTTP/1.1\r\nHost: localhost\r\n").unwrap();
    // It is inside when the daemon has taken it in; another request that is answered comes after it.
    get(&daemon.http, "/res.php");
    daemon.signal(Signal::TERM);
    until("the port is closed", || TcpStream::connect(&daemon.http).is_err().then_some(()));
    inside.write_all(b"\r\n").unwrap();
    assert!(house::read(inside).starts_with("HTTP/1.1 200"));
    assert_eq!(daemon.ended().code, Some(0));
}

#[test]
fn a_second_signal_ends_it_at_once() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let house = House::new();
        let daemon = house.serve(&[]);
        // A client that never ends its request holds the drain up.
        let mut inside = TcpStream::connect(&daemon.http).unwrap();
        inside
            .write_all(b"POST /in.php HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nkey=")
            .unwrap();
        get(&daemon.http, "/res.php");
        daemon.signal(Signal::TERM);
        until("the port is closed", || TcpStream::connect(&daemon.http).is_err().then_some(()));
        let ended = daemon.end(signal);
        assert_eq!(ended.code, Some(code), "{ended:?}");
    }
}

#[test]
fn without_a_tenant_only_this_machine_is_let_in_and_it_says_so() {
    let house = House::new();
    let daemon = house.serve(&["--listen", "0.0.0.0:0"]);
    assert!(daemon.printed.starts_with("listening on http://127.0.0.1:"), "{}", daemon.printed);
    let ended = daemon.end(Signal::TERM);
    let line = ended.err.lines().find(|line| line.contains("no tenant is configured")).unwrap();
    assert!(line.contains("0.0.0.0") && line.contains("quittance tenant new"), "{line}");
}

#[test]
fn with_a_tenant_others_are_let_in_with_its_key_alone() {
    let house = House::new();
    let made: serde_json::Value =
        serde_json::from_str(&run(&["tenant", "new", "team-a", "--json"]).out).unwrap();
    let (key, hash) = (made["key"].as_str().unwrap(), made["key_sha256"].as_str().unwrap());
    let daemon =
        house.serve(&["--listen", "0.0.0.0:0", "--set", &format!("tenant.team-a.key_sha256={hash}")]);
    assert!(daemon.printed.starts_with("listening on http://0.0.0.0:"), "{}", daemon.printed);
    let at = daemon.http.replace("0.0.0.0", "127.0.0.1");
    let balance = |key: &str| get(&at, &format!("/res.php?action=getbalance&key={key}")).body;
    assert!(balance(key).parse::<f64>().is_ok(), "{}", balance(key));
    assert_eq!(balance("00000000000000000000000000000000"), "ERROR_KEY_DOES_NOT_EXIST");
    assert_eq!(daemon.end(Signal::TERM).code, Some(0));
}

#[test]
fn what_cannot_be_served_is_reported_with_what_to_do() {
    let house = House::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let short = "tenant.a.key_env=SHORT_KEY";
    for (args, code, words) in [
        (&["--listen", &taken][..], 4, &["cannot listen on", "`listen`"][..]),
        (&["--listen", "nowhere"], 2, &["--listen"]),
        (&["--tls-listen", "127.0.0.1:0"], 4, &["tls.cert_file", "--tls-self-signed"]),
        (&["--set", "tls.cert_file=gone", "--set", "tls.key_file=gone"], 4, &["gone cannot be read"]),
        (&["--set", "tls.cert_file=gone"], 4, &["`tls` has no `key_file`"]),
        (&["--set", short], 4, &["6 characters", "must have 32"]),
        (&["--set", "tenant.a.key_env=NOT_SET"], 4, &["`NOT_SET` is not set"]),
        (&["--set", "store.url=embedded:/dev/null/x"], 5, &["store"]),
        (&["--log-format", "xml"], 2, &["json"]),
    ] {
        let ended = house.fails(args);
        assert_eq!(ended.code, Some(code), "{args:?}: {ended:?}");
        assert!(ended.out.is_empty() && !ended.err.contains("panicked"), "{ended:?}");
        for word in words {
            assert!(ended.err.contains(word), "`{word}` is missing: {ended:?}");
        }
        assert!(!ended.err.contains("s3cr3t"), "{ended:?}");
    }
}

#[test]
fn two_daemons_do_not_share_a_store() {
    let house = House::new();
    let daemon = house.serve(&[]);
    let second = house.fails(&[]);
    assert_eq!(second.code, Some(5), "{second:?}");
    assert!(second.err.contains("in use by process"), "{second:?}");
    assert_eq!(daemon.end(Signal::TERM).code, Some(0));
}
