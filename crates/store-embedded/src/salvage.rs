//! Saves a copy of the orders for the next process when the files of the store were overwritten. Orders in memory are
//! saved first. A row is saved if its checksums are right and it agrees with the indices. The trail names all other
//! orders, so that the next process lists them and does not buy them again.

use crate::batch::write_stored_order;
use crate::notes;
use crate::row::{EmbeddedRow, RowReader, StoredOrder};
use crate::schema;
use crate::shared::EmbeddedShared;
use crate::usage;
use quittance_ports::Day;
use rusqlite::{Connection, params};
use std::collections::BTreeSet;
use std::path::Path;

pub(crate) fn save(
    shared: &EmbeddedShared,
    conn: &Connection,
    draft: &Path,
    last_version: u64,
) -> rusqlite::Result<()> {
    let copy = Connection::open(draft)?;
    // It is not read before it is whole and on the disk.
    copy.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")?;
    schema::write(&copy)?;
    copy.execute_batch("BEGIN")?;
    let mut saved = BTreeSet::new();
    for stored_order in shared.cache.all() {
        write_stored_order(&copy, &stored_order)?;
        saved.insert(stored_order.id);
    }
    let ids = shared.ledger().ids();
    for id in ids.into_iter().filter(|id| !saved.contains(id)).collect::<Vec<_>>() {
        if let Some(stored_order) = read(conn, id).filter(|stored_order| shared.ledger().agrees(stored_order))
        {
            write_stored_order(&copy, &stored_order)?;
            saved.insert(id);
        }
    }
    if let Ok(lines) = usage::read(conn, Day(0), Day(u64::MAX)) {
        usage::add(&copy, &lines.into_iter().collect())?;
    }
    // Each has a sum of its own, by which the next process believes it.
    drop(copy_documents(conn, &copy));
    drop(notes::copy(conn, &copy));
    copy.execute("UPDATE counter SET last_version = ?1", [last_version.cast_signed()])?;
    copy.execute_batch("COMMIT")?;
    let lost = shared.ledger().awaited().into_iter().filter(|(_, id)| !saved.contains(id));
    shared.trail().name_lost(&lost.map(|(key, _)| key).collect(), last_version);
    Ok(())
}

fn read(conn: &Connection, id: i64) -> Option<StoredOrder> {
    match RowReader::new(conn).and_then(|mut reading| reading.row(id)) {
        Ok(EmbeddedRow::Whole(stored_order)) => Some(stored_order),
        _ => None,
    }
}

fn copy_documents(conn: &Connection, copy: &Connection) -> rusqlite::Result<()> {
    let mut read = conn.prepare("SELECT name, version, sum, document FROM documents")?;
    let mut rows = read.query([])?;
    while let Some(row) = rows.next()? {
        let (name, version, sum, document): (String, i64, i64, String) =
            (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        copy.execute("INSERT INTO documents VALUES (?1, ?2, ?3, ?4)", params![name, version, sum, document])?;
    }
    Ok(())
}
