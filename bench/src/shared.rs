//! The cost of several nodes: orders accepted and joined in a second through a shared store. This is compared with
//! the simplest script or statement for it, on one server with as many callers. Also how many requests the server
//! gets, and how soon a waiter at one node is woken by another node's write.

use crate::accepts::{accept, crowded, fraction};
use crate::provider::TaskBehaviour;
use crate::scene::{self, WORKS};
use crate::stopwatch::now;
use crate::table::{Aim, BenchRow, BenchUnit};
use crate::{Scale, say};
use futures_util::future::BoxFuture;
use quittance_lifecycle::Counters;
use quittance_ports::{Commit, Store, Version};
use quittance_record::{encode_order, encode_terms};
use quittance_servers::{Postgres, Redis};
use quittance_store_postgres::{PostgresStore, Settings as PostgresSettings};
use quittance_store_redis::{RedisStore, Settings as RedisSettings};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;

/// Callers, and orders in a round.
const CROWDS: [(u64, u64); 3] = [(1, 1_000), (64, 20_000), (1_024, 40_000)];
const SHARE: f64 = 0.5;
/// Joins go to this many orders in turn.
const JOINED: u64 = 1_000;
/// The wanted time in which a waiter at another node is woken.
const HEARD_MICROS: f64 = 10_000.0;
/// How many connections the bare statement may use: enough to keep two cores busy.
const BARE_CONNECTIONS: usize = 8;

/// Two nodes on one server, and the bare statement beside them.
struct StoreSide {
    section: &'static str,
    bare_is: &'static str,
    here: Arc<dyn Store>,
    there: Arc<dyn Store>,
    round_trips: Box<dyn Fn() -> u64>,
    /// Creates a record of these bytes under this number, or finds the existing one.
    bare: Bare,
}

type Bare = Arc<dyn Fn(u64, Vec<u8>) -> BoxFuture<'static, ()> + Send + Sync>;

/// A runtime with one thread for the callers: the server needs the other core.
fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect(WORKS)
}

pub(crate) fn redis(scale: &Scale) -> Vec<BenchRow> {
    let runtime = runtime();
    let server = Redis::start(&["--appendonly", "yes", "--appendfsync", "everysec"]);
    let open =
        || async { RedisStore::open(RedisSettings::parse(&server.url()).expect(WORKS)).await.expect(WORKS) };
    let (here, there) = runtime.block_on(async { (open().await, open().await) });
    let counted = here.clone();
    let side = StoreSide {
        section: "redis",
        bare_is: "bare script",
        here: Arc::new(here),
        there: Arc::new(there),
        round_trips: Box::new(move || counted.round_trips()),
        bare: runtime.block_on(bare_redis(&server.url())),
    };
    side.rows(&runtime, scale)
}

/// Compare and set in Redis, without indices, usage and notices.
async fn bare_redis(url: &str) -> Bare {
    const SCRIPT: &str = "local is = redis.call('HGET', KEYS[1], 'v')
        if (is or '0') ~= ARGV[1] then return { is, redis.call('HGET', KEYS[1], 'r') } end
        redis.call('HSET', KEYS[1], 'v', '1', 'r', ARGV[2]) return { '1' }";
    let client = redis::Client::open(url).expect(WORKS);
    let connection = client.get_multiplexed_async_connection().await.expect(WORKS);
    let script = Arc::new(redis::Script::new(SCRIPT));
    Arc::new(move |n, record| {
        let (mut connection, script) = (connection.clone(), Arc::clone(&script));
        Box::pin(async move {
            let key = format!("bare:{n:064x}");
            let call =
                script.key(key).arg("0").arg(record).invoke_async::<redis::Value>(&mut connection).await;
            drop(call.expect(WORKS));
        })
    })
}

pub(crate) fn postgres(scale: &Scale) -> Vec<BenchRow> {
    let runtime = runtime();
    let server = Postgres::start(&[]);
    let open = || async {
        PostgresStore::open(PostgresSettings::parse(&server.url()).expect(WORKS)).await.expect(WORKS)
    };
    let (here, there) = runtime.block_on(async { (open().await, open().await) });
    let counted = here.clone();
    let side = StoreSide {
        section: "postgres",
        bare_is: "bare statement",
        here: Arc::new(here),
        there: Arc::new(there),
        round_trips: Box::new(move || counted.round_trips()),
        bare: runtime.block_on(bare_postgres(&server)),
    };
    side.rows(&runtime, scale)
}

async fn bare_postgres(server: &Postgres) -> Bare {
    server.sql("CREATE TABLE bare (key bytea PRIMARY KEY, version bigint NOT NULL, record bytea NOT NULL)");
    const STATEMENT: &str = "WITH made AS (
            INSERT INTO bare VALUES ($1, 1, $2) ON CONFLICT DO NOTHING RETURNING version
        ) SELECT version, NULL::bytea FROM made UNION ALL SELECT version, record FROM bare WHERE key = $1";
    let mut clients = Vec::new();
    for _ in 0..BARE_CONNECTIONS {
        let (client, connection) =
            tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.expect(WORKS);
        drop(tokio::spawn(connection));
        let statement = client.prepare(STATEMENT).await.expect(WORKS);
        clients.push(Arc::new((client, statement)));
    }
    let turn = AtomicUsize::new(0);
    Arc::new(move |n, record| {
        let client = Arc::clone(&clients[turn.fetch_add(1, Ordering::Relaxed) % clients.len()]);
        Box::pin(async move {
            let mut key = [0_u8; 32];
            key[..8].copy_from_slice(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
            let (client, statement) = &*client;
            drop(client.query(statement, &[&&key[..], &record]).await.expect(WORKS));
        })
    })
}

impl StoreSide {
    fn rows(&self, runtime: &Runtime, scale: &Scale) -> Vec<BenchRow> {
        let mut rows = Vec::new();
        let mut next = 1_000_000_000;
        for (callers, orders) in CROWDS {
            say(&format!("{}: {callers} callers", self.section));
            let orders = scale.of(orders, orders / 4).next_multiple_of(callers);
            rows.extend(self.crowd(runtime, scale, callers, orders, &mut next));
        }
        rows.push(self.wakeups(runtime, scale));
        rows
    }

    /// Runs rounds in turn with the bare statement. The round with the median ratio counts.
    fn crowd(
        &self,
        runtime: &Runtime,
        scale: &Scale,
        callers: u64,
        orders: u64,
        next: &mut u64,
    ) -> Vec<BenchRow> {
        let engine = scene::engine(Arc::clone(&self.here), TaskBehaviour::NeverEnding);
        let sample = scene::in_flight(1_000_000, scene::now());
        let record = vec![b'r'; encode_order(&sample).len() + encode_terms(&sample.terms).len()];
        let who = if callers == 1 { "1 caller".to_owned() } else { format!("{callers} callers") };
        let mut rows = Vec::new();
        for is_join in [false, true] {
            let mut rounds: Vec<(f64, f64)> = Vec::new();
            let mut round_trip_count = 0;
            for _ in 0..scale.of(7, 3) {
                let first = *next;
                // Joined orders are there before the clock starts.
                let number = move |n: u64| if is_join { n % JOINED } else { first + n };
                if is_join {
                    crowded(runtime, 64, (0..JOINED).map(scene::draft), {
                        let engine = Arc::clone(&engine);
                        move |draft| accept(Arc::clone(&engine), draft)
                    });
                    let bare = Arc::clone(&self.bare);
                    let record = record.clone();
                    crowded(runtime, 64, 0..JOINED, move |n| bare(n, record.clone()));
                }
                let before = (self.round_trips)();
                let ours = crowded(runtime, callers, (0..orders).map(number).map(scene::draft), {
                    let engine = Arc::clone(&engine);
                    move |draft| accept(Arc::clone(&engine), draft)
                });
                round_trip_count += (self.round_trips)() - before;
                let (bare, record) = (Arc::clone(&self.bare), record.clone());
                let theirs =
                    crowded(runtime, callers, (0..orders).map(number), move |n| bare(n, record.clone()));
                let pace = |span: Duration| fraction(orders, 1) / span.as_secs_f64();
                rounds.push((pace(ours), pace(theirs)));
                *next += orders;
            }
            let measured_orders = orders * rounds.len() as u64;
            rounds.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
            let (ours, theirs) = rounds[rounds.len() / 2];
            let what = if is_join { "joins" } else { "accepts" };
            rows.push(
                BenchRow::new(self.section, format!("{what}, {who}"), ours, BenchUnit::PerSecond)
                    .against(theirs, self.bare_is)
                    .aim(Aim::AtLeast(SHARE)),
            );
            let trips = fraction(round_trip_count, measured_orders);
            rows.push(BenchRow::new(
                self.section,
                format!("  round trips for each, {who}"),
                trips,
                BenchUnit::Count,
            ));
        }
        rows
    }

    /// The median time from the beginning of a commit at one node to the wake-up at another. The notice often comes
    /// before the commit itself has returned.
    fn wakeups(&self, runtime: &Runtime, scale: &Scale) -> BenchRow {
        say(&format!("{}: wake-ups", self.section));
        let mut spans: Vec<Duration> = Vec::new();
        runtime.block_on(async {
            for n in 0..scale.of(1_000, 200) {
                let order = scene::at_rest(5_000_000_000 + n, scene::now());
                let mut watch = self.there.watch(&order.key).await.expect(WORKS);
                let waiter = tokio::spawn(async move {
                    watch.changed().await;
                    now()
                });
                tokio::task::yield_now().await;
                let begun = now();
                let done =
                    self.here.commit(Version::ABSENT, &order, &Counters::default(), scene::now()).await;
                assert!(matches!(done.expect(WORKS), Commit::Done(_)));
                spans.push(waiter.await.expect(WORKS).saturating_duration_since(begun));
            }
        });
        spans.sort_unstable();
        let median = spans[spans.len() / 2].as_secs_f64() * 1e6;
        BenchRow::new(
            self.section,
            "commit, and a waiter at another node has heard, median",
            median,
            BenchUnit::Micros,
        )
        .against(HEARD_MICROS, "allowed")
        .aim(Aim::AtMost(1.0))
    }
}
