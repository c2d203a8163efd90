//! One transaction's worth of commits: who wins is decided here, in the order in which they came, each seeing what
//! those before it will have written. Then all of it is written, and only then shown.

use crate::ahead::Ahead;
use crate::documents::DocumentChanges;
use crate::row::{Found, Head, Kept, Marks, Reading, terms_sum};
use crate::shared::Shared;
use crate::sum;
use crate::trail::Trail;
use crate::trouble::EmbeddedError;
use crate::usage::{self, Entries};
use crate::writer::{Done, Failed, Taking, Task, Write};
use quittance_lifecycle::{Counters, Key, Order};
use quittance_ports::{Commit, DocumentWritten, StoreError, UsageRow, Version, Versioned};
use quittance_record::{encode_order, encode_terms};
use rusqlite::{Connection, params};
use std::borrow::Cow;
use std::sync::Arc;

/// Terms up to this size stand in the row of their order; larger ones are not written again at every step.
const INLINE_TERMS_MAX: usize = 2048;
/// How many changes are shown at once, before whoever waits for the indices gets a turn.
const PUBLISHED_AT_ONCE: usize = 64;
const PAGE_BYTES: usize = 4096;

const UPDATE: &str = "UPDATE order_records SET version = ?1, life = ?2, due = ?3, expires = ?4, target = ?5, \
     forget_at = ?6, phase = ?7, record_sum = ?8, sum = ?9, record = ?10, taker = ?11 WHERE id = ?12 AND version = ?13";
const REPLACE: &str = "REPLACE INTO order_records (id, key, version, life, due, expires, target, forget_at, phase, kind, \
     tenant, record_sum, terms_sum, sum, record, terms, taker) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)";

/// One order that will be written.
struct Change<'a> {
    kept: Kept,
    /// What stood there before.
    old: Option<Versioned>,
    record: Cow<'a, [u8]>,
    record_sum: u64,
    /// If they differ from those that stand there.
    terms: Option<Cow<'a, [u8]>>,
    /// Whether somebody may wait for it: for what is taken from a stock nobody does.
    wakes: bool,
}

pub(crate) struct Batch<'a> {
    pub(crate) answers: Vec<Result<Done, StoreError>>,
    pub(crate) last_version: u64,
    pub(crate) next_id: i64,
    changes: Vec<Change<'a>>,
    ahead: Ahead,
    documents: DocumentChanges<'a>,
    usage: Entries,
}

impl<'a> Batch<'a> {
    /// Reads what it must, and writes nothing.
    pub(crate) fn decide(
        shared: &Shared,
        conn: &Connection,
        tasks: &'a [Task],
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
                Task::Commit(write) => batch
                    .stands(shared, conn, &write.next.key)?
                    .map(|stands| Done::Committed(batch.commit(write, stands))),
                Task::Take(taking) => Ok(Done::Taken(batch.take(shared, conn, taking)?)),
                Task::Count(entry) => {
                    batch.book(entry.0.clone(), &entry.1);
                    Ok(Done::Counted)
                }
                Task::SharedDocument(write) => {
                    let written = batch.documents.decide(conn, write, batch.last_version)?;
                    if let DocumentWritten::Done(Version(version)) = written {
                        batch.last_version = version;
                    }
                    Ok(Done::SharedDocument(written))
                }
                // These come alone and never get here; if they did they would do nothing.
                Task::Purge { .. } => Ok(Done::Purged(0)),
                Task::Discard(_) => Ok(Done::Discarded(false)),
                Task::CompactUsage { .. } => Ok(Done::Closed(true)),
                Task::Rescue | Task::Trail | Task::NoteSecrets(_) => Ok(Done::Counted),
            };
            batch.answers.push(answer);
        }
        Ok(batch)
    }

    /// What stands under a key once all that came before is written.
    fn stands(
        &self,
        shared: &Shared,
        conn: &Connection,
        key: &Key,
    ) -> Result<Result<Option<Kept>, StoreError>, EmbeddedError> {
        match self.ahead.written(key) {
            Some(at) => Ok(Ok(Some(self.changes[at].kept.clone()))),
            None => stands(shared, conn, key),
        }
    }

    fn commit(&mut self, write: &'a Write, stands: Option<Kept>) -> Commit {
        let found = stands.as_ref().map_or(Version::ABSENT, |stands| stands.versioned.version);
        if found != write.expected {
            return Commit::Conflict(stands.map(|stands| Box::new(stands.versioned)));
        }
        let next = &write.next;
        self.book(UsageRow::of(next, write.at), &write.counters);
        let terms = write.terms.as_deref().map(Cow::Borrowed);
        Commit::Done(self.advance(stands, next, Cow::Borrowed(&write.record), terms, !next.is_awaited()))
    }

    /// Gives him what he has, or the soonest to expire. One that cannot be read is set aside on the way, and passed over.
    fn take(
        &mut self,
        shared: &Shared,
        conn: &Connection,
        taking: &Taking,
    ) -> Result<Option<Versioned>, EmbeddedError> {
        let Taking { target, good_until, by, at, counters } = taking;
        loop {
            let his = self.ahead.his(&shared.ledger(), by, target);
            let Some(key) = his.or_else(|| self.ahead.soonest(&shared.ledger(), target, *good_until)) else {
                return Ok(None);
            };
            let Ok(stands) = self.stands(shared, conn, &key)? else { continue };
            // Memory and disk do not agree, and the disk is right.
            let kept = stands.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
            if his.is_some() {
                return Ok(Some(kept.versioned));
            }
            let order = Arc::new((*kept.versioned.order).clone().taken(*by, *at));
            self.book(UsageRow::of(&order, *at), counters);
            let version = self.advance(Some(kept), &order, Cow::Owned(encode_order(&order)), None, false);
            return Ok(Some(Versioned { version, order }));
        }
    }

    /// Writes an order in the place of what stands there; the terms are written down already if they are given.
    fn advance(
        &mut self,
        stands: Option<Kept>,
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
        let earlier = self.ahead.written(&next.key).map(|at| &*self.changes[at].kept.versioned.order);
        self.ahead.write(self.changes.len(), earlier, next);
        let versioned = Versioned { version, order: Arc::clone(next) };
        self.changes.push(Change {
            kept: Kept { id, versioned, terms_sum: sum },
            old: stands.map(|stands| stands.versioned),
            record_sum: sum::of_bytes(&record),
            record,
            terms,
            wakes,
        });
        version
    }

    /// A counters of nothing opens no line.
    fn book(&mut self, line: UsageRow, counters: &Counters) {
        if *counters != Counters::default() {
            *self.usage.entry(line).or_default() += *counters;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.documents.is_empty() && self.usage.is_empty()
    }

    pub(crate) fn key_and_row(&self, at: usize) -> (Key, i64) {
        let Kept { id, versioned, .. } = &self.changes[at].kept;
        (versioned.order.key, *id)
    }

    /// To be called within a transaction.
    pub(crate) fn write(&self, conn: &Connection) -> Result<(), Failed> {
        for (at, change) in self.changes.iter().enumerate() {
            change.write(conn).map_err(|error| Failed { at: Some(at), trouble: error.into() })?;
        }
        self.documents.write(conn)?;
        if !(self.changes.is_empty() && self.documents.is_empty()) {
            let last = self.last_version.cast_signed();
            conn.prepare_cached("UPDATE counter SET last_version = ?1")?.execute([last])?;
        }
        usage::add(conn, &self.usage)?;
        Ok(())
    }

    /// Notes how far the log has come.
    pub(crate) fn note(&self, trail: &mut Trail) {
        let written = self.changes.iter().map(|change| &change.kept.versioned);
        trail.wrote(written.map(|Versioned { version, order }| (*version, &**order)));
    }

    /// Shows what has become durable: to the indices, to readers, and to whoever waits.
    pub(crate) fn publish(&self, shared: &Shared) {
        for changes in self.changes.chunks(PUBLISHED_AT_ONCE) {
            let mut ledger = shared.ledger();
            for Change { kept, old, .. } in changes {
                let order = &kept.versioned.order;
                let old = old.as_ref().map(|old| Marks::of(&old.order));
                ledger.replace(&order.key, kept.id, old, Marks::of(order));
            }
            drop(ledger);
            for Change { kept, .. } in changes {
                shared.cache.write(kept);
            }
        }
        for Change { kept, .. } in self.changes.iter().filter(|change| change.wakes) {
            shared.watchers.wake(&kept.versioned.order.key);
        }
        let large = |change: &Change<'_>| change.terms.as_ref().map_or(0, |terms| terms.len() / PAGE_BYTES);
        let pages = self.changes.iter().map(|change| 1 + large(change)).sum::<usize>();
        shared.wal.written(1 + pages as u64);
    }
}

/// Terms do not change during a life, and are then the very same; but nobody promises it.
fn has_terms_of(stands: &Order, next: &Order) -> bool {
    Arc::ptr_eq(&stands.terms, &next.terms) || stands.terms == next.terms
}

/// What stands under a key before this transaction. It is read whole even if only its version matters: nobody writes
/// over a record that he cannot read.
fn stands(
    shared: &Shared,
    conn: &Connection,
    key: &Key,
) -> Result<Result<Option<Kept>, StoreError>, EmbeddedError> {
    if let Ok(kept) = shared.cache.look(key) {
        return Ok(Ok(Some(kept)));
    }
    if let Some(corrupt) = shared.is_broken(key) {
        return Ok(Err(corrupt));
    }
    let ids = shared.ledger().rows(key);
    for id in ids {
        match Reading::new(conn)?.row(id)? {
            Found::Whole(kept) if kept.versioned.order.key == *key => return Ok(Ok(Some(kept))),
            Found::Whole(_) | Found::Gone => {}
            // If it cannot even say whose it is, it may be this one.
            Found::Broken(broken) => {
                shared.check_files()?;
                return Ok(Err(shared.set_aside(key, id, &broken.unreadable.detail)));
            }
        }
    }
    Ok(Ok(None))
}

/// Writes an order as it is, with its version, to a database that does not have it.
pub(crate) fn write_kept(conn: &Connection, kept: &Kept) -> rusqlite::Result<()> {
    let order = &kept.versioned.order;
    let (record, terms) = (encode_order(order), encode_terms(&order.terms));
    let (record_sum, terms_sum) = (sum::of_bytes(&record), terms_sum(&order.key, &terms));
    let kept = Kept { terms_sum, ..kept.clone() };
    let (record, terms) = (Cow::Owned(record), Some(Cow::Owned(terms)));
    Change { kept, old: None, record, record_sum, terms, wakes: false }.write(conn)
}

impl Change<'_> {
    fn write(&self, conn: &Connection) -> rusqlite::Result<()> {
        let Kept { id, versioned: Versioned { version, order }, terms_sum } = &self.kept;
        let head = Head::of(order, *version, self.record_sum, *terms_sum);
        let sum = head.sum().cast_signed();
        let Marks { due, stock, forget_at, taken, .. } = head.marks;
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
            let seen = self.old.as_ref().map_or(0, |old| old.version.0.cast_signed());
            let changed = conn.prepare_cached(UPDATE)?.execute(params![
                version, head.life, due, expires, target, forget_at, head.phase, record_sum, sum, record,
                taker, id, seen
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

/// Records are JSON, and written as text so that people can read them.
fn text(json: &[u8]) -> rusqlite::Result<&str> {
    std::str::from_utf8(json).map_err(|error| rusqlite::Error::Utf8Error(0, error))
}
