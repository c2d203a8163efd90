//! Tests that tables do not grow while orders come, are updated and go.

use super::{open, settings_at, write};
use futures_util::future::join_all;
use quittance_lifecycle::{Order, Timestamp};
use quittance_ports::conformance::samples::{self, after};
use quittance_ports::{Store, Version};
use quittance_servers::Postgres;
use quittance_store_postgres::PostgresStore;
use std::sync::Arc;

const LIVE: usize = 400;

/// Runs all orders of one round through their lives: placed, submitted, solving, polled several times, failed.
async fn live_and_die(store: &PostgresStore, round: u64) {
    let now = after(round * 10_000);
    let steps: [fn(&str, Timestamp) -> samples::SampleOrder; 6] = [
        samples::queued,
        samples::submitting,
        samples::solving,
        samples::in_doubt,
        samples::solving,
        samples::failed,
    ];
    let live = async |n: usize| {
        let mut version = Version::ABSENT;
        for step in steps {
            let order: Arc<Order> = step(&format!("order {round}-{n}"), now).order;
            version = write(store, version, &order).await;
        }
    };
    join_all((0..LIVE).map(live)).await;
    let purged = store.purge(after(round * 10_000 + 9_000), 10 * LIVE).await.unwrap();
    assert_eq!(purged, LIVE);
}

#[test]
fn tables_stay_as_large_as_what_lives_in_them() {
    super::run(async {
        let server = Postgres::start(&["autovacuum=off"]);
        let store = open(settings_at(&server.url(), "churn")).await;
        let size = || -> u64 {
            server.sql("SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c WHERE relkind = 'r' AND relnamespace = 'churn'::regnamespace").parse().unwrap()
        };
        let mut sizes = Vec::new();
        for round in 1..=10 {
            live_and_die(&store, round).await;
            // Where autovacuum would have come.
            server.sql("VACUUM churn.orders; VACUUM churn.counters");
            sizes.push(size());
        }
        assert!(sizes[9] <= sizes[2] * 5 / 4, "{sizes:?}");
    });
}
