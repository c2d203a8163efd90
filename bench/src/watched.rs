//! The cost of being watched: joined orders over HTTP while three operators have the live view open and a monitoring
//! system reads the metrics each second. This is compared with a gateway without watchers, in turn, so that
//! disturbances of the machine affect both.

use crate::apis::{ApiRound, ApiSide, OK, get, round, settle, submit};
use crate::client::ClientConnection;
use crate::provider::{Free, TaskBehaviour};
use crate::scene::{self, WORKS};
use crate::server::{self, ADMIN, OwnThread};
use crate::table::{Aim, BenchRow, BenchUnit};
use crate::{Scale, say};
use quittance_gateway::CommitFeed;
use quittance_ports::{MemoryStore, Provider, Store};
use quittance_store_embedded::EmbeddedStore;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::AbortHandle;

const SECTION: &str = "watched";
const WATCHERS: usize = 3;
const SCRAPE_SPAN: Duration = Duration::from_secs(1);
/// The wanted ratio of the rate with watchers to that without.
const AIM: f64 = 0.97;

fn start(store: Arc<dyn Store>) -> (OwnThread, SocketAddr) {
    OwnThread::start("gateway", move || async move {
        let commit_feed = CommitFeed::new([]);
        let provider: Arc<dyn Provider> = Arc::new(Free(TaskBehaviour::NeverEnding));
        let engine = scene::engine_with(Arc::clone(&store), Arc::clone(&provider), |settings| {
            // No caller asks while it is measured.
            settings.policy.first_poll = Some(Duration::from_secs(3600));
            settings.on_commit = Some(commit_feed.on_commit());
        });
        tokio::spawn({
            let engine = Arc::clone(&engine);
            async move { engine.work().await }
        });
        let (listener, address) = server::listen().await;
        let (gateway, admin) = server::gateway_with_admin(engine, commit_feed);
        tokio::spawn(admin.run());
        tokio::spawn(gateway.serve(listener, None));
        address
    })
}

fn operators(path: &str) -> Vec<u8> {
    get(path, &format!("Authorization: Bearer {ADMIN}\r\n"))
}

/// Reads everything that comes.
async fn watch(to: SocketAddr) {
    let mut stream = TcpStream::connect(to).await.expect("the server listens");
    tokio::io::AsyncWriteExt::write_all(&mut stream, &operators("/v1/admin/live")).await.expect(WORKS);
    let mut read = vec![0; 64 * 1024];
    while stream.read(&mut read).await.is_ok_and(|count| count > 0) {}
}

async fn scrape(to: SocketAddr) {
    let mut line = ClientConnection::open(to).await;
    loop {
        line.ask(&operators("/metrics")).await;
        tokio::time::sleep(SCRAPE_SPAN).await;
    }
}

fn open_the_page(runtime: &Runtime, to: SocketAddr) -> Vec<AbortHandle> {
    let watching = (0..WATCHERS).map(|_| runtime.spawn(watch(to)).abort_handle());
    watching.chain([runtime.spawn(scrape(to)).abort_handle()]).collect()
}

pub(crate) fn run(scale: &Scale) -> Vec<BenchRow> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect(WORKS);
    let dir = scale.fresh_dir();
    let embedded: Arc<dyn Store> = Arc::new(EmbeddedStore::open(dir.path()).expect(WORKS));
    let stores = [("embedded", embedded), ("memory", Arc::new(MemoryStore::default()) as Arc<dyn Store>)];
    stores.into_iter().flat_map(|(name, store)| measure(&runtime, scale, name, store)).collect()
}

fn measure(runtime: &Runtime, scale: &Scale, name: &str, store: Arc<dyn Store>) -> [BenchRow; 2] {
    say(&format!("watched: {name} store"));
    let (thread, address) = start(store);
    let ids = runtime.block_on(settle(address, TaskBehaviour::NeverEnding));
    let requests: Arc<Vec<Vec<u8>>> = Arc::new((0..).zip(&ids).map(|(n, id)| submit(n, id)).collect());
    // Some seconds for each round, or what is done once a second would be there or not by luck.
    let each = usize::try_from(scale.of(2000, 800)).expect("a small number");
    let side = ApiSide { address, thread: &thread };
    let one = || round(runtime, &side, &requests, each, OK);
    let watched = || {
        let page = open_the_page(runtime, address);
        let round = one();
        page.into_iter().for_each(|watching| watching.abort());
        round
    };
    // The first ones are for the caches; and the second place must not always go to the same one.
    _ = (watched(), one());
    let rounds: Vec<(ApiRound, ApiRound)> = (0..scale.of(12, 6))
        .map(|n| match n % 2 {
            0 => (watched(), one()),
            _ => {
                let alone = one();
                (watched(), alone)
            }
        })
        .collect();
    let middle = |amount: fn(&ApiRound) -> f64| {
        let mut pairs: Vec<(f64, f64)> =
            rounds.iter().map(|(watched, alone)| (amount(watched), amount(alone))).collect();
        pairs.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
        pairs[pairs.len() / 2]
    };
    let row = |what: String, (watched, alone): (f64, f64)| {
        BenchRow::new(SECTION, what, watched, BenchUnit::PerSecond)
            .against(alone, "no watchers")
            .aim(Aim::AtLeast(AIM))
    };
    [
        row(format!("in.php, joined, {name}"), middle(|round| round.per_second)),
        row("  on a core of its own".to_owned(), middle(|round| round.per_core_second)),
    ]
}
