//! Tests of the Redis store through its public interface, on its own servers: every promise of the suite, on one
//! server and on a cluster, and its own promises.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod checkup;
mod conformance;
mod damage;
mod documents;
mod forgetting;
mod keeping;
mod leases;
mod opening;
mod outage;
mod sealing;
mod settled;
mod taking;
mod usage;
mod waking;

use quittance_lifecycle::{Counters, Order};
use quittance_ports::conformance::samples;
use quittance_ports::{Commit, Store, StoreError, Version};
use quittance_servers::{Redis, RedisCluster, shared_redis};
use quittance_store_redis::{RedisStore, Settings};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// Longer than a busy machine needs.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The stored name of the hash with the versions.
const VERSIONS: &str = "desk";

/// So long that it disturbs no test.
const NEVER: Duration = Duration::from_secs(3600);

static CLUSTER: LazyLock<RedisCluster> = LazyLock::new(RedisCluster::start);

/// A place for a new store.
#[derive(Clone)]
struct FreshPrefix {
    settings: Settings,
    prefix: String,
    servers: Vec<&'static Redis>,
}

impl FreshPrefix {
    fn on_one_server(partitions: u16) -> Self {
        let (url, prefix) = (shared_redis().url(), fresh_prefix());
        let settings = settings(&format!("{url}?prefix={prefix}&partitions={partitions}"));
        Self { settings, prefix, servers: vec![shared_redis()] }
    }

    fn on_the_cluster() -> Self {
        let prefix = fresh_prefix();
        let settings = settings(&format!("{}?prefix={prefix}", cluster_url(&CLUSTER)));
        Self { settings, prefix, servers: (0..3).map(|n| CLUSTER.node(n)).collect() }
    }

    async fn open(&self) -> RedisStore {
        RedisStore::open(self.settings.clone()).await.unwrap()
    }
}

fn cluster_url(cluster: &RedisCluster) -> String {
    let urls = cluster.urls();
    let nodes: Vec<_> = urls.iter().map(|url| url.strip_prefix("redis://").unwrap()).collect();
    format!("redis+cluster://{}", nodes.join(","))
}

fn fresh_prefix() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("test{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Settings without re-checks, and with long timeouts for a busy machine.
fn settings(url: &str) -> Settings {
    Settings::parse(url).unwrap().with_recheck(NEVER).with_call_wait(Duration::from_secs(10))
}

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(TIMEOUT, test).await.expect("it waits for ever") })
}

/// Calls `attempt` until it returns a value; the timeout of the test ends it otherwise.
async fn eventually<T>(mut attempt: impl AsyncFnMut() -> Option<T>) -> T {
    loop {
        if let Some(stored) = attempt().await {
            return stored;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn commit(store: &dyn Store, expected: Version, order: &Arc<Order>) -> Result<Commit, StoreError> {
    store.commit(expected, order, &Counters::default(), samples::START).await
}

async fn create(store: &dyn Store, order: &Arc<Order>) -> Version {
    write(store, Version::ABSENT, order).await
}

async fn write(store: &dyn Store, expected: Version, order: &Arc<Order>) -> Version {
    match commit(store, expected, order).await {
        Ok(Commit::Done(version)) => version,
        other => panic!("only this test writes here: {other:?}"),
    }
}

/// The name of an order's record in a store with one partition.
fn record(prefix: &str, order: &Order) -> String {
    format!("{{{prefix}:0}}:order:{}", order.key)
}
