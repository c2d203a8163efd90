//! Tests of files that are emptied, cut or overwritten at run time: they keep their names, and SQLite continues to
//! use them. The damage is noticed before the next acknowledgement, or within about a second. A copy is saved, and no
//! order is lost silently.

use super::losing::order;
use super::{NO_CACHE, commit, create, now};
use quittance_lifecycle::Order;
use quittance_ports::{Store, StoreError, Version};
use quittance_store_embedded::{DATABASE, EmbeddedStore, RESCUED, Settings};
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ORDERS: usize = 60;

fn log() -> String {
    format!("{DATABASE}-wal")
}

fn truncate(path: &Path, length: u64) {
    OpenOptions::new().write(true).open(path).unwrap().set_len(length).unwrap();
}

fn overwrite(path: &Path, at: u64, bytes: &[u8]) {
    OpenOptions::new().write(true).open(path).unwrap().write_all_at(bytes, at).unwrap();
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).unwrap().len()
}

/// A way to damage the folder of an open store, with its name.
type OverwriteWay = (&'static str, fn(&Path));

/// Ways that lose only what the running store has in memory.
const WAYS: [OverwriteWay; 8] = [
    ("the log is emptied", |dir| truncate(&dir.join(log()), 0)),
    ("the log is cut in the middle", |dir| {
        let log = dir.join(log());
        truncate(&log, length(&log) / 2);
    }),
    ("the log loses its last bytes", |dir| {
        let log = dir.join(log());
        truncate(&log, length(&log) - 100);
    }),
    ("the log is overwritten", |dir| fs::write(dir.join(log()), vec![b'x'; 200_000]).unwrap()),
    ("the beginning of the log is overwritten", |dir| overwrite(&dir.join(log()), 0, &[7; 64])),
    ("the database is emptied", |dir| truncate(&dir.join(DATABASE), 0)),
    ("the database is cut", |dir| {
        let database = dir.join(DATABASE);
        truncate(&database, length(&database) / 2);
    }),
    ("the database is overwritten", |dir| fs::write(dir.join(DATABASE), vec![b'x'; 200_000]).unwrap()),
];

/// A store with orders, some in the database and some in the log.
fn filled(dir: &Path, settings: &Settings) -> (EmbeddedStore, Vec<Arc<Order>>) {
    let orders: Vec<_> = (0..ORDERS).map(order).collect();
    let (first, others) = orders.split_at(ORDERS / 2);
    let store = EmbeddedStore::open_with(dir, settings).unwrap();
    for order in first {
        create(&store, order);
    }
    drop(store);
    let store = EmbeddedStore::open_with(dir, settings).unwrap();
    for order in others {
        create(&store, order);
    }
    (store, orders)
}

/// Checks that every order exists or is reported as lost, and that none can be placed again. Returns how many exist.
fn check(orders: &[Arc<Order>], dir: &Path, way: &str) -> usize {
    let store = EmbeddedStore::open(dir).unwrap();
    assert!(store.damage().is_some(), "{way}: it is reported after the restart");
    let mut there = 0;
    for order in orders {
        match now(store.load(&order.key)) {
            Ok(Some(record)) => {
                assert_eq!(record.order, *order, "{way}");
                there += 1;
            }
            Err(StoreError::Corrupt { .. }) => {
                let again = commit(&store, Version::ABSENT, order);
                assert!(matches!(again, Err(StoreError::Corrupt { .. })), "{way}: {again:?}");
            }
            other => panic!("{way}: an acknowledged order is gone without a word: {other:?}"),
        }
    }
    there
}

fn noticed_at_the_next_commit(way: &OverwriteWay, settings: &Settings) -> usize {
    let dir = tempfile::tempdir().unwrap();
    let (store, orders) = filled(dir.path(), settings);
    way.1(dir.path());
    let refused = commit(&store, Version::ABSENT, &order(1000));
    assert!(matches!(refused, Err(StoreError::Unavailable { .. })), "{}: {refused:?}", way.0);
    let words = store.damage().unwrap();
    assert!(words.contains("emptied, cut or overwritten"), "{}: {words}", way.0);
    assert!(dir.path().join(RESCUED).exists(), "{}: a copy is saved", way.0);
    drop(store);
    check(&orders, dir.path(), way.0)
}

#[test]
fn files_that_are_emptied_or_overwritten_are_noticed_before_the_next_acknowledgement_and_a_copy_is_saved() {
    for way in &WAYS {
        assert_eq!(noticed_at_the_next_commit(way, &Settings::default()), ORDERS, "{}", way.0);
    }
}

#[test]
fn orders_that_are_not_in_memory_are_saved_as_far_as_they_can_be_read_and_the_others_are_listed() {
    for way in &WAYS {
        noticed_at_the_next_commit(way, &NO_CACHE);
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the store looks at its files in real time")]
fn files_that_are_emptied_or_overwritten_while_idle_are_noticed_within_about_a_second() {
    for way in &WAYS {
        let dir = tempfile::tempdir().unwrap();
        let (store, orders) = filled(dir.path(), &Settings::default());
        way.1(dir.path());
        let began = Instant::now();
        while store.damage().is_none() || !dir.path().join(RESCUED).exists() {
            assert!(began.elapsed() < Duration::from_secs(20), "{}: it is noticed", way.0);
            std::thread::yield_now();
        }
        drop(store);
        assert_eq!(check(&orders, dir.path(), way.0), ORDERS, "{}", way.0);
    }
}

/// Overwrites a page in the middle of the log, so that its beginning and its end stay.
fn overwrite_the_middle(dir: &Path) {
    let log = dir.join(log());
    let middle = length(&log) / 2;
    overwrite(&log, middle, &[0xa5; 9_000]);
}

/// Trap: SQLite moves a log into the database without checking its checksums, so a clean stop, or a second without
/// writes, spread the damage.
#[test]
fn the_middle_of_a_log_that_is_overwritten_does_not_come_into_the_database_when_the_store_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let (store, orders) = filled(dir.path(), &Settings::default());
    overwrite_the_middle(dir.path());
    drop(store);
    let there = check(&orders, dir.path(), "closed");
    assert!((ORDERS / 2..ORDERS).contains(&there), "what comes after it in the log is listed: {there}");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the store looks at its files in real time")]
fn the_middle_of_a_log_that_is_overwritten_is_noticed_before_it_comes_into_the_database() {
    let dir = tempfile::tempdir().unwrap();
    let (store, orders) = filled(dir.path(), &Settings::default());
    overwrite_the_middle(dir.path());
    let began = Instant::now();
    while store.damage().is_none() || !dir.path().join(RESCUED).exists() {
        assert!(began.elapsed() < Duration::from_secs(20), "it is noticed");
        std::thread::yield_now();
    }
    drop(store);
    assert_eq!(check(&orders, dir.path(), "idle"), ORDERS, "all of them are in memory");
}

#[test]
fn an_older_copy_of_the_database_that_is_written_over_it_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = filled(dir.path(), &Settings::default());
    drop(store);
    let old = fs::read(dir.path().join(DATABASE)).unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    for n in 1000..1400 {
        create(&store, &order(n));
    }
    drop(store);
    let store = EmbeddedStore::open(dir.path()).unwrap();
    let mut old = old;
    old.resize(usize::try_from(length(&dir.path().join(DATABASE))).unwrap(), 0);
    fs::write(dir.path().join(DATABASE), old).unwrap();
    let refused = commit(&store, Version::ABSENT, &order(2000));
    assert!(matches!(refused, Err(StoreError::Unavailable { .. })), "{refused:?}");
    assert!(store.damage().unwrap().contains("emptied, cut or overwritten"));
}

#[test]
fn what_sqlite_does_by_itself_is_not_taken_for_damage() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    let person = rusqlite::Connection::open(dir.path().join(DATABASE)).unwrap();
    for n in 0..300 {
        create(&store, &order(n));
        if n % 50 == 0 {
            let mode = ["PASSIVE", "FULL", "RESTART", "TRUNCATE"][n / 50 % 4];
            person.execute_batch(&format!("PRAGMA wal_checkpoint({mode})")).unwrap();
        }
        if n == 200 {
            person.execute_batch("VACUUM").unwrap();
            person.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        }
        assert_eq!(store.damage(), None, "{n}");
    }
}
