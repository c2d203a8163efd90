//! The cost over HTTP of responses from memory: joined, pending, solved, on the classic API and on `/v1`. They are
//! compared with hyper alone with equal bytes, in turn, with one client and as many connections.

use crate::accepts::fraction;
use crate::client::{ClientConnection, crowd};
use crate::provider::{Free, TaskBehaviour};
use crate::scene::{self, KIND, WORKS};
use crate::server::{self, KEY, OwnThread, Ready};
use crate::table::{Aim, BenchRow, BenchUnit};
use crate::{Scale, say};
use quittance_engine::Engine;
use quittance_gateway::CommitFeed;
use quittance_ports::{MemoryStore, Provider, Store};
use quittance_store_embedded::EmbeddedStore;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

const SECTION: &str = "gateway";
const AIM: f64 = 0.7;
const CONNECTIONS: usize = 64;
/// The number of different orders, which are placed in turn.
const HOT: u64 = 1000;

/// One sort of request, and the beginning of its response.
struct ApiCase {
    what: &'static str,
    response_format: TaskBehaviour,
    write: fn(u64, &str) -> Vec<u8>,
    starts: &'static str,
    /// The beginning of the body, which is checked once.
    body: &'static str,
}

pub(crate) const OK: &str = "HTTP/1.1 200 OK";

const CASES: &[ApiCase] = &[
    ApiCase {
        what: "in.php, joined",
        response_format: TaskBehaviour::NeverEnding,
        write: submit,
        starts: OK,
        body: "OK|",
    },
    ApiCase {
        what: "res.php, pending",
        response_format: TaskBehaviour::NeverEnding,
        write: poll,
        starts: OK,
        body: "CAPCHA_NOT_READY",
    },
    ApiCase {
        what: "in.php, cached",
        response_format: TaskBehaviour::AtOnce,
        write: submit,
        starts: OK,
        body: "OK|",
    },
    ApiCase {
        what: "res.php, solved",
        response_format: TaskBehaviour::AtOnce,
        write: poll,
        starts: OK,
        body: "OK|ttt",
    },
    ApiCase {
        what: "POST /v1/orders, joined",
        response_format: TaskBehaviour::NeverEnding,
        write: place,
        starts: "HTTP/1.1 202 Accepted",
        body: "{",
    },
    ApiCase {
        what: "POST /v1/orders, cached",
        response_format: TaskBehaviour::AtOnce,
        write: place,
        starts: OK,
        body: "{",
    },
    ApiCase {
        what: "GET /v1/orders/ID, solved",
        response_format: TaskBehaviour::AtOnce,
        write: read,
        starts: OK,
        body: "{",
    },
];

/// A submit as most clients send it: a form in the body. Equal orders are shared, because joins are measured.
pub(crate) fn submit(n: u64, _id: &str) -> Vec<u8> {
    let page = page(n).replace(':', "%3A").replace('/', "%2F").replace('?', "%3F").replace('=', "%3D");
    let form = format!("key={KEY}&method=userrecaptcha&googlekey={SITE}&pageurl={page}&reuse=shared");
    post("/in.php", "Content-Type: application/x-www-form-urlencoded\r\n", &form)
}

fn poll(_n: u64, id: &str) -> Vec<u8> {
    get(&format!("/res.php?key={KEY}&action=get&id={id}"), "")
}

pub(crate) const SITE: &str = "6Le-wvkSAAAAAPBMRTvw0Q4Muexq9bi0DJwx_mJ-";

fn page(n: u64) -> String {
    format!("https://shop.example.com/account/login?visit={n}")
}

fn place(n: u64, _id: &str) -> Vec<u8> {
    place_and_wait(n, "")
}

/// A request that places an order and waits; `more` contains further lines of the head.
pub(crate) fn place_and_wait(n: u64, more: &str) -> Vec<u8> {
    let page = page(n);
    let params = format!(r#"{{"googlekey":"{SITE}","pageurl":"{page}"}}"#);
    let body = format!(r#"{{"kind":"{KIND}","reuse":"shared","params":{params}}}"#);
    let head = format!("Authorization: Bearer {KEY}\r\nContent-Type: application/json\r\n{more}");
    post("/v1/orders", &head, &body)
}

fn read(_n: u64, id: &str) -> Vec<u8> {
    get(&format!("/v1/orders/{id}"), &format!("Authorization: Bearer {KEY}\r\n"))
}

/// Headers that real clients send in every request.
const USUAL: &str = "Host: 127.0.0.1\r\nUser-Agent: python-requests/2.32.3\r\nAccept-Encoding: gzip, deflate\r\nAccept: */*\r\n\
    Connection: keep-alive\r\n";

pub(crate) fn get(path: &str, head: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\n{USUAL}{head}\r\n").into_bytes()
}

pub(crate) fn post(path: &str, head: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\n{USUAL}Content-Length: {length}\r\n{head}\r\n{body}").into_bytes()
}

/// A gateway whose worker has a thread of its own, and the ids of its orders.
struct ApiStage {
    response_format: TaskBehaviour,
    address: SocketAddr,
    thread: OwnThread,
    ids: Vec<String>,
}

fn stage(runtime: &Runtime, store: Arc<dyn Store>, response_format: TaskBehaviour) -> ApiStage {
    let (thread, address) = OwnThread::start("gateway", move || async move {
        let commit_feed = CommitFeed::new([]);
        let provider: Arc<dyn Provider> = Arc::new(Free(response_format));
        let engine: Arc<Engine> = scene::engine_with(store, Arc::clone(&provider), |settings| {
            // No caller asks while it is measured.
            settings.policy.first_poll = Some(Duration::from_secs(3600));
            settings.on_commit = Some(commit_feed.on_commit());
        });
        tokio::spawn({
            let engine = Arc::clone(&engine);
            async move { engine.work().await }
        });
        let (listener, address) = server::listen().await;
        tokio::spawn(server::gateway(engine, commit_feed).serve(listener, None));
        address
    });
    let ids = runtime.block_on(settle(address, response_format));
    ApiStage { response_format, address, thread, ids }
}

/// Places the orders, and waits until they no longer change.
pub(crate) async fn settle(address: SocketAddr, response_format: TaskBehaviour) -> Vec<String> {
    let mut line = ClientConnection::open(address).await;
    let mut ids = Vec::new();
    for n in 0..HOT {
        let answer = String::from_utf8_lossy(line.ask(&submit(n, "")).await).into_owned();
        let (_, id) = answer.rsplit_once("OK|").unwrap_or_else(|| panic!("no id: {answer}"));
        ids.push(id.to_owned());
    }
    if response_format == TaskBehaviour::AtOnce {
        for id in &ids {
            while !line.ask(&poll(0, id)).await.ends_with(b"ttt") {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    }
    ids
}

/// The result of one side in one round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ApiRound {
    pub(crate) per_second: f64,
    /// The rate if the thread had a whole core all the time.
    pub(crate) per_core_second: f64,
}

pub(crate) struct ApiSide<'a> {
    pub(crate) address: SocketAddr,
    pub(crate) thread: &'a OwnThread,
}

pub(crate) fn round(
    runtime: &Runtime,
    side: &ApiSide<'_>,
    requests: &Arc<Vec<Vec<u8>>>,
    each: usize,
    starts: &'static str,
) -> ApiRound {
    let before = side.thread.hand.at_work();
    let span = runtime.block_on(crowd(side.address, CONNECTIONS, requests, each, starts));
    let at_work = side.thread.hand.at_work().saturating_sub(before);
    let request_count = fraction((CONNECTIONS * each) as u64, 1);
    ApiRound {
        per_second: request_count / span.as_secs_f64(),
        // The first request on each connection comes before the watch starts, and is work all the same.
        per_core_second: (request_count + fraction(CONNECTIONS as u64, 1)) / at_work.as_secs_f64(),
    }
}

pub(crate) fn run(scale: &Scale) -> Vec<BenchRow> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect(WORKS);
    let dir = scale.fresh_dir();
    let mut rows = Vec::new();
    for name in ["embedded", "memory"] {
        say(&format!("gateway: {name} store, {HOT} orders in flight and {HOT} solved"));
        let stages = [TaskBehaviour::NeverEnding, TaskBehaviour::AtOnce].map(|response_format| {
            let store: Arc<dyn Store> = if name == "embedded" {
                Arc::new(EmbeddedStore::open(&dir.path().join(format!("{response_format:?}"))).expect(WORKS))
            } else {
                Arc::new(MemoryStore::default())
            };
            stage(&runtime, store, response_format)
        });
        for case in CASES {
            let stage = stages
                .iter()
                .find(|stage| stage.response_format == case.response_format)
                .expect("one of each");
            rows.extend(measure(&runtime, scale, case, stage, name));
        }
    }
    rows
}

fn measure(runtime: &Runtime, scale: &Scale, case: &ApiCase, stage: &ApiStage, store: &str) -> [BenchRow; 2] {
    say(&format!("gateway: {}", case.what));
    let write = |(n, id): (u64, &String)| (case.write)(n, id);
    let requests: Arc<Vec<Vec<u8>>> = Arc::new((0..).zip(&stage.ids).map(write).collect());
    let answer = runtime
        .block_on(async { ClientConnection::open(stage.address).await.ask(&requests[0]).await.to_vec() });
    let output = String::from_utf8_lossy(&answer).into_owned();
    let body = output.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    assert!(output.starts_with(case.starts) && body.starts_with(case.body), "not expected: {output}");
    let (bare_thread, bare_address) = OwnThread::start("bare", move || async move {
        let (listener, address) = server::listen().await;
        tokio::spawn(server::bare(listener, Ready::like(&answer)));
        address
    });
    let ours = ApiSide { address: stage.address, thread: &stage.thread };
    let bare = ApiSide { address: bare_address, thread: &bare_thread };
    let each = usize::try_from(scale.of(400, 100)).expect("a small number");
    let rounds: Vec<(ApiRound, ApiRound)> = (0..scale.of(11, 5))
        .map(|_| {
            let one = |side| round(runtime, side, &requests, each, case.starts);
            (one(&ours), one(&bare))
        })
        .collect();
    let middle = |amount: fn(&ApiRound) -> f64| {
        let mut pairs: Vec<(f64, f64)> =
            rounds.iter().map(|(ours, bare)| (amount(ours), amount(bare))).collect();
        pairs.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
        pairs[pairs.len() / 2]
    };
    let row = |what: String, (ours, bare): (f64, f64)| {
        BenchRow::new(SECTION, what, ours, BenchUnit::PerSecond)
            .against(bare, "bare hyper")
            .aim(Aim::AtLeast(AIM))
    };
    [
        row(format!("{}, {store}", case.what), middle(|round| round.per_second)),
        row("  on a core of its own".to_owned(), middle(|round| round.per_core_second)),
    ]
}
