//! The books, as a table: one row for each line, one column for each name. They are added to within the transaction
//! of the steps that they count.

use quittance_lifecycle::Tally;
use quittance_ports::{Day, Line};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params_from_iter};
use std::collections::BTreeMap;

/// What is to be added, each line once.
pub(crate) type Entries = BTreeMap<Line, Tally>;

fn names() -> String {
    Tally::NAMES.join(", ")
}

/// Days after the end of SQLite's integers are all the last one.
fn number(day: Day) -> i64 {
    i64::try_from(day.0).unwrap_or(i64::MAX)
}

fn tally(row: &Row<'_>, first: usize) -> rusqlite::Result<Tally> {
    let mut tally = Tally::default();
    for (name, column) in Tally::NAMES.iter().zip(first..) {
        // A number that rotted counts as nothing: books must not stop the orders.
        let count =
            if let ValueRef::Integer(count) = row.get_ref(column)? { count.cast_unsigned() } else { 0 };
        if let Some(line) = tally.line_mut(name) {
            *line = count;
        }
    }
    Ok(tally)
}

/// Reads, adds and writes here and not in SQL, where what is too large for an integer becomes a fraction.
pub(crate) fn add(conn: &Connection, entries: &Entries) -> rusqlite::Result<()> {
    let names = names();
    let find =
        format!("SELECT {names} FROM tallies WHERE day = ?1 AND tenant = ?2 AND kind = ?3 AND site = ?4");
    let places: Vec<String> = (5..5 + Tally::NAMES.len()).map(|n| format!("?{n}")).collect();
    let sets: Vec<String> = Tally::NAMES.iter().map(|name| format!("{name} = excluded.{name}")).collect();
    // Columns of a later version are left as they are.
    let put = format!(
        "INSERT INTO tallies (day, tenant, kind, site, {names}) VALUES (?1, ?2, ?3, ?4, {}) \
         ON CONFLICT DO UPDATE SET {}",
        places.join(", "),
        sets.join(", ")
    );
    let mut find = conn.prepare_cached(&find)?;
    let mut put = conn.prepare_cached(&put)?;
    for (line, added) in entries {
        let key = (number(line.day), &line.tenant, &line.kind, &line.site);
        let mut sum = find.query_row(key, |row| tally(row, 0)).optional()?.unwrap_or_default();
        sum += *added;
        put.raw_bind_parameter(1, key.0)?;
        put.raw_bind_parameter(2, key.1)?;
        put.raw_bind_parameter(3, key.2)?;
        put.raw_bind_parameter(4, key.3)?;
        for ((_, count), place) in sum.lines().zip(5..) {
            put.raw_bind_parameter(place, count.cast_signed())?;
        }
        put.raw_execute()?;
    }
    Ok(())
}

pub(crate) fn read(conn: &Connection, from: Day, to: Day) -> rusqlite::Result<Vec<(Line, Tally)>> {
    let names = names();
    let mut find = conn.prepare_cached(&format!(
        "SELECT day, tenant, kind, site, {names} FROM tallies WHERE day BETWEEN ?1 AND ?2 \
         ORDER BY day, tenant, kind, site"
    ))?;
    let days = params_from_iter([number(from), number(to)]);
    let rows = find.query_map(days, |row| {
        let day = Day(row.get::<_, i64>(0)?.cast_unsigned());
        let line =
            Line { day, tenant: row.get(1)?, kind: row.get(2)?, site: row.get(3)?, provider: String::new() };
        Ok((line, tally(row, 4)?))
    })?;
    rows.collect()
}
