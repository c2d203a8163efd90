//! Tests of the PostgreSQL store through its public interface, on its own server: every promise of the suite, alone,
//! between two nodes and through a pooler, and its own promises.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod bloat;
mod checkup;
mod conformance;
mod encryption;
mod failure;
mod forgetting;
mod leases;
mod listening;
mod living;
mod migrations;
mod records;
mod tables;
mod taking;
mod usage;

use quittance_lifecycle::{Counters, Order};
use quittance_ports::conformance::samples;
use quittance_ports::{Commit, Store, StoreError, Version};
use quittance_servers::shared_postgres;
use quittance_store_postgres::{PostgresStore, Settings};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Longer than a busy machine needs.
const TIMEOUT: Duration = Duration::from_secs(60);

/// So long that a re-check cannot find a lost notice before the test has failed.
const NEVER: Duration = Duration::from_secs(3600);

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Runs a test with a timeout.
fn run<T>(test: impl Future<Output = T>) -> T {
    runtime().block_on(async { tokio::time::timeout(TIMEOUT, test).await.expect("it waits for ever") })
}

/// The name of a new schema.
fn fresh_schema() -> String {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    format!("test_{}", LAST.fetch_add(1, Ordering::Relaxed))
}

/// Settings for this schema on that server, with long timeouts for a busy machine.
fn settings_at(url: &str, schema: &str) -> Settings {
    let url = format!("{url}?schema={schema}&connections=4");
    Settings::parse(&url).unwrap().with_recheck(NEVER).with_call_wait(Duration::from_secs(20))
}

fn settings(schema: &str) -> Settings {
    settings_at(&shared_postgres().url(), schema)
}

async fn open(settings: Settings) -> PostgresStore {
    PostgresStore::open(settings).await.unwrap()
}

/// Waits until `holds` returns true.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let looked = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(TIMEOUT, looked).await.is_ok(), "it never came about that {what}");
}

fn is_unavailable<T>(answer: &Result<T, StoreError>) -> bool {
    matches!(answer, Err(StoreError::Unavailable { .. }))
}

/// The whole text of an error, with its sources.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = format!("{error} {error:?}");
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error} {error:?}");
        source = error.source();
    }
    text
}

async fn commit(store: &PostgresStore, expected: Version, order: &Arc<Order>) -> Result<Commit, StoreError> {
    store.commit(expected, order, &Counters::default(), samples::START).await
}

async fn create(store: &PostgresStore, order: &Arc<Order>) -> Version {
    write(store, Version::ABSENT, order).await
}

async fn write(store: &PostgresStore, expected: Version, order: &Arc<Order>) -> Version {
    match commit(store, expected, order).await {
        Ok(Commit::Done(version)) => version,
        other => panic!("only this test writes here: {other:?}"),
    }
}
