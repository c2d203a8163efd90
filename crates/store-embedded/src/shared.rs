//! The state that callers' threads and the store's own threads share.

use crate::cache::Cache;
use crate::checkpoint::Wal;
use crate::failure::{EmbeddedError, unavailable};
use crate::files::{self, FileLoss, Files, RESCUED};
use crate::home::{DATABASE, StoreHome};
use crate::intact::adds_up;
use crate::ledger::OrderIndex;
use crate::reader::{Question, ReadAnswer};
use crate::salvage;
use crate::thread_queue::{ThreadQueue, lock};
use crate::trail::Trail;
use crate::writer::{WriteResult, WriteTask};
use quittance_lifecycle::Key;
use quittance_ports::{MemoryMembership, StoreError, Watchers};
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

pub(crate) const READERS: usize = 2;
/// How often the store tries to save what it can still read, once a tick.
const RESCUES_MAX: u64 = 30;

/// The memory limits of the store. What is not in the cache is read from the disk, and a call fails as unavailable if
/// a queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    pub cache_orders_max: usize,
    pub cache_bytes_max: usize,
    /// How many commits, and how many reads, can wait for the disk.
    pub waiting_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { cache_orders_max: 100_000, cache_bytes_max: 256 << 20, waiting_max: 65_536 }
    }
}

pub(crate) struct EmbeddedShared {
    pub(crate) home: StoreHome,
    pub(crate) cache: Cache,
    pub(crate) watchers: Watchers,
    pub(crate) tasks: ThreadQueue<WriteTask, WriteResult>,
    pub(crate) questions: ThreadQueue<Question, ReadAnswer>,
    pub(crate) wal: Wal,
    pub(crate) transactions: AtomicU64,
    ledger: Mutex<OrderIndex>,
    /// Set while it is not known what is on the disk.
    is_down: AtomicBool,
    /// Set once the orders have moved to another store.
    is_sealed: AtomicBool,
    pub(crate) node_statuses: MemoryMembership,
    trail: Mutex<Trail>,
    files: Mutex<Files>,
    /// How often a rescue was tried.
    rescues: AtomicU64,
    /// Whether this process has saved something.
    is_saved: AtomicBool,
    /// Set once the files are lost or changed, with a message about what to do.
    gone: OnceLock<(FileLoss, String)>,
    /// The loss that was found when the store was opened.
    pub(crate) loss: Option<String>,
    pub(crate) stale: Vec<Key>,
    /// The secrets under which the keys of orders were hashed. The last one is in use.
    pub(crate) secrets: Mutex<Vec<[u8; 32]>>,
}

/// The findings when the store was opened: the trail, the files, the loss and the stale orders.
pub(crate) type OpenFindings = (Trail, Files, Option<String>, Vec<Key>);

impl EmbeddedShared {
    pub(crate) fn new(
        home: StoreHome,
        settings: &Settings,
        ledger: OrderIndex,
        beside: OpenFindings,
    ) -> Self {
        let (trail, files, loss, stale) = beside;
        let is_sealed = AtomicBool::new(home.is_sealed());
        Self {
            home,
            cache: Cache::new(settings.cache_orders_max, settings.cache_bytes_max),
            watchers: Watchers::default(),
            tasks: ThreadQueue::new("writing to the disk", 1, settings.waiting_max),
            questions: ThreadQueue::new("reading from the disk", READERS, settings.waiting_max),
            wal: Wal::default(),
            transactions: AtomicU64::new(0),
            ledger: Mutex::new(ledger),
            is_down: AtomicBool::new(false),
            is_sealed,
            node_statuses: MemoryMembership::default(),
            trail: Mutex::new(trail),
            files: Mutex::new(files),
            rescues: AtomicU64::new(0),
            is_saved: AtomicBool::new(false),
            gone: OnceLock::new(),
            loss,
            stale,
            secrets: Mutex::default(),
        }
    }

    pub(crate) fn ledger(&self) -> MutexGuard<'_, OrderIndex> {
        lock(&self.ledger)
    }

    pub(crate) fn trail(&self) -> MutexGuard<'_, Trail> {
        lock(&self.trail)
    }

    /// What happened to the files, as text, once it was noticed.
    pub(crate) fn gone(&self) -> Option<&String> {
        self.gone.get().map(|(_, words)| words)
    }

    /// Notes the new log file after the database was closed and opened again.
    pub(crate) fn note_files(&self) {
        if self.gone().is_none() {
            lock(&self.files).open_again(&self.home);
        }
    }

    /// Saves what is still known of the orders. If the files are only gone, the open connection reads all orders. If
    /// they were overwritten, orders in memory come first, and only rows that agree with memory are saved.
    pub(crate) fn rescue(&self, conn: &Connection, last_version: u64) {
        let is_overwritten = matches!(self.gone.get(), Some((FileLoss::Overwritten(_), _)));
        let is_saved = files::rescue(&self.home, &lock(&self.files), conn, |draft| {
            if is_overwritten {
                salvage::save(self, conn, draft, last_version)
            } else {
                files::copy_whole(conn, draft)
            }
        });
        self.is_saved.store(is_saved, Ordering::Relaxed);
    }

    /// Protects the database before a connection is closed: SQLite would move the rest of an overwritten log into it.
    pub(crate) fn leave(&self, conn: &Connection) {
        if self.check_log().is_err() {
            drop(conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true));
        }
    }

    /// Whether the saved copy is missing and another try is worth it.
    pub(crate) fn wants_rescue(&self) -> bool {
        self.gone().is_some()
            && !(self.is_saved.load(Ordering::Relaxed) && files::is_rescued(&self.home))
            && self.rescues.fetch_add(1, Ordering::Relaxed) < RESCUES_MAX
    }

    /// Checks that the files of the store are intact. Call this before a transaction.
    pub(crate) fn check_files_first(&self) -> Result<(), EmbeddedError> {
        if lock(&self.files).are_looked_at_first() { self.check_files() } else { Ok(()) }
    }

    /// Checks whether the files exist unchanged. If not, nothing is acknowledged any more.
    pub(crate) fn check_files(&self) -> Result<(), EmbeddedError> {
        if self.gone().is_none()
            && let Some(loss) = lock(&self.files).loss(&self.home)
        {
            // The first call has reported the same.
            drop(self.gone.set((loss, words(loss))));
        }
        match self.gone.get() {
            None => Ok(()),
            Some((FileLoss::Gone(_), _)) => Err(EmbeddedError::Moved),
            Some((FileLoss::Overwritten(_), _)) => Err(EmbeddedError::Overwritten),
        }
    }

    /// Checks the files and the checksums of the log before it is moved into the database. It reads the log, and does
    /// not delay the writer.
    pub(crate) fn check_log(&self) -> Result<(), EmbeddedError> {
        self.check_files()?;
        let log = lock(&self.files).log();
        if let Some((log, index)) = log
            && matches!(adds_up(&log, &index), Ok(false))
            && let Some(loss) = lock(&self.files).loss_in_log(&index)
        {
            drop(self.gone.set((loss, words(loss))));
        }
        self.check_files()
    }

    pub(crate) fn check_up(&self, doing: &'static str) -> Result<(), StoreError> {
        if self.gone().is_some() {
            self.check_files().map_err(|failure| unavailable(doing, failure))?;
        }
        if self.is_down.load(Ordering::Acquire) {
            Err(unavailable(doing, EmbeddedError::Down))
        } else {
            Ok(())
        }
    }

    /// Fails unless the store is up and not sealed. Call this before a step that writes.
    pub(crate) fn check_open(&self, doing: &'static str) -> Result<(), StoreError> {
        self.check_up(doing)?;
        if self.is_sealed.load(Ordering::Acquire) {
            Err(unavailable(doing, EmbeddedError::Sealed))
        } else {
            Ok(())
        }
    }

    pub(crate) fn set_sealed(&self, is_sealed: bool) {
        self.is_sealed.store(is_sealed, Ordering::Release);
    }

    /// Stops showing what is in memory until [`come_back`](Self::come_back).
    pub(crate) fn go_down(&self) {
        self.is_down.store(true, Ordering::Release);
        self.cache.clear();
    }

    pub(crate) fn come_back(&self, ledger: OrderIndex) {
        *self.ledger() = ledger;
        self.cache.clear();
        self.is_down.store(false, Ordering::Release);
        // Whatever was durable and not published: the waiting callers look for themselves.
        self.watchers.wake_all();
    }

    /// Sets an unreadable row aside. From now on it is reported.
    pub(crate) fn set_aside(&self, key: &Key, id: i64, why: &str) -> StoreError {
        // Where the whole file is damaged, no row of it is.
        if let Err(failure) = self.check_files() {
            return unavailable("reading from the disk", failure);
        }
        self.cache.remove(key);
        self.ledger().set_aside(key, id, why.to_owned());
        StoreError::Corrupt { key: *key, detail: why.to_owned() }
    }

    pub(crate) fn is_broken(&self, key: &Key) -> Option<StoreError> {
        let detail = self.ledger().why_broken(key)?.clone();
        Some(StoreError::Corrupt { key: *key, detail })
    }
}

/// A message about what happened to a file, and what to do.
fn words(loss: FileLoss) -> String {
    match loss {
        FileLoss::Gone(file) => format!(
            "the file {file} of the store was deleted, moved or replaced while it was open, and nothing is accepted any more: \
             what was in it is saved as {RESCUED} in the folder, if that could be written. Put back {DATABASE} if you have it, and \
             start this node again: if {DATABASE} is not there, it continues with the copy"
        ),
        FileLoss::Overwritten(file) => format!(
            "the file {file} of the store was emptied, cut or overwritten while it was open, and nothing is accepted any more: what \
             this node knows of its orders is saved as {RESCUED} in the folder, if that could be written. Find out what wrote to the \
             file, and start this node again: it continues with the copy, and lists what is not in it. To continue with {DATABASE} as it \
             is, delete {RESCUED} first"
        ),
    }
}
