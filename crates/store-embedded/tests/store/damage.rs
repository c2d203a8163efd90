//! Tests of damaged records, half-written files and wrong files. An unreadable record is reported and set aside, and
//! nothing else stops.

use super::{NO_CACHE, commit, create, now, write};
use quittance_lifecycle::{Counters, Key, Order};
use quittance_ports::conformance::samples::{self, START, SampleOrder, after};
use quittance_ports::{Commit, OrderCounts, Store, StoreError, Version, Versioned, Which};
use quittance_store_embedded::{DATABASE, EmbeddedOpenError, EmbeddedStore, RESCUED, Settings};
use rusqlite::Connection;
use std::fs;
use std::path::Path;
use std::sync::Arc;

fn sql(dir: &Path, statements: &str) {
    Connection::open(dir.join(DATABASE)).unwrap().execute_batch(statements).unwrap();
}

/// Lets a NOT NULL column be NULL.
fn allow_null(dir: &Path, column: &str) {
    let edit = format!(
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, '{column} NOT NULL', '{column}');"
    );
    sql(dir, &edit);
}

/// The SQL condition for the row of the first order.
const FIRST: &str = "WHERE id = (SELECT min(id) FROM order_records)";

struct DamageScene {
    dir: tempfile::TempDir,
    rotten: Arc<Order>,
    version: Version,
    others: Vec<Versioned>,
}

impl DamageScene {
    /// Some due orders, and one that will be damaged.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(dir.path()).unwrap();
        let rotten = samples::queued("rotten", START).order;
        let version = create(&store, &rotten);
        let others = (0..5).map(|n| samples::queued(&format!("good {n}"), START).order);
        let others = others.map(|order| Versioned { version: create(&store, &order), order }).collect();
        Self { dir, rotten, version, others }
    }

    fn open(&self) -> EmbeddedStore {
        EmbeddedStore::open_with(self.dir.path(), &NO_CACHE).unwrap()
    }

    /// Checks every promise about a store with one damaged record.
    fn check(&self, store: &EmbeddedStore) {
        let key = self.rotten.key;
        let is_corrupt =
            |error: StoreError| matches!(error, StoreError::Corrupt { key: of, .. } if of == key);
        assert!(is_corrupt(now(store.load(&key)).unwrap_err()));
        for expected in [Version::ABSENT, self.version] {
            assert!(is_corrupt(commit(store, expected, &self.rotten).unwrap_err()));
        }
        assert!(store.unreadable().iter().any(|unreadable| unreadable.key == key));

        for (which, visible) in [(Which::ALL, 5), (Which::DEAD, 0), (Which::OPEN, 5)] {
            let (good, bad): (Vec<_>, Vec<_>) =
                now(store.list(which, None, 100)).unwrap().into_iter().partition(Result::is_ok);
            assert_eq!(good.len(), visible, "{which:?}");
            assert_eq!(
                bad.iter().any(|record| record.as_ref().unwrap_err().key == key),
                which != Which::OPEN
            );
        }
        for other in &self.others {
            assert_eq!(now(store.load(&other.order.key)).unwrap().as_ref(), Some(other));
        }

        let due = now(store.claim_due(after(10), after(20), 100)).unwrap();
        assert_eq!(due.orders.len(), self.others.len(), "the others are due all the same");
        assert!(due.unreadable.iter().any(|unreadable| unreadable.key == key), "it is reported");
        let again = now(store.claim_due(after(1000), after(2000), 100)).unwrap();
        assert_eq!(again.unreadable, [], "once");
        assert_eq!(again.orders.len(), self.others.len());
        for other in &self.others {
            let version = write(store, other.version, &samples::submitting("any", START).order_of(other));
            assert!(version > other.version);
        }
        assert_eq!(now(store.purge(quittance_lifecycle::Timestamp::MAX, 100)).unwrap(), 0);
    }

    /// Checks every promise about a damaged record that an operator has discarded.
    fn check_discard(&self, store: &EmbeddedStore, key: &Key) {
        assert!(now(store.discard(key)).unwrap());
        assert_eq!(store.unreadable(), [], "under no key is anything left of it");
        assert!(!now(store.discard(key)).unwrap(), "it was there once");
        self.check_gone(store, 0);
        let version = create(store, &self.rotten);
        assert!(version > self.version, "{version:?} comes after {:?}, which is gone", self.version);
        let stands = Some(Versioned { version, order: Arc::clone(&self.rotten) });
        assert_eq!(now(store.load(&self.rotten.key)).unwrap(), stands);
        assert!(!now(store.discard(&self.rotten.key)).unwrap(), "and is left alone");
        assert!(
            commit(store, self.version, &self.rotten).is_ok_and(|lost| matches!(lost, Commit::Conflict(_)))
        );
        self.check_gone(store, 1);
    }

    /// Checks that only readable orders are listed: the other orders and `more`.
    fn check_gone(&self, store: &EmbeddedStore, more: usize) {
        let all = self.others.len() + more;
        for (which, visible) in [(Which::ALL, all), (Which::OPEN, all), (Which::DEAD, 0)] {
            let listed = now(store.list(which, None, 100)).unwrap();
            assert_eq!(listed.iter().filter(|record| record.is_ok()).count(), visible, "{which:?}");
            assert_eq!(listed.len(), visible, "{which:?}");
        }
        assert_eq!(now(store.order_counts()).unwrap(), OrderCounts { open: all as u64, dead: 0 });
        let due = now(store.claim_due(after(1_000_000), after(1_000_000), 100)).unwrap();
        assert_eq!((due.orders.len(), due.unreadable.len()), (all, 0));
    }
}

trait OrderOf {
    /// This sample with the key and the terms of `other`.
    fn order_of(&self, other: &Versioned) -> Arc<Order>;
}

impl OrderOf for SampleOrder {
    fn order_of(&self, other: &Versioned) -> Arc<Order> {
        Arc::new(Order {
            key: other.order.key,
            terms: Arc::clone(&other.order.terms),
            ..(*self.order).clone()
        })
    }
}

fn rot(statement: &str) {
    let scene = DamageScene::new();
    sql(scene.dir.path(), statement);
    for _ in 0..2 {
        let store = scene.open();
        let reported = now(store.claim_due(after(1), after(1), 0)).unwrap();
        assert_eq!(reported.unreadable, [], "a claim of none reports none");
        if store.transactions() == 0 {
            // The second time the others have moved on; the damaged one is still reported.
            let due = now(store.claim_due(START, START, 1)).unwrap();
            assert_eq!(due.unreadable.len() + due.orders.len(), 1);
        }
        drop(store);
    }
    scene.check(&scene.open());
    let rows = Connection::open(scene.dir.path().join(DATABASE))
        .unwrap()
        .query_row("SELECT count(*) FROM order_records", [], |row| row.get::<_, i64>(0))
        .unwrap();
    assert_eq!(rows, 6, "it stays for a person");
    assert_eq!(scene.open().unreadable().iter().filter(|record| record.key == scene.rotten.key).count(), 1);
    scene.check_discard(&scene.open(), &scene.rotten.key);
    let again = scene.open();
    assert_eq!(again.unreadable(), [], "also after a restart");
    scene.check_gone(&again, 1);
}

#[test]
fn a_record_that_is_not_json_is_reported_and_set_aside() {
    rot(&format!("UPDATE order_records SET record = 'garbage' {FIRST}"));
}

#[test]
fn a_record_that_is_cut_short_is_reported_and_set_aside() {
    rot(&format!("UPDATE order_records SET record = substr(record, 1, 50) {FIRST}"));
}

#[test]
fn a_record_that_is_no_text_is_reported_and_set_aside() {
    rot(&format!("UPDATE order_records SET record = CAST(record AS BLOB) {FIRST}"));
    rot(&format!("UPDATE order_records SET record = x'00ff' {FIRST}"));
}

/// The damaged record parses, and falsely says that an operator must release the order.
#[test]
fn rot_in_a_record_that_still_parses_is_reported_and_set_aside() {
    rot(&format!(
        "UPDATE order_records SET record = replace(record, '\"held\":false', '\"held\":true') {FIRST}"
    ));
}

#[test]
fn rot_in_any_column_is_reported_and_set_aside() {
    for change in [
        "due = NULL",
        "due = due + 86400000",
        "version = version + 1",
        "version = 'one'",
        "life = -1",
        "expires = 1, target = zeroblob(32)",
        "forget_at = 1",
        "phase = 'dead'",
        "tenant = 'another'",
        "sum = sum + 1",
        "record_sum = 0",
        "terms_sum = 0",
        "terms = replace(terms, 'example', 'elsewhere')",
        "terms = NULL",
    ] {
        rot(&format!("UPDATE order_records SET {change} {FIRST}"));
    }
}

#[test]
fn a_null_where_none_may_be_is_reported_and_set_aside() {
    for column in ["record     TEXT", "key        BLOB", "phase      TEXT", "sum        INTEGER"] {
        let scene = DamageScene::new();
        allow_null(scene.dir.path(), column);
        let name = column.split_whitespace().next().unwrap();
        sql(scene.dir.path(), &format!("UPDATE order_records SET {name} = NULL {FIRST}"));
        scene.check(&scene.open());
        scene.check_discard(&scene.open(), &scene.rotten.key);
        scene.check_gone(&scene.open(), 1);
    }
}

/// If key and record of a row are lost, it is reported under the number of its row, which is its only name.
#[test]
fn a_row_without_a_readable_key_is_discarded_under_its_stand_in() {
    let scene = DamageScene::new();
    allow_null(scene.dir.path(), "key        BLOB");
    sql(scene.dir.path(), &format!("UPDATE order_records SET key = NULL, record = 'garbage' {FIRST}"));
    let store = scene.open();
    // The notes beside the log know that the order is missing, and not that this row was it.
    let unreadable = store.unreadable();
    assert_eq!(unreadable.len(), 2);
    let stand_in = unreadable.iter().find(|unreadable| unreadable.key != scene.rotten.key).unwrap();
    assert!(now(store.discard(&stand_in.key)).unwrap());
    scene.check_discard(&store, &scene.rotten.key);
    drop(store);
    scene.check_gone(&scene.open(), 1);
}

/// An operator can use either key; all of the row is removed.
#[test]
fn a_row_that_is_reported_under_two_keys_is_discarded_under_either() {
    for is_own in [true, false] {
        let scene = DamageScene::new();
        sql(scene.dir.path(), &format!("UPDATE order_records SET key = zeroblob(32) {FIRST}"));
        let store = scene.open();
        assert_eq!(store.unreadable().len(), 2);
        scene.check_discard(&store, &if is_own { scene.rotten.key } else { Key([0; 32]) });
        drop(store);
        scene.check_gone(&scene.open(), 1);
    }
}

/// The row with the last version is lost, and the version counter is behind it.
#[test]
fn no_version_comes_back_when_the_counter_was_damaged_as_well() {
    let scene = DamageScene::new();
    let last = scene.others.iter().map(|other| other.version).max().unwrap();
    sql(
        scene.dir.path(),
        "UPDATE counter SET last_version = 0; UPDATE order_records SET record = 'x'; DELETE FROM large_terms",
    );
    let store = scene.open();
    for other in &scene.others {
        assert!(now(store.discard(&other.order.key)).unwrap());
    }
    drop(store);
    let store = scene.open();
    for other in &scene.others {
        assert!(create(&store, &other.order) > last);
    }
}

/// Otherwise the order would be placed, and paid for, again.
#[test]
fn an_order_with_a_damaged_key_does_not_count_as_never_placed() {
    rot(&format!("UPDATE order_records SET key = x'00' || substr(key, 2) {FIRST}"));
    rot(&format!("UPDATE order_records SET key = x'00' {FIRST}"));
    rot(&format!("UPDATE order_records SET key = zeroblob(32) {FIRST}"));
}

#[test]
fn the_record_of_one_order_in_the_row_of_another_is_reported_and_set_aside() {
    let copy = "UPDATE order_records SET (record, record_sum) = (SELECT record, record_sum FROM order_records \
                WHERE id = 2)";
    rot(&format!("{copy} {FIRST}"));
}

/// Flips one bit in the file, in the name inside the damaged record.
#[test]
fn a_bit_that_flips_on_the_disk_is_reported_and_set_aside() {
    let scene = DamageScene::new();
    let path = scene.dir.path().join(DATABASE);
    let mut bytes = fs::read(&path).unwrap();
    let marker = format!("\"key\":\"{}\"", scene.rotten.key);
    // Pages that were split have copies of it in what they no longer use.
    let places: Vec<_> =
        bytes.windows(marker.len()).enumerate().filter(|(_, w)| *w == marker.as_bytes()).collect();
    assert!(!places.is_empty());
    let places: Vec<usize> = places.into_iter().map(|(at, _)| at + marker.len() + 20).collect();
    places.into_iter().for_each(|at| bytes[at] ^= 4);
    fs::write(&path, bytes).unwrap();
    scene.check(&scene.open());
}

/// Flips one bit where a page says where its rows begin. SQLite trusts that number, and would write new rows over old ones.
#[test]
fn a_bit_that_flips_in_the_head_of_a_page_costs_no_order() {
    const PAGE: usize = 4096;
    const LEAF_OF_A_TABLE: u8 = 0x0d;
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    let orders: Vec<Arc<Order>> =
        (0..60).map(|number| samples::queued(&format!("order {number}"), START).order).collect();
    for order in &orders {
        create(&store, order);
    }
    drop(store);
    let bytes = fs::read(dir.path().join(DATABASE)).unwrap();
    let heads = (PAGE..bytes.len()).step_by(PAGE).filter(|at| bytes[*at] == LEAF_OF_A_TABLE);
    let mut noticed = 0;
    for (head, bit) in heads.flat_map(|head| [2, 3].map(|bit| (head, bit))) {
        let copy = tempfile::tempdir().unwrap();
        for entry in fs::read_dir(dir.path()).unwrap().map(Result::unwrap) {
            fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
        }
        let mut damaged = bytes.clone();
        damaged[head + 5] ^= 1 << bit;
        fs::write(copy.path().join(DATABASE), damaged).unwrap();
        let store = match EmbeddedStore::open(copy.path()) {
            Ok(store) => store,
            // Nothing is written to what cannot be opened.
            Err(error) => {
                assert!(matches!(error, EmbeddedOpenError::Broken { .. }), "{error}");
                continue;
            }
        };
        noticed += usize::from(store.damage().is_some());
        for number in 0..60 {
            create(&store, &samples::queued(&format!("later {number}"), START).order);
        }
        drop(store);
        let store = EmbeddedStore::open(copy.path()).unwrap();
        let known = |order: &&Arc<Order>| !matches!(now(store.load(&order.key)), Ok(None));
        assert_eq!(orders.iter().filter(known).count(), 60, "bit {bit} at {head}");
    }
    assert!(noticed > 0);
}

#[test]
fn what_rots_while_the_store_is_open_is_noticed_when_it_is_read() {
    let readers: [fn(&EmbeddedStore, &DamageScene); 4] = [
        |store, scene| drop(now(store.load(&scene.rotten.key)).unwrap_err()),
        |store, scene| drop(commit(store, scene.version, &scene.rotten).unwrap_err()),
        |store, _| {
            let listed = now(store.list(Which::ALL, None, 9)).unwrap();
            assert_eq!(listed.iter().filter(|record| record.is_err()).count(), 1);
        },
        |_, _| {},
    ];
    for first in readers {
        let scene = DamageScene::new();
        let store = scene.open();
        sql(scene.dir.path(), &format!("UPDATE order_records SET record = '{{}}' {FIRST}"));
        first(&store, &scene);
        if store.unreadable().is_empty() {
            let due = now(store.claim_due(after(1), after(1), 100)).unwrap();
            assert_eq!((due.orders.len(), due.unreadable.len()), (5, 1), "through this reader, too");
            assert_eq!(now(store.claim_due(after(9), after(9), 100)).unwrap().unreadable, [], "once");
        } else {
            scene.check(&store);
        }
    }
}

#[test]
fn what_rots_while_the_store_is_open_is_discarded_whichever_reader_noticed_first() {
    let readers: [fn(&EmbeddedStore, &DamageScene); 4] = [
        |store, scene| drop(now(store.load(&scene.rotten.key)).unwrap_err()),
        |store, _| drop(now(store.list(Which::ALL, None, 9)).unwrap()),
        |store, _| drop(now(store.claim_due(after(1), after(1), 100)).unwrap()),
        |_, _| {},
    ];
    for rot in ["record = '{}'", "due = due + 1", "key = zeroblob(32)"] {
        for first in readers {
            let scene = DamageScene::new();
            let store = scene.open();
            sql(scene.dir.path(), &format!("UPDATE order_records SET {rot} {FIRST}"));
            first(&store, &scene);
            scene.check_discard(&store, &scene.rotten.key);
            drop(store);
            scene.check_gone(&scene.open(), 1);
        }
    }
}

#[test]
fn what_is_discarded_is_in_no_stock_and_no_list() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open_with(dir.path(), &NO_CACHE).unwrap();
    let stocked = samples::stocked("rotten", "https://example.com/login", after(500)).order;
    let (target, _) = stocked.list_stock().unwrap();
    let key = stocked.key;
    create(&store, &stocked);
    sql(dir.path(), "UPDATE order_records SET record = 'x'");
    assert!(now(store.discard(&key)).unwrap());
    let queued = samples::queued("rotten", START).order;
    create(&store, &queued);
    assert_eq!(now(store.list_stock(&target, START, 9)).unwrap(), []);
    let by = samples::queued("taker", START).order.key;
    assert_eq!(now(store.take(&target, START, &by, START, &Counters::default())).unwrap(), None);
    assert_eq!(
        now(store.purge(quittance_lifecycle::Timestamp::MAX, 9)).unwrap(),
        0,
        "it is another order now"
    );
    assert_eq!(now(store.load(&key)).unwrap().unwrap().order, queued);
}

/// Another program has changed a row that the store has in memory. The row on disk counts, and no other order is
/// affected.
#[test]
fn where_memory_and_disk_disagree_the_store_is_read_again() {
    let scene = DamageScene::new();
    let store = EmbeddedStore::open(scene.dir.path()).unwrap();
    assert!(now(store.load(&scene.rotten.key)).unwrap().is_some(), "now it is in memory");
    let mut watch = now(store.watch(&scene.others[0].order.key)).unwrap();
    sql(scene.dir.path(), &format!("UPDATE order_records SET version = version + 1000 {FIRST}"));
    let error = commit(&store, scene.version, &scene.rotten).unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    now(watch.changed());
    scene.check(&store);
}

#[test]
fn a_dead_letter_that_rots_is_still_listed_and_never_purged() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    let (dead, failed) = (samples::dead("dead", START).order, samples::failed("failed", START).order);
    for order in [&dead, &failed] {
        create(&store, order);
    }
    drop(store);
    sql(dir.path(), "UPDATE order_records SET record = 'x'");
    let store = EmbeddedStore::open(dir.path()).unwrap();
    let listed = now(store.list(Which::DEAD, None, 9)).unwrap();
    let mut keys: Vec<Key> = listed.into_iter().map(|record| record.unwrap_err().key).collect();
    keys.sort_unstable();
    let mut both = [dead.key, failed.key];
    both.sort_unstable();
    assert_eq!(keys, both);
    assert_eq!(
        now(store.order_counts()).unwrap().dead,
        2,
        "the count does not say that there is nothing to do"
    );
    assert_eq!(now(store.purge(quittance_lifecycle::Timestamp::MAX, 9)).unwrap(), 0);
    let page = now(store.list(Which::ALL, Some(&both[0]), 9)).unwrap();
    assert_eq!(page.len(), 1, "page by page as well");
}

/// A copy of the current files, as after a power cut.
fn crashed(store_dir: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for name in [DATABASE.to_owned(), format!("{DATABASE}-wal")] {
        fs::copy(store_dir.join(&name), copy.path().join(&name)).unwrap();
    }
    copy
}

#[test]
fn a_log_that_breaks_off_or_ends_in_garbage_opens_with_all_that_was_whole() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open_with(dir.path(), &Settings::default()).unwrap();
    let orders: Vec<_> = (0..30).map(|n| samples::solved(&format!("order {n}"), START).order).collect();
    for order in &orders {
        create(&store, order);
    }
    let log = format!("{DATABASE}-wal");
    // Once, and all others from this one: a store that is left alone soon moves its log into the database.
    let dir = crashed(dir.path());
    let whole = fs::metadata(dir.path().join(&log)).unwrap().len();
    let record = |copy: &tempfile::TempDir| {
        let store = EmbeddedStore::open(copy.path()).unwrap();
        assert_eq!(store.unreadable(), []);
        let there = |order: &&Arc<Order>| now(store.load(&order.key)).unwrap().is_some();
        let count = orders.iter().take_while(there).count();
        assert_eq!(now(store.list(Which::ALL, None, 99)).unwrap().len(), count, "the first of them, no gap");
        create(&store, &samples::queued("new", START).order);
        count
    };
    let append = |copy: &tempfile::TempDir, garbage: &[u8]| {
        let path = copy.path().join(&log);
        let bytes = [fs::read(&path).unwrap(), garbage.to_vec()].concat();
        fs::write(path, bytes).unwrap();
    };
    assert_eq!(record(&crashed(dir.path())), 30);
    for garbage in [&[0; 10_000][..], &[0xa5; 5000], b"x"] {
        let copy = crashed(dir.path());
        append(&copy, garbage);
        assert_eq!(record(&copy), 30, "all that was acknowledged");
    }
    let mut last = 30;
    for part in (0..20).rev() {
        let copy = crashed(dir.path());
        let file = fs::OpenOptions::new().write(true).open(copy.path().join(&log)).unwrap();
        file.set_len(whole * part / 20).unwrap();
        let count = record(&copy);
        assert!(count <= last, "{count} after {last}");
        last = count;
    }
}

#[test]
fn a_later_schema_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    drop(EmbeddedStore::open(dir.path()).unwrap());
    sql(dir.path(), "PRAGMA user_version = 7");
    let before = fs::read(dir.path().join(DATABASE)).unwrap();
    let error = EmbeddedStore::open(dir.path()).unwrap_err();
    assert!(matches!(error, EmbeddedOpenError::Newer { found: 7, known: 1, .. }), "{error}");
    assert!(error.to_string().contains("later version"), "{error}");
    assert_eq!(fs::read(dir.path().join(DATABASE)).unwrap(), before);
}

#[test]
fn what_is_not_ours_is_refused_and_left_alone() {
    let text = vec![b'x'; 5000];
    let files: [fn(&Path); 3] = [
        |path| Connection::open(path).unwrap().execute_batch("CREATE TABLE theirs (a)").unwrap(),
        |path| Connection::open(path).unwrap().execute_batch("PRAGMA application_id = 5").unwrap(),
        |path| fs::write(path, vec![b'x'; 5000]).unwrap(),
    ];
    for make in files {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(DATABASE);
        make(&path);
        let before = fs::read(&path).unwrap();
        let error = EmbeddedStore::open(dir.path()).unwrap_err();
        assert!(matches!(error, EmbeddedOpenError::NotOurs { .. }), "{error}");
        assert!(error.to_string().contains(DATABASE), "{error}");
        assert_eq!(fs::read(&path).unwrap(), before);
        assert!(EmbeddedStore::open(dir.path()).is_err(), "and it is not in use either");
        fs::write(dir.path().join(RESCUED), "saved by a node").unwrap();
        let error = EmbeddedStore::open(dir.path()).unwrap_err().to_string();
        assert!(error.contains(RESCUED) && error.contains("rename that copy"), "{error}");
    }
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(DATABASE), "").unwrap();
    drop(EmbeddedStore::open(dir.path()).expect("a crash can leave an empty file"));
    let mut bytes = fs::read(dir.path().join(DATABASE)).unwrap();
    bytes.truncate(bytes.len() / 2);
    fs::write(dir.path().join(DATABASE), [&bytes[..], &text[..96]].concat()).unwrap();
    let error = EmbeddedStore::open(dir.path()).unwrap_err();
    assert!(matches!(error, EmbeddedOpenError::Broken { .. }), "{error}");
    assert!(error.to_string().contains("keep a copy"), "{error}");
}

/// A person holds the database in an open transaction for a long time.
#[test]
fn a_locked_database_is_unavailable_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    let order = samples::queued("patient", START).order;
    let version = create(&store, &order);
    let person = Connection::open(dir.path().join(DATABASE)).unwrap();
    person.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = commit(&store, version, &order).unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    assert_eq!(now(store.load(&order.key)).unwrap().unwrap().version, version, "reading goes on");
    person.execute_batch("ROLLBACK").unwrap();
    assert!(matches!(commit(&store, version, &order), Ok(Commit::Done(_))));
}
