//! Tests of the embedded store through its public interface: every promise of the suite, with and without its cache,
//! and its own promises.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod conformance;
mod damage;
mod living;
mod losing;
mod overwritten;
mod people;
mod reopening;
mod stock;
mod usage;

use quittance_lifecycle::{Counters, Order};
use quittance_ports::conformance::{drive, samples};
use quittance_ports::{Commit, Store, StoreError, Version};
use quittance_store_embedded::{EmbeddedStore, Settings};
use std::sync::Arc;
use std::time::Duration;

/// Longer than the disk of a busy machine needs.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Settings with an empty cache, so that every read goes to the disk.
const NO_CACHE: Settings = Settings { cache_orders_max: 0, cache_bytes_max: 0, waiting_max: 10_000 };

fn now<T>(future: impl Future<Output = T>) -> T {
    drive(TIMEOUT, future)
}

fn commit(store: &EmbeddedStore, expected: Version, order: &Arc<Order>) -> Result<Commit, StoreError> {
    now(store.commit(expected, order, &Counters::default(), samples::START))
}

#[track_caller]
fn create(store: &EmbeddedStore, order: &Arc<Order>) -> Version {
    write(store, Version::ABSENT, order)
}

#[track_caller]
fn write(store: &EmbeddedStore, expected: Version, order: &Arc<Order>) -> Version {
    match commit(store, expected, order) {
        Ok(Commit::Done(version)) => version,
        other => panic!("only this test writes here: {other:?}"),
    }
}
