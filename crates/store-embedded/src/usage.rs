//! The usage as a table: one row for each usage row, one column for each counter. Counters are added in the
//! transaction of the steps that they count. Old days are summed up.

use crate::failure::EmbeddedError;
use crate::shared::EmbeddedShared;
use crate::writer::{WriteFailure, transaction};
use quittance_lifecycle::Counters;
use quittance_ports::{Day, UsageRow};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Row, ToSql, params, params_from_iter};
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::sync::atomic::Ordering;

/// Counters to add, with each row once.
pub(crate) type Entries = BTreeMap<UsageRow, Counters>;

/// The columns that identify a row, in the order of the table.
const KEY: [&str; 5] = ["day", "tenant", "kind", "site", "provider"];
/// How many rows one transaction sums up or forgets, because other calls need a turn.
const LINES_AT_ONCE: usize = 1024;

fn names() -> String {
    Counters::NAMES.join(", ")
}

/// The number of a day. Days beyond SQLite's integers become the last one.
fn number(day: Day) -> i64 {
    i64::try_from(day.0).unwrap_or(i64::MAX)
}

/// Reads a counter. A damaged number counts as zero: usage must not stop the orders.
fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(if let ValueRef::Integer(count) = row.get_ref(column)? { count.cast_unsigned() } else { 0 })
}

/// Adds counters in Rust and not in SQL, where a number that is too large would become a fraction. Columns that it
/// does not know stay unchanged.
struct Adder<'c> {
    find: CachedStatement<'c>,
    put: CachedStatement<'c>,
}

impl<'c> Adder<'c> {
    fn new(conn: &'c Connection, names: &[impl Borrow<str> + Display]) -> rusqlite::Result<Self> {
        let listed = names.join(", ");
        let keyed: Vec<String> = KEY.iter().zip(1..).map(|(name, n)| format!("{name} = ?{n}")).collect();
        let places: Vec<String> = (1..=KEY.len() + names.len()).map(|n| format!("?{n}")).collect();
        let sets: Vec<String> = names.iter().map(|name| format!("{name} = excluded.{name}")).collect();
        let find = format!("SELECT {listed} FROM counters WHERE {}", keyed.join(" AND "));
        let put = format!(
            "INSERT INTO counters ({}, {listed}) VALUES ({}) ON CONFLICT DO UPDATE SET {}",
            KEY.join(", "),
            places.join(", "),
            sets.join(", ")
        );
        Ok(Self { find: conn.prepare_cached(&find)?, put: conn.prepare_cached(&put)? })
    }

    fn add(&mut self, key: [&dyn ToSql; 5], counts: impl Iterator<Item = u64>) -> rusqlite::Result<()> {
        let width = self.find.column_count();
        let stands = self.find.query_row(params_from_iter(key), |row| {
            (0..width).map(|column| count(row, column)).collect::<rusqlite::Result<Vec<u64>>>()
        });
        let stands = stands.optional()?.unwrap_or_else(|| vec![0; width]);
        for (part, place) in key.into_iter().zip(1..) {
            self.put.raw_bind_parameter(place, part)?;
        }
        for ((stands, added), place) in stands.into_iter().zip(counts).zip(KEY.len() + 1..) {
            self.put.raw_bind_parameter(place, stands.saturating_add(added).cast_signed())?;
        }
        self.put.raw_execute().map(drop)
    }
}

pub(crate) fn add(conn: &Connection, entries: &Entries) -> rusqlite::Result<()> {
    if entries.is_empty() {
        return Ok(());
    }
    let mut adder = Adder::new(conn, Counters::NAMES)?;
    for (UsageRow { day, tenant, kind, site, account }, counters) in entries {
        let counts = counters.lines().map(|(_, count)| count);
        adder.add([&number(*day), tenant, kind, site, account], counts)?;
    }
    Ok(())
}

pub(crate) fn read(conn: &Connection, from: Day, to: Day) -> rusqlite::Result<Vec<(UsageRow, Counters)>> {
    let (key, names) = (KEY.join(", "), names());
    let mut find = conn.prepare_cached(&format!(
        "SELECT {key}, {names} FROM counters WHERE day BETWEEN ?1 AND ?2 ORDER BY {key}"
    ))?;
    let rows = find.query_map([number(from), number(to)], |row| {
        let day = Day(row.get::<_, i64>(0)?.cast_unsigned());
        let (tenant, kind, site, account) = (row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?);
        let mut counters = Counters::default();
        for (name, column) in Counters::NAMES.iter().zip(KEY.len()..) {
            if let Some(line) = counters.line_mut(name) {
                *line = count(row, column)?;
            }
        }
        Ok((UsageRow { day, tenant, kind, site, account }, counters))
    })?;
    rows.collect()
}

/// Forgets some rows of days before `sums`, and sums up some rows of days before `detail`. Returns whether there may
/// be more.
pub(crate) fn close(
    shared: &EmbeddedShared,
    conn: &Connection,
    detail: Day,
    sums: Day,
) -> Result<bool, EmbeddedError> {
    let (detail, sums) = (number(detail), number(sums));
    let is_wanted: bool = conn
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM counters WHERE day < ?2) \
             OR EXISTS (SELECT 1 FROM counters WHERE day < ?1 AND site <> '*')",
        )?
        .query_row(params![detail, sums], |row| row.get(0))?;
    if !is_wanted {
        return Ok(false);
    }
    let closed = transaction(conn, || {
        let forgotten = forget(conn, sums)?;
        Ok(forgotten + sum_up(conn, detail, sums)?)
    });
    let closed = closed.map_err(|WriteFailure { failure, .. }| failure)?;
    shared.transactions.fetch_add(1, Ordering::Relaxed);
    shared.wal.written(closed as u64);
    Ok(closed >= LINES_AT_ONCE)
}

fn forget(conn: &Connection, sums: i64) -> rusqlite::Result<usize> {
    let key = KEY.join(", ");
    let forget = format!(
        "DELETE FROM counters WHERE ({key}) IN \
         (SELECT {key} FROM counters WHERE day < ?1 ORDER BY {key} LIMIT {LINES_AT_ONCE})"
    );
    conn.prepare_cached(&forget)?.execute([sums])
}

/// Sums up all columns, even those of a later version, so that its counters are not lost.
fn sum_up(conn: &Connection, detail: i64, sums: i64) -> rusqlite::Result<usize> {
    let names = columns(conn, "counters")?;
    let names = names.iter().filter(|name| !KEY.contains(&name.as_str()));
    let names: Vec<String> = names.map(|name| quoted(name)).collect();
    let (key, width) = (KEY.join(", "), names.len());
    let mut find = conn.prepare_cached(&format!(
        "SELECT {key}, {} FROM counters WHERE day < ?1 AND day >= ?2 AND site <> '*' LIMIT {LINES_AT_ONCE}",
        names.join(", ")
    ))?;
    let rows = find.query_map([detail, sums], |row| {
        let key: Vec<Value> =
            (0..KEY.len()).map(|column| row.get(column)).collect::<rusqlite::Result<_>>()?;
        let counts = (KEY.len()..KEY.len() + width).map(|column| count(row, column));
        Ok((key, counts.collect::<rusqlite::Result<Vec<u64>>>()?))
    })?;
    let rows: Vec<(Vec<Value>, Vec<u64>)> = rows.collect::<rusqlite::Result<_>>()?;
    let keyed: Vec<String> = KEY.iter().zip(1..).map(|(name, n)| format!("{name} = ?{n}")).collect();
    let mut erase = conn.prepare_cached(&format!("DELETE FROM counters WHERE {}", keyed.join(" AND ")))?;
    let mut adder = Adder::new(conn, &names)?;
    for (key, counts) in &rows {
        erase.execute(params_from_iter(key))?;
        if let [day, tenant, kind, _, provider] = &key[..] {
            adder.add([day, tenant, kind, &UsageRow::ALL_SITES, provider], counts.iter().copied())?;
        }
    }
    Ok(rows.len())
}

/// The column names of a table, including those of a later version.
pub(crate) fn columns(conn: &Connection, table: &str) -> rusqlite::Result<BTreeSet<String>> {
    let mut names = conn.prepare("SELECT name FROM pragma_table_info(?1)")?;
    names.query_map([table], |row| row.get(0))?.collect()
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
