//! How the books are closed here: in steps that others can come between, and not at all where there is nothing to do.

use super::now;
use futures_util::future::join_all;
use quittance_lifecycle::Tally;
use quittance_ports::{Day, Line, Store};
use quittance_store_embedded::EmbeddedStore;

/// More than one transaction sums up.
const SITES: u64 = 2500;

fn line(day: u64, site: &str) -> Line {
    let (tenant, kind, account) = ("ann".into(), "riddle".into(), "one".into());
    Line { day: Day(day), tenant, kind, site: site.into(), account }
}

fn booked() -> (tempfile::TempDir, EmbeddedStore) {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    let tally = Tally { asked: 1, cost_micros: 7, ..Tally::default() };
    let lines: Vec<Line> =
        [1, 2].into_iter().flat_map(|day| (0..SITES).map(move |n| line(day, &format!("{n}.test")))).collect();
    for counted in now(join_all(lines.iter().map(|line| store.count(line, &tally)))) {
        counted.unwrap();
    }
    (dir, store)
}

#[test]
fn a_day_of_more_sites_than_one_transaction_holds_is_closed_and_stays_closed() {
    let (dir, store) = booked();
    now(store.close_books(Day(3), Day(2))).unwrap();
    let expected =
        [(line(2, Line::ALL_SITES), Tally { asked: SITES, cost_micros: 7 * SITES, ..Tally::default() })];
    assert_eq!(now(store.books(Day(0), Day(9))).unwrap(), expected);
    drop(store);
    let store = EmbeddedStore::open(dir.path()).unwrap();
    assert_eq!(now(store.books(Day(0), Day(9))).unwrap(), expected);
}

#[test]
fn books_that_are_closed_already_are_not_written() {
    let (_dir, store) = booked();
    now(store.close_books(Day(3), Day(2))).unwrap();
    let transactions = store.transactions();
    for _ in 0..3 {
        now(store.close_books(Day(3), Day(2))).unwrap();
    }
    assert_eq!(store.transactions(), transactions);
}

/// A sum stops where a number ends, as everywhere in the books.
#[test]
fn sums_fill_up_and_do_not_overflow() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    for site in ["a.test", "b.test"] {
        now(store.count(&line(1, site), &Tally { asked: u64::MAX - 1, paid: 2, ..Tally::default() }))
            .unwrap();
    }
    now(store.close_books(Day(2), Day(0))).unwrap();
    let full = Tally { asked: u64::MAX, paid: 4, ..Tally::default() };
    assert_eq!(now(store.books(Day(1), Day(1))).unwrap(), [(line(1, Line::ALL_SITES), full)]);
}
