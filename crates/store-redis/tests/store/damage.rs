//! Tests of damaged records: each is reported, waits for an operator, and stops no other order. A record of a later
//! version is left for that version.

use super::{FreshPrefix, commit, create, record, run, write};
use quittance_lifecycle::{Counters, Order, Timestamp};
use quittance_ports::conformance::samples::{self, START, after};
use quittance_ports::{Commit, Membership, OrderCounts, Store, StoreError, Version, Versioned, Which};
use quittance_servers::shared_redis;
use quittance_store_redis::RedisStore;
use std::sync::Arc;

struct RedisDamageScene {
    place: FreshPrefix,
    store: RedisStore,
    rotten: Arc<Order>,
    version: Version,
    record: String,
    others: Vec<Versioned>,
}

impl RedisDamageScene {
    async fn new() -> Self {
        let place = FreshPrefix::on_one_server(1);
        let store = place.open().await;
        let rotten = samples::queued("rotten", START).order;
        let version = create(&store, &rotten).await;
        let mut others = Vec::new();
        for n in 0..5 {
            let order = samples::queued(&format!("good {n}"), START).order;
            others.push(Versioned { version: create(&store, &order).await, order });
        }
        let record = record(&place.prefix, &rotten);
        Self { place, store, rotten, version, record, others }
    }

    async fn listed(&self, which: Which<'_>) -> (usize, bool) {
        let listed = self.store.list(which, None, 100).await.unwrap();
        let bad =
            listed.iter().filter_map(|stored| stored.as_ref().err()).any(|bad| bad.key == self.rotten.key);
        (listed.iter().filter(|stored| stored.is_ok()).count(), bad)
    }

    /// Checks every promise about a store with one damaged record.
    async fn check(&self) {
        let Self { store, rotten, others, .. } = self;
        let is_corrupt =
            |error: StoreError| matches!(error, StoreError::Corrupt { key, .. } if key == rotten.key);
        assert!(is_corrupt(store.load(&rotten.key).await.unwrap_err()));
        assert!(
            is_corrupt(commit(store, Version::ABSENT, rotten).await.unwrap_err()),
            "it is not paid for again"
        );
        assert_eq!(self.listed(Which::ALL).await, (5, true));
        assert_eq!(self.listed(Which::OPEN).await, (5, false));
        assert_eq!(self.listed(Which::DEAD).await, (0, true));
        let tenant = &others[0].order.terms.tenant;
        assert_eq!(self.listed(Which::ALL.of(tenant)).await, (5, false), "its tenant is not known");
        assert_eq!(self.listed(Which::DEAD.of(tenant)).await, (0, false));

        let due = store.claim_due(after(10), after(20), 100).await.unwrap();
        assert_eq!(due.orders.len(), others.len(), "the others are due all the same");
        assert_eq!(
            due.unreadable.iter().map(|bad| bad.key).collect::<Vec<_>>(),
            [rotten.key],
            "it is reported"
        );
        let again = store.claim_due(after(1000), after(2000), 100).await.unwrap();
        assert_eq!((again.unreadable.len(), again.orders.len()), (0, others.len()), "once");
        for other in others {
            assert_eq!(store.load(&other.order.key).await.unwrap().as_ref(), Some(other));
        }
        assert_eq!(store.purge(Timestamp::MAX, 100).await.unwrap(), 0);
        assert_eq!(shared_redis().command(&["EXISTS", &self.record]), "1", "it stays for a person");
        assert_eq!(self.listed(Which::DEAD).await, (0, true));
    }

    /// Checks every promise after an operator has discarded the record.
    async fn check_discard(&self) {
        let Self { store, rotten, version, others, .. } = self;
        store.seal(Some("moved")).await.unwrap();
        assert!(matches!(store.discard(&rotten.key).await, Err(StoreError::Unavailable { .. })));
        store.seal(None).await.unwrap();
        assert!(store.discard(&rotten.key).await.unwrap());
        assert!(!store.discard(&rotten.key).await.unwrap(), "it was there once");
        assert_eq!(store.load(&rotten.key).await.unwrap(), None);
        assert_eq!((self.listed(Which::ALL).await, self.listed(Which::DEAD).await), ((5, false), (0, false)));
        assert_eq!(store.order_counts().await.unwrap(), OrderCounts { open: 5, dead: 0 });
        assert_eq!(shared_redis().command(&["EXISTS", &self.record]), "0");
        let due = store.claim_due(after(1_000_000), after(1_000_000), 100).await.unwrap();
        assert_eq!((due.orders.len(), due.unreadable.len()), (others.len(), 0));

        let next = create(store, rotten).await;
        assert!(next > *version, "{next:?} comes after {version:?}, which is gone");
        assert!(matches!(commit(store, *version, rotten).await, Ok(Commit::Conflict(Some(_)))));
        assert!(!store.discard(&rotten.key).await.unwrap(), "and is left alone");
        let again = self.place.open().await;
        assert_eq!(again.load(&rotten.key).await.unwrap().unwrap().version, next);
        assert_eq!(again.order_counts().await.unwrap(), OrderCounts { open: 6, dead: 0 });
    }
}

fn rot(args: impl Fn(&RedisDamageScene) -> Vec<Vec<String>>) {
    run(async {
        let scene = RedisDamageScene::new().await;
        for command in args(&scene) {
            shared_redis().command(&command.iter().map(String::as_str).collect::<Vec<_>>());
        }
        scene.check().await;
        scene.check_discard().await;
    });
    // It need not have been noticed before.
    run(async {
        let scene = RedisDamageScene::new().await;
        for command in args(&scene) {
            shared_redis().command(&command.iter().map(String::as_str).collect::<Vec<_>>());
        }
        scene.check_discard().await;
    });
}

fn command(args: &[&str]) -> Vec<String> {
    args.iter().map(|arg| (*arg).to_owned()).collect()
}

#[test]
fn a_record_that_is_not_json_is_reported_and_set_aside() {
    rot(|scene| vec![command(&["HSET", &scene.record, "record", "garbage"])]);
    rot(|scene| vec![command(&["HSET", &scene.record, "terms", "{}"])]);
}

#[test]
fn a_record_that_lacks_something_is_reported_and_set_aside() {
    for field in ["record", "terms", "version"] {
        rot(|scene| vec![command(&["HDEL", &scene.record, field])]);
    }
}

#[test]
fn a_version_that_is_none_is_reported_and_set_aside() {
    rot(|scene| vec![command(&["HSET", &scene.record, "version", "one"])]);
}

#[test]
fn the_record_of_one_order_under_the_name_of_another_is_reported_and_set_aside() {
    rot(|scene| {
        let other =
            scene.record.replace(&scene.rotten.key.to_string(), &scene.others[0].order.key.to_string());
        let body = shared_redis().command(&["HGET", &other, "record"]);
        vec![command(&["HSET", &scene.record, "record", &body])]
    });
}

#[test]
fn what_is_no_record_at_all_is_reported_and_set_aside() {
    rot(|scene| vec![command(&["DEL", &scene.record]), command(&["SET", &scene.record, "something else"])]);
}

#[test]
fn what_rots_and_could_be_forgotten_is_kept_once_a_reader_noticed() {
    run(async {
        let place = FreshPrefix::on_one_server(1);
        let store = place.open().await;
        let order = samples::failed("rotten", START).order;
        create(&store, &order).await;
        let record = record(&place.prefix, &order);
        shared_redis().command(&["HSET", &record, "record", "garbage"]);
        assert_eq!(store.list(Which::DEAD, None, 9).await.unwrap().len(), 0, "it is not known yet");
        assert!(store.list(Which::ALL, None, 9).await.unwrap()[0].is_err());
        assert_eq!(store.list(Which::DEAD, None, 9).await.unwrap().len(), 1);
        assert_eq!(store.purge(Timestamp::MAX, 9).await.unwrap(), 0);
        assert_eq!(shared_redis().command(&["PTTL", &record]), "-1");
    });
}

/// The answer was in a stock and was taken: afterwards neither the stock nor the claimant has it.
#[test]
fn what_is_discarded_is_in_no_stock_and_no_list() {
    run(async {
        let place = FreshPrefix::on_one_server(1);
        let store = place.open().await;
        let target = samples::target("https://example.com/login");
        let by = samples::queued("taker", START).order.key;
        let mut keys = Vec::new();
        for (name, expires) in [("first", 500), ("second", 600)] {
            let order = samples::stocked(name, "https://example.com/login", after(expires)).order;
            create(&store, &order).await;
            keys.push(order.key);
        }
        let taken = store.take(&target, START, &by, START, &Counters::default()).await.unwrap().unwrap();
        assert_eq!(taken.order.key, keys[0]);
        for name in ["first", "second"] {
            let order = samples::stocked(name, "https://example.com/login", after(500)).order;
            shared_redis().command(&["HSET", &record(&place.prefix, &order), "record", "garbage"]);
        }
        for key in &keys {
            assert!(store.discard(key).await.unwrap());
        }
        assert_eq!(store.list_stock(&target, START, 9).await.unwrap(), []);
        assert_eq!(store.take(&target, START, &by, START, &Counters::default()).await.unwrap(), None);
        assert_eq!(store.purge(Timestamp::MAX, 9).await.unwrap(), 0);
        assert_eq!(shared_redis().command(&["KEYS", &format!("*{}*:taken:*", place.prefix)]), "");
    });
}

fn change_body(record: &str, from: &str, to: &str) {
    let body = shared_redis().command(&["HGET", record, "record"]);
    assert!(body.contains(from), "{body}");
    shared_redis().command(&["HSET", record, "record", &body.replacen(from, to, 1)]);
}

/// During a rolling restart, the older nodes must not take orders away from the newer nodes.
#[test]
fn what_a_later_version_wrote_is_reported_put_off_and_left_for_it() {
    run(async {
        let scene = RedisDamageScene::new().await;
        let (store, key) = (&scene.store, scene.rotten.key);
        change_body(&scene.record, "\"v\":1", "\"v\":99");
        assert!(matches!(store.load(&key).await.unwrap_err(), StoreError::Corrupt { .. }));
        assert_eq!(scene.listed(Which::ALL).await, (5, true));
        let due = store.claim_due(after(10), after(20), 100).await.unwrap();
        assert_eq!((due.orders.len(), due.unreadable.len()), (5, 1));
        let hidden = store.claim_due(after(19), after(30), 100).await.unwrap();
        assert_eq!((hidden.orders.len(), hidden.unreadable.len()), (0, 0), "as with any claim");
        let refused = store.discard(&key).await.unwrap_err();
        assert!(matches!(refused, StoreError::Corrupt { .. }), "{refused}");
        assert!(refused.to_string().contains("the version that wrote it or a later one"), "{refused}");

        change_body(&scene.record, "\"v\":99", "\"v\":1");
        let due = store.claim_due(after(20), after(30), 100).await.unwrap();
        assert!(
            due.orders.iter().any(|stored| stored.order.key == key),
            "a node that can read it finds it due"
        );
        assert_eq!(scene.listed(Which::OPEN).await, (6, false));
        write(store, scene.version, &samples::submitting("rotten", START).order).await;
    });
}

#[test]
fn fields_of_a_later_version_are_passed_over() {
    run(async {
        let scene = RedisDamageScene::new().await;
        change_body(&scene.record, "\"v\":1", "\"v\":1,\"shoe_size\":44");
        shared_redis().command(&["HSET", &scene.record, "shoe_size", "44"]);
        let stored = scene.store.load(&scene.rotten.key).await.unwrap().unwrap();
        assert_eq!((stored.version, &stored.order), (scene.version, &scene.rotten));
        write(&scene.store, scene.version, &samples::submitting("rotten", START).order).await;
        assert_eq!(scene.listed(Which::OPEN).await, (6, false));
    });
}

/// The index of timers is lost in full or in part, and the records stay: no order stops for ever.
#[test]
fn timers_that_the_index_has_lost_are_written_again_from_the_records() {
    run(async {
        for partitions in [1, 3] {
            let place = FreshPrefix::on_one_server(partitions);
            let store = place.open().await;
            for n in 0..300 {
                create(&store, &samples::queued(&format!("order {n}"), START).order).await;
            }
            assert_eq!(store.purge(START, 100).await.unwrap(), 0);
            assert_eq!(store.timers_restored(), 0, "nothing is lost");
            for partition in 0..partitions {
                let due = format!("{{{}:{partition}}}:due", place.prefix);
                assert_eq!(shared_redis().command(&["DEL", &due]), "1");
            }
            let create_one = samples::queued("one more", START).order;
            create(&store, &create_one).await;
            // A page at a time, and by any node.
            for _ in 0..5 {
                store.purge(START, 100).await.unwrap();
            }
            assert_eq!(store.timers_restored(), 300);
            let mut claimed = 0;
            loop {
                let due = store.claim_due(after(1000), after(2000), 100).await.unwrap();
                claimed += due.orders.len();
                if due.orders.is_empty() {
                    break;
                }
            }
            assert_eq!(claimed, 301, "all are attended to");
        }
    });
}
