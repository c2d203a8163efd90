//! Tests of a sealed store: it accepts nothing from any process, and can still be read.

use super::{FreshPrefix, commit, create, run, write};
use quittance_ports::conformance::samples::{self, START, after};
use quittance_ports::{Membership, OrderCounts, Store, StoreError, UsageRow, Version, Which};
use std::error::Error;

fn is_closed(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable { .. })
        && error.source().unwrap().to_string().contains("moved away")
}

fn refuses_writes_and_can_be_read(place: &FreshPrefix) {
    run(async {
        let (one, other) = (place.open().await, place.open().await);
        let orders: Vec<_> = (0..20).map(|n| samples::failed(&format!("order {n}"), START)).collect();
        let mut versions = Vec::new();
        for order in &orders {
            versions.push(create(&one, &order.order).await);
        }
        let due = samples::queued("due", START).order;
        create(&one, &due).await;
        let stocked = samples::stocked("stocked", "https://example.com/stock", after(60)).order;
        create(&one, &stocked).await;
        let target = stocked.terms.target;
        one.seal(Some("moved away")).await.unwrap();

        let line = UsageRow::of(&due, START);
        for store in [&one, &other] {
            for (sample, version) in orders.iter().zip(&versions) {
                assert!(is_closed(&commit(store, *version, &sample.order).await.unwrap_err()));
                assert_eq!(store.load(&sample.order.key).await.unwrap().unwrap().version, *version);
            }
            assert!(is_closed(&store.claim_due(START, after(9), 9).await.unwrap_err()));
            assert!(is_closed(&store.purge(after(1_000_000), 9).await.unwrap_err()));
            assert!(is_closed(&store.count(&line, &orders[0].counters).await.unwrap_err()));
            assert!(is_closed(&store.compact_usage(line.day, line.day).await.unwrap_err()));
            assert_eq!(store.order_counts().await.unwrap(), OrderCounts { open: 1, dead: 0 });
            let taken = store.take(&target, START, &due.key, START, &orders[0].counters).await;
            assert!(is_closed(&taken.unwrap_err()));
            let written = store.write_document("document", Version::ABSENT, None).await;
            assert!(is_closed(&written.unwrap_err()));
            assert_eq!(store.documents().await.unwrap(), []);
            assert_eq!(store.list_stock(&target, START, 9).await.unwrap(), [stocked.key]);
            assert_eq!(store.list(Which::ALL, None, 99).await.unwrap().len(), 22);
            assert_eq!(store.usage(line.day, line.day).await.unwrap(), []);
            assert_eq!(store.list_stock(&due.terms.target, START, 9).await.unwrap(), []);
            assert_eq!(store.sealed().await.unwrap().as_deref(), Some("moved away"));
        }

        other.seal(None).await.unwrap();
        for (sample, version) in orders.iter().zip(versions) {
            write(&one, version, &sample.order).await;
        }
        assert!(one.take(&target, START, &due.key, START, &orders[0].counters).await.unwrap().is_some());
        assert_eq!(one.claim_due(START, after(9), 9).await.unwrap().orders.len(), 1);
    });
}

#[test]
fn a_closed_store_refuses_writes_and_can_be_read() {
    refuses_writes_and_can_be_read(&FreshPrefix::on_one_server(1));
}

#[test]
fn every_partition_of_a_closed_store_refuses_writes() {
    refuses_writes_and_can_be_read(&FreshPrefix::on_one_server(16));
}

#[test]
fn every_node_of_a_closed_cluster_refuses_writes() {
    refuses_writes_and_can_be_read(&FreshPrefix::on_the_cluster());
}
