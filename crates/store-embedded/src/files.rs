//! Whether the files of the store are still where they were, and what they were. SQLite goes on in a file that was
//! deleted, moved or overwritten under it, and whatever it acknowledges then is gone with the process.

use crate::home::{DATABASE, StoreHome};
use crate::intact::{Contents, LOG, WalIndex};
use crate::trail::TRAIL;
use rusqlite::Connection;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A copy of the database that was saved when its file was gone.
pub const RESCUED: &str = "orders.rescued.db";
/// The copy while it is written.
const DRAFT: &str = "orders.rescued.new";
/// Says that the copy may take the place of the database, and which file stood there when it was saved.
const RESTORE: &str = "orders.restore";
const ABSENT: &str = "absent";
/// What the note says once the copy has taken the place of the database, until its orders are listed for a person.
const RESTORED: &str = "restored";

/// Which file stands under a name; nothing, if there is none.
pub(crate) fn which(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().as_ref().map(number_of)
}

/// What tells a file from every other one.
#[cfg(unix)]
pub(crate) fn number_of(metadata: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
pub(crate) fn number_of(_: &Metadata) -> (u64, u64) {
    (0, 0)
}

/// What is wrong with a file of the store, and with which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileLoss {
    /// It is not where it was.
    Gone(&'static str),
    /// It does not hold what SQLite wrote there.
    Overwritten(&'static str),
}

/// The files as they were when the store was opened.
#[derive(Debug)]
pub(crate) struct Files {
    database: Option<(u64, u64)>,
    log: Option<(u64, u64)>,
    contents: Contents,
}

impl Files {
    pub(crate) fn of(home: &StoreHome) -> Self {
        let contents = Contents::of(home);
        Self { database: which(&home.database()), log: which(&home.dir().join(LOG)), contents }
    }

    /// The database was closed and opened again.
    pub(crate) fn open_again(&mut self, home: &StoreHome) {
        self.log = which(&home.dir().join(LOG));
        self.contents.open_again(home);
    }

    /// Whether the files are to be looked at before the next write, and not only after it.
    pub(crate) const fn are_looked_at_first(&self) -> bool {
        self.contents.is_log_empty()
    }

    /// What is wrong with a file, if anything is.
    pub(crate) fn loss(&mut self, home: &StoreHome) -> Option<FileLoss> {
        if which(&home.database()) != self.database {
            return Some(FileLoss::Gone(DATABASE));
        }
        // It is made by the first write, and stays as long as the database is open.
        if self.log.is_some() && which(&home.dir().join(LOG)) != self.log {
            return Some(FileLoss::Gone(LOG));
        }
        self.contents.damaged(home).map(FileLoss::Overwritten)
    }

    /// The log, to look whether it [adds up](crate::intact::adds_up).
    pub(crate) fn log(&self) -> Option<(Arc<File>, WalIndex)> {
        self.contents.log()
    }

    /// Whether the log is still the one that did not add up.
    pub(crate) fn loss_in_log(&self, index: &WalIndex) -> Option<FileLoss> {
        self.contents.is_same_log(index).then_some(FileLoss::Overwritten(LOG))
    }
}

/// Whether the next process that opens the folder may take the saved copy for its database: only if no other file was
/// put in place.
fn is_ours_to_restore(home: &StoreHome, files: &Files) -> bool {
    which(&home.database()).is_none_or(|record| Some(record) == files.database)
}

/// Saves what can still be known: a copy of the database, which `save` writes, and the list of the orders for the
/// next process that opens the folder. The folder is made again if it is gone. Says whether there is a copy.
pub(crate) fn rescue(
    home: &StoreHome,
    files: &Files,
    conn: &Connection,
    save: impl FnOnce(&Path) -> rusqlite::Result<()>,
) -> bool {
    home.make_again();
    let (copy, draft) = (home.dir().join(RESCUED), home.dir().join(DRAFT));
    drop(fs::remove_file(&draft));
    let is_saved = save(&draft).is_ok() && make_safe(&draft).is_ok() && fs::rename(&draft, &copy).is_ok();
    if is_saved && is_ours_to_restore(home, files) {
        let record = which(&home.database()).map(|(device, file)| format!("{device} {file}"));
        drop(home.keep_note(RESTORE, Some(&record.unwrap_or_else(|| ABSENT.to_owned()))));
    }
    if !home.dir().join(TRAIL).exists()
        && let Ok(lines) = crate::trail::lines_of(conn)
    {
        drop(fs::write(home.dir().join(TRAIL), lines));
    }
    is_saved
}

/// All that the open connection can read, page by page.
pub(crate) fn copy_whole(conn: &Connection, draft: &Path) -> rusqlite::Result<()> {
    conn.execute("VACUUM INTO ?1", [draft.to_string_lossy()]).map(drop)
}

fn make_safe(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    }
    fs::File::open(path)?.sync_all()
}

/// Whether all that was saved is still there.
pub(crate) fn is_rescued(home: &StoreHome) -> bool {
    home.dir().join(RESCUED).exists() && home.dir().join(TRAIL).exists()
}

/// The orders of a restored database are listed for a person.
pub(crate) fn forget_restored(home: &StoreHome) -> io::Result<()> {
    home.keep_note(RESTORE, None)
}

/// Puts the saved copy in place of a database that was gone when it was saved, and still is. Says whether it did, or
/// an earlier process that did not come to list its orders.
pub(crate) fn adopt(dir: &Path) -> io::Result<bool> {
    let (note, database) = (dir.join(RESTORE), dir.join(DATABASE));
    let noted = match fs::read_to_string(&note) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        noted => noted?,
    };
    if noted == RESTORED {
        return Ok(true);
    }
    let record =
        which(&database).map_or_else(|| ABSENT.to_owned(), |(device, file)| format!("{device} {file}"));
    let is_meant = noted == record && dir.join(RESCUED).exists();
    if is_meant {
        // A log that belongs to another database must not be taken for that of this one.
        for name in ["", "-wal", "-shm"] {
            let old = dir.join(format!("{DATABASE}{name}"));
            if old.exists() {
                fs::rename(&old, dir.join(format!("{DATABASE}{name}.lost")))?;
            }
        }
        fs::rename(dir.join(RESCUED), &database)?;
        fs::write(&note, RESTORED)?;
    } else {
        fs::remove_file(&note)?;
    }
    Ok(is_meant)
}
