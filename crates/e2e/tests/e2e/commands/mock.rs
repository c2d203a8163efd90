//! `quittance mock`: prints where it listens, serves, and prints its totals when it is stopped.

use crate::binary::{ChildProcess, quittance, run};
use crate::http::{call, try_call};
use crate::provider::{KEY, Sim, SimServices};
use crate::sandbox::Sandbox;
use crate::wait::until;
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

#[test]
fn of_two_services_in_one_process_one_fails_and_the_other_does_not_notice() {
    let services = SimServices::start(&["a=captchaai", "b=2captcha"]);
    let a = Sandbox::at(services.url("a"), "captchaai").set("timing.deadline=3s");
    let b = Sandbox::at(services.url("b"), "2captcha");
    a.solve("before", &[]).must_succeed();
    services.change("POST", "a", "outage", &json!({ "how": "refuse" }));
    let lost = a.solve("during", &[]);
    assert!(lost.code.is_some_and(|code| code != 0), "nothing answers at a: {lost:?}");
    for mark in ["one", "two"] {
        b.solve(mark, &[]).must_succeed();
    }
    services.change("POST", "a", "outage", &json!({ "ms": 0 }));
    services.change("PUT", "a", "account", &json!({ "name": "main", "key_blocked": true }));
    let balance = |name: &str| {
        let url = format!("{}/res.php?key={KEY}&action=getbalance", services.url(name));
        until("the socket of a service", || try_call("GET", &url, "text/plain", "")).1
    };
    assert_eq!((balance("a").as_str(), balance("b").as_str()), ("ERROR_KEY_DOES_NOT_EXIST", "9.99402"));
    let (ledger_a, ledger_b) = (services.ledger("a"), services.ledger("b"));
    assert_eq!((ledger_a.accepted(), ledger_b.accepted()), (1, 2));
    assert_eq!(ledger_b.0["accounts"][0]["account"], "main");
    assert_eq!(ledger_b.0["accounts"][0]["paid_micros"], 2 * 2_990);
    assert_eq!(ledger_b.tasks()[0]["service"], "b");
    // The audit reads the ledger of the one service that it is about, but not that of both.
    for (ledger, code) in [(ledger_b.0, 0), (services.joined_ledger(), 1)] {
        let path = b.path("ledger.json");
        fs::write(&path, ledger.to_string()).expect("the sandbox can be written");
        let audit = b.run(&["audit", "--ledger", &path.display().to_string()]);
        assert_eq!(audit.code, Some(code), "{audit:?}");
    }
    let (code, output) = services.end(Signal::TERM);
    assert_eq!(code, Some(0));
    let sums: Value = serde_json::from_str(&output).unwrap_or_else(|why| panic!("{why}: {output}"));
    assert_eq!(sums["services"][1]["totals"]["accepted"], 2);
}

#[test]
fn services_come_from_a_file_and_what_makes_no_sense_is_refused() {
    let sandbox = Sandbox::with_config("");
    let file = |text: &str| {
        let path = sandbox.path("services.toml");
        fs::write(&path, text).expect("the sandbox can be written");
        path.display().to_string()
    };
    let service =
        |name: &str, more: &str| format!("[[service]]\nname = \"{name}\"\ndialect = \"2captcha\"\n{more}\n");
    for (text, words) in [
        (service("a", "sped = 1"), &["services.toml", "service a", "sped"][..]),
        (service("a", "") + &service("a", ""), &["two services are called `a`"]),
        (service("a", "[[service.account]]\nname = \"x\"\nkey = \"short\""), &["service a", "32 characters"]),
        (String::new(), &["[[service]]"]),
    ] {
        run(quittance(["mock", "--services", &file(&text)])).must_fail(2, words);
    }
    let services = file(&service("a", ""));
    for (args, word) in [
        (&["--services", "no-such-file"][..], "no-such-file"),
        (&["--service", "a"], "a=captchaai:8801"),
        (&["--service", "a=unheard"], "`unheard`"),
        (&["--service", "a=2captcha", "--dialect", "2captcha"], "--dialect"),
        (&["--service", "a=2captcha", "--services", &services], "--services"),
    ] {
        run(quittance(["mock"].into_iter().chain(args.iter().copied()))).must_fail(2, &[word]);
    }
    let taken = Sim::start();
    let port = taken.url.rsplit(':').next().expect("it has a port");
    let busy = format!("a=2captcha:{port}");
    run(quittance(["mock", "--listen", "127.0.0.1:0", "--service", &busy]))
        .must_fail(2, &["service a", port]);
}
