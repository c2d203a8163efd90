//! Checks whether a database is ours and which schema it has, and creates the schema. The tables are in `schema.sql`,
//! the views for people in `views.sql`.

use crate::home::{EmbeddedOpenError, StoreHome};
use crate::notes;
use crate::sum::Checksum;
use crate::usage::columns;
use quittance_lifecycle::Counters;
use rusqlite::Connection;

/// `QUIT`, the application id in the header of the file.
const APPLICATION_ID: i64 = 0x5155_4954;

/// The version that is written; all versions up to it can be read. It also covers the meaning of `due`, `expires`,
/// `target` and `forget_at`: a change in how they are derived needs a new version, which derives them again.
pub(crate) const VERSION: i64 = 1;

const TABLES: &str = include_str!("schema.sql");
const VIEWS: &str = include_str!("views.sql");

/// Makes sure that the database is a writable store of ours. An empty database becomes one.
pub(crate) fn settle(home: &StoreHome, conn: &Connection) -> Result<(), EmbeddedOpenError> {
    let failed = |error| home.misses(error);
    match identity(conn).map_err(failed)? {
        SchemaIdentity::Ours(record) if record > VERSION => {
            return Err(EmbeddedOpenError::Newer {
                dir: home.dir().to_owned(),
                found: record,
                known: VERSION,
            });
        }
        SchemaIdentity::Stranger => return Err(EmbeddedOpenError::NotOurs { path: home.database() }),
        SchemaIdentity::Ours(_) | SchemaIdentity::Empty => {}
    }
    if conn.is_readonly("main").map_err(failed)? {
        let source = std::io::Error::from(std::io::ErrorKind::ReadOnlyFilesystem).into();
        return Err(EmbeddedOpenError::NotWritable { dir: home.dir().to_owned(), source });
    }
    let mode: String = conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).map_err(failed)?;
    if mode != "wal" {
        // Some file systems of networks cannot, and nothing here would be durable.
        let source =
            format!("its file system cannot keep a write-ahead log, but only a journal `{mode}`").into();
        return Err(EmbeddedOpenError::NotWritable { dir: home.dir().to_owned(), source });
    }
    // Nothing is written where all is there already: a store whose disk is full can still be opened and read.
    if is_up_to_date(conn).map_err(failed)? { Ok(()) } else { write(conn).map_err(failed) }
}

/// A checksum of the views, of the table of notes, and of the counters that they show.
fn views_sum() -> i64 {
    Counters::NAMES
        .iter()
        .fold(Checksum::new().bytes(VIEWS.as_bytes()).bytes(notes::TABLE.as_bytes()), |sum, name| {
            sum.bytes(name.as_bytes())
        })
        .finish()
        .cast_signed()
}

fn is_up_to_date(conn: &Connection) -> rusqlite::Result<bool> {
    if !matches!(identity(conn)?, SchemaIdentity::Ours(VERSION)) {
        return Ok(false);
    }
    conn.query_row("SELECT views_sum = ?1 FROM counter", [views_sum()], |row| row.get(0))
}

enum SchemaIdentity {
    /// The database is empty, or a crash came before its first commit.
    Empty,
    Ours(i64),
    Stranger,
}

fn identity(conn: &Connection) -> rusqlite::Result<SchemaIdentity> {
    let number = |sql| conn.query_row(sql, [], |row| row.get::<_, i64>(0));
    let id = number("PRAGMA application_id")?;
    let version = number("PRAGMA user_version")?;
    let tables = number("SELECT count(*) FROM sqlite_schema")?;
    Ok(match (id, version, tables) {
        (APPLICATION_ID, 1.., _) => SchemaIdentity::Ours(version),
        (0, 0, 0) => SchemaIdentity::Empty,
        _ => SchemaIdentity::Stranger,
    })
}

/// Creates or updates the tables and views in one transaction.
pub(crate) fn write(conn: &Connection) -> rusqlite::Result<()> {
    conn.execute_batch("BEGIN IMMEDIATE")?;
    let written = write_tables(conn).and_then(|()| conn.execute_batch("COMMIT"));
    if written.is_err() && !conn.is_autocommit() {
        // What matters is the first error; the connection is dropped anyway.
        drop(conn.execute_batch("ROLLBACK"));
    }
    written
}

fn write_tables(conn: &Connection) -> rusqlite::Result<()> {
    match identity(conn)? {
        SchemaIdentity::Empty => {
            conn.execute_batch(&format!("{TABLES} PRAGMA application_id = {APPLICATION_ID};"))?;
        }
        SchemaIdentity::Ours(_) => {}
        // Its caller has refused it before.
        SchemaIdentity::Stranger => return Ok(()),
    }
    conn.execute_batch(&format!("PRAGMA user_version = {VERSION};"))?;
    let there = columns(conn, "counters")?;
    for name in Counters::NAMES.iter().filter(|name| !there.contains(**name)) {
        conn.execute_batch(&format!("ALTER TABLE counters ADD COLUMN {name} INTEGER NOT NULL DEFAULT 0"))?;
    }
    conn.execute_batch(notes::TABLE)?;
    conn.execute_batch(VIEWS)?;
    conn.execute("UPDATE counter SET views_sum = ?1", [views_sum()]).map(drop)
}
