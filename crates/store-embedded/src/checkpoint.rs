//! Moves what is durable from the log into the database, off the path of the writers, so that the log cannot grow
//! without bound. When writers never pause the log never comes to an end by itself. Then the writer restarts it
//! between two transactions, which is quick because nearly all of it has been moved.

use crate::home::BUSY_TIMEOUT;
use crate::shared::EmbeddedShared;
use crate::thread_queue::lock;
use rusqlite::Connection;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Pages in the log before they are moved: the more, the more often a page that was written many times is moved once.
const MOVE_PAGES: u64 = 8 << 10;
/// Pages in the log before it must restart: 128 MB.
const LOG_PAGES_MAX: i64 = 32 << 10;
/// No write for so long: a good moment to move the rest and give the space back.
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
    /// Roughly how many pages were written since they were last moved.
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

    /// To be called by the writer between two transactions. If it fails, or a reader is in the middle of the log, it
    /// is requested again when the log has grown some more.
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

/// Runs until the store closes. What fails here is tried again later: nothing is lost, the log is only longer.
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

/// One that holds up the writer no longer than a moment, whatever readers do.
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
