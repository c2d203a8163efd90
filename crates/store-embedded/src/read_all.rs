//! Reads the whole store when it is opened: every row is checked against its checksums, and the indices are built
//! from the intact rows. A broken row is set aside at once, so that its order is not paid for again.

use crate::documents;
use crate::ledger::OrderIndex;
use crate::row::{
    self, EmbeddedMarks, EmbeddedRow, RowFlaw, RowReader, SCAN, claimed_key, place_and_why, stand_in,
};
use quittance_lifecycle::{Key, Timestamp};
use quittance_ports::OrderClass;
use rusqlite::Connection;
use std::collections::BTreeSet;

pub(crate) struct ScanResult {
    pub(crate) ledger: OrderIndex,
    pub(crate) last_version: u64,
    pub(crate) next_id: i64,
}

/// A row that was set aside.
struct RowSetAside {
    id: i64,
    why: String,
    claimed_key: Option<Key>,
    /// The marks, if the narrow columns are intact.
    marks: Option<EmbeddedMarks>,
}

pub(crate) fn scan(conn: &Connection) -> rusqlite::Result<ScanResult> {
    let last: i64 = conn.query_row("SELECT max(last_version) FROM counter", [], |row| row.get(0))?;
    let mut last_version = last.cast_unsigned().max(documents::last_version(conn)?);
    let mut next_id = 1;
    let mut good = Vec::new();
    let mut bad = Vec::new();
    let mut statement = conn.prepare(SCAN)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(0)?;
        next_id = next_id.max(id.saturating_add(1));
        let set_aside =
            |RowFlaw { why, .. }, marks| RowSetAside { id, why, claimed_key: claimed_key(row), marks };
        match row::head(row) {
            Err(flaw) => bad.push(set_aside(flaw, None)),
            Ok(head) => {
                // A counter that is behind its records can only be damage; no version may come back.
                last_version = last_version.max(head.version.0);
                match row::check_scanned(row, &head) {
                    Ok(()) => good.push((head.key, id, head.marks)),
                    Err(flaw) => bad.push(set_aside(flaw, Some(head.marks))),
                }
            }
        }
    }
    stand_as_on_record(conn, &mut good)?;
    let mut ledger = OrderIndex::of(&good);
    for RowSetAside { id, why, claimed_key, marks } in bad {
        let mut keys: BTreeSet<Key> = claimed_key.into_iter().collect();
        // Where its timer is not known it is reported at once.
        let due = marks.map_or(Some(Timestamp::ZERO), |marks| marks.due);
        if marks.is_none() {
            // Its key may be what is damaged; then the record has the key, unless that one is there as well.
            keys.extend(key_on_record(conn, id)?.filter(|key| ledger.rows(key).is_empty()));
        }
        if keys.is_empty() {
            keys.insert(stand_in(id));
        }
        for key in keys {
            ledger.never_good(&key, id, place_and_why(id, &why), due);
        }
    }
    Ok(ScanResult { ledger, last_version, next_id })
}

/// Reads the records of finished orders without a purge time. Some of them have an undelivered webhook that waits for
/// an operator, which the phase alone does not show. There are few of them.
fn stand_as_on_record(conn: &Connection, rows: &mut [(Key, i64, EmbeddedMarks)]) -> rusqlite::Result<()> {
    let mut reading = RowReader::new(conn)?;
    let is_unclear = |marks: &EmbeddedMarks| marks.class == OrderClass::AtRest && marks.forget_at.is_none();
    for (_, id, marks) in rows.iter_mut().filter(|(_, _, marks)| is_unclear(marks)) {
        if let EmbeddedRow::Whole(stored_order) = reading.row(*id)? {
            marks.class = OrderClass::of(&stored_order.versioned.order);
        }
    }
    Ok(())
}

fn key_on_record(conn: &Connection, id: i64) -> rusqlite::Result<Option<Key>> {
    let hex: Option<String> = conn
        .prepare_cached(
            "SELECT CAST(iif(json_valid(record), record ->> 'key', NULL) AS TEXT) FROM order_records WHERE id = ?1",
        )?
        .query_row([id], |row| row.get(0))?;
    Ok(hex.and_then(|hex| Key::parse(&hex).ok()))
}
