//! Streams that end early: a reader that stops, a writer that sends nothing, a full disk.

use crate::binary::{ChildProcess, drain, quittance, run};
use crate::provider::Sim;
use crate::sandbox::{Sandbox, line};
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

#[test]
fn a_reader_that_stops_reading_is_no_error() {
    for args in [&["errors"][..], &["kinds", "--json"], &["config", "show"], &["completions", "bash"]] {
        let mut command = quittance(args.iter().copied());
        let mut child = ChildProcess::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let err = drain(child.0.stderr.take().expect("it is piped"));
        drop(child.0.stdout.take());
        assert_eq!(child.end(), Some(0), "{args:?}");
        assert_eq!(err.join().expect("reading does not panic"), "", "{args:?}");
    }
}

#[test]
fn a_reader_that_leaves_after_one_event_loses_no_order() {
    let sim = Sim::start();
    let sandbox = Sandbox::of(&sim);
    let mut command = sandbox.command(&["solve", "--lines"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = ChildProcess::start(&mut command);
    let err = drain(child.0.stderr.take().expect("it is piped"));
    let mut input = child.0.stdin.take().expect("it is piped");
    let mut output = BufReader::new(child.0.stdout.take().expect("it is piped"));
    writeln!(input, "{}", line(1, "one")).expect("it reads");
    let mut first = String::new();
    output.read_line(&mut first).expect("it says something");
    assert!(first.contains("\"accepted\""), "{first}");
    drop(output);
    for id in 2..20 {
        // It may have gone already, as `head -1` wants it.
        _ = writeln!(input, "{}", line(id, &format!("many-{id}")));
    }
    drop(input);
    let code = child.end();
    let err = err.join().expect("reading does not panic");
    assert!(code.is_some() && !err.contains("panic"), "{code:?}: {err}");
    // Whatever it took is finished by the next process.
    let ended = sandbox.engine().finish();
    assert_eq!(ended.book("paid"), sim.ledger().accepted());
    assert!(ended.book("solved") >= 1 && sandbox.dead_letters().is_empty(), "{ended:?}");
}

#[test]
fn nothing_on_standard_input_is_nothing_to_do() {
    let sim = Sim::start();
    let sandbox = Sandbox::of(&sim);
    let ended = sandbox.engine().finish();
    assert_eq!((ended.code, ended.events.len()), (Some(0), 1), "{ended:?}");
    let mut closed = sandbox.command(&["solve", "--lines"]);
    closed.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = ChildProcess::start(&mut closed);
    assert_eq!(child.end(), Some(0));
}

#[test]
fn a_result_that_cannot_be_written_is_reported_and_bought_only_once() {
    // Only some systems have a disk that is always full.
    let Ok(full) = OpenOptions::new().write(true).open("/dev/full") else { return };
    let sim = Sim::start();
    let sandbox = Sandbox::of(&sim);
    let mut command = sandbox.command(&[
        "solve",
        "recaptcha_v2",
        "-p",
        "googlekey=6Le-full-0123456789abcdefghijklmnop",
        "-p",
        "pageurl=https://full.example.com/login",
    ]);
    command.stdin(Stdio::null()).stdout(full).stderr(Stdio::piped());
    let mut child = ChildProcess::start(&mut command);
    let err = drain(child.0.stderr.take().expect("it is piped"));
    assert_eq!(child.end(), Some(3));
    assert!(err.join().expect("reading does not panic").contains("could not be written"));
    assert_ne!(sandbox.solve("full", &[]).must_succeed().out, "");
    assert_eq!(sim.ledger().accepted(), 1, "the answer was kept");
    let mut table = quittance(["errors"]);
    table.stdout(OpenOptions::new().write(true).open("/dev/full").expect("it was there"));
    let mut child = ChildProcess::start(table.stderr(Stdio::null()));
    assert_eq!(child.end(), Some(3));
    assert_eq!(run(quittance(["errors"])).code, Some(0));
}
