//! Tests of how Redis keeps and closes the usage: in steps between which other calls run. Usage from before there
//! were providers counts like the rest.

use super::{FreshPrefix, run};
use futures_util::future::{join, join_all};
use quittance_lifecycle::Counters;
use quittance_ports::{Day, Store, UsageRow};
use quittance_servers::shared_redis;
use quittance_store_redis::RedisStore;

/// More sites than Redis keeps in one piece, and than one script sums up.
const SITES: u64 = 2000;

fn line(site: &str) -> UsageRow {
    let (tenant, kind) = ("ann".into(), "riddle".into());
    UsageRow { day: Day(50_000), tenant, kind, site: site.into(), account: String::new() }
}

fn counters_of(count: u64) -> Counters {
    Counters { asked: count, ..Counters::default() }
}

async fn count_all(store: &RedisStore) {
    let lines: Vec<UsageRow> = (0..SITES).map(|n| line(&format!("{n}.test"))).collect();
    let counters = counters_of(1);
    for counted in join_all(lines.iter().map(|line| store.count(line, &counters))).await {
        counted.unwrap();
    }
}

async fn all(store: &RedisStore) -> Vec<(UsageRow, Counters)> {
    store.usage(Day(0), Day(u64::MAX)).await.unwrap()
}

#[test]
fn lines_from_before_there_were_providers_are_read_and_closed_like_the_others() {
    run(async {
        let place = FreshPrefix::on_one_server(1);
        let store = place.open().await;
        let name = |what: &str| format!("{{{}:0}}:{what}", place.prefix);
        shared_redis().command(&["HSET", &name("usage:50000"), "3:ann:6:riddle:6:a.test:asked", "5"]);
        shared_redis().command(&["ZADD", &name("days"), "50000", "50000"]);
        assert_eq!(all(&store).await, [(line("a.test"), counters_of(5))]);
        store.count(&line("a.test"), &counters_of(2)).await.unwrap();
        store.count(&line("b.test"), &counters_of(10)).await.unwrap();
        assert_eq!(all(&store).await, [(line("a.test"), counters_of(7)), (line("b.test"), counters_of(10))]);
        store.compact_usage(Day(50_001), Day(50_000)).await.unwrap();
        assert_eq!(all(&store).await, [(line(UsageRow::ALL_SITES), counters_of(17))]);
        assert_eq!(shared_redis().command(&["HLEN", &name("usage:50000")]), "1", "nothing is left beside it");
    });
}

/// Tested on one server and on a cluster, with counts between the steps of the closing.
#[test]
fn a_day_of_many_sites_is_closed_while_others_count_and_nothing_is_lost() {
    for place in [FreshPrefix::on_one_server(1), FreshPrefix::on_one_server(3), FreshPrefix::on_the_cluster()]
    {
        run(async {
            let (store, other) = (place.open().await, place.open().await);
            count_all(&store).await;
            let closing = async {
                for _ in 0..3 {
                    other.compact_usage(Day(50_001), Day(50_000)).await.unwrap();
                }
            };
            join(closing, join(count_all(&store), count_all(&other))).await;
            let sum: u64 = all(&store).await.iter().map(|(_, counters)| counters.asked).sum();
            assert_eq!(sum, 3 * SITES);
            store.compact_usage(Day(50_001), Day(50_000)).await.unwrap();
            assert_eq!(all(&store).await, [(line(UsageRow::ALL_SITES), counters_of(3 * SITES))]);
            store.compact_usage(Day(50_001), Day(50_001)).await.unwrap();
            assert_eq!(all(&store).await, []);
        });
    }
}

#[test]
fn closing_what_is_closed_costs_one_request_to_each_partition() {
    run(async {
        for partitions in [1, 16] {
            let store = FreshPrefix::on_one_server(partitions).open().await;
            for n in 0..30 {
                let day = Day(50_000 + n);
                store.count(&UsageRow { day, ..line("a.test") }, &counters_of(1)).await.unwrap();
            }
            store.compact_usage(Day(60_000), Day(0)).await.unwrap();
            let before = store.round_trips();
            store.compact_usage(Day(60_000), Day(0)).await.unwrap();
            assert_eq!(store.round_trips() - before, u64::from(partitions));
        }
    });
}

/// Operators may keep sums for longer than a year; the node that closes the usage forgets them.
#[test]
fn sums_do_not_expire_before_people_would_have_them_forgotten() {
    run(async {
        let place = FreshPrefix::on_one_server(1);
        let store = place.open().await;
        store.count(&line("a.test"), &counters_of(1)).await.unwrap();
        let usage = format!("{{{}:0}}:usage:50000", place.prefix);
        let days_after = || -> u64 {
            let expires: u64 = shared_redis().command(&["PEXPIRETIME", &usage]).parse().unwrap();
            expires / 86_400_000 - 50_000
        };
        assert!(days_after() > 3650);
        shared_redis().command(&["PEXPIREAT", &usage, &(50_400_u64 * 86_400_000).to_string()]);
        store.compact_usage(Day(50_001), Day(50_000)).await.unwrap();
        assert!(days_after() > 3650, "also where an earlier version has set another term");
    });
}

#[test]
fn a_usage_row_that_is_none_keeps_no_other_row_open() {
    run(async {
        let place = FreshPrefix::on_one_server(1);
        let store = place.open().await;
        let name = |what: &str| format!("{{{}:0}}:{what}", place.prefix);
        store.count(&line("a.test"), &counters_of(1)).await.unwrap();
        store.count(&UsageRow { day: Day(50_001), ..line("a.test") }, &counters_of(4)).await.unwrap();
        shared_redis().command(&["SET", &name("usage:50000"), "no usage at all"]);
        store.compact_usage(Day(50_002), Day(50_000)).await.unwrap();
        let expected = [(UsageRow { day: Day(50_001), ..line(UsageRow::ALL_SITES) }, counters_of(4))];
        assert_eq!(store.usage(Day(50_001), Day(50_001)).await.unwrap(), expected);
        store.compact_usage(Day(50_002), Day(50_001)).await.unwrap();
        assert_eq!(all(&store).await, expected, "and it is forgotten with its day");
    });
}
