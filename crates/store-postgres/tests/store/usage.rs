//! Tests of closing old usage: in atomic statements between which other calls run.

use super::{fresh_schema, open, settings};
use futures_util::future::{join, join_all};
use quittance_lifecycle::Counters;
use quittance_ports::{Day, Store, UsageRow};
use quittance_servers::shared_postgres;
use quittance_store_postgres::PostgresStore;

/// More sites than one statement sums up.
const SITES: u64 = 5000;

fn line(day: u64, site: &str) -> UsageRow {
    let (tenant, kind, account) = ("ann".into(), "riddle".into(), "one".into());
    UsageRow { day: Day(day), tenant, kind, site: site.into(), account }
}

fn counters_of(count: u64) -> Counters {
    Counters { asked: count, ..Counters::default() }
}

async fn count_all(store: &PostgresStore) {
    let lines: Vec<UsageRow> = (0..SITES).map(|n| line(3, &format!("{n}.test"))).collect();
    let counters = counters_of(1);
    for counted in join_all(lines.iter().map(|line| store.count(line, &counters))).await {
        counted.unwrap();
    }
}

async fn all(store: &PostgresStore) -> Vec<(UsageRow, Counters)> {
    store.usage(Day(0), Day(9)).await.unwrap()
}

#[test]
fn a_day_of_many_sites_is_closed_by_many_while_others_count_and_nothing_is_lost() {
    super::run(async {
        let schema = fresh_schema();
        let (one, other) = (open(settings(&schema)).await, open(settings(&schema)).await);
        count_all(&one).await;
        let closing = join_all([&one, &other, &one, &other].map(|store| store.compact_usage(Day(4), Day(3))));
        let (closed, _) = join(closing, join(count_all(&one), count_all(&other))).await;
        closed.into_iter().for_each(|closed| closed.unwrap());
        let sum: u64 = all(&one).await.iter().map(|(_, counters)| counters.asked).sum();
        assert_eq!(sum, 3 * SITES);
        other.compact_usage(Day(4), Day(3)).await.unwrap();
        assert_eq!(all(&one).await, [(line(3, UsageRow::ALL_SITES), counters_of(3 * SITES))]);
        let rows = shared_postgres().sql(&format!("SELECT count(*) FROM {schema}.counters"));
        assert_eq!(rows.trim(), "1", "the parts of all writers are one");
        one.compact_usage(Day(4), Day(4)).await.unwrap();
        assert_eq!(all(&one).await, []);
    });
}

#[test]
fn closing_what_is_closed_costs_one_statement_that_writes_nothing() {
    super::run(async {
        let schema = fresh_schema();
        let store = open(settings(&schema)).await;
        for day in 1..9 {
            store.count(&line(day, "a.test"), &counters_of(day)).await.unwrap();
        }
        store.compact_usage(Day(9), Day(5)).await.unwrap();
        let written =
            || shared_postgres().sql(&format!("SELECT xmin, day FROM {schema}.counters ORDER BY day"));
        let (before, rows) = (store.round_trips(), written());
        store.compact_usage(Day(9), Day(5)).await.unwrap();
        assert_eq!((store.round_trips() - before, written()), (1, rows));
    });
}

#[test]
fn sums_fill_up_and_may_be_lessened_again() {
    super::run(async {
        let schema = fresh_schema();
        let store = open(settings(&schema)).await;
        for site in ["a.test", "b.test"] {
            store.count(&line(1, site), &counters_of(u64::MAX)).await.unwrap();
        }
        store.compact_usage(Day(2), Day(0)).await.unwrap();
        assert_eq!(all(&store).await, [(line(1, UsageRow::ALL_SITES), counters_of(i64::MAX.unsigned_abs()))]);
        // What was taken and put back leaves less than nothing behind, if the day was closed in between.
        shared_postgres().sql(&format!(
            "INSERT INTO {schema}.counters VALUES (1, 'ann', 'riddle', 'a.test', 'one', 'asked', 7, -5)"
        ));
        store.compact_usage(Day(2), Day(0)).await.unwrap();
        assert_eq!(
            all(&store).await,
            [(line(1, UsageRow::ALL_SITES), counters_of(i64::MAX.unsigned_abs() - 5))]
        );
    });
}
