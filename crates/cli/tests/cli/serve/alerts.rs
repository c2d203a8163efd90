//! A daemon with an alert: where the alert is sent, and what commands show.

use crate::serve::house::{Daemon, House, PROVIDER_KEY, get, until};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

/// A setting with a key that the provider does not know, so the first order finds the account blocked.
const LOCKED_OUT: [&str; 2] = ["--set", "provider.main.key_env=SHORT_KEY"];

/// Places an order. Without tenants any key is accepted, but clients send one of this length.
fn order(daemon: &Daemon) {
    let path =
        format!("/in.php?key={PROVIDER_KEY}&method=turnstile&sitekey=0x4A&pageurl=https://example.com/login");
    let placed = get(&daemon.http, &path).body;
    assert!(placed.starts_with("OK|"), "{placed}");
}

/// A program that copies its input and its environment into one file, which appears when it is complete.
const TELL_TALE: &str = "#!/bin/sh\n{ cat; env; } > \"$1.part\" && mv \"$1.part\" \"$1\"\n";

fn alert(daemon: &Daemon) -> Option<Value> {
    let found = get(&daemon.http, "/v1/admin/alerts");
    let found: Value = serde_json::from_str(&found.body).unwrap();
    found["alerts"].as_array().unwrap().iter().find(|alert| alert["rule"] == "provider_paused").cloned()
}

#[test]
fn an_alert_runs_the_operators_command_and_gives_it_no_key_of_ours() {
    let house = House::new();
    let (script, found) = (house.path("tell-tale"), house.path("alert"));
    std::fs::write(&script, TELL_TALE).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let command = format!("alerts.command={},{}", script.display(), found.display());
    let daemon = house.serve(&[LOCKED_OUT[0], LOCKED_OUT[1], "--set", &command]);
    order(&daemon);
    let heard = until("the command has run", || std::fs::read_to_string(&found).ok());
    let (first, variables) = heard.split_once('\n').unwrap();
    let first: Value = serde_json::from_str(first).unwrap();
    assert_eq!((&first["event"], &first["rule"]), (&"raised".into(), &"provider_paused".into()), "{heard}");
    assert!(variables.contains("QUITTANCE_ALERT_RULE=provider_paused\n"), "{heard}");
    assert!(variables.contains("QUITTANCE_ALERT_GRAVE=true\n"), "{heard}");
    assert!(!variables.contains("s3cr3t"), "{heard}");
    let ended = daemon.end(Signal::TERM);
    let warning = ended.err.lines().find(|line| line.contains("alert: nothing is submitted"));
    assert!(warning.is_some_and(|line| line.contains("WARN")), "{}", ended.err);
}

#[test]
fn a_command_shows_what_the_daemon_sees() {
    let house = House::new();
    let daemon = house.serve(&LOCKED_OUT);
    order(&daemon);
    until("the alert is raised", || alert(&daemon));
    let shown = house.run(&["top"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    for words in ["embedded up", "main paused: ERROR_", "provider_paused main:", "held       1"] {
        assert!(shown.out.contains(words), "{words} is not in {}", shown.out);
    }
    let found = house.run(&["top", "--json"]);
    let found: Value = serde_json::from_str(&found.out).unwrap();
    assert_eq!((&found["providers"][0]["state"], &found["orders"]["open"]), (&"paused".into(), &1.into()));
    let settings = get(&daemon.http, "/v1/admin/settings").body;
    assert!(
        settings.contains("\"provider.main.key\",\"value\":\"set\"") && !settings.contains("s3cr3t"),
        "{settings}"
    );
    assert!(daemon.end(Signal::KILL).code.is_none());
    let alone = house.run(&["top", "--once"]);
    assert!(alone.out.contains("provider_paused main:"), "it stands although no node runs: {alone:?}");
    assert!(alone.out.contains("NO DAEMON RUNS on this store") && !alone.out.contains(" up "), "{alone:?}");
    let found = house.run(&["top", "--json"]);
    let found: Value = serde_json::from_str(&found.out).unwrap();
    assert_eq!((&found["node"], &found["providers"]), (&Value::Null, &Value::Array(Vec::new())), "{found}");
    assert_eq!(
        (&found["rates"]["asked"], &found["latency_ms"]["p50"]),
        (&Value::Null, &Value::Null),
        "{found}"
    );
    assert_eq!(house.serve(&[]).end(Signal::TERM).code, Some(0), "a command that looked is in no way");
}

#[test]
fn a_store_that_is_not_there_is_not_made_to_be_watched() {
    let house = House::new();
    let folders = || std::fs::read_dir(house.path(".")).unwrap().count();
    let before = folders();
    for args in [&["top"][..], &["top", "--once"], &["top", "--json"]] {
        let ended = house.run(args);
        assert_eq!(ended.code, Some(5), "{ended:?}");
        assert!(
            ended.err.contains("there is no store in") && ended.err.contains("quittance serve"),
            "{ended:?}"
        );
    }
    assert_eq!(folders(), before);
}

#[test]
fn a_watcher_does_not_keep_the_daemon_from_ending() {
    let house = House::new();
    let daemon = house.serve(&[]);
    let mut watching = TcpStream::connect(&daemon.http).unwrap();
    watching.write_all(b"GET /v1/admin/live HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut first = [0; 4096];
    assert!(watching.read(&mut first).unwrap() > 0);
    let ended = daemon.end(Signal::TERM);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(!ended.err.contains("are cut off now"), "{}", ended.err);
}
