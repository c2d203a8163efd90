//! Tests of closing old usage: in steps between which other calls run, and without writes if there is nothing to do.

use super::now;
use futures_util::future::join_all;
use quittance_lifecycle::Counters;
use quittance_ports::{Day, Store, UsageRow};
use quittance_store_embedded::EmbeddedStore;

/// More sites than one transaction sums up.
const SITES: u64 = 2500;

fn line(day: u64, site: &str) -> UsageRow {
    let (tenant, kind, account) = ("ann".into(), "riddle".into(), "one".into());
    UsageRow { day: Day(day), tenant, kind, site: site.into(), account }
}

fn booked() -> (tempfile::TempDir, EmbeddedStore) {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    let counters = Counters { asked: 1, cost_micros: 7, ..Counters::default() };
    let lines: Vec<UsageRow> =
        [1, 2].into_iter().flat_map(|day| (0..SITES).map(move |n| line(day, &format!("{n}.test")))).collect();
    for counted in now(join_all(lines.iter().map(|line| store.count(line, &counters)))) {
        counted.unwrap();
    }
    (dir, store)
}

#[test]
fn a_day_of_more_sites_than_one_transaction_holds_is_closed_and_stays_closed() {
    let (dir, store) = booked();
    now(store.compact_usage(Day(3), Day(2))).unwrap();
    let expected = [(
        line(2, UsageRow::ALL_SITES),
        Counters { asked: SITES, cost_micros: 7 * SITES, ..Counters::default() },
    )];
    assert_eq!(now(store.usage(Day(0), Day(9))).unwrap(), expected);
    drop(store);
    let store = EmbeddedStore::open(dir.path()).unwrap();
    assert_eq!(now(store.usage(Day(0), Day(9))).unwrap(), expected);
}

#[test]
fn usage_that_are_closed_already_are_not_written() {
    let (_dir, store) = booked();
    now(store.compact_usage(Day(3), Day(2))).unwrap();
    let transactions = store.transactions();
    for _ in 0..3 {
        now(store.compact_usage(Day(3), Day(2))).unwrap();
    }
    assert_eq!(store.transactions(), transactions);
}

/// A sum stops at the highest number, as everywhere in the usage.
#[test]
fn sums_fill_up_and_do_not_overflow() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    for site in ["a.test", "b.test"] {
        now(store.count(&line(1, site), &Counters { asked: u64::MAX - 1, paid: 2, ..Counters::default() }))
            .unwrap();
    }
    now(store.compact_usage(Day(2), Day(0))).unwrap();
    let full = Counters { asked: u64::MAX, paid: 4, ..Counters::default() };
    assert_eq!(now(store.usage(Day(1), Day(1))).unwrap(), [(line(1, UsageRow::ALL_SITES), full)]);
}
