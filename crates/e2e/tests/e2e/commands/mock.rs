//! `quittance mock`: prints where it listens, serves, and prints its totals when it is stopped.

use crate::binary::{ChildProcess, quittance, run};
use crate::http::call;
use crate::provider::{KEY, Sim};
use crate::sandbox::Sandbox;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

#[test]
fn it_ends_with_its_sums_on_either_signal() {
    for signal in [Signal::TERM, Signal::INT] {
        let sim = Sim::start();
        Sandbox::polling(&sim).solve("sums", &[]).must_succeed();
        let (code, output) = sim.end(signal);
        assert_eq!(code, Some(0));
        let sums: Value = serde_json::from_str(&output).unwrap_or_else(|why| panic!("{why}: {output}"));
        assert_eq!((&sums["totals"]["accepted"], &sums["totals"]["delivered"]), (&json!(1), &json!(1)));
    }
}

#[test]
fn the_address_the_key_and_how_to_stop_are_printed() {
    let mut command = quittance(["mock", "--listen", "127.0.0.1:0", "--key", KEY]);
    let mut child = ChildProcess::start(command.stdout(Stdio::piped()).stdin(Stdio::null()));
    let mut out = BufReader::new(child.0.stdout.take().expect("it is piped"));
    let mut output = String::new();
    while !output.contains("Ctrl-C") {
        assert!(out.read_line(&mut output).is_ok_and(|bytes| bytes > 0), "{output}");
    }
    let url = output.split_whitespace().find(|word| word.starts_with("http://")).expect("an address");
    assert!(
        output.contains(KEY) && output.contains("/in.php") && output.contains("/mock/ledger"),
        "{output}"
    );
    let (status, balance) = call("GET", &format!("{url}/res.php?key={KEY}&action=getbalance"), "");
    assert_eq!((status, balance.as_str()), (200, "10.00"));
    kill_process(Pid::from_child(&child.0), Signal::INT).expect("our own child can be signalled");
    assert_eq!(child.end(), Some(0));
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("it speaks UTF-8");
    assert!(rest.contains("0 tasks taken"), "{rest}");
}

#[test]
fn rates_and_scripts_come_from_files_and_what_makes_no_sense_is_refused() {
    let sandbox = Sandbox::with_config("");
    let file = |name: &str, text: &str| {
        fs::write(sandbox.path(name), text).expect("the sandbox can be written");
        sandbox.path(name).display().to_string()
    };
    let rates = file("rates.json", r#"{"unsolvable":1.0}"#);
    let script = file("script.json", r#"[{"on":"in.php","nth":1,"do":{"code":"ERROR_PAGEURL"}}]"#);
    let sim = Sim::start_with("captchaai", &["--faults", &rates, "--script", &script, "--seed", "9"]);
    assert_eq!(sim.read("faults")["unsolvable"], 1.0);
    assert_eq!(sim.read("script")[0]["do"], json!({ "code": "ERROR_PAGEURL" }));
    assert_eq!(sim.read("state")["seed"], 9);
    for bad in [r#"{"unsolvabel":1.0}"#, "not json"] {
        run(quittance(["mock", "--faults", &file("bad.json", bad)])).must_fail(2, &["bad.json"]);
    }
    let impossible = file("impossible.json", r#"[{"on":"in.php","do":{"dance":{}}}]"#);
    run(quittance(["mock", "--script", &impossible])).must_fail(2, &["impossible.json", "dance"]);
    for flags in
        [["--key", "short"], ["--speed", "0"], ["--dialect", "unknown"], ["--faults", "no-such-file"]]
    {
        run(quittance(["mock"].into_iter().chain(flags))).must_fail(2, &[flags[1]]);
    }
}
