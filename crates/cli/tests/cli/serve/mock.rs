//! `--mock`: the first minute, without a config file, variables, a key or an account.

use crate::serve::house::{BINARY, Daemon, get, until};
use rustix::process::Signal;
use std::process::{Command, Stdio};

fn quittance(folder: &tempfile::TempDir, args: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(args).env_clear().env("TMPDIR", folder.path().join("tmp")).current_dir(folder.path());
    command
}

/// A working folder with its own folder for temporary files, to see what is left there.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("tmp")).unwrap();
    folder
}

fn nothing_is_left(folder: &tempfile::TempDir) {
    let names =
        |path| std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
    assert_eq!(names(folder.path().to_owned()), ["tmp"]);
    assert!(names(folder.path().join("tmp")).is_empty(), "temporary files stay behind");
}

#[test]
fn one_command_solves_a_sample_order() {
    let folder = folder();
    let ended = quittance(&folder, &["solve", "--mock"]).stdin(Stdio::null()).output().unwrap();
    let err = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{err}");
    assert!(!String::from_utf8_lossy(&ended.stdout).trim().is_empty(), "the answer goes to standard output");
    assert!(err.contains("sample order: turnstile") && err.contains("nothing is bought"), "{err}");
    nothing_is_left(&folder);
}

#[test]
fn an_order_of_any_kind_and_host_is_solved_with_its_price() {
    let folder = folder();
    let order = [
        "recaptcha_v2",
        "-p",
        "googlekey=6LeIxAcTAAAAAJcZVRqyHh71UMIEGNQ_MXjiZKhI",
        "-p",
        "pageurl=https://shop.example.org/login",
        "--json",
    ];
    let args = [&["solve", "--mock"][..], &order].concat();
    let ended = quittance(&folder, &args).stdin(Stdio::null()).output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
    let answer: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert!(answer["answer"].is_string() || answer["text"].is_string(), "{answer}");
    nothing_is_left(&folder);
}

#[test]
fn a_config_file_is_refused_and_the_one_in_the_folder_is_not_read() {
    let folder = folder();
    std::fs::write(folder.path().join("quittance.toml"), "this is no config").unwrap();
    let named = quittance(&folder, &["solve", "--mock", "--config", "quittance.toml"]).output().unwrap();
    assert_eq!(named.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&named.stderr).contains("leave out --config"));
    let found = quittance(&folder, &["solve", "--mock"]).output().unwrap();
    assert_eq!(found.status.code(), Some(0), "{}", String::from_utf8_lossy(&found.stderr));
}

#[test]
fn the_gateway_answers_a_classic_client() {
    let folder = folder();
    let daemon = Daemon::start(
        quittance(&folder, &["serve", "--mock", "--listen", "127.0.0.1:0"]).stdin(Stdio::null()),
    );
    let key = "key=12345678901234567890123456789012";
    let placed = get(
        &daemon.http,
        &format!("/in.php?{key}&method=turnstile&sitekey=0x4A&pageurl=https://shop.example.org/"),
    );
    let id = placed.body.strip_prefix("OK|").unwrap_or_else(|| panic!("{placed:?}")).to_owned();
    let answer = until("the answer", || {
        let polled = get(&daemon.http, &format!("/res.php?{key}&action=get&id={id}"));
        (polled.body != "CAPCHA_NOT_READY").then_some(polled.body)
    });
    assert!(answer.starts_with("OK|"), "{answer}");
    let ended = daemon.end(Signal::TERM);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    nothing_is_left(&folder);
}
