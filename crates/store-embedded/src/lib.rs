//! The store for one machine: one directory, on SQLite; no other crate knows SQLite. What it acknowledges survives
//! `kill -9` and power loss. Concurrent commits share one wait for the disk, and people can read the database at run
//! time.
//!
//! | to | it does |
//! | --- | --- |
//! | answer about an order that was touched lately | looks into a bounded cache, on the caller's own thread |
//! | read any other order | hands it to a thread with a connection of its own; only the place of the row is in memory |
//! | write, or take from a stock | hands it to the one writer, which takes all that wait into one transaction |
//! | find what is due, on a stock, or may be forgotten | looks into indices in memory, built when it is opened |
//!
//! # For people with `sqlite3`
//!
//! `sqlite3 -readonly <directory>/orders.db`, at any time, also while it runs. All moments are in UTC.
//!
//! | view | one row for each | columns |
//! | --- | --- | --- |
//! | `orders` | order | key, tenant, kind, phase, due, placed, deadline, life, attempts, doubles, wanted, forget_at, version |
//! | `dead_letters` | order that waits for a person | key, tenant, kind, dead_since, cause, fault, code, attempts, doubles |
//! | `timeline` | thing that happened to an order | key, number, at, what, attempt, entry (all of it, as JSON) |
//! | `attempts` | attempt that an order remembers | key, number, sent, accepted, progress, task |
//! | `usage` | day, tenant, kind, site and provider | date, day, tenant, kind, site, provider (with the currency of its account: `main USD`), and every line of the usage by its name |
//! | `pools` | pool | name, tenant, kind, version, document (all of it, as JSON) |
//!
//! The tables behind them are in `schema.sql`; the record of an order is JSON, in the format of `quittance-record`.
//! Write to them only while no process has the store open, because it would not notice. A reader that stays in a
//! transaction prevents the log from being cut, so leave none open overnight.
//!
//! # When something is wrong
//!
//! A row that does not match its checksums, or cannot be parsed, is [set aside](EmbeddedStore::unreadable). It stays
//! in its table until an operator discards it, its order answers with [`StoreError::Corrupt`], and nothing else
//! stops. While the disk is full or fails, calls are [unavailable](quittance_ports::StoreError::Unavailable). If it
//! failed in the middle of a commit, the store reads its files again before it answers. [`EmbeddedOpenError`] says
//! why a store does not open.
#![forbid(unsafe_code)]

mod ahead;
mod batch;
mod cache;
mod checkpoint;
mod discard;
mod documents;
mod failure;
mod files;
mod home;
mod intact;
mod ledger;
mod lists;
mod membership;
mod notes;
mod purge;
mod read_all;
mod reader;
mod row;
mod salvage;
mod schema;
mod shared;
mod store;
mod sum;
mod thread_queue;
mod trail;
mod usage;
mod watchdog;
mod writer;

pub use files::{RESCUED, will_restore};
pub use home::{DATABASE, EmbeddedOpenError, FILLING, LOCK, SEAL};
pub use shared::Settings;
pub use trail::{TRAIL, trail_note};

use crate::files::Files;
use crate::home::StoreHome;
use crate::read_all::ScanResult;
use crate::shared::{EmbeddedShared, READERS};
use crate::trail::{Losses, Trail};
use crate::watchdog::DiskWatch;
use crate::writer::{EmbeddedWriter, WriteTask};
use quittance_lifecycle::{Key, Timestamp};
use quittance_ports::{StoreError, Unreadable};
use std::fmt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

/// A handle of the store; its clones share the same orders. When the last one is dropped, waiting work is written,
/// the log is moved into the database, and the directory is free for the next process.
#[derive(Clone)]
pub struct EmbeddedStore(Arc<EmbeddedInner>);

struct EmbeddedInner {
    shared: Arc<EmbeddedShared>,
    watchdog: Arc<DiskWatch>,
    threads: Vec<JoinHandle<()>>,
}

impl EmbeddedStore {
    /// Opens the store in this directory after any kind of crash, and creates it if its parent exists. It reads every
    /// row once on the calling thread, which takes some seconds for a million.
    pub fn open(dir: &Path) -> Result<Self, EmbeddedOpenError> {
        Self::open_with(dir, &Settings::default())
    }

    pub fn open_with(dir: &Path, settings: &Settings) -> Result<Self, EmbeddedOpenError> {
        let mut home = StoreHome::enter(dir)?;
        if !home.is_restored && files::rescue_unsound(&home) {
            drop(home);
            home = StoreHome::enter(dir)?;
        }
        let failed = |error| home.misses(error);
        schema::settle(&home, &home.connect().map_err(failed)?)?;
        let (conn, ScanResult { mut ledger, last_version, next_id }) =
            EmbeddedWriter::open(&home).map_err(failed)?;
        let not_writable = |source: std::io::Error| EmbeddedOpenError::NotWritable {
            dir: dir.to_owned(),
            source: source.into(),
        };
        let (mut trail, lines) = Trail::open(home.dir()).map_err(not_writable)?;
        let trail_noted = notes::read(&conn, notes::TRAIL);
        let is_trail_lost = if lines.is_there {
            lines.steps.is_empty() && ledger.len() > 0
        } else {
            last_version > 0 || matches!(trail_noted, Ok(Some(_)))
        };
        let noted = notes::read(&conn, notes::SECRETS).ok().flatten().unwrap_or_default();
        let Losses { missing, stale, last_version: written } =
            trail::losses(&conn, &ledger, lines.steps).map_err(failed)?;
        let last_version = last_version.max(written);
        for (key, step) in &missing {
            ledger.never_good(key, 0, step.why(), Some(Timestamp::ZERO));
        }
        let loss = (!missing.is_empty() || !stale.is_empty()).then(|| lost(missing.len(), stale.len()));
        let loss = loss.or_else(|| home.is_restored.then(restored));
        trail.is_missing(missing);
        if is_trail_lost {
            trail.write_again(&conn).map_err(failed)?;
        }
        if matches!(trail_noted, Ok(None)) {
            // A disk that is full is no reason not to open; it is noted the next time.
            drop(notes::note_trail(&conn));
        }
        let files = Files::of(&home);
        let mut shared = EmbeddedShared::new(home, settings, ledger, (trail, files, loss, stale));
        let secrets = noted.chunks_exact(32).filter_map(|secret| secret.try_into().ok());
        shared.secrets = Mutex::new(secrets.collect());
        let shared = Arc::new(shared);
        let writer = EmbeddedWriter::new(Arc::clone(&shared), conn, last_version, next_id);
        // From here on whatever goes wrong is dropped in good order.
        let mut inner = EmbeddedInner { shared, watchdog: Arc::default(), threads: Vec::new() };
        inner
            .start(writer)
            .map_err(|source| EmbeddedOpenError::Broken { dir: dir.to_owned(), source: source.into() })?;
        Ok(Self(Arc::new(inner)))
    }

    /// The unreadable records with the reasons. Each waits in its table for an operator.
    #[must_use]
    pub fn unreadable(&self) -> Vec<Unreadable> {
        let ledger = self.0.shared.ledger();
        ledger.broken().map(|(key, detail)| Unreadable { key: *key, detail: detail.clone() }).collect()
    }

    /// The number of unreadable records.
    #[must_use]
    pub fn unreadable_count(&self) -> u64 {
        self.0.shared.ledger().broken().count() as u64
    }

    /// What happened to its files, as text: they were deleted, moved, replaced or overwritten at run time, or the log
    /// had lost its end when it was opened.
    #[must_use]
    pub fn damage(&self) -> Option<String> {
        let shared = &self.0.shared;
        shared.gone().cloned().or_else(|| shared.loss.clone())
    }

    /// A sentence about `orders.trail` if its lines were lost. In that case a lost end of the log cannot be noticed.
    #[must_use]
    pub fn trail_note(&self) -> Option<String> {
        self.0.shared.trail().note()
    }

    /// The noted secrets under which the keys of its orders were hashed. The last one is in use.
    #[must_use]
    pub fn secrets(&self) -> Vec<[u8; 32]> {
        self.0.shared.secrets.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes the secret under which the keys of its orders are hashed from now on.
    pub async fn note_secret(&self, secret: [u8; 32]) -> Result<(), StoreError> {
        let mut secrets = self.secrets();
        if secrets.last() != Some(&secret) {
            secrets.retain(|noted| *noted != secret);
            secrets.push(secret);
            self.write(WriteTask::NoteSecrets(secrets.concat())).await?;
            *self.0.shared.secrets.lock().unwrap_or_else(PoisonError::into_inner) = secrets;
        }
        Ok(())
    }

    /// The orders whose last steps were lost with the end of the log. They can be read, in an older state.
    #[must_use]
    pub fn stale(&self) -> Vec<Key> {
        self.0.shared.stale.clone()
    }

    /// Whether the database is the copy that was saved when its files were lost.
    #[must_use]
    pub fn is_restored(&self) -> bool {
        self.0.shared.home.is_restored
    }

    /// Forgets that the database was [restored](Self::is_restored), because its orders are listed for an operator.
    pub fn forget_restored(&self) {
        // If it cannot be written they are listed once more, which does no harm.
        drop(files::forget_restored(&self.0.shared.home));
    }

    /// How many transactions were made durable since the store was opened. Many commits share one.
    #[must_use]
    pub fn transactions(&self) -> u64 {
        self.0.shared.transactions.load(Ordering::Relaxed)
    }

    /// The number of watches. If it is not zero although no caller waits, a watch leaks.
    #[must_use]
    pub fn watching(&self) -> usize {
        self.0.shared.watchers.len()
    }

    fn shared(&self) -> &EmbeddedShared {
        &self.0.shared
    }
}

fn lost(missing: usize, stale: usize) -> String {
    format!(
        "the store has lost the end of its log: {missing} orders that were acknowledged have no record, and of {stale} the last \
         steps are lost; none of them is bought again by itself: compare `quittance dead list --cause unreadable` and \
         `--cause store_forgot` with the provider's list, look at the disk, then mark this alert as seen"
    )
}

fn restored() -> String {
    format!(
        "the files of the store were damaged, or deleted, moved or overwritten while a node had it open, and it continues with \
         {RESCUED}, a copy of what could still be read: compare `quittance dead list --cause store_forgot` with the provider's list, find out what happened to the files, \
         then mark this alert as seen"
    )
}

impl EmbeddedInner {
    fn start(&mut self, writer: EmbeddedWriter) -> std::io::Result<()> {
        self.spawn("quittance-write", || writer.run())?;
        for thread in 0..READERS {
            let shared = Arc::clone(&self.shared);
            self.spawn("quittance-read", move || reader::run(&shared, thread))?;
        }
        let shared = Arc::clone(&self.shared);
        self.spawn("quittance-log", move || checkpoint::run(&shared))?;
        let (shared, watchdog) = (Arc::clone(&self.shared), Arc::clone(&self.watchdog));
        self.spawn("quittance-watch", move || watchdog.run(&shared))
    }

    fn spawn(&mut self, name: &str, body: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        self.threads.push(Builder::new().name(name.to_owned()).spawn(body)?);
        Ok(())
    }
}

impl Drop for EmbeddedInner {
    fn drop(&mut self) {
        self.shared.tasks.close();
        self.shared.questions.close();
        self.shared.wal.close();
        self.watchdog.close();
        for thread in self.threads.drain(..) {
            // One that panicked has nothing left to do.
            drop(thread.join());
        }
    }
}

impl fmt::Debug for EmbeddedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shared = self.shared();
        let orders = shared.ledger().len();
        write!(
            f,
            "EmbeddedStore({}, {orders} orders, {} watches)",
            shared.home.dir().display(),
            self.watching()
        )
    }
}
