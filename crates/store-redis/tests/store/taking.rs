//! Tests of taking from a stock: its cost, what it leaves behind, and unreadable answers.

use super::{FreshPrefix, VERSIONS, create, record, run, write};
use futures_util::future::join_all;
use quittance_lifecycle::{Counters, Event, Key, Order, Timestamp};
use quittance_ports::conformance::samples::{self, START, after};
use quittance_ports::{Day, Store, Version, Versioned, Which};
use quittance_servers::shared_redis;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const PAGE: &str = "https://example.com/login";

fn taker(n: u16) -> Key {
    let mut key = [0xaa; 32];
    key[..2].copy_from_slice(&n.to_be_bytes());
    Key(key)
}

fn one() -> Counters {
    Counters { from_stock: 1, ..Counters::default() }
}

async fn take(store: &dyn Store, by: u16) -> Option<Versioned> {
    store.take(&samples::target(PAGE), START, &taker(by), START, &one()).await.unwrap()
}

async fn handed_out(store: &dyn Store) -> u64 {
    let day = Day::of(START);
    store.usage(day, day).await.unwrap().iter().map(|(_, counters)| counters.from_stock).sum()
}

async fn stock(store: &dyn Store, count: u16) -> Vec<Arc<Order>> {
    let mut orders = Vec::new();
    for n in 0..count {
        let order = samples::stocked(&format!("answer {n}"), PAGE, after(100 + u64::from(n))).order;
        create(store, &order).await;
        orders.push(order);
    }
    orders
}

fn taken_name(prefix: &str, by: u16) -> String {
    format!("{{{prefix}:0}}:taken:{}:{}", samples::target(PAGE), taker(by))
}

#[test]
fn taking_costs_one_round_trip_and_a_look_at_each_partition_where_there_are_more() {
    run(async {
        for (partitions, expected) in [(1, 1), (16, 17)] {
            let store = FreshPrefix::on_one_server(partitions).open().await;
            stock(&store, 4).await;
            assert!(take(&store, 0).await.is_some());
            let before = store.round_trips();
            assert!(take(&store, 1).await.is_some());
            assert_eq!(store.round_trips() - before, expected, "with {partitions} partitions");
        }
    });
}

#[test]
fn every_taker_gets_an_answer_while_there_is_stock_and_no_answer_goes_to_two() {
    for partitions in [1, 16] {
        run(async {
            let place = FreshPrefix::on_one_server(partitions);
            let (one, other) = (place.open().await, place.open().await);
            let there: BTreeSet<Key> = stock(&one, 120).await.iter().map(|order| order.key).collect();
            // Every claimant takes at both nodes at the same time, and gets the same from both, or something from
            // each.
            let takers = (0..100).flat_map(|by| [take(&one, by), take(&other, by)]);
            let taken: Vec<Versioned> = join_all(takers).await.into_iter().flatten().collect();
            let owners: BTreeSet<(Key, Key)> =
                taken.iter().map(|stored| (stored.order.key, stored.order.taker().unwrap())).collect();
            let distinct: BTreeSet<Key> = owners.iter().map(|(key, _)| *key).collect();
            assert_eq!(distinct.len(), owners.len(), "nothing goes to two");
            assert!(distinct.is_subset(&there));
            let served: BTreeSet<Key> = owners.iter().map(|(_, by)| *by).collect();
            if partitions == 1 {
                assert_eq!((taken.len(), owners.len(), served.len()), (200, 100, 100));
            }
            assert!(owners.len() == 120 || served.len() == 100, "{} of {}", owners.len(), served.len());
            assert_eq!(handed_out(&one).await, owners.len() as u64);
        });
    }
}

/// Collects the answer for the caller in whose name it was taken.
async fn collect(store: &dyn Store, stored: &Versioned, name: u16) -> (Arc<Order>, Version) {
    let claimed = Event::Claimed { by: taker(name), min_life: Duration::ZERO };
    let collected = Arc::new(samples::next(&stored.order, claimed, START));
    let version = write(store, stored.version, &collected).await;
    (collected, version)
}

#[test]
fn the_claimant_is_remembered_as_long_as_the_order() {
    run(async {
        let place = FreshPrefix::on_one_server(1);
        let store = place.open().await;
        let order = stock(&store, 1).await.remove(0);
        let (record, name) = (record(&place.prefix, &order), taken_name(&place.prefix, 1));
        let ttl = |name: &str| shared_redis().command(&["PTTL", name]).parse::<i64>().unwrap();
        assert_eq!(ttl(&record), -1, "it stands on a stock");
        let stored = take(&store, 1).await.unwrap();
        assert_eq!((ttl(&record), ttl(&name)), (-1, -1), "its caller has not come for it yet");
        let (collected, version) = collect(&store, &stored, 1).await;
        assert!(ttl(&record) > 0 && ttl(&name) > 0);
        assert!((ttl(&record) - ttl(&name)).abs() < 1000, "they go together");

        let listened = Event::WebhookAdded { url: "http://127.0.0.1/webhook".into(), dialect: "v1".into() };
        let owing = Arc::new(samples::next(&collected, listened, START));
        let version = write(&store, version, &owing).await;
        assert_eq!((ttl(&record), ttl(&name)), (-1, -1), "a webhook is still to be called");
        assert_eq!(shared_redis().command(&["HGET", &record, "taken_at"]), "", "the record says so itself");
        assert_eq!(take(&store, 1).await.map(|stored| stored.order), Some(owing));

        let done = samples::failed("answer 0", START).order;
        write(&store, version, &done).await;
        assert_eq!(shared_redis().command(&["EXISTS", &name]), "0", "it no longer belongs to this claimant");
    });
}

#[test]
fn a_purge_forgets_the_claimant_too() {
    run(async {
        let place = FreshPrefix::on_one_server(1);
        let store = place.open().await;
        stock(&store, 1).await;
        let stored = take(&store, 1).await.unwrap();
        assert_eq!(store.purge(Timestamp::MAX, 9).await.unwrap(), 0, "its caller has not come for it yet");
        collect(&store, &stored, 1).await;
        assert_eq!(store.purge(Timestamp::MAX, 9).await.unwrap(), 1);
        assert_eq!(shared_redis().command(&["EXISTS", &taken_name(&place.prefix, 1)]), "0");
        assert_eq!(take(&store, 1).await, None);
    });
}

#[test]
fn an_answer_that_cannot_be_read_is_passed_over_uncounted_and_waits_for_a_person() {
    for partitions in [1, 3] {
        run(async {
            let place = FreshPrefix::on_one_server(partitions);
            let store = place.open().await;
            let orders = stock(&store, 3).await;
            let partition = u16::from_be_bytes([orders[0].key.0[0], orders[0].key.0[1]]) % partitions;
            let rotten = format!("{{{}:{partition}}}:order:{}", place.prefix, orders[0].key);
            shared_redis().command(&["HSET", &rotten, "record", "garbage"]);
            assert_eq!(take(&store, 1).await.map(|stored| stored.order.key), Some(orders[1].key));
            assert_eq!(handed_out(&store).await, 1);
            let dead = store.list(Which::DEAD, None, 9).await.unwrap();
            assert_eq!(dead.into_iter().map(|bad| bad.unwrap_err().key).collect::<Vec<_>>(), [orders[0].key]);
            assert_eq!(take(&store, 2).await.map(|stored| stored.order.key), Some(orders[2].key));
            assert_eq!(take(&store, 3).await, None);
            let swept = store.claim_due(after(1000), after(2000), 9).await.unwrap();
            assert_eq!(swept.unreadable.len(), 1, "it is reported when it would have expired");
        });
    }
}

/// During a rolling restart, the older nodes must not waste the stock of the newer nodes.
#[test]
fn an_answer_that_a_later_version_wrote_is_left_on_the_stock_for_it() {
    run(async {
        let place = FreshPrefix::on_one_server(1);
        let store = place.open().await;
        let orders = stock(&store, 2).await;
        let record = record(&place.prefix, &orders[0]);
        let body = shared_redis().command(&["HGET", &record, "record"]);
        let later = body.replacen("\"v\":1", "\"v\":99", 1);
        shared_redis().command(&["HSET", &record, "record", &later]);
        assert_eq!(take(&store, 1).await.map(|stored| stored.order.key), Some(orders[1].key));
        assert_eq!(take(&store, 2).await, None);
        assert_eq!(handed_out(&store).await, 1);

        shared_redis().command(&["HSET", &record, "record", &body]);
        assert_eq!(store.load(&orders[0].key).await.unwrap().unwrap().order, orders[0]);
        let due = store.claim_due(after(100), after(101), 9).await.unwrap();
        assert_eq!(due.orders.len(), 1, "it still expires in its time");
        assert_eq!(take(&store, 2).await.map(|stored| stored.order.key), Some(orders[0].key));
    });
}

#[test]
fn a_claimant_whose_answer_cannot_be_read_gets_another() {
    for partitions in [1, 16] {
        run(async {
            let place = FreshPrefix::on_one_server(partitions);
            let store = place.open().await;
            let orders = stock(&store, 2).await;
            take(&store, 1).await.unwrap();
            let partition = u16::from_be_bytes([orders[0].key.0[0], orders[0].key.0[1]]) % partitions;
            let rotten = format!("{{{}:{partition}}}:order:{}", place.prefix, orders[0].key);
            shared_redis().command(&["HSET", &rotten, "taken_at", "yesterday"]);
            assert!(store.load(&orders[0].key).await.is_err(), "who has it is not known");
            assert_eq!(take(&store, 1).await.map(|stored| stored.order.key), Some(orders[1].key));
        });
    }
}

#[test]
fn what_is_on_the_stock_and_gone_or_no_record_at_all_is_passed_over() {
    run(async {
        let place = FreshPrefix::on_one_server(1);
        let store = place.open().await;
        let orders = stock(&store, 3).await;
        shared_redis().command(&["DEL", &record(&place.prefix, &orders[0])]);
        shared_redis().command(&["DEL", &record(&place.prefix, &orders[1])]);
        shared_redis().command(&["SET", &record(&place.prefix, &orders[1]), "something else"]);
        assert_eq!(take(&store, 1).await.map(|stored| stored.order.key), Some(orders[2].key));
        let left = store.list_stock(&samples::target(PAGE), START, 9).await.unwrap();
        assert_eq!(
            left,
            [orders[1].key],
            "what is gone is struck off, what is damaged is reported when it is due"
        );
    });
}

/// The commit that added the answer to the stock arrives again after the take: it must not look like the take.
#[test]
fn a_commit_that_arrives_again_after_the_answer_was_taken_learns_that() {
    let (prefix, key) = (super::fresh_prefix(), "ab".repeat(32));
    let name = |what: &str| format!("{{{prefix}:0}}:{what}");
    let eval = |script: &str, keys: &[&str], args: &[&str]| {
        let (count, keys) = (keys.len().to_string(), keys.iter().map(|what| name(what)).collect::<Vec<_>>());
        let mut all = vec!["EVAL", script, &count];
        all.extend(keys.iter().map(String::as_str).chain(args.iter().copied()));
        shared_redis().command(&all)
    };
    let commit = || {
        let script = concat!(
            include_str!("../../src/scripts/steps.lua"),
            include_str!("../../src/scripts/commit.lua")
        );
        let record = format!("order:{key}");
        let keys = [
            &*record, VERSIONS, "due", "forget", "open", "rest", "dead", "stocks", "days", "usage:1",
            "tenants", "identity",
        ];
        let (stock, takings, of) = (format!("target:1:{key}"), name("taken:"), name("of:"));
        let step = ["0", &key, "1-1", "{}", "terms", "sum"];
        let marks = ["9", "", &stock, ":20", "", &takings, "rest", "0", "news", "1000", "line:", "1", "1"];
        eval(script, &keys, &[&step[..], &marks[..], &[&*of, "alice", "", ""]].concat())
    };
    assert!(commit().starts_with("done"));
    assert!(commit().starts_with("done"), "it stands as it was written");
    let script =
        concat!(include_str!("../../src/scripts/steps.lua"), include_str!("../../src/scripts/take.lua"));
    let (records, takings) = (name("order:"), name("taken:"));
    let arguments =
        [&*records, &takings, "target:me", "[target:", "(target:g", "0", "0", "5", "1000", "1", "1"];
    let taken = eval(script, &[VERSIONS, "due", "forget", "stocks", "days", "usage:1"], &arguments);
    assert!(taken.starts_with("taken"), "{taken}");
    assert!(commit().starts_with("conflict"));
}
