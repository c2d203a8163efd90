//! The demo, the first command of a new user. With every seed, its usage must equal the mock provider's ledger, and
//! its output must say so for scripts, too.

use crate::binary::{ChildProcess, Ran, quittance, run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::Read as _;
use std::process::Stdio;
use std::thread;

const SEEDS: u64 = 20;
const AT_ONCE: u64 = 2;

fn demo(args: &[&str]) -> Ran {
    run(quittance(["demo", "--json"].into_iter().chain(args.iter().copied())))
}

fn number(report: &Value, path: &str) -> u64 {
    report.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{path} is no number in {report}"))
}

/// Checks what must hold for every demo, whatever its seed.
fn every_promise_held(ran: &Ran, requests: u64, captchas: u64) -> Value {
    ran.must_succeed();
    let report = ran.json();
    let of = |path: &str| number(&report, path);
    assert_eq!(report["promises_kept"], true, "{report}");
    assert_eq!(report["breaches"], Value::Array(Vec::new()), "{report}");
    assert_eq!((of("/requests"), of("/captchas"), of("/lost")), (requests, captchas, 0), "{report}");
    assert!(of("/kills") >= 1, "an engine without kills proves little: {report}");
    let taken = of("/ledger/taken");
    assert_eq!(
        of("/usage/paid") + of("/ledger/taken_in_doubt"),
        taken,
        "the usage and the ledger differ: {report}"
    );
    assert!(taken >= captchas / 2 && taken < requests / 2, "{report}");
    let otherwise: u64 =
        report["not_answered"].as_object().expect("by code").values().filter_map(Value::as_u64).sum();
    assert_eq!(of("/answered") + otherwise, requests, "{report}");
    assert!(of("/spent_micros") < of("/cost_without_quittance_micros"), "{report}");
    report
}

#[test]
fn the_usage_of_the_demo_equal_the_ledger_on_twenty_seeds() {
    let lanes = (0..AT_ONCE).map(|lane| {
        thread::spawn(move || {
            for seed in (0..SEEDS).filter(|seed| seed % AT_ONCE == lane) {
                let text = seed.to_string();
                let ran = demo(&["--seed", &text, "--requests", "400", "--captchas", "60"]);
                let report = every_promise_held(&ran, 400, 60);
                assert_eq!(number(&report, "/seed"), seed);
            }
        })
    });
    for lane in lanes.collect::<Vec<_>>() {
        lane.join().unwrap_or_else(|why| std::panic::resume_unwind(why));
    }
}

/// Code 1 would say that a promise was broken.
#[test]
fn a_demo_that_is_interrupted_has_the_exit_code_of_its_signal() {
    let mut command = quittance(["demo"]);
    let mut child = ChildProcess::start(command.stdin(Stdio::null()).stderr(Stdio::piped()));
    let mut err = child.0.stderr.take().expect("it is piped");
    err.read_exact(&mut [0; 10]).expect("it shows its progress");
    kill_process(Pid::from_child(&child.0), Signal::INT).expect("our own child can be signalled");
    assert_eq!(child.end(), Some(130));
    let mut words = String::new();
    err.read_to_string(&mut words).expect("it speaks UTF-8");
    assert!(words.contains("the demo was interrupted"), "{words}");
}

#[test]
fn the_whole_demo_runs_with_its_defaults() {
    let report = every_promise_held(&demo(&[]), 2000, 200);
    assert_eq!(number(&report, "/workers"), 50);
    let faults = report["faults"].as_object().expect("by name");
    for fault in ["reply_lost", "pingback_lost", "pingback_doubled", "pingback_forged"] {
        assert!(faults.contains_key(fault), "{fault} did not happen: {report}");
    }
}

#[test]
fn a_person_reads_the_usage_the_ledger_and_the_verdict() {
    let ran = run(quittance(["demo", "--seed", "5", "--requests", "60", "--captchas", "20"]));
    ran.must_succeed();
    for word in
        ["asked", "paid", "saved", "retried", "recovered", "dead", "lost", "without", "Every promise held"]
    {
        assert!(ran.out.contains(word), "{word} is missing: {ran:?}");
    }
    assert!(ran.out.lines().all(|line| line.chars().count() <= 80), "{}", ran.out);
    assert!(!ran.out.contains('\u{1b}') && !ran.err.contains('\u{1b}'), "colours are for terminals: {ran:?}");
}

#[test]
fn a_demo_that_cannot_be_is_refused() {
    for bad in [["--requests", "0"], ["--captchas", "0"], ["--seed", "x"], ["--requests", "100001"]] {
        demo(&bad).must_fail(2, &[bad[0]]);
    }
}
