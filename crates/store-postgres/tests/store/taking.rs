//! Tests of taking from a stock: its cost, many takers on many nodes at once, locked rows, and unreadable answers.

use super::{create, fresh_schema, open, settings, until};
use futures_util::future::{join, join_all};
use quittance_lifecycle::{Counters, Key, Order, Timestamp};
use quittance_ports::conformance::samples::{self, START, after};
use quittance_ports::{Day, Store, Version, Versioned, Which};
use quittance_servers::shared_postgres;
use quittance_store_postgres::PostgresStore;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio_postgres::NoTls;

const PAGE: &str = "https://example.com/login";

fn one() -> Counters {
    Counters { asked: 1, from_stock: 1, ..Counters::default() }
}

fn by(n: usize) -> Key {
    let mut key = [7; 32];
    key[..8].copy_from_slice(&n.to_be_bytes());
    Key(key)
}

fn stocked(n: usize, expires: Timestamp) -> Arc<Order> {
    samples::stocked(&format!("answer {n}"), PAGE, expires).order
}

async fn stock(store: &PostgresStore, count: usize) -> Vec<Arc<Order>> {
    let orders: Vec<_> = (0..count).map(|n| stocked(n, after(100 + n as u64))).collect();
    join_all(orders.iter().map(|order| create(store, order))).await;
    orders
}

async fn take(store: &PostgresStore, n: usize) -> Option<Versioned> {
    store.take(&samples::target(PAGE), START, &by(n), START, &one()).await.unwrap()
}

async fn counted(store: &PostgresStore) -> u64 {
    let usage = store.usage(Day::of(START), Day::of(START)).await.unwrap();
    usage.iter().map(|(_, counters)| counters.from_stock).sum()
}

#[test]
fn taking_costs_one_round_trip_with_stock_without_and_for_a_repeat() {
    super::run(async {
        let store = open(settings(&fresh_schema())).await;
        let stocked = stock(&store, 1).await;
        for (n, answers) in [(1, true), (2, false), (1, true)] {
            let before = store.round_trips();
            let record = take(&store, n).await;
            assert_eq!(store.round_trips() - before, 1);
            assert_eq!(record.map(|record| record.order.key), answers.then_some(stocked[0].key));
        }
    });
}

#[test]
fn takes_that_come_together_share_statements() {
    super::run(async {
        let store = open(settings(&fresh_schema())).await;
        stock(&store, 100).await;
        let before = store.round_trips();
        let taken = join_all((0..100).map(|n| take(&store, n))).await;
        let cost = store.round_trips() - before;
        assert!(cost <= 20, "100 takes took {cost} statements");
        assert!(taken.iter().all(Option::is_some));
        assert_eq!(counted(&store).await, 100);
    });
}

#[test]
fn one_claimant_on_two_nodes_at_the_same_instant_gets_one_answer() {
    super::run(async {
        let schema = fresh_schema();
        let nodes = join_all((0..3).map(|_| open(settings(&schema)))).await;
        stock(&nodes[0], 60).await;
        for n in 0..20 {
            let answers = join_all((0..6).map(|call| take(&nodes[call % 3], n))).await;
            assert!(
                answers[0].is_some() && answers.iter().all(|record| *record == answers[0]),
                "{answers:?}"
            );
        }
        assert_eq!(counted(&nodes[1]).await, 20);
        assert_eq!(nodes[2].list_stock(&samples::target(PAGE), START, 100).await.unwrap().len(), 40);
    });
}

/// Takers, claims that put timers off, and writers that come too late, all on the same few rows.
#[test]
fn many_takers_on_many_nodes_empty_a_stock_and_none_is_given_twice() {
    const ANSWERS: usize = 90;
    super::run(async {
        let schema = fresh_schema();
        let nodes = join_all((0..3).map(|_| open(settings(&schema)))).await;
        let orders = stock(&nodes[0], ANSWERS).await;
        let takers = join_all((0..150).map(|n| take(&nodes[n % 3], n)));
        let claims = join_all((0..30).map(|n| nodes[n % 3].claim_due(after(500), after(900), 10)));
        let (counters, never) = (one(), Version(u64::MAX >> 1));
        let latecomers = join_all(
            orders
                .iter()
                .zip(0..)
                .map(|(order, n): (_, usize)| nodes[n % 3].commit(never, order, &counters, START)),
        );
        let (taken, (claims, latecomers)) = join(takers, join(claims, latecomers)).await;
        assert!(claims.iter().all(Result::is_ok) && latecomers.iter().all(Result::is_ok));
        let answers: Vec<Versioned> = taken.into_iter().flatten().collect();
        let distinct: BTreeSet<Key> = answers.iter().map(|record| record.order.key).collect();
        let owners: BTreeSet<Key> = answers.iter().filter_map(|record| record.order.taker()).collect();
        assert_eq!((answers.len(), distinct.len(), owners.len()), (ANSWERS, ANSWERS, ANSWERS));
        assert_eq!(counted(&nodes[0]).await, ANSWERS as u64);
        for record in answers {
            assert_eq!(nodes[1].load(&record.order.key).await.unwrap(), Some(record));
        }
        let due = nodes[2].claim_due(after(5_000), after(9_000), 1000).await.unwrap();
        assert_eq!(
            (due.orders.len(), due.next),
            (ANSWERS, None),
            "what no caller has come for is waste by then"
        );
    });
}

/// A claim, or a commit that fails, locks the answer for a moment. It is still there afterwards.
#[test]
fn the_last_answer_is_waited_for_while_another_taker_holds_it() {
    super::run(async {
        let schema = fresh_schema();
        let store = open(settings(&schema)).await;
        let orders = stock(&store, 2).await;
        let (other, wire) = tokio_postgres::connect(&shared_postgres().url(), NoTls).await.unwrap();
        let wire = tokio::spawn(wire);
        let hold = |n: usize| {
            format!("BEGIN; SELECT FROM {schema}.orders WHERE key = '\\x{}' FOR UPDATE", orders[n].key)
        };
        other.batch_execute(&hold(0)).await.unwrap();
        let record = take(&store, 1).await.unwrap();
        assert_eq!(record.order.key, orders[1].key, "no taker waits while there is another");
        let waiting = tokio::spawn({
            let store = store.clone();
            async move { take(&store, 2).await }
        });
        let waits = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%{schema}%take_orders%'"
        );
        until("the taker waits", async || shared_postgres().sql(&waits) == "1").await;
        other.batch_execute("ROLLBACK").await.unwrap();
        assert_eq!(waiting.await.unwrap().unwrap().order.key, orders[0].key);
        drop(other);
        wire.await.unwrap().unwrap();
    });
}

#[test]
fn what_cannot_be_read_is_put_back_passed_over_and_not_counted() {
    super::run(async {
        let schema = fresh_schema();
        let (older, newer) = (open(settings(&schema)).await, open(settings(&schema)).await);
        let orders = stock(&older, 2).await;
        let sql = |statement: &str| shared_postgres().sql(&statement.replace("{s}", &schema));
        let strange = orders[0].key;
        let rewrite = |from: &str, to: &str| {
            sql(&format!(
                "UPDATE {{s}}.orders SET record = convert_to(replace(convert_from(record, 'UTF8'), '{from}', '{to}'), 'UTF8') \
                 WHERE key = '\\x{strange}'"
            ));
        };
        let marks = format!(
            "SELECT timer, forget_at, once_timer, once_forget FROM {{s}}.orders WHERE key = '\\x{strange}'"
        );
        let before = sql(&marks);
        rewrite("\"v\":1,", "\"v\":99,");

        let trips = older.round_trips();
        assert_eq!(take(&older, 1).await.map(|record| record.order.key), Some(orders[1].key));
        assert_eq!(older.round_trips() - trips, 3, "taken, put back, and another taken");
        assert_eq!(sql(&marks), before, "it stands there as it stood");
        let trips = older.round_trips();
        assert_eq!(take(&older, 2).await, None);
        assert_eq!(older.round_trips() - trips, 1, "it is known by now");
        assert_eq!(counted(&older).await, 1);
        assert_eq!(older.list_stock(&samples::target(PAGE), START, 9).await.unwrap(), [strange]);
        let dead = older.list(Which::DEAD, None, 9).await.unwrap();
        assert!(matches!(&dead[..], [Err(unreadable)] if unreadable.key == strange), "{dead:?}");

        rewrite("\"v\":99,", "\"v\":1,");
        let record = take(&newer, 2).await.expect("a node that can read it can have it");
        assert_eq!(*record.order, (*orders[0]).clone().taken(by(2), START));
        assert_eq!(counted(&newer).await, 2);
    });
}

/// A handed-out answer is not handed out again if its record is damaged later. The claimant gets another one.
#[test]
fn what_was_taken_and_cannot_be_read_any_more_stays_taken() {
    super::run(async {
        let schema = fresh_schema();
        let store = open(settings(&schema)).await;
        let orders = stock(&store, 2).await;
        assert_eq!(take(&store, 1).await.unwrap().order.key, orders[0].key);
        let expire =
            format!("UPDATE {schema}.orders SET record = '\\x00' WHERE key = '\\x{}'", orders[0].key);
        shared_postgres().sql(&expire);
        assert_eq!(take(&store, 1).await.unwrap().order.key, orders[1].key);
        assert_eq!(take(&store, 2).await, None);
        assert_eq!(counted(&store).await, 2);
    });
}
