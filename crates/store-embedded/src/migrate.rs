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
        keep_books_by_site(conn)?;
        note_takers(conn)?;
    }
    Ok(())
}

pub(crate) fn columns(conn: &Connection, table: &str) -> rusqlite::Result<BTreeSet<String>> {
    let mut names = conn.prepare("SELECT name FROM pragma_table_info(?1)")?;
    names.query_map([table], |row| row.get(0))?.collect()
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A primary key cannot be changed in place. What was booked before there were sites stands under none; and lines of a later
/// version that this one does not know come along.
fn keep_books_by_site(conn: &Connection) -> rusqlite::Result<()> {
    let names: Vec<String> = columns(conn, "tallies")?.iter().map(|name| quoted(name)).collect();
    let lines = names.iter().filter(|name| !["\"day\"", "\"tenant\"", "\"kind\""].contains(&name.as_str()));
    let lines: String = lines.map(|name| format!("{name} INTEGER NOT NULL DEFAULT 0, ")).collect();
    let names = names.join(", ");
    conn.execute_batch(&format!(
        "DROP VIEW IF EXISTS books;
         ALTER TABLE tallies RENAME TO tallies_1;
         CREATE TABLE tallies (
             day INTEGER NOT NULL, tenant TEXT NOT NULL, kind TEXT NOT NULL, site TEXT NOT NULL,
             {lines} PRIMARY KEY (day, tenant, kind, site)
         ) WITHOUT ROWID;
         INSERT INTO tallies (site, {names}) SELECT '', {names} FROM tallies_1;
         DROP TABLE tallies_1;"
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
