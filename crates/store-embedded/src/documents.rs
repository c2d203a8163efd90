//! The shared documents in a table: what nodes must agree on besides orders. They are few and small, so they are read
//! from disk each time. The writer decides who wins, as for orders.

use crate::sum::Checksum;
use quittance_ports::document::DOCUMENTS_MAX;
use quittance_ports::{DocumentWritten, StoredDocument, Version};
use quittance_record::decode_document;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::collections::BTreeMap;

/// A document to be written, or to be removed.
#[derive(Debug)]
pub(crate) struct DocumentWrite {
    pub(crate) name: String,
    pub(crate) expected: Version,
    pub(crate) document: Option<Vec<u8>>,
}

/// A change of a document in this transaction.
struct DocumentChange<'a> {
    version: Version,
    document: Option<&'a [u8]>,
    was_there: bool,
}

/// The shared documents that a batch writes.
#[derive(Default)]
pub(crate) struct DocumentChanges<'a>(BTreeMap<&'a str, DocumentChange<'a>>);

fn sum(name: &str, version: Version, document: &[u8]) -> u64 {
    Checksum::new().bytes(name.as_bytes()).word(version.0).bytes(document).finish()
}

/// Reads a version. An invalid one becomes a version that no writer can have read.
fn version(row: &Row<'_>, column: usize) -> rusqlite::Result<Version> {
    let ValueRef::Integer(version) = row.get_ref(column)? else { return Ok(Version(u64::MAX)) };
    Ok(Version(version.cast_unsigned()))
}

impl<'a> DocumentChanges<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Decides which writer wins, and writes nothing. The winner gets the version after `last_version`.
    pub(crate) fn decide(
        &mut self,
        conn: &Connection,
        write: &'a DocumentWrite,
        last_version: u64,
    ) -> rusqlite::Result<DocumentWritten> {
        let before = conn
            .prepare_cached("SELECT version FROM documents WHERE name = ?1")?
            .query_row([&write.name], |row| version(row, 0))
            .optional()?;
        let there = match self.0.get(&*write.name) {
            Some(change) => change.document.map(|_| change.version),
            None => before,
        };
        if there.unwrap_or(Version::ABSENT) != write.expected {
            return Ok(DocumentWritten::Conflict);
        }
        if write.document.is_some() && there.is_none() && self.count(conn)? >= DOCUMENTS_MAX {
            return Ok(DocumentWritten::NoRoom);
        }
        let version = Version(last_version + 1);
        let change =
            DocumentChange { version, document: write.document.as_deref(), was_there: before.is_some() };
        self.0.insert(&write.name, change);
        Ok(DocumentWritten::Done(version))
    }

    /// How many documents there will be after this batch.
    fn count(&self, conn: &Connection) -> rusqlite::Result<usize> {
        let before: u32 =
            conn.prepare_cached("SELECT count(*) FROM documents")?.query_row([], |row| row.get(0))?;
        let made = self.0.values().filter(|change| change.document.is_some() && !change.was_there).count();
        let gone = self.0.values().filter(|change| change.document.is_none() && change.was_there).count();
        Ok(before as usize + made - gone)
    }

    /// Writes the documents. Call this within a transaction.
    pub(crate) fn write(&self, conn: &Connection) -> rusqlite::Result<()> {
        for (name, DocumentChange { version, document, .. }) in &self.0 {
            let Some(document) = document else {
                conn.prepare_cached("DELETE FROM documents WHERE name = ?1")?.execute([name])?;
                continue;
            };
            let sum = sum(name, *version, document).cast_signed();
            // JSON, and written as text so that people can read it.
            let document =
                std::str::from_utf8(document).map_err(|error| rusqlite::Error::Utf8Error(3, error))?;
            conn.prepare_cached(
                "REPLACE INTO documents (name, version, sum, document) VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![name, version.0.cast_signed(), sum, document])?;
        }
        Ok(())
    }
}

const ALL: &str = "SELECT name, version, sum, document FROM documents ORDER BY name";

/// All readable documents, sorted by name.
pub(crate) fn read(conn: &Connection) -> rusqlite::Result<Vec<StoredDocument>> {
    let mut all = conn.prepare_cached(ALL)?;
    let record = all.query_map([], |row| {
        Ok(whole(row).and_then(|(name, version, document)| {
            Some(StoredDocument { name: name.to_owned(), version, document: decode_document(document).ok()? })
        }))
    })?;
    record.filter_map(Result::transpose).collect()
}

/// The highest version of any document.
pub(crate) fn last_version(conn: &Connection) -> rusqlite::Result<u64> {
    let mut all = conn.prepare(ALL)?;
    let mut versions = all.query_map([], |row| Ok(whole(row).map_or(0, |(_, version, _)| version.0)))?;
    versions.try_fold(0, |last, version| Ok(version?.max(last)))
}

/// Name, version and document, if their checksum is right.
fn whole<'a>(row: &'a Row<'_>) -> Option<(&'a str, Version, &'a [u8])> {
    let text = |column| row.get_ref(column).ok()?.as_str().ok();
    let (name, document) = (text(0)?, text(3)?.as_bytes());
    let version = version(row, 1).ok()?;
    let record = row.get_ref(2).ok()?.as_i64().ok()?.cast_unsigned();
    (record == sum(name, version, document)).then_some((name, version, document))
}
