//! Notes in the database besides orders, one row for each: the secrets under which the keys of orders were hashed,
//! and the fact that the store has had a trail.

use crate::failure::EmbeddedError;
use crate::shared::EmbeddedShared;
use crate::writer::{WriteFailure, transaction};
use rusqlite::{Connection, OptionalExtension, params};
use std::sync::atomic::Ordering;

pub(crate) const TABLE: &str = "
-- What the store remembers besides orders.
CREATE TABLE IF NOT EXISTS notes (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) WITHOUT ROWID;";

/// The secrets, one after another; the last one is in use. Only the owner can read the files of the store.
pub(crate) const SECRETS: &str = "secrets";
/// The note that the store has had a trail.
pub(crate) const TRAIL: &str = "trail";

pub(crate) fn read(conn: &Connection, name: &str) -> rusqlite::Result<Option<Vec<u8>>> {
    conn.query_row("SELECT value FROM notes WHERE name = ?1", [name], |row| row.get(0)).optional()
}

fn write(conn: &Connection, name: &str, value: &[u8]) -> rusqlite::Result<()> {
    conn.execute("REPLACE INTO notes (name, value) VALUES (?1, ?2)", params![name, value]).map(drop)
}

/// Stores the secrets.
pub(crate) fn note_secrets(
    shared: &EmbeddedShared,
    conn: &Connection,
    secrets: &[u8],
) -> Result<(), EmbeddedError> {
    shared.check_files_first()?;
    let written = transaction(conn, || Ok(write(conn, SECRETS, secrets)?));
    written.map_err(|WriteFailure { failure, .. }| failure)?;
    shared.transactions.fetch_add(1, Ordering::Relaxed);
    shared.wal.written(1);
    shared.check_files()
}

/// Stores the note about the trail in the database itself and not only in its log, because trail and log may be lost
/// together.
pub(crate) fn note_trail(conn: &Connection) -> rusqlite::Result<()> {
    write(conn, TRAIL, b"1")?;
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

/// Copies all notes to another database.
pub(crate) fn copy(conn: &Connection, to: &Connection) -> rusqlite::Result<()> {
    for name in [SECRETS, TRAIL] {
        if let Some(value) = read(conn, name)? {
            write(to, name, &value)?;
        }
    }
    Ok(())
}
