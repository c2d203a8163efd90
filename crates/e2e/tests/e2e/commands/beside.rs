//! `quittance solve` while the store is in use. A daemon carries the order out, another command is waited for, and an
//! interrupted command says what happens to its order.

use crate::binary::{ChildProcess, Ran, drain, quittance, run};
use crate::http::call;
use crate::provider::Sim;
use crate::sandbox::{Sandbox, line, page};
use crate::serve::Serve;
use crate::wait::until;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::thread;

const TENANT_KEY: &str = "0123456789abcdef0123456789abcdef";
const TENANT_KEY_SHA256: &str = "3eb1bd439947eb762998e566ccc2e099c791118b2f40579cc4f7da2b5061b7f9";

/// The arguments of one order for a page of its own.
fn order(mark: &str) -> [String; 6] {
    let key = format!("sitekey=0x4AAA{mark}");
    ["solve".into(), "turnstile".into(), "-p".into(), format!("pageurl={}", page(mark)), "-p".into(), key]
}

fn command(sandbox: &Sandbox, mark: &str, more: &[&str]) -> Command {
    let order = order(mark);
    let args: Vec<&str> = order.iter().map(String::as_str).chain(more.iter().copied()).collect();
    sandbox.command(&args)
}

/// A sandbox in which Turnstile is solved at once.
fn quick(sandbox: Sandbox) -> Sandbox {
    sandbox.set("kinds.turnstile.p50=100ms").set("kinds.turnstile.p95=300ms").set("kinds.turnstile.p99=800ms")
}

fn solve(sandbox: &Sandbox, mark: &str, more: &[&str]) -> Ran {
    run(command(sandbox, mark, more))
}

#[test]
fn a_daemon_that_has_the_store_carries_the_order_out() {
    let sim = Sim::start();
    let serve = Serve::start(quick(Sandbox::of(&sim)));
    let first = solve(&serve.sandbox, "daemon", &["--json", "--idempotency-key", "job-1"]);
    let first = first.must_succeed().json();
    let ledger = sim.ledger();
    assert_eq!(
        (first["answer"].clone(), first["origin"].clone()),
        (ledger.tasks()[0]["answer"].clone(), json!("api"))
    );
    assert_eq!((&first["attempt"], &first["currency"]), (&json!(1), &json!("USD")));
    assert_eq!(first["order"].as_str().map(str::len), Some(64));
    assert!(first["expires_ms"].as_u64() > ledger.tasks()[0]["solved_at_ms"].as_u64(), "{first}");
    let again = solve(&serve.sandbox, "daemon", &["--idempotency-key", "job-1"]);
    assert_eq!(
        (again.must_succeed().out.trim_end(), again.err.as_str()),
        (first["answer"].as_str().unwrap_or_default(), "")
    );
    let other = solve(&serve.sandbox, "other", &["--idempotency-key", "job-1", "--json"]);
    other.must_fail(2, &[]);
    assert_eq!(other.json()["error"]["code"], "other_parameters");
    let elsewhere = ["solve", "turnstile", "-p", "sitekey=k", "-p", "pageurl=https://elsewhere.example.net/"];
    serve.sandbox.run(&elsewhere).must_fail(2, &["elsewhere.example.net"]);
    assert_eq!(sim.ledger().accepted(), 1);
    serve.end_in_peace();
}

#[test]
fn a_priority_goes_to_the_daemon_and_is_no_part_of_the_order() {
    let sim = Sim::start();
    let serve = Serve::start(quick(Sandbox::of(&sim)));
    let first = solve(&serve.sandbox, "urgent", &["--json", "--shared", "--priority", "interactive"]);
    let first = first.must_succeed().json();
    let again = solve(&serve.sandbox, "urgent", &["--json", "--shared", "--priority", "bulk"]);
    assert_eq!(again.must_succeed().json()["order"], first["order"]);
    let orders = get(&serve, "/v1/orders?status=all");
    assert_eq!(orders["orders"][0]["priority"], "interactive", "{orders}");
    solve(&serve.sandbox, "urgent", &["--priority", "soon"]).must_fail(2, &["interactive, normal or bulk"]);
    let mut urgent = line(1, "line");
    urgent["priority"] = json!("bulk");
    let ran = serve.sandbox.run_lines(&[urgent.to_string()]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(sim.ledger().accepted(), 2);
    serve.end_in_peace();
}

fn get(serve: &Serve, path: &str) -> Value {
    let (status, body) = call("GET", &format!("{}{path}", serve.http), "");
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).expect("a JSON document")
}

#[test]
fn lines_go_through_a_daemon_as_well() {
    let sim = Sim::start();
    let serve = Serve::start(Sandbox::of(&sim));
    let lines: Vec<String> = (1..=20).map(|n| line(n, &format!("lines-{n}")).to_string()).collect();
    let ran = serve.sandbox.run_lines(&[&lines[..], &["nonsense".to_owned()]].concat());
    assert_eq!(ran.code, Some(1), "one line is no order: {ran:?}");
    let events: Vec<Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).expect("a JSON document")).collect();
    let count = |name: &str| events.iter().filter(|event| event["event"] == name).count();
    assert_eq!((count("accepted"), count("answered"), count("refused"), count("done")), (20, 20, 1, 1));
    assert_eq!(sim.ledger().accepted(), 20);
    serve.sandbox.run(&["solve", "--lines", "--settle"]).must_fail(2, &["--settle"]);
    serve.end_in_peace();
}

#[test]
fn a_daemon_with_tenants_wants_the_key_of_one() {
    let sim = Sim::start();
    let serve =
        Serve::start(quick(Sandbox::of(&sim)).set(&format!("tenant.team.key_sha256={TENANT_KEY_SHA256}")));
    solve(&serve.sandbox, "tenant", &[]).must_fail(4, &["QUITTANCE_TENANT_KEY"]);
    let mut command = command(&serve.sandbox, "tenant", &[]);
    command.env("QUITTANCE_TENANT_KEY", TENANT_KEY);
    run(command).must_succeed();
    assert_eq!(sim.ledger().accepted(), 1);
    serve.end_in_peace();
}

#[test]
fn commands_without_a_daemon_wait_for_each_other() {
    let sim = Sim::start();
    let sandbox = quick(Sandbox::polling(&sim));
    let ran: Vec<Ran> = thread::scope(|scope| {
        let commands = (0..4).map(|n| command(&sandbox, &format!("parallel-{n}"), &["--exclusive"]));
        let runs: Vec<_> = commands.map(|command| scope.spawn(|| run(command))).collect();
        runs.into_iter().map(|run| run.join().expect("it does not panic")).collect()
    });
    for ran in &ran {
        ran.must_succeed();
    }
    assert_eq!(sim.ledger().accepted(), 4);
}

#[test]
fn a_store_that_stays_in_use_is_an_error_that_says_what_to_do() {
    let sim = Sim::start();
    let sandbox = quick(Sandbox::polling(&sim));
    let mut engine = sandbox.engine();
    engine.say(&line(1, "holds-the-store"));
    engine.hear("accepted");
    let ran = solve(&sandbox, "late", &["--store-wait", "300ms", "--json"]);
    ran.must_fail(5, &["is in use by process", "`quittance serve`", "Nothing was placed"]);
    assert_eq!(ran.json()["error"]["code"], "store");
    engine.finish();
    assert_eq!(sim.ledger().accepted(), 1);
}

#[test]
fn a_command_that_is_interrupted_while_it_waits_for_the_store_says_that_nothing_was_placed() {
    let sim = Sim::start();
    let sandbox = quick(Sandbox::polling(&sim));
    let mut engine = sandbox.engine();
    engine.say(&line(1, "holds-the-store"));
    engine.hear("accepted");
    let mut waiting = command(&sandbox, "late", &["--json"]);
    waiting.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let ran = interrupted_when(&mut waiting, |err| err.contains("waiting for it"));
    ran.must_fail(130, &["no order was placed, and nothing was paid"]);
    assert_eq!(ran.json()["error"]["code"], "interrupted");
    engine.finish();
    assert_eq!(sim.ledger().accepted(), 1);
}

#[test]
fn an_order_without_an_answer_at_its_deadline_names_its_dead_letter_with_and_without_a_daemon() {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "every": 1, "do": { "solve_ms": 60_000 } }]));
    let sandbox = quick(Sandbox::polling(&sim));
    let late = ["--deadline", "1s"];
    let words = ["the order is a dead letter: the deadline was reached", "`quittance dead show "];
    solve(&sandbox, "alone", &late).must_fail(1, &words);
    let daemon = Serve::start(sandbox);
    solve(&daemon.sandbox, "beside", &late).must_fail(1, &words);
    daemon.end_in_peace();
}

#[test]
fn a_rejected_order_and_a_deadline_out_of_range_are_the_same_sentences_with_and_without_a_daemon() {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "every": 1, "do": { "code": "ERROR_PAGEURL" } }]));
    let sandbox = quick(Sandbox::polling(&sim));
    let alone = solve(&sandbox, "alone", &["--json"]);
    let words =
        "the provider rejected the order: ERROR_PAGEURL (caller); `quittance errors` explains the code";
    alone.must_fail(1, &[words]);
    let short = ["--deadline", "1ms"];
    let deadline = "'--deadline <DURATION>': a deadline is from 1s to 86400s";
    solve(&sandbox, "alone", &short).must_fail(2, &[deadline]);
    let daemon = Serve::start(sandbox);
    let beside = solve(&daemon.sandbox, "beside", &["--json"]);
    beside.must_fail(1, &[words]);
    assert_eq!(alone.json(), beside.json());
    solve(&daemon.sandbox, "beside", &short).must_fail(2, &[deadline]);
    daemon.end_in_peace();
}

/// Starts a command, and interrupts it once its standard error is as `is_ready` wants.
fn interrupted_when(command: &mut Command, is_ready: impl Fn(&str) -> bool) -> Ran {
    let mut child = ChildProcess::start(command);
    let out = drain(child.0.stdout.take().expect("it is piped"));
    let mut stream = child.0.stderr.take().expect("it is piped");
    let mut err = String::new();
    let mut part = [0; 1024];
    while !is_ready(&err) {
        let length = stream.read(&mut part).expect("a pipe can be read");
        assert!(length > 0, "it ended too soon: {err}");
        err += &String::from_utf8_lossy(&part[..length]);
    }
    kill_process(Pid::from_child(&child.0), Signal::INT).expect("our own child can be signalled");
    let code = child.end();
    stream.read_to_string(&mut err).expect("a pipe can be read");
    Ran { code, out: out.join().expect("reading does not panic"), err }
}

/// Starts a slow order, and interrupts the command once the provider has the order. Returns how the command ended.
fn interrupted(sandbox: &Sandbox, sim: &Sim, mark: &str, more: &[&str]) -> Ran {
    sim.script(&json!([{ "on": "in.php", "do": { "solve_ms": 3_000 } }]));
    let before = sim.ledger().accepted();
    let mut command = command(sandbox, mark, more);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = ChildProcess::start(&mut command);
    let out = drain(child.0.stdout.take().expect("it is piped"));
    let err = drain(child.0.stderr.take().expect("it is piped"));
    until("the provider has the order", || (sim.ledger().accepted() > before).then_some(()));
    kill_process(Pid::from_child(&child.0), Signal::INT).expect("our own child can be signalled");
    let code = child.end();
    let output = |stream: thread::JoinHandle<String>| stream.join().expect("reading does not panic");
    Ran { code, out: output(out), err: output(err) }
}

#[test]
fn an_order_that_is_interrupted_stays_on_record_and_the_same_command_goes_on() {
    let sim = Sim::start();
    let sandbox = quick(Sandbox::polling(&sim));
    let key = ["--idempotency-key", "job-7"];
    interrupted(&sandbox, &sim, "interrupted", &key)
        .must_fail(130, &["the order stays on record", "run the same command again to resume it"]);
    solve(&sandbox, "interrupted", &key).must_succeed();
    assert_eq!(sim.ledger().accepted(), 1, "nothing is paid twice");
}

/// Trap: it promised that a paid answer goes to the stock, and no process was left that could do it.
#[test]
fn an_interrupted_order_that_no_repeat_could_find_is_cancelled_and_says_who_collects_its_answer() {
    let sim = Sim::start();
    let sandbox = quick(Sandbox::polling(&sim)).set("reuse.default=exclusive");
    let ran = interrupted(&sandbox, &sim, "alone", &["--json"]);
    ran.must_fail(130, &["the order is cancelled", "paid", "only if `quittance serve` or another"]);
    assert_eq!(ran.json()["error"]["code"], "interrupted");
    let again = solve(&sandbox, "alone", &["--json"]).must_succeed().json();
    assert_eq!(sim.ledger().tasks().iter().filter(|task| task["answer"] == again["answer"]).count(), 1);
}

#[test]
fn an_order_that_is_interrupted_beside_a_daemon_goes_on_there() {
    let sim = Sim::start();
    let serve = Serve::start(quick(Sandbox::of(&sim)));
    let key = ["--idempotency-key", "job-8"];
    interrupted(&serve.sandbox, &sim, "left", &key)
        .must_fail(130, &["stays on record", "the daemon continues it"]);
    solve(&serve.sandbox, "left", &key).must_succeed();
    assert_eq!(sim.ledger().accepted(), 1);
    serve.end_in_peace();
}

/// Trap: the advice was to run the command again, and that bought a second answer.
#[test]
fn an_interrupted_order_that_no_repeat_could_find_is_cancelled_at_a_daemon_too() {
    let sim = Sim::start();
    let serve = Serve::start(quick(Sandbox::of(&sim)).set("reuse.default=exclusive"));
    interrupted(&serve.sandbox, &sim, "alone", &[])
        .must_fail(130, &["the order is cancelled", "An answer that was paid goes to the stock"]);
    let again = solve(&serve.sandbox, "alone", &["--json"]).must_succeed().json();
    assert_eq!(sim.ledger().tasks().iter().filter(|task| task["answer"] == again["answer"]).count(), 1);
    serve.end_in_peace();
}

/// Trap: the advice was to run the command again, and that bought every order a second time.
#[test]
fn interrupted_lines_without_a_key_are_cancelled_and_those_with_a_key_are_found_again() {
    let sim = Sim::start();
    sim.script(&json!([{ "on": "in.php", "do": { "solve_ms": 3_000 } }]));
    let serve = Serve::start(quick(Sandbox::of(&sim)).set("reuse.default=exclusive"));
    let lines = |n: u64, key: Value| {
        let mut order = line(n, &format!("lines-{n}"));
        order["idempotency_key"] = key;
        format!("{order}\n")
    };
    let orders = [lines(1, Value::Null), lines(2, Value::Null), lines(3, json!("job-3"))].concat();
    let mut command = serve.sandbox.command(&["solve", "--lines"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = ChildProcess::start(&mut command);
    let mut input = child.0.stdin.take().expect("it is piped");
    input.write_all(orders.as_bytes()).expect("the command reads");
    let out = drain(child.0.stdout.take().expect("it is piped"));
    let err = drain(child.0.stderr.take().expect("it is piped"));
    until("the provider has the orders", || (sim.ledger().accepted() == 3).then_some(()));
    kill_process(Pid::from_child(&child.0), Signal::INT).expect("our own child can be signalled");
    assert_eq!(child.end(), Some(130));
    assert_eq!(out.join().expect("reading does not panic").matches("accepted").count(), 3);
    let words = err.join().expect("reading does not panic");
    assert!(words.contains("1 stay on record") && words.contains("2 are cancelled"), "{words}");
    drop(input);
    serve.end_in_peace();
}

/// Trap: the message promised that the order stays on record, in a folder that was removed.
#[test]
fn an_interrupted_order_of_a_mock_provider_is_gone_and_says_so() {
    let mut command = quittance(["solve", "--mock", "--lines"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = ChildProcess::start(&mut command);
    let mut input = child.0.stdin.take().expect("it is piped");
    input.write_all(format!("{}\n", line(1, "mock")).as_bytes()).expect("the command reads");
    let mut out = child.0.stdout.take().expect("it is piped");
    let err = drain(child.0.stderr.take().expect("it is piped"));
    out.read_exact(&mut [0; 20]).expect("the order is accepted");
    kill_process(Pid::from_child(&child.0), Signal::INT).expect("our own child can be signalled");
    assert_eq!(child.end(), Some(130));
    let words = err.join().expect("reading does not panic");
    assert!(
        words.contains("store are gone; nothing was bought") && !words.contains("stay on record"),
        "{words}"
    );
    drop(input);
}

#[test]
fn settle_without_lines_is_an_error_and_buys_nothing() {
    let sim = Sim::start();
    let sandbox = quick(Sandbox::polling(&sim));
    solve(&sandbox, "settle", &["--settle"]).must_fail(2, &["--lines"]);
    assert_eq!(sim.ledger().accepted(), 0);
}

#[test]
fn a_file_that_is_given_as_text_is_an_error_that_says_how_to_give_it() {
    let sim = Sim::start();
    let sandbox = Sandbox::polling(&sim);
    sandbox.run(&["solve", "image", "-p", "body=captcha.png"]).must_fail(2, &["use -f body=FILE"]);
    assert_eq!(sim.ledger().accepted(), 0);
}
