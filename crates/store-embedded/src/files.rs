//! Checks whether the files of the store still exist with their contents. SQLite continues to use a file that was
//! deleted, moved or overwritten, and what it acknowledges then is lost when the process ends.

use crate::home::{DATABASE, StoreHome};
use crate::intact::{Contents, LOG, WalIndex};
use crate::trail::TRAIL;
use rusqlite::Connection;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A copy of the database that was saved after its file was lost.
pub const RESCUED: &str = "orders.rescued.db";
/// The name of the copy while it is written.
const DRAFT: &str = "orders.rescued.new";
/// The file of a note that the copy may replace the database. The note holds the identity of the file that was at the
/// path of the database then.
const RESTORE: &str = "orders.restore";
const ABSENT: &str = "absent";
/// The content of the note after the copy has replaced the database, until its orders are listed for an operator.
const RESTORED: &str = "restored";

/// The identity of the file with this name, or `None` if there is none.
pub(crate) fn which(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().as_ref().map(number_of)
}

/// The identity of a file: its device and inode.
#[cfg(unix)]
pub(crate) fn number_of(metadata: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
pub(crate) fn number_of(_: &Metadata) -> (u64, u64) {
    (0, 0)
}

/// Damage to a file of the store, with the name of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileLoss {
    /// The file is not at its place.
    Gone(&'static str),
    /// The file does not hold what SQLite wrote.
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

    /// Notes that the database was closed and opened again.
    pub(crate) fn open_again(&mut self, home: &StoreHome) {
        self.log = which(&home.dir().join(LOG));
        self.contents.open_again(home);
    }

    /// Whether the files must be checked before the next write, and not only after it.
    pub(crate) const fn are_looked_at_first(&self) -> bool {
        self.contents.is_log_empty()
    }

    /// The damage to a file, if there is any.
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

    /// The log, to check it with [`adds_up`](crate::intact::adds_up).
    pub(crate) fn log(&self) -> Option<(Arc<File>, WalIndex)> {
        self.contents.log()
    }

    /// The loss of the log, if it is still the log that had wrong checksums.
    pub(crate) fn loss_in_log(&self, index: &WalIndex) -> Option<FileLoss> {
        self.contents.is_same_log(index).then_some(FileLoss::Overwritten(LOG))
    }
}

/// Whether the next process that opens the folder may use the saved copy: only if no other file was put in place.
fn is_ours_to_restore(home: &StoreHome, files: &Files) -> bool {
    which(&home.database()).is_none_or(|record| Some(record) == files.database)
}

/// Saves what is still known: a copy of the database, which `save` writes, and the list of the orders for the next
/// process. A missing folder is made again. Returns whether there is a copy.
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

/// Checks the pages of the database before the first write, which could overwrite rows of a damaged page. If a page is
/// damaged, saves a copy of all rows for the next [`adopt`], and returns `true`. A database that cannot be copied stays
/// as it is: opening it fails, or its damaged rows are set aside.
pub(crate) fn rescue_unsound(home: &StoreHome) -> bool {
    let Ok(conn) = home.connect() else { return false };
    if is_sound(&conn) {
        return false;
    }
    rescue(home, &Files::of(home), &conn, |draft| copy_whole(&conn, draft))
}

/// Whether SQLite finds no damage in the pages. Wrong values in rows are noticed when the rows are read.
fn is_sound(conn: &Connection) -> bool {
    let findings = conn.prepare("PRAGMA quick_check").and_then(|mut check| {
        check.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()
    });
    // What cannot be checked at all cannot be opened, and the error then says why.
    findings.map_or(true, |findings| !findings.iter().any(|finding| finding.contains(" page ")))
}

/// Copies all that the open connection can read, page by page.
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

/// Whether the saved copy and the trail still exist.
pub(crate) fn is_rescued(home: &StoreHome) -> bool {
    home.dir().join(RESCUED).exists() && home.dir().join(TRAIL).exists()
}

/// Removes the note, because the orders of the restored database are listed for an operator.
pub(crate) fn forget_restored(home: &StoreHome) -> io::Result<()> {
    home.keep_note(RESTORE, None)
}

/// Whether the note means the file that now has the name of the database, and there is a copy to use instead.
fn is_for(dir: &Path, noted: &str) -> bool {
    let record = which(&dir.join(DATABASE))
        .map_or_else(|| ABSENT.to_owned(), |(device, file)| format!("{device} {file}"));
    noted == record && dir.join(RESCUED).exists()
}

/// Whether the next start uses the saved copy instead of the database in this folder.
#[must_use]
pub fn will_restore(dir: &Path) -> bool {
    fs::read_to_string(dir.join(RESTORE)).is_ok_and(|noted| is_for(dir, &noted))
}

/// Puts the saved copy in place of the lost database, if that is still missing. Returns whether it did so, or whether
/// an earlier process did but could not list its orders.
pub(crate) fn adopt(dir: &Path) -> io::Result<bool> {
    let (note, database) = (dir.join(RESTORE), dir.join(DATABASE));
    let noted = match fs::read_to_string(&note) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        noted => noted?,
    };
    if noted == RESTORED {
        return Ok(true);
    }
    let is_meant = is_for(dir, &noted);
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
