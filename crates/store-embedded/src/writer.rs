//! The one thread that writes. It takes all waiting commits into one transaction, so that many callers share one wait
//! for the disk. It publishes nothing before it is durable.

use crate::batch::EmbeddedBatch;
use crate::discard;
use crate::documents::DocumentWrite;
use crate::failure::{EmbeddedError, unavailable};
use crate::notes;
use crate::purge;
use crate::read_all::{ScanResult, scan};
use crate::shared::EmbeddedShared;
use crate::usage;
use quittance_lifecycle::{Counters, Key, Order, Target, Timestamp};
use quittance_ports::{Commit, Day, DocumentWritten, StoreError, UsageRow, Version, Versioned};
use quittance_record::{encode_order, encode_terms};
use rusqlite::Connection;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The most commits in one transaction.
const BATCH_MAX: usize = 2048;
const BATCH_BYTES_MAX: usize = 16 << 20;
/// The pause before the store reads its files again after a disk failure.
const PAUSE: Duration = Duration::from_millis(250);
/// The page cache in KiB. A transaction of many rows touches more pages than SQLite keeps by default.
const PAGE_CACHE_KIB: i64 = 32 << 10;

const DOING: &str = "writing to the disk";

#[derive(Debug)]
pub(crate) enum WriteTask {
    Commit(Box<OrderWrite>),
    Take(Box<TakeWork>),
    SharedDocument(Box<DocumentWrite>),
    Count(Box<(UsageRow, Counters)>),
    Purge {
        now: Timestamp,
        limit: usize,
    },
    Discard(Key),
    CompactUsage {
        detail: Day,
        sums: Day,
    },
    /// Saves what can still be read, because the files are lost.
    Rescue,
    /// Writes the lost lines of the trail again.
    Trail,
    /// Stores the secrets under which the keys of orders are hashed.
    NoteSecrets(Vec<u8>),
}

/// A commit, encoded on the caller's own thread to save the writer's time.
#[derive(Debug)]
pub(crate) struct OrderWrite {
    pub(crate) expected: Version,
    pub(crate) next: Arc<Order>,
    pub(crate) counters: Counters,
    pub(crate) at: Timestamp,
    pub(crate) record: Vec<u8>,
    /// The encoded terms, if they will certainly be needed.
    pub(crate) terms: Option<Vec<u8>>,
}

impl OrderWrite {
    pub(crate) fn new(expected: Version, next: &Arc<Order>, counters: &Counters, at: Timestamp) -> Self {
        let terms = (expected == Version::ABSENT).then(|| encode_terms(&next.terms));
        Self { expected, next: Arc::clone(next), counters: *counters, at, record: encode_order(next), terms }
    }
}

/// A request for an answer from a stock. Only the writer can select the answer.
#[derive(Debug)]
pub(crate) struct TakeWork {
    pub(crate) target: Target,
    pub(crate) good_until: Timestamp,
    pub(crate) by: Key,
    pub(crate) at: Timestamp,
    pub(crate) counters: Counters,
}

#[derive(Debug)]
pub(crate) enum WriteResult {
    Committed(Commit),
    Taken(Option<Versioned>),
    SharedDocument(DocumentWritten),
    Counted,
    Purged(usize),
    /// Whether there was an unreadable record.
    Discarded(bool),
    /// Whether there may be more to do.
    Closed(bool),
}

pub(crate) struct EmbeddedWriter {
    shared: Arc<EmbeddedShared>,
    /// The connection, or `None` while it is not known what is on the disk.
    conn: Option<Connection>,
    pub(crate) last_version: u64,
    pub(crate) next_id: i64,
}

impl EmbeddedWriter {
    /// Reads everything in the database, and prepares the writer.
    pub(crate) fn open(home: &crate::home::StoreHome) -> Result<(Connection, ScanResult), rusqlite::Error> {
        let conn = home.connect()?;
        conn.pragma_update(None, "cache_size", -PAGE_CACHE_KIB)?;
        let scanned = scan(&conn)?;
        Ok((conn, scanned))
    }

    pub(crate) const fn new(
        shared: Arc<EmbeddedShared>,
        conn: Connection,
        last_version: u64,
        next_id: i64,
    ) -> Self {
        Self { shared, conn: Some(conn), last_version, next_id }
    }

    /// Writes batches until the store closes.
    pub(crate) fn run(mut self) {
        loop {
            let timeout = self.conn.is_none().then_some(PAUSE);
            let (mut count, mut bytes) = (0, 0);
            let tasks = self.shared.tasks.take(0, timeout, |task| {
                count += 1;
                bytes += match task {
                    WriteTask::Commit(write) => write.record.len() + write.terms.as_ref().map_or(0, Vec::len),
                    WriteTask::SharedDocument(write) => write.document.as_ref().map_or(0, Vec::len),
                    WriteTask::Take(_) | WriteTask::Count(_) => 0,
                    // These come alone: they must see what was written before them.
                    WriteTask::Purge { .. }
                    | WriteTask::Discard(_)
                    | WriteTask::CompactUsage { .. }
                    | WriteTask::Rescue
                    | WriteTask::NoteSecrets(_)
                    | WriteTask::Trail => usize::MAX / 2,
                };
                count <= BATCH_MAX && bytes <= BATCH_BYTES_MAX
            });
            let Some(tasks) = tasks else { break };
            let answers = self.perform(&tasks);
            self.shared.tasks.give(0, answers);
            drop(tasks);
            self.after();
        }
        if let Some(conn) = &self.conn {
            self.shared.leave(conn);
        }
    }

    /// Work that is done after the answers were sent, so that it does not delay them.
    fn after(&mut self) {
        let Some(conn) = &self.conn else { return };
        let mut done = self.shared.wal.restart_if_wanted(conn);
        // What an overwritten file says would be no proof.
        if self.shared.gone().is_none() && self.shared.trail().is_lost() {
            done = done.and_then(|()| self.shared.trail().write_again(conn));
        }
        if let Err(error) = done {
            self.give_up(&error.into());
        }
    }

    fn perform(&mut self, tasks: &[WriteTask]) -> Vec<Result<WriteResult, StoreError>> {
        if self.conn.is_none() {
            self.reopen();
        }
        let Some(conn) = self.conn.take() else {
            return tasks.iter().map(|_| Err(unavailable(DOING, EmbeddedError::Down))).collect();
        };
        let done = match tasks {
            [WriteTask::Purge { now, limit }] => purge::purge(&self.shared, &conn, *now, *limit)
                .map(|purged| vec![Ok(WriteResult::Purged(purged))]),
            [WriteTask::Discard(key)] => discard::discard(&self.shared, &conn, key, self.last_version)
                .map(|discarded| vec![discarded.map(WriteResult::Discarded)]),
            [WriteTask::Rescue] => {
                self.shared.rescue(&conn, self.last_version);
                Ok(vec![Ok(WriteResult::Counted)])
            }
            // It is written again once the answers are given.
            [WriteTask::Trail] => Ok(vec![Ok(WriteResult::Counted)]),
            [WriteTask::NoteSecrets(secrets)] => {
                notes::note_secrets(&self.shared, &conn, secrets).map(|()| vec![Ok(WriteResult::Counted)])
            }
            [WriteTask::CompactUsage { detail, sums }] => usage::close(&self.shared, &conn, *detail, *sums)
                .map(|more| vec![Ok(WriteResult::Closed(more))]),
            _ => self.write(&conn, tasks),
        };
        self.conn = Some(conn);
        done.unwrap_or_else(|failure| {
            self.give_up(&failure);
            tasks.iter().map(|_| Err(unavailable(DOING, failure.clone()))).collect()
        })
    }

    fn write(
        &mut self,
        conn: &Connection,
        tasks: &[WriteTask],
    ) -> Result<Vec<Result<WriteResult, StoreError>>, EmbeddedError> {
        loop {
            let batch = EmbeddedBatch::decide(&self.shared, conn, tasks, self.last_version, self.next_id)?;
            if batch.is_empty() {
                return Ok(batch.answers);
            }
            self.shared.check_files_first()?;
            match transaction(conn, || batch.write(conn)) {
                Ok(()) => {
                    self.shared.transactions.fetch_add(1, Ordering::Relaxed);
                    self.last_version = batch.last_version;
                    self.next_id = batch.next_id;
                    self.shared.check_files()?;
                    batch.note(&mut self.shared.trail());
                    batch.publish(&self.shared);
                    return Ok(batch.answers);
                }
                // Where a page of the database is damaged only the calls that need it fail; the others go on.
                Err(WriteFailure { at: Some(culprit), failure }) if failure.is_damage() => {
                    self.shared.check_files()?;
                    let (key, id) = batch.key_and_row(culprit);
                    let _corrupt = self.shared.set_aside(&key, id, &failure.to_string());
                }
                Err(WriteFailure { failure, .. }) => return Err(failure),
            }
        }
    }

    /// Drops everything in memory, unless nothing was written for certain.
    fn give_up(&mut self, failure: &EmbeddedError) {
        // What can still be read is read through this connection, and no other can be made.
        if self.shared.check_files().is_err() {
            if let Some(conn) = self.conn.as_ref().filter(|_| self.shared.wants_rescue()) {
                self.shared.rescue(conn, self.last_version);
            }
            return;
        }
        let in_transaction = self.conn.as_ref().is_some_and(|conn| !conn.is_autocommit());
        if in_transaction || !failure.wrote_nothing() {
            self.shared.go_down();
            self.conn = None;
            self.reopen();
        }
    }

    fn reopen(&mut self) {
        if self.shared.check_files().is_err() {
            return;
        }
        let Ok((conn, ScanResult { ledger, last_version, next_id })) = Self::open(&self.shared.home) else {
            return;
        };
        self.last_version = self.last_version.max(last_version);
        self.next_id = self.next_id.max(next_id);
        self.conn = Some(conn);
        self.shared.note_files();
        self.shared.come_back(ledger);
    }
}

/// The failure, and the change that caused it, if it was one.
pub(crate) struct WriteFailure {
    pub(crate) at: Option<usize>,
    pub(crate) failure: EmbeddedError,
}

impl From<rusqlite::Error> for WriteFailure {
    fn from(error: rusqlite::Error) -> Self {
        Self { at: None, failure: error.into() }
    }
}

/// Runs a transaction. All of it or nothing is written, and it is durable when this returns.
pub(crate) fn transaction<T>(
    conn: &Connection,
    body: impl FnOnce() -> Result<T, WriteFailure>,
) -> Result<T, WriteFailure> {
    conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    let done = body().and_then(|done| {
        conn.prepare_cached("COMMIT")?.execute([])?;
        Ok(done)
    });
    if done.is_err() && !conn.is_autocommit() {
        // If even that fails the connection is still in its transaction, and will not be used again.
        drop(conn.execute_batch("ROLLBACK"));
    }
    done
}
