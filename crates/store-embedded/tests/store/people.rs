//! Tests of what `sqlite3` shows of a running store.

use super::{create, now};
use quittance_lifecycle::Counters;
use quittance_ports::conformance::samples::{self, START};
use quittance_ports::{Commit, Day, Store, Version, Which};
use quittance_store_embedded::{DATABASE, EmbeddedStore};
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::sync::Arc;

fn ask(dir: &Path, sql: &str) -> Vec<Vec<String>> {
    let conn = Connection::open_with_flags(dir.join(DATABASE), OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let mut statement = conn.prepare(sql).unwrap();
    let columns = statement.column_count();
    let rows = statement.query_map([], |row| {
        let visible = |value| match value {
            Value::Null => "null".to_owned(),
            Value::Integer(number) => number.to_string(),
            Value::Text(text) => text,
            other => format!("{other:?}"),
        };
        (0..columns).map(|column| row.get(column).map(visible)).collect()
    });
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn a_person_can_read_orders_dead_letters_stories_attempts_and_usage_while_it_runs() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    let solving = samples::solving("solving", START).order;
    let dead = samples::dead("dead", START).order;
    let counters = Counters { asked: 2, paid: 1, ..Counters::default() };
    for order in [&solving, &dead] {
        let done = now(store.commit(Version::ABSENT, order, &counters, START)).unwrap();
        assert!(matches!(done, Commit::Done(_)));
    }
    let key = solving.key.to_string();
    let orders = ask(
        dir.path(),
        "SELECT key, tenant, kind, phase, placed, attempts, doubles, life, wanted FROM orders ORDER BY version",
    );
    let first =
        [&key, &*solving.terms.tenant, "riddle", "solving", "2100-01-01 00:00:00.000", "1", "0", "1", "1"];
    assert_eq!(orders[0], first);
    assert_eq!(orders[1][3], "dead");
    let due = ask(dir.path(), "SELECT due, deadline, forget_at FROM orders ORDER BY version");
    assert!(due[0][0].starts_with("2100-01-01 00:0"), "{due:?}");
    assert_eq!(due[1][0], "null", "a dead letter waits for nothing but a person");

    let dead_letters = ask(dir.path(), "SELECT key, cause, dead_since, doubles FROM dead_letters");
    assert_eq!(dead_letters.len(), 1);
    assert_eq!((&*dead_letters[0][0], &*dead_letters[0][1]), (&*dead.key.to_string(), "not_taken"));
    let timeline =
        ask(dir.path(), &format!("SELECT number, at, what, attempt FROM timeline WHERE key = '{key}'"));
    let placed: Vec<&str> = timeline[0].iter().map(String::as_str).collect();
    assert_eq!(placed, ["1", "2100-01-01 00:00:00.000", "placed", "null"]);
    assert_eq!(timeline.len(), solving.timeline.entries.len());
    let attempts = ask(dir.path(), "SELECT key, number, accepted, progress, task FROM attempts");
    assert_eq!(attempts, [[&*key, "1", "1", "solving", "task-1"]]);
    let usage = ask(dir.path(), "SELECT date, tenant, kind, asked, paid, cost_micros FROM usage");
    assert_eq!(usage, [["2100-01-01", &*solving.terms.tenant, "riddle", "4", "2", "0"]]);
    create(&store, &samples::queued("undisturbed", START).order);
}

#[test]
fn a_record_that_is_not_json_does_not_stop_a_person_from_reading_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    create(&store, &samples::dead("rotten", START).order);
    create(&store, &samples::dead("good", START).order);
    drop(store);
    let conn = Connection::open(dir.path().join(DATABASE)).unwrap();
    conn.execute_batch("UPDATE order_records SET record = 'garbage' WHERE id = 1").unwrap();
    for view in ["orders", "dead_letters"] {
        assert_eq!(ask(dir.path(), &format!("SELECT * FROM {view}")).len(), 2);
    }
    let good = "SELECT DISTINCT key FROM timeline";
    assert_eq!(ask(dir.path(), good).len(), 1);
    assert_eq!(ask(dir.path(), "SELECT * FROM attempts").len(), 0);
}

/// A later version can write counters that this one does not know, and an earlier one lacks some.
#[test]
fn lines_of_the_usage_that_another_version_has_are_kept_and_those_that_it_lacks_are_added() {
    let dir = tempfile::tempdir().unwrap();
    let order = samples::queued("booked", START).order;
    let line = quittance_ports::UsageRow::of(&order, START);
    let store = EmbeddedStore::open(dir.path()).unwrap();
    now(store.count(&line, &Counters { asked: 1, dead: 5, ..Counters::default() })).unwrap();
    drop(store);
    let conn = Connection::open(dir.path().join(DATABASE)).unwrap();
    conn.execute_batch(
        "ALTER TABLE counters ADD COLUMN marvels INTEGER NOT NULL DEFAULT 0; UPDATE counters SET marvels = 3;
         DROP VIEW usage; ALTER TABLE counters DROP COLUMN dead; UPDATE counter SET views_sum = 7;",
    )
    .unwrap();
    drop(conn);
    let store = EmbeddedStore::open(dir.path()).unwrap();
    now(store.count(&line, &Counters { asked: 1, dead: 1, ..Counters::default() })).unwrap();
    let expected = Counters { asked: 2, dead: 1, ..Counters::default() };
    assert_eq!(now(store.usage(line.day, line.day)).unwrap(), [(line.clone(), expected)]);
    assert_eq!(ask(dir.path(), "SELECT asked, dead, marvels FROM usage"), [["2", "1", "3"]]);
    now(store.compact_usage(Day(line.day.0 + 1), line.day)).unwrap();
    let closed = ask(dir.path(), "SELECT site, asked, dead, marvels FROM usage");
    assert_eq!(closed, [["*", "2", "1", "3"]], "nor are they lost when the usage is compacted");
}

#[test]
fn an_undelivered_webhook_is_a_dead_letter_also_when_the_store_is_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let webhooks_failed = Arc::new(samples::webhooks_failed(&samples::solved("solved", START).order, START));
    let store = EmbeddedStore::open(dir.path()).unwrap();
    create(&store, &webhooks_failed);
    create(&store, &samples::solved("delivered", START).order);
    drop(store);
    let store = EmbeddedStore::open(dir.path()).unwrap();
    let dead_letters = now(store.list(Which::DEAD, None, 9)).unwrap();
    let dead_letters: Vec<_> = dead_letters.into_iter().map(|record| record.unwrap().order).collect();
    assert_eq!(dead_letters, [Arc::clone(&webhooks_failed)]);
    let version = ask(dir.path(), "SELECT key, cause, dead_since FROM dead_letters");
    assert_eq!(version, [[&*webhooks_failed.key.to_string(), "delivery", "2100-01-01 00:00:00.000"]]);
}
