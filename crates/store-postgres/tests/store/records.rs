//! Tests of records that cannot be parsed, of records of a later version, and of a sealed store.

use super::{commit, create, fresh_schema, is_unavailable, open, settings, until};
use quittance_lifecycle::{Counters, Key};
use quittance_ports::conformance::samples::{self, START, after};
use quittance_ports::{
    Commit, DocumentWritten, Membership, OrderCounts, Store, StoreError, UsageRow, Version, Which,
};
use quittance_servers::shared_postgres;
use quittance_store_postgres::Sealed;
use std::error::Error;

fn expire(schema: &str, key: &Key, record: &str) {
    let hex = record.bytes().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
    shared_postgres().sql(&format!(
        "UPDATE {schema}.orders SET record = decode('{hex}', 'hex') WHERE key = decode('{key}', 'hex')"
    ));
}

#[test]
fn an_unreadable_record_is_reported_once_listed_among_the_dead_and_stops_nothing() {
    super::run(async {
        let schema = fresh_schema();
        let store = open(settings(&schema)).await;
        let (rotten, good) = (samples::queued("rotten", START).order, samples::queued("good", START).order);
        create(&store, &rotten).await;
        create(&store, &good).await;
        expire(&schema, &rotten.key, "s3cret garbage");
        let due = store.claim_due(START, after(30), 10).await.unwrap();
        assert_eq!(due.orders.iter().map(|stored| stored.order.key).collect::<Vec<_>>(), [good.key]);
        assert_eq!(due.unreadable.iter().map(|broken| broken.key).collect::<Vec<_>>(), [rotten.key]);
        assert!(!due.unreadable[0].detail.contains("s3cret"));
        let again = store.claim_due(after(60), after(90), 10).await.unwrap();
        assert_eq!((again.orders.len(), again.unreadable), (1, Vec::new()), "reported once");

        assert!(
            matches!(store.load(&rotten.key).await, Err(StoreError::Corrupt { key, .. }) if key == rotten.key)
        );
        let placed = commit(&store, Version::ABSENT, &rotten).await;
        assert!(matches!(placed, Err(StoreError::Corrupt { .. })), "{placed:?}");
        let count = async |which| {
            let listed = store.list(which, None, 10).await.unwrap();
            (
                listed.iter().filter(|stored| stored.is_ok()).count(),
                listed.iter().filter(|stored| stored.is_err()).count(),
            )
        };
        assert_eq!((count(Which::ALL).await, count(Which::DEAD).await), ((1, 1), (0, 1)));
        assert_eq!(count(Which::OPEN).await, (1, 0));
        let tenant = &good.terms.tenant;
        assert_eq!(
            (count(Which::ALL.of(tenant)).await, count(Which::DEAD.of(tenant)).await),
            ((1, 0), (0, 0))
        );
    });
}

/// A look by id reads the list of all orders. If it finds a damaged record, that record must wait for an operator,
/// even if it is not due.
#[test]
fn a_settled_record_that_a_list_finds_damaged_is_a_dead_letter_and_is_not_purged() {
    super::run(async {
        let schema = fresh_schema();
        let store = open(settings(&schema)).await;
        let settled = samples::stocked("settled", "https://example.com/login", after(500)).order;
        create(&store, &settled).await;
        expire(&schema, &settled.key, "garbage");
        assert_eq!(store.list(Which::DEAD, None, 10).await.unwrap(), [], "no read has met it yet");
        assert_eq!(store.list(Which::ALL, None, 10).await.unwrap().len(), 1);
        let dead = store.list(Which::DEAD, None, 10).await.unwrap();
        assert_eq!(dead.len(), 1);
        assert_eq!(dead[0].as_ref().unwrap_err().key, settled.key);
        assert_eq!(store.order_counts().await.unwrap(), OrderCounts { open: 0, dead: 1 });
        assert_eq!(store.purge(after(10_000_000), 10).await.unwrap(), 0, "a person must look at it first");
    });
}

#[test]
fn a_record_that_cannot_be_read_is_discarded_and_its_key_is_free_again() {
    super::run(async {
        for (column, bytes) in [("record", "garbage"), ("record", ""), ("terms", "{}")] {
            let schema = fresh_schema();
            let (store, other) = (open(settings(&schema)).await, open(settings(&schema)).await);
            let stocked = samples::stocked("rotten", "https://example.com/login", after(500)).order;
            let good = samples::queued("good", START).order;
            let version = create(&store, &stocked).await;
            create(&store, &good).await;
            shared_postgres().sql(&format!(
                "UPDATE {schema}.orders SET {column} = convert_to('{bytes}', 'UTF8') WHERE key = decode('{}', 'hex')",
                stocked.key
            ));
            assert!(store.load(&stocked.key).await.is_err());
            assert_eq!(store.order_counts().await.unwrap(), OrderCounts { open: 1, dead: 1 });
            store.seal(Some("it's gone \0")).await.unwrap();
            assert!(is_sealed(store.discard(&stocked.key).await));
            store.seal(None).await.unwrap();

            assert!(other.discard(&stocked.key).await.unwrap());
            assert!(!store.discard(&stocked.key).await.unwrap(), "it was there once");
            assert_eq!(store.load(&stocked.key).await.unwrap(), None);
            assert_eq!(store.list(Which::DEAD, None, 10).await.unwrap(), []);
            assert_eq!(store.list(Which::ALL, None, 10).await.unwrap().len(), 1);
            assert_eq!(store.order_counts().await.unwrap(), OrderCounts { open: 1, dead: 0 });
            let (target, _) = stocked.list_stock().unwrap();
            assert_eq!(store.list_stock(&target, START, 10).await.unwrap(), []);

            let again = samples::queued("rotten", START).order;
            let next = create(&store, &again).await;
            assert!(next > version, "{next:?} comes after {version:?}, which is gone");
            assert!(matches!(commit(&store, version, &stocked).await, Ok(Commit::Conflict(Some(_)))));
            assert!(!other.discard(&again.key).await.unwrap(), "and is left alone");
            let due = store.claim_due(after(60), after(90), 10).await.unwrap();
            assert_eq!((due.orders.len(), due.unreadable), (2, Vec::new()));
            let reopened = open(settings(&schema)).await;
            assert_eq!(reopened.load(&again.key).await.unwrap().unwrap().version, next);
        }
    });
}

/// During a rolling restart, newer nodes write records that older nodes cannot read: these must come back to the
/// newer nodes.
#[test]
fn what_only_a_newer_version_can_read_keeps_its_timer_for_it() {
    super::run(async {
        let schema = fresh_schema();
        let (older, newer) = (open(settings(&schema)).await, open(settings(&schema)).await);
        let order = samples::queued("of tomorrow", START).order;
        let version = create(&newer, &order).await;
        let record =
            shared_postgres().sql(&format!("SELECT convert_from(record, 'UTF8') FROM {schema}.orders"));
        expire(&schema, &order.key, &record.replacen("\"v\":1", "\"v\":99", 1));
        let due = older.claim_due(START, after(30), 10).await.unwrap();
        assert_eq!((due.orders.len(), due.unreadable.len()), (0, 1));
        let refused = older.discard(&order.key).await.unwrap_err();
        assert!(matches!(refused, StoreError::Corrupt { .. }), "{refused}");
        assert!(refused.to_string().contains("the version that wrote it or a later one"), "{refused}");
        expire(&schema, &order.key, &record);
        let due = newer.claim_due(after(30), after(60), 10).await.unwrap();
        assert_eq!(due.orders.len(), 1, "its timer was put off, not taken away");
        assert_eq!(due.orders[0].version, version);
        assert_eq!(
            newer.list(Which::DEAD, None, 10).await.unwrap(),
            [],
            "and it is no dead letter to a node that can read it"
        );
    });
}

#[test]
fn a_field_that_a_later_version_has_added_is_passed_over() {
    super::run(async {
        let schema = fresh_schema();
        let store = open(settings(&schema)).await;
        let order = samples::queued("with a marvel", START).order;
        create(&store, &order).await;
        let record =
            shared_postgres().sql(&format!("SELECT convert_from(record, 'UTF8') FROM {schema}.orders"));
        expire(&schema, &order.key, &record.replacen('{', "{\"marvel\":[1,{}],", 1));
        assert_eq!(store.load(&order.key).await.unwrap().unwrap().order, order);
    });
}

fn is_sealed<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> bool {
    let error = answer.expect_err("a sealed store takes nothing");
    error
        .source()
        .and_then(|source| source.downcast_ref::<Sealed>())
        .is_some_and(|sealed| sealed.note == "it's gone \0")
}

#[test]
fn a_sealed_store_takes_nothing_from_any_node_and_can_be_read() {
    super::run(async {
        let schema = fresh_schema();
        let (one, other) = (open(settings(&schema)).await, open(settings(&schema)).await);
        let order = samples::failed("before", START).order;
        let version = create(&one, &order).await;
        let line = UsageRow::of(&order, START);
        one.seal(Some("it's gone \0")).await.unwrap();
        let counters = Counters { asked: 1, ..Counters::default() };
        for store in [&one, &other] {
            assert!(is_sealed(store.commit(version, &order, &counters, START).await));
            assert!(is_sealed(
                store.commit(Version::ABSENT, &samples::queued("new", START).order, &counters, START).await
            ));
            assert!(is_sealed(store.claim_due(START, START, 10).await));
            assert!(is_sealed(store.purge(after(1_000_000), 10).await));
            assert!(is_sealed(store.count(&line, &counters).await));
            assert!(!store.discard(&order.key).await.unwrap(), "it can be read");
            assert!(is_sealed(store.compact_usage(line.day, line.day).await));
            assert_eq!(store.order_counts().await.unwrap(), OrderCounts { open: 0, dead: 0 });
            let stock = samples::target("https://example.com/login");
            assert!(is_sealed(store.take(&stock, START, &order.key, START, &counters).await));
            assert!(is_sealed(store.write_document("any", Version::ABSENT, None).await));
            assert_eq!(store.documents().await.unwrap(), []);
            assert_eq!(store.load(&order.key).await.unwrap().unwrap().version, version);
            assert_eq!(store.list(Which::ALL, None, 10).await.unwrap().len(), 1);
            assert_eq!(store.usage(line.day, line.day).await.unwrap(), []);
            assert_eq!(store.sealed().await.unwrap().as_deref(), Some("it's gone \0"));
        }
        other.seal(None).await.unwrap();
        assert!(matches!(commit(&one, version, &order).await, Ok(Commit::Done(_))));
    });
}

/// A copy of a sealed store must not miss a commit that was in progress.
#[test]
fn nothing_is_written_once_the_seal_is_acknowledged() {
    super::run(async {
        let schema = fresh_schema();
        let (writer, sealer) = (open(settings(&schema)).await, open(settings(&schema)).await);
        let storm = tokio::spawn({
            let writer = writer.clone();
            async move {
                for n in 0_u32.. {
                    let orders: Vec<_> =
                        (0..20).map(|m| samples::queued(&format!("order {n}-{m}"), START).order).collect();
                    let commits = orders.iter().map(|order| commit(&writer, Version::ABSENT, order));
                    if futures_util::future::join_all(commits).await.iter().any(is_unavailable) {
                        break;
                    }
                }
            }
        });
        until("the storm has begun", async || writer.round_trips() > 20).await;
        sealer.seal(Some("moving")).await.unwrap();
        let count = || shared_postgres().sql(&format!("SELECT count(*), max(version) FROM {schema}.orders"));
        let sealed = count();
        storm.await.unwrap();
        assert_eq!(count(), sealed);
    });
}

#[test]
fn an_unreadable_document_is_left_out_and_only_a_writer_with_its_version_replaces_it() {
    super::run(async {
        let schema = fresh_schema();
        let store = open(settings(&schema)).await;
        shared_postgres()
            .sql(&format!("INSERT INTO {schema}.documents VALUES ('pool/x', 7, '{{\"is\":\"marvel\"}}')"));
        assert_eq!(store.documents().await.unwrap(), []);
        let gone = store.write_document("pool/x", Version::ABSENT, None).await.unwrap();
        assert_eq!(gone, DocumentWritten::Conflict);
    });
}
