//! Brings a store that an earlier version has written to the schema of this one. All of it happens in the transaction in
//! which the store is settled: a crash on the way leaves it as it was.

use crate::row::{Found, Head, Kept, Reading};
use quittance_ports::Versioned;
use rusqlite::{Connection, params};
use std::collections::BTreeSet;

/// Everything between schema `found` and this one, step by step.
pub(crate) fn migrate(conn: &Connection, found: i64) -> rusqlite::Result<()> {
    if found < 2 {
        conn.execute_batch(
            "CREATE TABLE sheets (
                 name TEXT PRIMARY KEY, version INTEGER NOT NULL, sum INTEGER NOT NULL, sheet TEXT NOT NULL
             ) WITHOUT ROWID;",
        )?;
        keep_books_by(conn, "site")?;
        note_takers(conn)?;
    }
    if found < 3 {
        keep_books_by(conn, "provider")?;
        conn.execute_batch("CREATE INDEX tallies_in_detail ON tallies (day) WHERE site <> '*'")?;
    }
    Ok(())
}

pub(crate) fn columns(conn: &Connection, table: &str) -> rusqlite::Result<BTreeSet<String>> {
    let mut names = conn.prepare("SELECT name FROM pragma_table_info(?1)")?;
    names.query_map([table], |row| row.get(0))?.collect()
}

pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A primary key cannot be changed in place. What was booked before there was this part of it stands under none; and lines of
/// a later version that this one does not know come along.
fn keep_books_by(conn: &Connection, part: &str) -> rusqlite::Result<()> {
    let mut parts = conn.prepare("SELECT name FROM pragma_table_info('tallies') WHERE pk > 0 ORDER BY pk")?;
    let parts: Vec<String> = parts.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let names = columns(conn, "tallies")?;
    let lines = names.iter().filter(|name| !parts.contains(name));
    let lines: String = lines.map(|name| format!("{} INTEGER NOT NULL DEFAULT 0, ", quoted(name))).collect();
    let texts: String =
        parts.iter().filter(|name| *name != "day").map(|name| format!("{name} TEXT NOT NULL, ")).collect();
    let names = names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
    let key = parts.join(", ");
    conn.execute_batch(&format!(
        "DROP VIEW IF EXISTS books;
         ALTER TABLE tallies RENAME TO tallies_before;
         CREATE TABLE tallies (
             day INTEGER NOT NULL, {texts} {part} TEXT NOT NULL, {lines} PRIMARY KEY ({key}, {part})
         ) WITHOUT ROWID;
         INSERT INTO tallies ({part}, {names}) SELECT '', {names} FROM tallies_before;
         DROP TABLE tallies_before;"
    ))
}

/// Who took an answer from a shelf stood only in the record. A row that cannot be read is left as it is: whoever opens the
/// store will find that out, and say so.
fn note_takers(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute_batch("ALTER TABLE order_records ADD COLUMN taker BLOB")?;
    let mut taken = conn.prepare("SELECT id FROM order_records WHERE phase = 'taken'")?;
    let taken: Vec<i64> = taken.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let mut reading = Reading::new(conn)?;
    let mut note =
        conn.prepare("UPDATE order_records SET taker = ?1, target = ?2, sum = ?3 WHERE id = ?4")?;
    for id in taken {
        let Found::Whole(Kept { versioned: Versioned { version, order }, terms_sum, .. }) =
            reading.row(id)?
        else {
            continue;
        };
        let Some(by) = order.taker() else { continue };
        let record_sum: i64 =
            conn.query_row("SELECT record_sum FROM order_records WHERE id = ?1", [id], |row| row.get(0))?;
        let sum = Head::of(&order, version, record_sum.cast_unsigned(), terms_sum).sum();
        note.execute(params![&by.0[..], &order.terms.target.0[..], sum.cast_signed(), id])?;
    }
    Ok(())
}
