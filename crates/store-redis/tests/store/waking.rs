//! Tests that waiting callers are woken even if a notice is lost, and that none is woken again and again.

use super::{FreshPrefix, create, eventually, record, run, write};
use futures_util::FutureExt;
use quittance_ports::conformance::samples::{self, START};
use quittance_ports::{Store, Watch};
use quittance_servers::{Redis, shared_redis};
use quittance_store_redis::RedisStore;
use std::time::Duration;

const SOON: Duration = Duration::from_millis(20);

fn is_rung(watch: &mut Watch) -> bool {
    watch.changed().now_or_never().is_some()
}

/// The stored state after a commit whose notice was lost.
fn settle_without_a_word(record: &str, version: u64) {
    shared_redis().command(&["HSET", record, "awaited", "0", "version", &version.to_string()]);
}

#[test]
fn a_lost_notice_is_found_by_the_re_check_once() {
    run(async {
        let mut place = FreshPrefix::on_one_server(4);
        place.settings = place.settings.with_recheck(SOON);
        let store = place.open().await;
        let orders = ["lost", "later", "awaited"].map(|name| samples::queued(name, START).order);
        let mut watches = Vec::new();
        let mut records = Vec::new();
        for order in &orders {
            let version = create(&store, order).await;
            watches.push(store.watch(&order.key).await.unwrap());
            let mut names = (0..4).map(|p| format!("{{{}:{p}}}:order:{}", place.prefix, order.key));
            let there = |name: &String| shared_redis().command(&["EXISTS", name]) == "1";
            records.push((names.find(there).unwrap(), version.0));
        }
        settle_without_a_word(&records[0].0, records[0].1 + 1);
        watches[0].changed().await;
        // Each later word comes from a later look, and none of them finds anything new about the first.
        for n in 1..4 {
            settle_without_a_word(&records[1].0, records[1].1 + n);
            watches[1].changed().await;
        }
        assert!(!is_rung(&mut watches[0]), "the same news wakes once");
        assert!(!is_rung(&mut watches[2]), "nothing has happened to it");
        settle_without_a_word(&records[0].0, records[0].1 + 2);
        watches[0].changed().await;
    });
}

#[test]
fn waiters_are_woken_when_notices_arrive_again() {
    run(async {
        let redis = Redis::start(&[]);
        let (one, other) = (open(&redis).await, open(&redis).await);
        let order = samples::queued("cut off", START).order;
        let version = create(&one, &order).await;
        let mut watch = one.watch(&order.key).await.unwrap();
        assert_ne!(redis.command(&["CLIENT", "KILL", "TYPE", "pubsub"]), "0");
        // Whatever happened meanwhile, every caller may look.
        watch.changed().await;
        eventually(async || {
            (redis.command(&["PUBSUB", "NUMSUB", "quittance:news"]).ends_with('2')).then_some(())
        })
        .await;
        while is_rung(&mut watch) {}
        write(&other, version, &samples::solved("cut off", START).order).await;
        watch.changed().await;
        drop(watch);
        assert_eq!((one.watching(), other.watching()), (0, 0));
    });
}

async fn open(redis: &Redis) -> RedisStore {
    RedisStore::open(super::settings(&redis.url())).await.unwrap()
}

#[test]
fn a_store_that_is_dropped_leaves_no_connection_behind() {
    let redis = Redis::start(&[]);
    run(async {
        let clients =
            || redis.command(&["CLIENT", "LIST"]).lines().filter(|line| !line.contains("cmd=client")).count();
        let store = open(&redis).await;
        assert!(clients() >= 2);
        let again = store.clone();
        drop(store);
        assert!(again.load(&samples::queued("any", START).order.key).await.unwrap().is_none());
        drop(again);
        eventually(async || (clients() == 0).then_some(())).await;
    });
}

#[test]
fn a_notice_without_an_order_wakes_no_waiter() {
    run(async {
        let place = FreshPrefix::on_one_server(1);
        let store = place.open().await;
        let order = samples::queued("undisturbed", START).order;
        let version = create(&store, &order).await;
        let mut watch = store.watch(&order.key).await.unwrap();
        for nonsense in ["", "nonsense", "\u{e9} 1-2", &record(&place.prefix, &order)] {
            shared_redis().command(&["PUBLISH", &format!("{}:news", place.prefix), nonsense]);
        }
        write(&store, version, &samples::solved("undisturbed", START).order).await;
        watch.changed().await;
        assert!(!is_rung(&mut watch));
    });
}
