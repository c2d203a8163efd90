//! Moves durable pages from the log into the database, in a separate thread, so that the log stays bounded. If
//! writers never pause, the log never ends by itself. Then the writer restarts it between two transactions, which is
//! quick because nearly all of it has been moved.

use crate::home::BUSY_TIMEOUT;
use crate::shared::EmbeddedShared;
use crate::thread_queue::lock;
use rusqlite::Connection;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How many pages the log collects before they are moved. A larger number moves a page that is written often fewer
/// times.
const MOVE_PAGES: u64 = 8 << 10;
/// Pages in the log before it must restart: 128 MB.
const LOG_PAGES_MAX: i64 = 32 << 10;
/// After this time without a write, the rest is moved and the space is freed.
const IDLE: Duration = Duration::from_secs(1);
/// How long a restart of the log waits for readers that are in the middle of it.
const READERS_TIMEOUT: Duration = Duration::from_millis(20);

#[derive(Default)]
pub(crate) struct Wal {
    state: Mutex<CheckpointState>,
    bell: Condvar,
    wants_restart: AtomicBool,
}

#[derive(Default)]
struct CheckpointState {
    /// About how many pages were written since the last move.
    pages: u64,
    is_dirty: bool,
    is_closed: bool,
}

impl Wal {
    pub(crate) fn written(&self, pages: u64) {
        let mut state = lock(&self.state);
        state.is_dirty = true;
        state.pages += pages;
        if state.pages >= MOVE_PAGES {
            drop(state);
            self.bell.notify_one();
        }
    }

    pub(crate) fn close(&self) {
        lock(&self.state).is_closed = true;
        self.bell.notify_one();
    }

    /// Restarts the log if that was requested. The writer calls this between two transactions. If it fails, or a
    /// reader uses the log, it is requested again when the log has grown.
    pub(crate) fn restart_if_wanted(&self, conn: &Connection) -> rusqlite::Result<()> {
        if self.wants_restart.swap(false, Ordering::Relaxed) {
            conn.busy_timeout(READERS_TIMEOUT)?;
            drop(checkpoint(conn, "RESTART"));
            conn.busy_timeout(BUSY_TIMEOUT)?;
        }
        Ok(())
    }

    fn wait(&self) -> Wake {
        let mut state = lock(&self.state);
        loop {
            if state.is_closed {
                return Wake::Closed;
            }
            if state.pages >= MOVE_PAGES {
                state.pages = 0;
                return Wake::Grown;
            }
            let before = state.pages;
            let (next, timeout) = self.bell.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner);
            state = next;
            if timeout.timed_out() && state.is_dirty && state.pages == before {
                state.is_dirty = false;
                state.pages = 0;
                return Wake::Idle;
            }
        }
    }
}

enum Wake {
    Grown,
    Idle,
    Closed,
}

/// Moves pages until the store closes. A failure is tried again later: nothing is lost, the log is only longer.
pub(crate) fn run(shared: &Arc<EmbeddedShared>) {
    let mut conn: Option<Connection> = None;
    loop {
        let mode = match shared.wal.wait() {
            Wake::Closed => break,
            Wake::Grown => "PASSIVE",
            Wake::Idle => "TRUNCATE",
        };
        // What is left of an overwritten log must not come into the database.
        if shared.check_log().is_err() {
            continue;
        }
        let moved = conn.take().map_or_else(|| connect(shared), Ok).and_then(|open| {
            let moved = checkpoint(&open, mode)?;
            conn = Some(open);
            Ok(moved)
        });
        match moved {
            Ok(MovedPages { log_pages: LOG_PAGES_MAX.., .. }) => {
                shared.wal.wants_restart.store(true, Ordering::Relaxed);
            }
            Ok(MovedPages { was_in_use: false, .. }) => {}
            Ok(_) | Err(_) => lock(&shared.wal.state).is_dirty = true,
        }
    }
    if let Some(conn) = &conn {
        shared.leave(conn);
    }
}

/// A connection that delays the writer for a moment at most, whatever readers do.
fn connect(shared: &EmbeddedShared) -> rusqlite::Result<Connection> {
    let conn = shared.home.connect()?;
    conn.busy_timeout(READERS_TIMEOUT)?;
    Ok(conn)
}

struct MovedPages {
    was_in_use: bool,
    log_pages: i64,
}

fn checkpoint(conn: &Connection, mode: &str) -> rusqlite::Result<MovedPages> {
    conn.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |row| {
        Ok(MovedPages { was_in_use: row.get(0)?, log_pages: row.get(1)? })
    })
}
