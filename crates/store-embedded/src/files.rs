//! Whether the files of the store are still where they were. SQLite goes on in a file that was deleted or moved under it, and
//! whatever it acknowledges then is gone with the process.

use crate::home::{DATABASE, Home};
use crate::trail::TRAIL;
use rusqlite::Connection;
use std::fs;
use std::path::Path;

/// A copy of the database that was saved when its file was gone.
pub const RESCUED: &str = "orders.rescued.db";

/// Which file stands under a name; nothing, if there is none.
#[cfg(unix)]
fn which(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn which(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|_| (0, 0))
}

/// The files as they were when the store was opened.
#[derive(Debug)]
pub(crate) struct Files {
    database: Option<(u64, u64)>,
    log: Option<(u64, u64)>,
}

impl Files {
    pub(crate) fn of(home: &Home) -> Self {
        Self { database: which(&home.database()), log: which(&log(home)) }
    }

    /// The name of a file that is not what it was.
    pub(crate) fn missing(&self, home: &Home) -> Option<&'static str> {
        if which(&home.database()) != self.database {
            return Some(DATABASE);
        }
        // It is made by the first write, and stays as long as the database is open.
        (self.log.is_some() && which(&log(home)) != self.log).then_some("orders.db-wal")
    }
}

fn log(home: &Home) -> std::path::PathBuf {
    home.dir().join(format!("{DATABASE}-wal"))
}

/// Saves what the open connection can still read: a copy of the database, and the list of the open orders for the next process
/// that opens the folder. Says whether there is a copy.
pub(crate) fn rescue(home: &Home, conn: &Connection) -> bool {
    let copy = home.dir().join(RESCUED);
    let is_saved = copy.to_str().is_some_and(|copy| conn.execute("VACUUM INTO ?1", [copy]).is_ok());
    #[cfg(unix)]
    if is_saved {
        use std::os::unix::fs::PermissionsExt;
        drop(fs::set_permissions(&copy, fs::Permissions::from_mode(0o600)));
    }
    if !home.dir().join(TRAIL).exists()
        && let Ok(lines) = crate::trail::lines_of(conn)
    {
        drop(fs::write(home.dir().join(TRAIL), lines));
    }
    is_saved
}
