//! Stores that earlier versions have written. The files under `golden` are what they wrote, as SQL.

use super::{create, now};
use quittance_lifecycle::{Key, Phase, Tally};
use quittance_ports::conformance::samples::{self, START, after};
use quittance_ports::{Day, Line, Roster, Store, Which};
use quittance_store_embedded::{DATABASE, EmbeddedStore};
use rusqlite::Connection;
use std::path::Path;

const SCHEMA_1: &str = include_str!("../golden/schema-1.sql");
const SCHEMA_2: &str = include_str!("../golden/schema-2.sql");
const HERE: &str = "https://example.com/here";

/// A store as schema 1 left it: one order queued, one dead, and of one shelf one that stands there, one that another took
/// and one that its own caller took.
fn first_schema() -> tempfile::TempDir {
    written(SCHEMA_1)
}

fn written(sql: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    Connection::open(dir.path().join(DATABASE)).unwrap().execute_batch(sql).unwrap();
    dir
}

fn number(dir: &Path, sql: &str) -> i64 {
    let conn = Connection::open(dir.join(DATABASE)).unwrap();
    conn.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn a_store_of_the_first_schema_is_brought_up_to_this_one_with_all_that_it_holds() {
    let dir = first_schema();
    let tally = Tally { asked: 3, paid: 1, from_stock: 2, ..Tally::default() };
    let line = |day: Day, tenant: &str, site: &str| Line {
        day,
        tenant: tenant.into(),
        kind: "riddle".into(),
        site: site.into(),
        account: String::new(),
    };
    let today = Day::of(START);
    let tenant = samples::draft("").tenant;
    for opened in 0..2 {
        let store = EmbeddedStore::open(dir.path()).unwrap();
        assert_eq!(store.unreadable(), [], "opened {opened} times before");
        assert_eq!(now(store.list(Which::ALL, None, 9)).unwrap().len(), 5);
        let books = now(store.books(Day(0), Day(u64::MAX))).unwrap();
        let mut expected =
            [line(today, "O'Hara", ""), line(today, &tenant, ""), line(Day(today.0 + 1), &tenant, "")]
                .map(|line| (line, tally));
        expected.sort_by(|(a, _), (b, _)| a.cmp(b));
        assert_eq!(books, expected, "what was booked before there were sites is booked under none");
        assert_eq!(now(store.sheets()).unwrap(), []);
    }
    assert_eq!(number(dir.path(), "PRAGMA user_version"), 3);

    let store = EmbeddedStore::open(dir.path()).unwrap();
    let more = Tally { stocked: 1, reported_bad: 2, ..Tally::default() };
    now(store.count(&line(today, "O'Hara", "example.com"), &more)).unwrap();
    now(store.count(&line(today, "O'Hara", ""), &more)).unwrap();
    let books = now(store.books(today, today)).unwrap();
    let of = |site: &str| {
        books.iter().find(|(line, _)| (&*line.tenant, &*line.site) == ("O'Hara", site)).unwrap().1
    };
    assert_eq!((of("example.com"), of("")), (more, Tally { stocked: 1, reported_bad: 2, ..tally }));
}

#[test]
fn what_somebody_took_in_the_first_schema_is_still_his() {
    let dir = first_schema();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    let taker = Key([7; 32]);
    let take =
        |by: Key| now(store.take(&samples::target(HERE), START, &by, START, &Tally::default())).unwrap();
    let his = take(taker).unwrap();
    assert!(matches!(his.order.phase, Phase::Taken { by, .. } if by == taker));
    assert_eq!(store.transactions(), 0, "nothing was taken anew");
    let next = take(Key([8; 32])).unwrap();
    assert_eq!(next.order.shelf(), None);
    assert_ne!(next.order.key, his.order.key);
    assert_eq!(take(Key([9; 32])), None, "one stood there, and what its own caller took is no stock");
    create(&store, &samples::stocked("new", HERE, after(130)).order);
    assert_eq!(now(store.purge(after(1_000_000), 9)).unwrap(), 3);
}

/// All of it or nothing: whatever goes wrong on the way, an earlier version can still open it.
#[test]
fn a_migration_that_fails_leaves_the_store_as_it_was() {
    let dir = first_schema();
    let conn = Connection::open(dir.path().join(DATABASE)).unwrap();
    conn.execute_batch("CREATE TABLE tallies_before (in_the_way)").unwrap();
    drop(conn);
    assert!(EmbeddedStore::open(dir.path()).is_err());
    assert_eq!(number(dir.path(), "PRAGMA user_version"), 1);
    assert_eq!(
        number(dir.path(), "SELECT count(*) FROM pragma_table_info('tallies') WHERE name = 'site'"),
        0
    );
    let conn = Connection::open(dir.path().join(DATABASE)).unwrap();
    conn.execute_batch("DROP TABLE tallies_before").unwrap();
    drop(conn);
    let store = EmbeddedStore::open(dir.path()).unwrap();
    assert_eq!(now(store.list(Which::ALL, None, 9)).unwrap().len(), 5);
}

/// Damage from before is told after it as it was before.
#[test]
fn a_rotten_row_of_the_first_schema_stays_rotten() {
    let dir = first_schema();
    let conn = Connection::open(dir.path().join(DATABASE)).unwrap();
    conn.execute_batch(
        "UPDATE order_records SET record = replace(record, '0707', '0808') WHERE phase = 'taken'",
    )
    .unwrap();
    drop(conn);
    let store = EmbeddedStore::open(dir.path()).unwrap();
    assert_eq!(store.unreadable().len(), 1);
    assert_eq!(
        now(store.take(&samples::target(HERE), after(121), &Key([8; 32]), START, &Tally::default())).unwrap(),
        None
    );
}

/// As schema 2 left it: one order queued, one dead, and one that another took from the shelf.
#[test]
fn a_store_of_the_second_schema_is_brought_up_to_this_one_with_all_that_it_holds() {
    let dir = written(SCHEMA_2);
    let today = Day::of(START);
    let tenant = samples::draft("").tenant;
    let line = |day: Day, tenant: &str, site: &str, account: &str| Line {
        day,
        tenant: tenant.into(),
        kind: "riddle".into(),
        site: site.into(),
        account: account.into(),
    };
    let tally = Tally { asked: 3, paid: 1, from_stock: 2, ..Tally::default() };
    let of_three = Tally { asked: 9, paid: 3, from_stock: 6, ..Tally::default() };
    let mut expected = vec![
        (line(today, "O'Hara", "", ""), tally),
        (line(today, "O'Hara", "example.com", ""), tally),
        (line(today, &tenant, "", ""), of_three),
        (line(Day(today.0 + 1), "O'Hara", "example.com", ""), tally),
    ];
    for opened in 0..2 {
        let store = EmbeddedStore::open(dir.path()).unwrap();
        assert_eq!(store.unreadable(), [], "opened {opened} times before");
        assert_eq!(now(store.list(Which::ALL, None, 9)).unwrap().len(), 3);
        assert_eq!(now(store.books(Day(0), Day(u64::MAX))).unwrap(), expected);
    }
    assert_eq!(number(dir.path(), "PRAGMA user_version"), 3);

    let store = EmbeddedStore::open(dir.path()).unwrap();
    let by_another = line(today, "O'Hara", "example.com", "another");
    now(store.count(&by_another, &tally)).unwrap();
    expected.insert(2, (by_another, tally));
    assert_eq!(now(store.books(Day(0), Day(u64::MAX))).unwrap(), expected);
    now(store.close_books(Day(today.0 + 1), today)).unwrap();
    let sites: Vec<_> =
        now(store.books(today, today)).unwrap().into_iter().map(|(line, _)| line.site).collect();
    assert_eq!(sites, [Line::ALL_SITES; 3]);
}
