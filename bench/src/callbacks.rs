//! How soon a waiting caller gets the answer of a callback. The callers are connections from another process, so that
//! both sides have enough file handles. At least ten thousand of them wait all the time.

use crate::accepts::fraction;
use crate::apis::post;
use crate::child::CallerProcess;
use crate::client::ClientConnection;
use crate::provider::delivery;
use crate::scene::{self, WORKS};
use crate::server;
use crate::stopwatch::moment;
use crate::table::{Aim, BenchRow, BenchUnit, thousands};
use crate::{Scale, say};
use async_trait::async_trait;
use quittance_engine::CallbackAddress;
use quittance_gateway::{CALLBACK_PATH, CommitFeed, Gateway};
use quittance_lifecycle::{CallbackResult, PollOutcome, ReportOutcome, SubmitOutcome, Value};
use quittance_ports::{
    Account, Callback, CallbackMessage, Guard, MemoryStore, Params, Provider, Store, Submission,
};
use quittance_store_embedded::EmbeddedStore;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use timed::TimedStore;
use tokio::runtime::Runtime;

mod timed;

const SECTION: &str = "callbacks";
/// How many callers still wait after the last callback.
const WAITING: u64 = 10_000;
/// The time between two callbacks.
const EVERY: Duration = Duration::from_millis(1);
/// How many connections the provider uses for its calls.
const LINES: u64 = 16;
/// Other open files: the store, the provider's connections, the runtime.
const HANDLES_BESIDE: u64 = 256;
const AIM_MICROS: f64 = 1000.0;

/// A provider that takes every task, notes where to call about it, and never calls by itself.
#[derive(Debug, Default)]
struct CallingProvider(Mutex<Vec<Option<String>>>);

impl CallingProvider {
    fn addresses(&self) -> MutexGuard<'_, Vec<Option<String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> usize {
        self.addresses().iter().flatten().count()
    }
}

/// The number of an order, which is the last number of its page.
fn number(page: Option<&Value>) -> usize {
    let Some(Value::Text(page)) = page else { unreachable!("every order has a page") };
    page.rsplit('=').next().and_then(|n| n.parse().ok()).expect("every page has a number")
}

#[async_trait]
impl Provider for CallingProvider {
    async fn submit(&self, submission: Submission<'_>) -> SubmitOutcome {
        let n = number(submission.terms.params.get("pageurl"));
        let mut addresses = self.addresses();
        if addresses.len() <= n {
            addresses.resize(n + 1, None);
        }
        addresses[n] = submission.callback.map(str::to_owned);
        SubmitOutcome::Accepted { task: submission.key.short() }
    }

    fn preview(&self, _: &str, _: &Params, _: &Guard<'_>) -> Result<(), String> {
        Ok(())
    }

    async fn poll(&self, tasks: &[String]) -> Vec<(String, PollOutcome)> {
        tasks.iter().map(|task| (task.clone(), PollOutcome::Pending)).collect()
    }

    fn poll_batch_max(&self) -> usize {
        100
    }

    fn penalty(&self, _fault: &quittance_lifecycle::Fault) -> Option<quittance_ports::Penalty> {
        None
    }

    fn submit_interval(&self) -> Duration {
        Duration::ZERO
    }

    fn read_callback(&self, _callback: &Callback<'_>) -> Option<CallbackMessage> {
        Some(CallbackMessage { task: None, word: CallbackResult::Answered(delivery()) })
    }

    async fn report(&self, _task: &str, _is_good: bool) -> ReportOutcome {
        ReportOutcome::Accepted
    }

    async fn account(&self) -> Option<Account> {
        None
    }
}

pub(crate) fn run(scale: &Scale) -> Vec<BenchRow> {
    let calls = scale.of(5000, 2000);
    if handles() < WAITING + calls + HANDLES_BESIDE {
        say(&format!("callbacks: left out, `ulimit -n` must be {}", WAITING + calls + HANDLES_BESIDE));
        return Vec::new();
    }
    let dir = scale.fresh_dir();
    let mut rows = Vec::new();
    for name in ["embedded", "memory"] {
        let store: Arc<dyn Store> = if name == "embedded" {
            Arc::new(EmbeddedStore::open(&dir.path().join("store")).expect(WORKS))
        } else {
            Arc::new(MemoryStore::default())
        };
        rows.extend(measure(name, store, calls));
    }
    rows
}

/// How many files and connections a process may have open.
fn handles() -> u64 {
    let limits = std::fs::read_to_string("/proc/self/limits").expect("this is measured on Linux");
    let line =
        limits.lines().find_map(|line| line.strip_prefix("Max open files")).expect("it is always there");
    line.split_whitespace().next().and_then(|most| most.parse().ok()).unwrap_or(u64::MAX)
}

/// A runtime like the daemon's.
fn daemon() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect(WORKS)
}

fn measure(name: &str, store: Arc<dyn Store>, calls: u64) -> Vec<BenchRow> {
    say(&format!("callbacks: {name} store, {} callers come", WAITING + calls));
    let daemon = daemon();
    let timed = Arc::new(TimedStore::new(store));
    let provider = Arc::new(CallingProvider::default());
    let (address, house) = daemon.block_on(serve(Arc::clone(&timed), Arc::clone(&provider)));
    let mut callers = CallerProcess::start(address, WAITING + calls, calls);
    let all_orders = usize::try_from(WAITING + calls).expect("a small number");
    daemon.block_on(async {
        while provider.known() < all_orders || house.counts().requests_open < WAITING + calls {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    say("callbacks: all callers wait, the provider calls");
    let called: Vec<Duration> = call(address, &provider, calls);
    let received = callers.received();
    let commits = timed.commits();
    let mut rows = Vec::new();
    let mut spans: [Vec<Duration>; 4] = Default::default();
    for (n, at) in received {
        let at_n = usize::try_from(n).expect("a small number");
        let commit = commits.get(&n).expect("what was answered was committed");
        let whole = at.saturating_sub(called[at_n]);
        let committing = commit.end.saturating_sub(commit.start);
        let parts = [whole.saturating_sub(committing), at.saturating_sub(commit.end), committing, whole];
        parts.into_iter().zip(&mut spans).for_each(|(part, spans)| spans.push(part));
    }
    let each = thousands(fraction(1, 1) / EVERY.as_secs_f64());
    let what = [
        format!("{name}, {each}/s, callback to caller less the commit"),
        "  from the commit's return to the caller".to_owned(),
        "  the commit".to_owned(),
        "  callback to caller, all of it".to_owned(),
    ];
    for (n, (what, mut spans)) in what.into_iter().zip(spans).enumerate() {
        spans.sort_unstable();
        let micros = |share: usize| spans[(spans.len() - 1) * share / 100].as_secs_f64() * 1e6;
        let p99 = BenchRow::new(SECTION, format!("{what}, p99"), micros(99), BenchUnit::Micros);
        rows.push(match n {
            0 => p99.against(AIM_MICROS, "allowed").aim(Aim::AtMost(1.0)),
            _ => p99,
        });
        rows.push(BenchRow::new(SECTION, format!("{what}, p50"), micros(50), BenchUnit::Micros));
    }
    rows
}

async fn serve(store: Arc<TimedStore>, provider: Arc<CallingProvider>) -> (SocketAddr, Gateway) {
    let (listener, address) = server::listen().await;
    let commit_feed = CommitFeed::new([]);
    let engine = scene::engine_with(store, Arc::clone(&provider) as Arc<dyn Provider>, |settings| {
        settings.policy.first_poll = Some(Duration::from_secs(3600));
        settings.callback = Some(CallbackAddress::new(format!("http://{address}{CALLBACK_PATH}"), [7; 32]));
        settings.on_commit = Some(commit_feed.on_commit());
    });
    tokio::spawn({
        let engine = Arc::clone(&engine);
        async move { engine.work().await }
    });
    let gateway = server::gateway(engine, commit_feed);
    tokio::spawn(gateway.serve(listener, None));
    (address, gateway)
}

/// Makes the calls, at a fixed pace. Returns when each call was made.
fn call(to: SocketAddr, provider: &CallingProvider, calls: u64) -> Vec<Duration> {
    let requests: Vec<Vec<u8>> = provider
        .addresses()
        .iter()
        .flatten()
        .map(|address| {
            let at = address.find(CALLBACK_PATH).expect("it is one of ours");
            post(&address[at..], "Content-Type: application/x-www-form-urlencoded\r\n", "id=1&code=answer")
        })
        .collect();
    let requests = Arc::new(requests);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect(WORKS);
    let mut called = runtime.block_on(async {
        let start = tokio::time::Instant::now() + Duration::from_millis(200);
        let tasks: Vec<_> = (0..LINES)
            .map(|first| {
                let requests = Arc::clone(&requests);
                tokio::spawn(async move {
                    let mut line = ClientConnection::open(to).await;
                    let mut called = Vec::new();
                    for n in (first..calls).step_by(usize::try_from(LINES).expect("a small number")) {
                        let turn = u32::try_from(n).expect("a small number");
                        tokio::time::sleep_until(start + EVERY * turn).await;
                        called.push((n, moment()));
                        let answer = line.ask(&requests[turn as usize]).await;
                        assert!(answer.starts_with(b"HTTP/1.1 200 OK"), "every callback is taken");
                    }
                    called
                })
            })
            .collect();
        let mut called = Vec::new();
        for task in tasks {
            called.extend(task.await.expect(WORKS));
        }
        called
    });
    called.sort_unstable();
    called.into_iter().map(|(_, at)| at).collect()
}
