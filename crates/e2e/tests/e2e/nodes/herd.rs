//! A herd: 32 client processes place one set of a thousand orders at once, on both kinds of APIs of three nodes. Each
//! order is paid for once, and each process gets its one answer. Waiting callers also cost the store nothing.

use super::{on_both_stores, tell};
use crate::binary::ChildProcess;
use crate::nodes::caller::{self, CallerOutcome, KEY, NodeCaller};
use crate::nodes::fleet::NodeFleet;
use crate::nodes::server::{ServerKind, StoreServer};
use crate::provider::Sim;
use crate::sandbox::{line, page};
use crate::usage::usage_equals_ledger_to_the_cent;
use crate::wait::{LONG, now, pass, until};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::env;
use std::io::{self, Read, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Duration;

const PROCESSES: usize = 32;
const ORDERS: usize = 1_000;
/// How many orders a client has in flight at once.
const AT_ONCE: usize = 32;
const POLL_PAUSE: Duration = Duration::from_millis(250);
/// The variable that gives a client process the nodes. Without it, this process is the test that starts the clients.
const NODES: &str = "E2E_HERD_NODES";
const NUMBER: &str = "E2E_HERD_NUMBER";

/// An answer that a client got, when, and whether it waited in one call.
#[derive(Debug)]
struct HerdLine {
    order: usize,
    answer: String,
    at_micros: u64,
    has_waited: bool,
}

/// A clock that all processes of a machine share.
fn micros() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u64::try_from(time.tv_nsec));
    seconds.unwrap_or(0) * 1_000_000 + nanos.unwrap_or(0) / 1_000
}

/// Places one order on `/v1` in a call that waits, and calls again if that was too short.
fn waits(caller: &mut NodeCaller, order: usize) -> String {
    let request = line(0, &format!("herd-{order}"));
    let request = json!({ "kind": request["kind"], "params": request["params"] });
    let end = now() + LONG * 2;
    while now() < end {
        let reply = caller.post("/v1/orders", "Prefer: wait=60\r\n", &request).expect("a node answers");
        match caller::native(&reply) {
            CallerOutcome::Answer(text) => return text,
            // On a machine that is short of everything, the store may be slow to answer; callers come again.
            CallerOutcome::Accepted(_) | CallerOutcome::Again => pass(POLL_PAUSE),
            _ => panic!("{order}: {reply:?}"),
        }
    }
    panic!("{order} was never answered");
}

/// Places one order on `in.php`, and polls `res.php`.
fn polls(caller: &mut NodeCaller, order: usize) -> String {
    let request = line(0, &format!("herd-{order}"));
    let text = |name: &str| request["params"][name].as_str().unwrap_or_default().to_owned();
    let (site, page) = (text("googlekey"), text("pageurl"));
    let place = format!("/in.php?key={KEY}&method=userrecaptcha&googlekey={site}&pageurl={page}");
    let res = |id: &str| format!("/res.php?key={KEY}&action=get&id={id}");
    let (mut id, end) = (None, now() + LONG * 2);
    while now() < end {
        let target = id.as_deref().map_or_else(|| place.clone(), res);
        let reply = caller.get(&target).expect("a node answers");
        match caller::classic(&reply, id.is_some()) {
            CallerOutcome::Answer(text) => return text,
            CallerOutcome::Accepted(new) => id = Some(new),
            CallerOutcome::NotReady | CallerOutcome::Again => {}
            _ => panic!("{order}: {reply:?}"),
        }
        pass(POLL_PAUSE);
    }
    panic!("{order} was never answered");
}

/// The work of each of the 32 processes: all orders, a few at once, on the APIs and nodes in turn.
fn be_a_client(nodes: &str) {
    let urls: Vec<&str> = nodes.split(',').collect();
    let number: usize =
        env::var(NUMBER).ok().and_then(|number| number.parse().ok()).expect("it has a number");
    let (next, answers) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    // All clients are there before one begins.
    io::stdin().read_exact(&mut [0]).expect("the signal to begin");
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                let mut callers: Vec<NodeCaller> =
                    urls.iter().map(|url| NodeCaller::of(url).lenient()).collect();
                loop {
                    let order = next.fetch_add(1, Ordering::Relaxed);
                    if order >= ORDERS {
                        return;
                    }
                    let has_waited = (order + number).is_multiple_of(2);
                    let caller = &mut callers[(order / 2 + number) % urls.len()];
                    let answer = if has_waited { waits(caller, order) } else { polls(caller, order) };
                    let line = json!([order, answer, micros(), has_waited]);
                    answers.lock().expect("no thread panics with it").push(line);
                }
            });
        }
    });
    let answers = Value::Array(answers.into_inner().expect("no thread panics with it"));
    io::stdout().write_all(format!("\nanswers {answers}\n").as_bytes()).expect("the parent reads it");
}

fn clients(test: &str, urls: &[String]) -> Vec<HerdLine> {
    let begin = Barrier::new(PROCESSES);
    let lines = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for number in 0..PROCESSES {
            let (begin, lines) = (&begin, &lines);
            scope.spawn(move || {
                let mut command = Command::new(env::current_exe().expect("a running test has a path"));
                command.args(["--exact", test, "--nocapture"]);
                command.env(NODES, urls.join(",")).env(NUMBER, number.to_string());
                command.stdin(Stdio::piped()).stdout(Stdio::piped());
                let mut client = ChildProcess::start(&mut command);
                begin.wait();
                let mut stdin = client.0.stdin.take().expect("it is piped");
                stdin.write_all(b"!").expect("a client listens");
                let mut output = String::new();
                let mut out = client.0.stdout.take().expect("it is piped");
                out.read_to_string(&mut output).expect("it speaks UTF-8");
                let answers = output.lines().find_map(|line| line.strip_prefix("answers "));
                let answers = answers.unwrap_or_else(|| panic!("client {number} was not answered: {output}"));
                let answers: Vec<(usize, String, u64, bool)> =
                    serde_json::from_str(answers).expect("it speaks JSON");
                lines.lock().expect("no thread panics with it").extend(answers.into_iter().map(
                    |(order, answer, at_micros, has_waited)| HerdLine {
                        order,
                        answer,
                        at_micros,
                        has_waited,
                    },
                ));
            });
        }
    });
    lines.into_inner().expect("no thread panics with it")
}

/// How much later than the first caller other callers got their answer, if they waited in one call: at the median and
/// for 99 of 100. The first caller gets it after the commit.
fn lateness(lines: &[HerdLine]) -> (Duration, Duration) {
    let mut first: BTreeMap<usize, u64> = BTreeMap::new();
    let waited = || lines.iter().filter(|line| line.has_waited);
    for line in waited() {
        let at = first.entry(line.order).or_insert(line.at_micros);
        *at = (*at).min(line.at_micros);
    }
    let mut late: Vec<u64> = waited().map(|line| line.at_micros - first[&line.order]).collect();
    late.sort_unstable();
    let at = |hundredth: usize| Duration::from_micros(late[(late.len() - 1) * hundredth / 100]);
    (at(50), at(99))
}

fn the_same_thousand_orders_from_32_processes_on_3_nodes_are_paid_for_once(which: ServerKind) {
    if let Ok(nodes) = env::var(NODES) {
        return be_a_client(&nodes);
    }
    let sim = Sim::start_with("2captcha", &["--queue", "2000"]);
    sim.script(&json!([{ "on": "in.php", "do": { "solve_ms": 300 } }]));
    let settings = [
        "timing.share_window=10m",
        "timing.callback_wait=50s",
        "kinds.recaptcha_v2.p95=50s",
        "kinds.recaptcha_v2.p99=55s",
    ];
    let fleet = NodeFleet::start(StoreServer::start(which), &sim, &settings);
    let of = if which == ServerKind::Redis { "redis" } else { "postgres" };
    let name = "the_same_thousand_orders_from_32_processes_on_3_nodes_are_paid_for_once";
    let begin = now();
    let lines = clients(&format!("nodes::herd::{of}::{name}"), &fleet.urls());
    let (median, most) = lateness(&lines);
    tell!(
        "{PROCESSES} processes, {ORDERS} orders on {which:?}: {:?}; after the first who had it, others had the answer within {median:?} at the median and {most:?} at 99 of 100",
        begin.elapsed()
    );
    assert_eq!(lines.len(), PROCESSES * ORDERS);
    let ledger = sim.ledger();
    assert_eq!(ledger.accepted(), ORDERS as u64, "each was paid for once");
    let sold = ledger.by_page();
    for line in &lines {
        let page = page(&format!("herd-{}", line.order));
        assert_eq!(sold[page.as_str()][0]["answer"], line.answer.as_str(), "order {}", line.order);
    }
    usage_equals_ledger_to_the_cent(&fleet.nodes[0].sandbox, &sim);
    fleet.rest_in_peace();
}

const WAITERS: usize = 150;
/// How long the load of an idle store is measured, and then again with all callers waiting.
const WATCHED: Duration = Duration::from_secs(3);
/// Much longer than a notice takes on a busy machine, and much shorter than a second check.
const WOKEN_MAX: Duration = Duration::from_secs(2);

fn callers_that_wait_for_an_order_read_nothing_from_the_store_and_are_woken(which: ServerKind) {
    let sim = Sim::start();
    // Neither the callback nor a poll comes while we look.
    sim.script(&json!([{ "on": "in.php", "do": { "solve_ms": 100_000 } }]));
    let settings = ["timing.callback_wait=55s", "kinds.recaptcha_v2.p95=50s", "kinds.recaptcha_v2.p99=55s"];
    let fleet = NodeFleet::start(StoreServer::start(which), &sim, &settings);
    let urls = fleet.urls();
    let order = line(0, "waited-for");
    let order = json!({ "kind": order["kind"], "params": order["params"] });
    let reply = NodeCaller::of(&urls[0]).post("/v1/orders", "", &order).expect("a node answers");
    let CallerOutcome::Accepted(id) = caller::native(&reply) else { panic!("{reply:?}") };
    until("it is submitted", || (sim.ledger().accepted() == 1).then_some(()));
    let watched = || {
        let before = fleet.server.work();
        pass(WATCHED);
        fleet.server.work() - before
    };
    let alone = watched();
    thread::scope(|scope| {
        let wait = |n: usize| waits_in_vain(&urls[n % urls.len()], &order);
        let waiting: Vec<_> = (0..WAITERS).map(|n| scope.spawn(move || wait(n))).collect();
        // They have to place it once more before they wait, and that is seen; if they went on asking, it would never
        // end.
        let together = until("the store is left in peace", || {
            Some(watched()).filter(|together| *together < alone + WAITERS as u64 / 4)
        });
        tell!(
            "on {which:?}, in {WATCHED:?}: {alone} requests without waiters, {together} while {WAITERS} do"
        );
        let begin = micros();
        let gone = NodeCaller::of(&urls[0]).ask("DELETE", &format!("/v1/orders/{id}"), "", "");
        assert_eq!(gone.expect("a node answers").status, 200);
        let mut late = Vec::new();
        for waiter in waiting {
            let (outcome, at) = waiter.join().expect("it gets an outcome");
            assert_eq!(outcome, CallerOutcome::End("cancelled".to_owned()));
            late.push(Duration::from_micros(at.saturating_sub(begin)));
        }
        late.sort_unstable();
        let (median, last) = (late[WAITERS / 2], late[WAITERS - 1]);
        tell!(
            "on {which:?}: all know that it was cancelled {median:?} after the call at the median, the last after {last:?}"
        );
        assert!(median < WOKEN_MAX, "woken after {median:?} at the median: that is no notice");
    });
    assert_eq!(sim.ledger().accepted(), 1, "no caller came too late to join");
    fleet.rest_in_peace();
}

/// Waits for an order. Returns the outcome, and when it came.
fn waits_in_vain(url: &str, order: &Value) -> (CallerOutcome, u64) {
    let reply = NodeCaller::of(url).post("/v1/orders", "Prefer: wait=300\r\n", order);
    let at = micros();
    (caller::native(&reply.expect("a node answers")), at)
}

on_both_stores!(
    the_same_thousand_orders_from_32_processes_on_3_nodes_are_paid_for_once,
    callers_that_wait_for_an_order_read_nothing_from_the_store_and_are_woken,
);
