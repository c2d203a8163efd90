//! Tests of servers that die, hang, are cut off or fail over: calls answer in time, nothing that was acknowledged is
//! lost, and the store recovers by itself.

use super::{NEVER, cluster_url, commit, create, eventually, run, write};
use futures_util::future::join_all;
use quittance_lifecycle::Key;
use quittance_ports::conformance::samples::{self, START, after};
use quittance_ports::{Commit, Day, Membership, Store, StoreError, Version, Versioned, Watch, Which};
use quittance_servers::{Redis, RedisCluster, Sentinel, Tap};
use quittance_store_redis::{RedisStore, Settings};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const CALL_WAIT: Duration = Duration::from_millis(300);
/// The time for a connection and an answer on a busy machine.
const IN_TIME: Duration = Duration::from_secs(3);

const DURABLE: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

async fn open(url: &str) -> RedisStore {
    let settings = Settings::parse(url).unwrap().with_call_wait(CALL_WAIT).with_recheck(NEVER);
    eventually(async || RedisStore::open(settings.clone()).await.ok()).await
}

fn away<T: std::fmt::Debug>(outcome: Result<T, StoreError>) -> bool {
    match outcome {
        Ok(_) => false,
        Err(StoreError::Unavailable { .. }) => true,
        Err(other) => panic!("it is away, and not {other:?}"),
    }
}

/// Checks that every call fails as unavailable, in time.
async fn is_away(store: &RedisStore) {
    let order = samples::queued("refused", START);
    let began = Instant::now();
    let calls = tokio::join!(
        async { away(store.load(&order.order.key).await) },
        async { away(commit(store, Version(7), &order.order).await) },
        async { away(store.claim_due(after(1), after(2), 9).await) },
        async { away(store.list_stock(&order.order.terms.target, START, 9).await) },
        async { away(store.list(Which::ALL, None, 9).await) },
        async { away(store.purge(after(1), 9).await) },
        async { away(store.usage(Day(1), Day(2)).await) },
        async { away(store.members().await) },
        async { away(store.seal(None).await) },
    );
    assert_eq!(calls, (true, true, true, true, true, true, true, true, true));
    assert!(began.elapsed() < IN_TIME, "{:?}", began.elapsed());
    assert!(store.watch(&order.order.key).await.is_ok(), "a caller may begin to wait");
}

/// An order from before the outage, a caller that waits for it, and checks for after the outage.
struct OutageScene {
    store: RedisStore,
    other: RedisStore,
    version: Version,
    watch: Watch,
}

const NAME: &str = "patient";

impl OutageScene {
    async fn new(url: &str) -> Self {
        let (store, other) = (open(url).await, open(url).await);
        let order = samples::queued(NAME, START).order;
        let version = create(&store, &order).await;
        let watch = store.watch(&order.key).await.unwrap();
        Self { store, other, version, watch }
    }

    /// Waits for the wake-up of the first re-check, after which notices arrive again.
    async fn after_a_recheck(mut self) -> Self {
        self.watch.changed().await;
        self
    }

    async fn goes_on(mut self) {
        let order = samples::queued(NAME, START).order;
        let record = eventually(async || self.store.load(&order.key).await.ok()).await;
        assert_eq!(record.map(|record| record.version), Some(self.version), "what was acknowledged is there");
        let solved = samples::solved(NAME, START).order;
        let outcome = eventually(async || commit(&self.other, self.version, &solved).await.ok()).await;
        match outcome {
            Commit::Done(_) => {}
            // The answer to an earlier attempt may have been lost, but not the write.
            Commit::Conflict(record) => assert_eq!(record.unwrap().order, solved),
        }
        self.watch.changed().await;
        eventually(async || self.store.list(Which::ALL, None, 9).await.ok()).await;
    }
}

#[test]
fn a_server_that_is_killed_and_started_again_is_found_again_with_all_its_records() {
    run(async {
        let mut redis = Redis::start(&DURABLE);
        let scene = OutageScene::new(&redis.url()).await;
        redis.kill();
        is_away(&scene.store).await;
        redis.start_again();
        scene.after_a_recheck().await.goes_on().await;
    });
}

#[test]
fn a_server_that_hangs_is_not_waited_for_and_is_used_again_when_it_comes_back() {
    run(async {
        let redis = Redis::start(&DURABLE);
        let scene = OutageScene::new(&redis.url()).await;
        redis.pause();
        is_away(&scene.store).await;
        is_away(&scene.other).await;
        redis.resume();
        scene.goes_on().await;
    });
}

/// The server does not close the connection, so only a call notices.
#[test]
fn a_silently_dead_connection_for_notices_is_replaced() {
    run(async {
        let redis = Redis::start(&[]);
        let settings = Settings::parse(&redis.url()).unwrap();
        let settings = settings.with_call_wait(CALL_WAIT).with_recheck(Duration::from_millis(10));
        let store = RedisStore::open(settings).await.unwrap();
        let order = samples::queued(NAME, START).order;
        create(&store, &order).await;
        let mut watch = store.watch(&order.key).await.unwrap();
        redis.pause();
        for _ in 0..4 {
            is_away(&store).await;
        }
        redis.resume();
        // The order is still awaited: nothing else would wake the waiter.
        watch.changed().await;
    });
}

#[test]
fn a_cable_that_is_cut_and_fixed_is_no_more_than_a_pause() {
    run(async {
        let redis = Redis::start(&DURABLE);
        let tap = Tap::in_front_of(redis.port());
        let mut scene = OutageScene::new(&format!("redis://127.0.0.1:{}", tap.port())).await;
        for _ in 0..2 {
            tap.cut();
            is_away(&scene.store).await;
            tap.repair();
            eventually(async || scene.store.members().await.ok()).await;
            scene = scene.after_a_recheck().await;
        }
        scene.goes_on().await;
    });
}

#[test]
fn a_server_that_refuses_writes_says_so_and_can_be_read() {
    run(async {
        let redis = Redis::start(&DURABLE);
        let store = open(&redis.url()).await;
        let order = samples::queued(NAME, START).order;
        let version = create(&store, &order).await;
        let bad = [("min-replicas-to-write", "3", "0"), ("maxmemory", "1", "0")];
        for (setting, on, off) in bad {
            redis.command(&["CONFIG", "SET", setting, on]);
            let next = samples::submitting(NAME, START).order;
            assert!(away(commit(&store, version, &next).await), "{setting}");
            assert!(away(store.claim_due(after(1), after(2), 9).await), "{setting}");
            assert_eq!(
                store.load(&order.key).await.unwrap().unwrap().version,
                version,
                "nothing has changed"
            );
            redis.command(&["CONFIG", "SET", setting, off]);
        }
        let due = store.claim_due(after(1), after(2), 9).await.unwrap();
        assert_eq!(due.orders.len(), 1, "and nothing is half-done");
        write(&store, version, &order).await;
    });
}

#[test]
fn a_server_that_has_forgotten_the_scripts_gets_them_again() {
    run(async {
        let redis = Redis::start(&[]);
        let store = open(&redis.url()).await;
        let mut version = create(&store, &samples::queued(NAME, START).order).await;
        for _ in 0..3 {
            redis.command(&["SCRIPT", "FLUSH"]);
            version = write(&store, version, &samples::queued(NAME, START).order).await;
        }
    });
}

#[test]
fn when_the_sentinels_name_another_master_it_is_found() {
    run(async {
        let mut servers = Sentinel::start();
        let url = format!("{}/main", servers.url().replace("redis://", "redis+sentinel://"));
        let scene = OutageScene::new(&url).await;
        let name = format!("{{quittance:0}}:order:{}", samples::queued(NAME, START).order.key);
        eventually(async || (servers.replica().command(&["EXISTS", &name]) == "1").then_some(())).await;
        servers.kill();
        assert!(away(scene.store.load(&samples::queued(NAME, START).order.key).await));
        scene.after_a_recheck().await.goes_on().await;
        assert!(servers.replica().command(&["ROLE"]).starts_with("master"));
    });
}

/// Orders on a cluster with one hanging server.
struct HangingCluster {
    cluster: RedisCluster,
    store: RedisStore,
    orders: Vec<Versioned>,
    /// The orders on the hanging server.
    held_up: Vec<Key>,
}

impl HangingCluster {
    async fn new(recheck: Duration) -> Self {
        let cluster = RedisCluster::start();
        for node in 0..3 {
            cluster.node(node).command(&["CONFIG", "SET", "cluster-require-full-coverage", "no"]);
        }
        let settings = Settings::parse(&cluster_url(&cluster)).unwrap();
        let store = RedisStore::open(settings.with_call_wait(CALL_WAIT).with_recheck(recheck)).await.unwrap();
        let mut orders = Vec::new();
        for n in 0..30 {
            let order = samples::queued(&format!("order {n}"), START).order;
            orders.push(Versioned { version: create(&store, &order).await, order });
        }
        let records = cluster.node(1).command(&["KEYS", "*:order:*"]);
        let held_up = records.lines().map(|name| Key::parse(name.rsplit(':').next().unwrap()).unwrap());
        let held_up: Vec<Key> = held_up.collect();
        assert!((1..30).contains(&held_up.len()), "{} of 30", held_up.len());
        cluster.node(1).pause();
        Self { cluster, store, orders, held_up }
    }

    fn is_held_up(&self, record: &Versioned) -> bool {
        self.held_up.contains(&record.order.key)
    }
}

#[test]
fn a_server_of_a_cluster_that_hangs_holds_up_its_own_orders_alone_and_comes_back() {
    run(async {
        let scene = HangingCluster::new(NEVER).await;
        let began = Instant::now();
        let loads = join_all(scene.orders.iter().map(|record| scene.store.load(&record.order.key))).await;
        assert!(began.elapsed() < IN_TIME);
        for (record, load) in scene.orders.iter().zip(loads) {
            assert_eq!(away(load), scene.is_held_up(record));
        }
        let due = scene.store.claim_due(after(1), after(60), 100).await.unwrap();
        let mut claimed: Vec<Key> = due.orders.iter().map(|record| record.order.key).collect();
        let mut claimable: Vec<&Versioned> =
            scene.orders.iter().filter(|record| !scene.is_held_up(record)).collect();
        claimable.sort_by_key(|record| record.order.key);
        claimed.sort_unstable();
        assert!(
            claimed.iter().eq(claimable.iter().map(|record| &record.order.key)),
            "what others have is due"
        );
        assert_eq!(due.next, Some(after(2)), "and the rest is read again soon");

        scene.cluster.node(1).resume();
        for Versioned { version, order } in &scene.orders {
            let record = eventually(async || scene.store.load(&order.key).await.ok()).await.unwrap();
            assert_eq!(record.version, *version);
            let outcome = eventually(async || commit(&scene.store, *version, order).await.ok()).await;
            assert!(matches!(outcome, Commit::Done(_)));
        }
    });
}

/// The hanging server may be the one that sends our notices.
#[test]
fn a_waiter_for_an_order_on_another_server_is_woken_while_one_hangs() {
    run(async {
        let scene = HangingCluster::new(Duration::from_millis(50)).await;
        let nodes = [scene.cluster.node(0).url(), scene.cluster.node(2).url()];
        let alive = nodes.each_ref().map(|url| url.strip_prefix("redis://").unwrap()).join(",");
        let other = open(&format!("redis+cluster://{alive}")).await;
        let stuck = scene.orders.iter().find(|record| scene.is_held_up(record)).unwrap();
        let _stuck = scene.store.watch(&stuck.order.key).await.unwrap();
        for record in scene.orders.iter().filter(|record| !scene.is_held_up(record)).take(3) {
            let mut watch = scene.store.watch(&record.order.key).await.unwrap();
            let mut solved = (*samples::solved("any", START).order).clone();
            (solved.key, solved.terms) = (record.order.key, record.order.terms.clone());
            write(&other, record.version, &Arc::new(solved)).await;
            watch.changed().await;
        }
    });
}

#[test]
fn a_cluster_that_is_killed_and_started_again_is_found_again() {
    run(async {
        let mut cluster = RedisCluster::start();
        let scene = OutageScene::new(&cluster_url(&cluster)).await;
        cluster.kill();
        is_away(&scene.store).await;
        cluster.start_again();
        scene.after_a_recheck().await.goes_on().await;
    });
}
