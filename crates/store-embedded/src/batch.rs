//! The commits of one transaction. The winners are decided here, in the order of the calls; each call sees what the
//! calls before it will write. Then all changes are written, and only then published.

use crate::ahead::Ahead;
use crate::documents::DocumentChanges;
use crate::failure::EmbeddedError;
use crate::row::{EmbeddedMarks, EmbeddedRow, Head, RowReader, StoredOrder, terms_sum};
use crate::shared::EmbeddedShared;
use crate::sum;
use crate::trail::Trail;
use crate::usage::{self, Entries};
use crate::writer::{OrderWrite, TakeWork, WriteFailure, WriteResult, WriteTask};
use quittance_lifecycle::{Counters, Key, Order};
use quittance_ports::{Commit, DocumentWritten, StoreError, UsageRow, Version, Versioned};
use quittance_record::{encode_order, encode_terms};
use rusqlite::{Connection, params};
use std::borrow::Cow;
use std::sync::Arc;

/// The largest terms that are stored in the row of their order. Larger ones are stored apart, so that they are not
/// written again at every step.
const INLINE_TERMS_MAX: usize = 2048;
/// How many changes are published before a call that waits for the indices gets a turn.
const PUBLISHED_AT_ONCE: usize = 64;
const PAGE_BYTES: usize = 4096;

const UPDATE: &str = "UPDATE order_records SET version = ?1, life = ?2, due = ?3, expires = ?4, target = ?5, \
     forget_at = ?6, phase = ?7, record_sum = ?8, sum = ?9, record = ?10, taker = ?11 WHERE id = ?12 AND version = ?13";
const REPLACE: &str = "REPLACE INTO order_records (id, key, version, life, due, expires, target, forget_at, phase, kind, \
     tenant, record_sum, terms_sum, sum, record, terms, taker) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)";

/// An order that will be written.
struct OrderChange<'a> {
    stored_order: StoredOrder,
    /// The version that it replaces.
    old: Option<Versioned>,
    record: Cow<'a, [u8]>,
    record_sum: u64,
    /// The terms, if they differ from the stored ones.
    terms: Option<Cow<'a, [u8]>>,
    /// Whether a caller can wait for the order. No caller waits for an answer that is taken from a stock.
    wakes: bool,
}

pub(crate) struct EmbeddedBatch<'a> {
    pub(crate) answers: Vec<Result<WriteResult, StoreError>>,
    pub(crate) last_version: u64,
    pub(crate) next_id: i64,
    changes: Vec<OrderChange<'a>>,
    ahead: Ahead,
    documents: DocumentChanges<'a>,
    usage: Entries,
}

impl<'a> EmbeddedBatch<'a> {
    /// Decides the winners. It reads what it needs, and writes nothing.
    pub(crate) fn decide(
        shared: &EmbeddedShared,
        conn: &Connection,
        tasks: &'a [WriteTask],
        last_version: u64,
        next_id: i64,
    ) -> Result<Self, EmbeddedError> {
        let mut batch = Self {
            answers: Vec::with_capacity(tasks.len()),
            last_version,
            next_id,
            changes: Vec::with_capacity(tasks.len()),
            ahead: Ahead::default(),
            documents: DocumentChanges::default(),
            usage: Entries::new(),
        };
        for task in tasks {
            let answer = match task {
                WriteTask::Commit(write) => batch
                    .stands(shared, conn, &write.next.key)?
                    .map(|stands| WriteResult::Committed(batch.commit(write, stands))),
                WriteTask::Take(taking) => Ok(WriteResult::Taken(batch.take(shared, conn, taking)?)),
                WriteTask::Count(entry) => {
                    batch.book(entry.0.clone(), &entry.1);
                    Ok(WriteResult::Counted)
                }
                WriteTask::SharedDocument(write) => {
                    let written = batch.documents.decide(conn, write, batch.last_version)?;
                    if let DocumentWritten::Done(Version(version)) = written {
                        batch.last_version = version;
                    }
                    Ok(WriteResult::SharedDocument(written))
                }
                // These come alone and never get here; if they did they would do nothing.
                WriteTask::Purge { .. } => Ok(WriteResult::Purged(0)),
                WriteTask::Discard(_) => Ok(WriteResult::Discarded(false)),
                WriteTask::CompactUsage { .. } => Ok(WriteResult::Closed(true)),
                WriteTask::Rescue | WriteTask::Trail | WriteTask::NoteSecrets(_) => Ok(WriteResult::Counted),
            };
            batch.answers.push(answer);
        }
        Ok(batch)
    }

    /// The stored version of a key, as if all earlier changes were written.
    fn stands(
        &self,
        shared: &EmbeddedShared,
        conn: &Connection,
        key: &Key,
    ) -> Result<Result<Option<StoredOrder>, StoreError>, EmbeddedError> {
        match self.ahead.written(key) {
            Some(at) => Ok(Ok(Some(self.changes[at].stored_order.clone()))),
            None => stands(shared, conn, key),
        }
    }

    fn commit(&mut self, write: &'a OrderWrite, stands: Option<StoredOrder>) -> Commit {
        let stored = stands.as_ref().map_or(Version::ABSENT, |stands| stands.versioned.version);
        if stored != write.expected {
            return Commit::Conflict(stands.map(|stands| Box::new(stands.versioned)));
        }
        let next = &write.next;
        self.book(UsageRow::of(next, write.at), &write.counters);
        let terms = write.terms.as_deref().map(Cow::Borrowed);
        Commit::Done(self.advance(stands, next, Cow::Borrowed(&write.record), terms, !next.is_awaited()))
    }

    /// Gives the claimant the answer that it already has, or the one that expires first. An unreadable answer is set
    /// aside and passed over.
    fn take(
        &mut self,
        shared: &EmbeddedShared,
        conn: &Connection,
        taking: &TakeWork,
    ) -> Result<Option<Versioned>, EmbeddedError> {
        let TakeWork { target, good_until, by, at, counters } = taking;
        loop {
            let own = self.ahead.own(&shared.ledger(), by, target);
            let Some(key) = own.or_else(|| self.ahead.soonest(&shared.ledger(), target, *good_until)) else {
                return Ok(None);
            };
            let Ok(stands) = self.stands(shared, conn, &key)? else { continue };
            // Memory and disk do not agree, and the disk is right.
            let stored_order = stands.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
            if own.is_some() {
                return Ok(Some(stored_order.versioned));
            }
            let order = Arc::new((*stored_order.versioned.order).clone().taken(*by, *at));
            self.book(UsageRow::of(&order, *at), counters);
            let version =
                self.advance(Some(stored_order), &order, Cow::Owned(encode_order(&order)), None, false);
            return Ok(Some(Versioned { version, order }));
        }
    }

    /// Writes an order in place of the stored one. `terms` are the encoded terms, if they exist already.
    fn advance(
        &mut self,
        stands: Option<StoredOrder>,
        next: &Arc<Order>,
        record: Cow<'a, [u8]>,
        terms: Option<Cow<'a, [u8]>>,
        wakes: bool,
    ) -> Version {
        self.last_version += 1;
        let version = Version(self.last_version);
        let same_terms = stands.as_ref().filter(|stands| has_terms_of(&stands.versioned.order, next));
        let (terms, sum) = match same_terms {
            Some(stands) => (None, stands.terms_sum),
            None => {
                let terms = terms.unwrap_or_else(|| Cow::Owned(encode_terms(&next.terms)));
                let sum = terms_sum(&next.key, &terms);
                (Some(terms), sum)
            }
        };
        let id = stands.as_ref().map_or(self.next_id, |stands| stands.id);
        self.next_id = self.next_id.max(id + 1);
        let earlier = self.ahead.written(&next.key).map(|at| &*self.changes[at].stored_order.versioned.order);
        self.ahead.write(self.changes.len(), earlier, next);
        let versioned = Versioned { version, order: Arc::clone(next) };
        self.changes.push(OrderChange {
            stored_order: StoredOrder { id, versioned, terms_sum: sum },
            old: stands.map(|stands| stands.versioned),
            record_sum: sum::of_bytes(&record),
            record,
            terms,
            wakes,
        });
        version
    }

    /// Adds to the usage. Empty counters make no row.
    fn book(&mut self, line: UsageRow, counters: &Counters) {
        if *counters != Counters::default() {
            *self.usage.entry(line).or_default() += *counters;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.documents.is_empty() && self.usage.is_empty()
    }

    pub(crate) fn key_and_row(&self, at: usize) -> (Key, i64) {
        let StoredOrder { id, versioned, .. } = &self.changes[at].stored_order;
        (versioned.order.key, *id)
    }

    /// Writes the batch. Call this within a transaction.
    pub(crate) fn write(&self, conn: &Connection) -> Result<(), WriteFailure> {
        for (at, change) in self.changes.iter().enumerate() {
            change.write(conn).map_err(|error| WriteFailure { at: Some(at), failure: error.into() })?;
        }
        self.documents.write(conn)?;
        if !(self.changes.is_empty() && self.documents.is_empty()) {
            let last = self.last_version.cast_signed();
            conn.prepare_cached("UPDATE counter SET last_version = ?1")?.execute([last])?;
        }
        usage::add(conn, &self.usage)?;
        Ok(())
    }

    /// Adds the written orders to the trail.
    pub(crate) fn note(&self, trail: &mut Trail) {
        let written = self.changes.iter().map(|change| &change.stored_order.versioned);
        trail.wrote(written.map(|Versioned { version, order }| (*version, &**order)));
    }

    /// Publishes what has become durable: to the indices, to readers, and to waiting callers.
    pub(crate) fn publish(&self, shared: &EmbeddedShared) {
        for changes in self.changes.chunks(PUBLISHED_AT_ONCE) {
            let mut ledger = shared.ledger();
            for OrderChange { stored_order, old, .. } in changes {
                let order = &stored_order.versioned.order;
                let old = old.as_ref().map(|old| EmbeddedMarks::of(&old.order));
                ledger.replace(&order.key, stored_order.id, old, EmbeddedMarks::of(order));
            }
            drop(ledger);
            for OrderChange { stored_order, .. } in changes {
                shared.cache.write(stored_order);
            }
        }
        for OrderChange { stored_order, .. } in self.changes.iter().filter(|change| change.wakes) {
            shared.watchers.wake(&stored_order.versioned.order.key);
        }
        let large =
            |change: &OrderChange<'_>| change.terms.as_ref().map_or(0, |terms| terms.len() / PAGE_BYTES);
        let pages = self.changes.iter().map(|change| 1 + large(change)).sum::<usize>();
        shared.wal.written(1 + pages as u64);
    }
}

/// Whether the terms are equal. They do not change during a life and are mostly the same allocation, but that is not
/// guaranteed.
fn has_terms_of(stands: &Order, next: &Order) -> bool {
    Arc::ptr_eq(&stands.terms, &next.terms) || stands.terms == next.terms
}

/// The stored version of a key before this transaction. It is read in full even if only the version matters, because
/// an unreadable record must not be overwritten.
fn stands(
    shared: &EmbeddedShared,
    conn: &Connection,
    key: &Key,
) -> Result<Result<Option<StoredOrder>, StoreError>, EmbeddedError> {
    if let Ok(stored_order) = shared.cache.look(key) {
        return Ok(Ok(Some(stored_order)));
    }
    if let Some(corrupt) = shared.is_broken(key) {
        return Ok(Err(corrupt));
    }
    let ids = shared.ledger().rows(key);
    for id in ids {
        match RowReader::new(conn)?.row(id)? {
            EmbeddedRow::Whole(stored_order) if stored_order.versioned.order.key == *key => {
                return Ok(Ok(Some(stored_order)));
            }
            EmbeddedRow::Whole(_) | EmbeddedRow::Gone => {}
            // If even its key cannot be read, it may be this one.
            EmbeddedRow::Broken(broken) => {
                shared.check_files()?;
                return Ok(Err(shared.set_aside(key, id, &broken.unreadable.detail)));
            }
        }
    }
    Ok(Ok(None))
}

/// Writes an order with its version to a database that does not have it.
pub(crate) fn write_stored_order(conn: &Connection, stored_order: &StoredOrder) -> rusqlite::Result<()> {
    let order = &stored_order.versioned.order;
    let (record, terms) = (encode_order(order), encode_terms(&order.terms));
    let (record_sum, terms_sum) = (sum::of_bytes(&record), terms_sum(&order.key, &terms));
    let stored_order = StoredOrder { terms_sum, ..stored_order.clone() };
    let (record, terms) = (Cow::Owned(record), Some(Cow::Owned(terms)));
    OrderChange { stored_order, old: None, record, record_sum, terms, wakes: false }.write(conn)
}

impl OrderChange<'_> {
    fn write(&self, conn: &Connection) -> rusqlite::Result<()> {
        let StoredOrder { id, versioned: Versioned { version, order }, terms_sum } = &self.stored_order;
        let head = Head::of(order, *version, self.record_sum, *terms_sum);
        let sum = head.sum().cast_signed();
        let EmbeddedMarks { due, stock, forget_at, taken, .. } = head.marks;
        let due = due.map(|at| at.as_millis().cast_signed());
        let expires = stock.map(|(_, at)| at.as_millis().cast_signed());
        let target = stock.map(|(target, _)| target).or(taken.map(|(_, target)| target));
        let target = target.as_ref().map(|target| &target.0[..]);
        let taker = taken.as_ref().map(|(by, _)| &by.0[..]);
        let forget_at = forget_at.map(|at| at.as_millis().cast_signed());
        let version = version.0.cast_signed();
        let record_sum = self.record_sum.cast_signed();
        let record = text(&self.record)?;
        let Some(terms) = &self.terms else {
            let before = self.old.as_ref().map_or(0, |old| old.version.0.cast_signed());
            let changed = conn.prepare_cached(UPDATE)?.execute(params![
                version, head.life, due, expires, target, forget_at, head.phase, record_sum, sum, record,
                taker, id, before
            ])?;
            // Memory and disk do not agree, and the disk is right.
            return if changed == 1 { Ok(()) } else { Err(rusqlite::Error::StatementChangedRows(changed)) };
        };
        let terms = text(terms)?;
        let inline = (terms.len() <= INLINE_TERMS_MAX).then_some(terms);
        conn.prepare_cached(REPLACE)?.execute(params![
            id,
            &head.key.0[..],
            version,
            head.life,
            due,
            expires,
            target,
            forget_at,
            head.phase,
            head.kind,
            head.tenant,
            record_sum,
            terms_sum.cast_signed(),
            sum,
            record,
            inline,
            taker
        ])?;
        if inline.is_none() {
            conn.prepare_cached("REPLACE INTO large_terms (id, terms) VALUES (?1, ?2)")?
                .execute(params![id, terms])?;
        } else if self.old.is_some() {
            conn.prepare_cached("DELETE FROM large_terms WHERE id = ?1")?.execute([id])?;
        }
        Ok(())
    }
}

/// A record as text. Records are JSON and stored as text, so that people can read them.
fn text(json: &[u8]) -> rusqlite::Result<&str> {
    std::str::from_utf8(json).map_err(|error| rusqlite::Error::Utf8Error(0, error))
}
