//! Child processes of this program: one whose memory is measured, and one that is killed.

use crate::accepts::{accept, crowded, fraction};
use crate::apis::place_and_wait;
use crate::client::ClientConnection;
use crate::provider::TaskBehaviour;
use crate::scene::{self, KIND, WORKS};
use crate::stopwatch::moment;
use quittance_lifecycle::Timestamp;
use quittance_ports::{MemoryStore, Store};
use quittance_store_embedded::EmbeddedStore;
use serde_json::{Value, json};
use std::fs::read_to_string;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// The argument that makes this program a child.
pub(crate) const WORD: &str = "--child";
/// Orders in flight in a filled store, besides those at rest.
pub(crate) const IN_FLIGHT: u64 = 4096;

/// Starts a child, and waits for its first line.
fn start(words: &[&str]) -> (Child, String) {
    let (child, _, output) = converse(words);
    (child, output)
}

/// Starts this program again as a child that prints more than one line.
fn converse(words: &[&str]) -> (Child, BufReader<ChildStdout>, String) {
    let me = std::env::current_exe().expect("this very binary");
    let mut child = Command::new(me)
        .arg(WORD)
        .args(words)
        .stdout(Stdio::piped())
        .spawn()
        .expect("another of this binary");
    let mut output = String::new();
    let mut more = BufReader::new(child.stdout.take().expect("it is piped"));
    more.read_line(&mut output).expect(WORKS);
    (child, more, output)
}

pub(crate) fn run(words: &[String]) {
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["memory", store, dir, orders, waiters] => {
            let number = |text: &str| text.parse().expect("we wrote it ourselves");
            tell(&in_memory(*store == "embedded", Path::new(dir), number(orders), number(waiters)));
        }
        ["fill", dir, orders, at] => {
            let number = |text: &str| text.parse().expect("we wrote it ourselves");
            fill(Path::new(dir), number(orders), Timestamp::from_millis(number(at)));
        }
        ["callers", to, count, answers] => {
            let number = |text: &str| text.parse().expect("we wrote it ourselves");
            wait_all(to.parse().expect("we wrote it ourselves"), number(count), number(answers));
        }
        other => unreachable!("no bench has {other:?}"),
    }
}

fn tell(what: &Value) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{what}").and_then(|()| out.flush()).expect("the parent listens");
}

// ---- memory --------------------------------------------------------------------------------------------------

/// The memory of orders in flight, and of callers that wait for one each, in a process of its own.
pub(crate) struct ProcessWeight {
    pub(crate) bytes_per_order: f64,
    pub(crate) bytes_per_waiter: f64,
}

pub(crate) fn weigh(store: &str, dir: &Path, orders: u64, waiters: u64) -> ProcessWeight {
    let dir = dir.to_str().expect("a path that is text");
    let (mut child, output) = start(&["memory", store, dir, &orders.to_string(), &waiters.to_string()]);
    child.wait().expect(WORKS);
    let output: Value = serde_json::from_str(&output).expect("it tells what it weighs");
    let each = |name: &str| output[name].as_f64().expect("it tells what it weighs");
    ProcessWeight { bytes_per_order: each("order"), bytes_per_waiter: each("waiter") }
}

fn resident_bytes() -> u64 {
    let status = read_to_string("/proc/self/status").expect("this is measured on Linux");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("it is always there");
    let kib: u64 = line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number");
    kib * 1024
}

fn in_memory(is_embedded: bool, dir: &Path, orders: u64, waiters: u64) -> Value {
    let runtime = scene::runtime();
    let store: Arc<dyn Store> = if is_embedded {
        Arc::new(EmbeddedStore::open(dir).expect(WORKS))
    } else {
        Arc::new(MemoryStore::default())
    };
    let engine = scene::engine(store, TaskBehaviour::NeverEnding);
    let place = |from: u64, to: u64| {
        for first in (from..to).step_by(10_000) {
            let drafts = (first..to.min(first + 10_000)).map(scene::draft);
            let engine = Arc::clone(&engine);
            crowded(&runtime, 1000, drafts, move |draft| accept(Arc::clone(&engine), draft));
        }
    };
    // A few first, so that threads and connections are not shared out among the orders. SQLite's cache of pages, up to
    // 32 MB, grows with them and is.
    place(0, 1000);
    let before = resident_bytes();
    place(1000, 1000 + orders);
    let after = resident_bytes();
    let parameters = scene::in_flight(orders, scene::now()).terms.size() as u64;
    for n in 0..waiters {
        let engine = Arc::clone(&engine);
        runtime.spawn(async move {
            let placed = engine.place(KIND, scene::draft(1000 + n)).await.expect(WORKS);
            engine.wait(&placed).await;
        });
    }
    // Each gets its turn, and then waits.
    runtime.block_on(async {
        for _ in 0..waiters / 16 + 2 {
            tokio::task::yield_now().await;
        }
    });
    let waiting = resident_bytes();
    let each = |from: u64, to: u64, count: u64| {
        if count == 0 { 0.0 } else { fraction(to.saturating_sub(from), count) }
    };
    let order = each(before, after, orders) - fraction(parameters, 1);
    json!({ "order": order, "waiter": each(after, waiting, waiters) })
}

// ---- filling and killing ---------------------------------------------------------------------------------------

/// Fills a store in another process, and kills that process during a write, so that the store is in the state after a
/// crash.
pub(crate) fn fill_and_kill(dir: &Path, orders: u64, at: Timestamp) {
    let dir = dir.to_str().expect("a path that is text");
    let (mut child, output) = start(&["fill", dir, &orders.to_string(), &at.as_millis().to_string()]);
    assert_eq!(output.trim(), "\"filled\"");
    child.kill().expect("it does not end by itself");
    child.wait().expect(WORKS);
}

fn fill(dir: &Path, orders: u64, at: Timestamp) {
    let store = EmbeddedStore::open(dir).expect(WORKS);
    scene::runtime().block_on(async {
        scene::write(&store, (0..orders).map(|n| scene::at_rest(n, at))).await;
        scene::write(&store, (orders..orders + IN_FLIGHT).map(|n| scene::in_flight(n, at))).await;
        let more = (orders + IN_FLIGHT..).map(|n| {
            if n == orders + IN_FLIGHT + 10_000 {
                tell(&json!("filled"));
            }
            scene::at_rest(n, at)
        });
        // Goes on until it is killed.
        scene::write(&store, more).await;
    });
}

// ---- waiting -------------------------------------------------------------------------------------------------

/// Callers in a process of their own. Each has an order and a connection, and waits for its answer.
pub(crate) struct CallerProcess {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl CallerProcess {
    /// Starts the callers. Returns when all have sent their requests. `answers` is how many of them get an answer.
    pub(crate) fn start(to: SocketAddr, count: u64, answers: u64) -> Self {
        let [to, count, answers] = [to.to_string(), count.to_string(), answers.to_string()];
        let (child, output, first) = converse(&["callers", &to, &count, &answers]);
        assert_eq!(first.trim(), "\"waiting\"");
        Self { child, output }
    }

    /// Which caller got its answer when. Returns when all have it that should.
    pub(crate) fn received(&mut self) -> Vec<(u64, Duration)> {
        let mut line = String::new();
        self.output.read_line(&mut line).expect(WORKS);
        let reply: Vec<(u64, u64)> = serde_json::from_str(&line).expect("it tells who and when");
        reply.into_iter().map(|(n, nanos)| (n, Duration::from_nanos(nanos))).collect()
    }
}

impl Drop for CallerProcess {
    fn drop(&mut self) {
        // Most of them still wait.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn wait_all(to: SocketAddr, count: u64, answers: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect(WORKS);
    runtime.block_on(async move {
        let (reply, mut wakeups) = mpsc::unbounded_channel();
        for n in 0..count {
            let mut line = ClientConnection::open(to).await;
            line.send(&place_and_wait(n, "Prefer: wait=300\r\n")).await;
            let reply = reply.clone();
            tokio::spawn(async move {
                let answer = line.receive().await;
                let at = moment();
                assert!(answer.starts_with(b"HTTP/1.1 200 OK"), "the caller has its answer");
                _ = reply.send((n, at));
            });
        }
        tell(&json!("waiting"));
        let mut times = Vec::new();
        for _ in 0..answers {
            let (n, at): (u64, Duration) = wakeups.recv().await.expect("we hold a sender ourselves");
            times.push((n, u64::try_from(at.as_nanos()).expect("not before the year 2554")));
        }
        // Not before all have it: a client that writes does not read.
        tell(&json!(times));
    });
}
