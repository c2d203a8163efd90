//! The directory of a store: it is created if it is missing, private, and used by one process at a time. The lock is
//! a separate file and not SQLite's exclusive mode, so that people can read a running store with `sqlite3`.

use crate::failure::is_damage;
use crate::files::{self, RESCUED};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

/// The database with the orders. It can be read with `sqlite3` at any time.
pub const DATABASE: &str = "orders.db";
/// The lock file. The process that has the store open locks it and writes its id into it.
pub const LOCK: &str = "orders.lock";

/// A note that says where the orders have moved. An operator can delete it to open the store again.
pub const SEAL: &str = "orders.moved";
/// A note that orders are being moved to this store. A complete copy removes it.
pub const FILLING: &str = "orders.filling";
/// The most bytes of a note. A note is a sentence or two.
const NOTE_BYTES_MAX: u64 = 4096;

/// How long to wait for a person who holds the database with a transaction.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a store cannot be opened, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedOpenError {
    #[error(
        "the store {} cannot be written: {source}: {}",
        dir.display(),
        writing_remedy(source.as_ref())
    )]
    NotWritable { dir: PathBuf, source: Box<dyn std::error::Error + Send + Sync> },
    #[error(
        "the store {} is in use by {}: one process has an embedded store to itself. Wait until it ends, or stop it. If it is `quittance serve`, it takes orders over HTTP",
        dir.display(),
        .pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
    )]
    InUse { dir: PathBuf, pid: Option<u32> },
    #[error(
        "the store {} was written by a later version of Quittance (its schema is {found}, and this version knows \
         up to {known}): use that version or a later one; nothing was changed",
        dir.display()
    )]
    Newer { dir: PathBuf, found: i64, known: i64 },
    #[error(
        "{} is there and is not a store of Quittance: {}; nothing was changed",
        path.display(),
        saved_copy(path.parent()).unwrap_or_else(|| "choose another directory".to_owned())
    )]
    NotOurs { path: PathBuf },
    #[error(
        "the store {} is damaged ({source}): keep a copy of the directory, and {}",
        dir.display(),
        saved_copy(Some(dir))
            .unwrap_or_else(|| format!("restore it from a backup or with `sqlite3 {DATABASE} .recover`"))
    )]
    Broken { dir: PathBuf, source: Box<dyn std::error::Error + Send + Sync> },
}

/// How to use the copy that a node saved when its files were overwritten, if there is one.
fn saved_copy(dir: Option<&Path>) -> Option<String> {
    let copy = dir?.join(RESCUED);
    copy.exists().then(|| {
        format!(
            "a node saved what it knew as {}: move {DATABASE}, {DATABASE}-wal and {DATABASE}-shm out of the folder, and \
             rename that copy to {DATABASE}",
            copy.display()
        )
    })
}

/// The remedy for an error of the system or SQLite.
fn writing_remedy(error: &(dyn std::error::Error + Send + Sync + 'static)) -> &'static str {
    let by_system = error.downcast_ref::<io::Error>().map(io::Error::kind);
    let by_sqlite = error.downcast_ref::<rusqlite::Error>().and_then(rusqlite::Error::sqlite_error_code);
    match (by_system, by_sqlite) {
        (Some(io::ErrorKind::NotFound), _) => "make the folder above it first, or choose another directory",
        (Some(io::ErrorKind::PermissionDenied), _)
        | (_, Some(ErrorCode::PermissionDenied | ErrorCode::CannotOpen)) => {
            "let this user write there, or choose another directory"
        }
        (Some(io::ErrorKind::ReadOnlyFilesystem), _) | (_, Some(ErrorCode::ReadOnly)) => {
            "it is read-only: make it writable, or choose another directory"
        }
        (Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded), _)
        | (_, Some(ErrorCode::DiskFull)) => {
            "the disk is full: free some space, or choose a directory on another disk"
        }
        (Some(io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists), _) => {
            "a file is in the way: choose another directory"
        }
        _ => "look at the disk that it is on, or choose another directory",
    }
}

impl EmbeddedOpenError {
    fn not_writable(dir: &Path, source: io::Error) -> Self {
        Self::NotWritable { dir: dir.to_owned(), source: source.into() }
    }
}

/// A directory that this process owns while this value lives.
#[derive(Debug)]
pub(crate) struct StoreHome {
    dir: PathBuf,
    /// The database file. It stays open while SQLite has connections, because closing it would drop SQLite's locks on
    /// it.
    database: File,
    _lock: DirLock,
    /// The lock of a folder that was lost and made again.
    lock_again: OnceLock<DirLock>,
    /// Whether the database is the copy that was saved when its files were lost.
    pub(crate) is_restored: bool,
}

impl StoreHome {
    pub(crate) fn enter(dir: &Path) -> Result<Self, EmbeddedOpenError> {
        let failed = |source| EmbeddedOpenError::not_writable(dir, source);
        if make_private_dir(dir).map_err(failed)? {
            sync_dir(parent(dir)).map_err(failed)?;
        }
        // One name for it, whatever the caller's was and wherever the process goes.
        let dir = dir.canonicalize().map_err(failed)?;
        let lock = take_lock(&dir)?;
        let is_restored =
            files::adopt(&dir).map_err(|source| EmbeddedOpenError::not_writable(&dir, source))?;
        let failed = |source| EmbeddedOpenError::not_writable(&dir, source);
        // SQLite gives the files beside it the mode that this one has.
        let database = open_private(&dir.join(DATABASE)).map_err(failed)?;
        database.sync_all().map_err(failed)?;
        sync_dir(&dir).map_err(failed)?;
        Ok(Self { dir, database, _lock: lock, lock_again: OnceLock::new(), is_restored })
    }

    /// Makes a lost folder again and locks it. What is saved there is for the next process, after this one has ended.
    pub(crate) fn make_again(&self) {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        if builder.create(&self.dir).is_ok()
            && let Ok(lock) = take_lock(&self.dir)
        {
            drop(self.lock_again.set(lock));
        }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.dir.join(DATABASE)
    }

    /// The database file that was opened, whatever file has its name now.
    pub(crate) const fn database_file(&self) -> &File {
        &self.database
    }

    pub(crate) fn is_sealed(&self) -> bool {
        self.dir.join(SEAL).exists()
    }

    pub(crate) fn note(&self, name: &str) -> io::Result<Option<String>> {
        let file = match File::open(self.dir.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let mut note = String::new();
        file.take(NOTE_BYTES_MAX).read_to_string(&mut note)?;
        Ok(Some(note))
    }

    /// Writes or removes a note. It is durable when this returns. The note is written under another name and then
    /// renamed, so that no reader sees half a note.
    pub(crate) fn keep_note(&self, name: &str, note: Option<&str>) -> io::Result<()> {
        let path = self.dir.join(name);
        match note {
            Some(note) => {
                let draft = self.dir.join(format!("{name}.new"));
                let mut file = open_private(&draft)?;
                file.set_len(0)?;
                file.write_all(note.as_bytes())?;
                file.sync_all()?;
                fs::rename(&draft, &path)?;
            }
            None => match fs::remove_file(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed?,
            },
        }
        sync_dir(&self.dir)
    }

    /// A connection whose commits are on disk when they return.
    pub(crate) fn connect(&self) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(self.database(), flags)?;
        conn.busy_timeout(BUSY_TIMEOUT)?;
        // On Apple's systems only a second, full sync makes a write durable.
        conn.execute_batch(
            "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;
             PRAGMA wal_autocheckpoint = 0; PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF;",
        )?;
        Ok(conn)
    }

    /// A connection that only reads.
    pub(crate) fn connect_to_read(&self) -> rusqlite::Result<Connection> {
        let conn = self.connect()?;
        conn.execute_batch("PRAGMA query_only = ON;")?;
        Ok(conn)
    }

    /// The error for a failure of SQLite while the store is opened.
    pub(crate) fn misses(&self, error: rusqlite::Error) -> EmbeddedOpenError {
        let dir = self.dir.clone();
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => EmbeddedOpenError::NotOurs { path: self.database() },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                EmbeddedOpenError::InUse { dir, pid: None }
            }
            code if is_damage(code) => EmbeddedOpenError::Broken { dir, source: error.into() },
            Some(
                ErrorCode::DiskFull
                | ErrorCode::ReadOnly
                | ErrorCode::CannotOpen
                | ErrorCode::PermissionDenied
                | ErrorCode::SystemIoFailure,
            ) => EmbeddedOpenError::NotWritable { dir, source: error.into() },
            _ => EmbeddedOpenError::Broken { dir, source: error.into() },
        }
    }
}

/// Makes the folder if it is not there. Returns whether it had to be made.
fn make_private_dir(dir: &Path) -> io::Result<bool> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(dir) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// The lock on the folder. A child process that is just starting holds a copy of the handle, so closing ours is not
/// enough: it is unlocked explicitly.
#[derive(Debug)]
struct DirLock(File);

impl Drop for DirLock {
    fn drop(&mut self) {
        // If this fails, closing the file ends the lock.
        drop(self.0.unlock());
    }
}

fn take_lock(dir: &Path) -> Result<DirLock, EmbeddedOpenError> {
    let failed = |source| EmbeddedOpenError::not_writable(dir, source);
    let mut file = open_private(&dir.join(LOCK)).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(EmbeddedOpenError::InUse { dir: dir.to_owned(), pid: read_pid(&mut file) });
        }
        Err(TryLockError::Error(source)) => return Err(failed(source)),
    }
    // It only serves the error message of a second process, so a full disk is no reason to stop.
    drop(write_pid(&mut file));
    Ok(DirLock(file))
}

fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(16).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

/// Opens or creates a file that only its owner can read. Orders hold answers, which are worth money, and passwords of
/// proxies.
pub(crate) fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    // One that was there already may have been made with wider permissions.
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    Ok(file)
}

fn parent(dir: &Path) -> &Path {
    match dir.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Makes the names in a directory durable: a file without its name is lost.
fn sync_dir(dir: &Path) -> io::Result<()> {
    // Elsewhere directories cannot be opened, and the file system sees to it by itself.
    if cfg!(unix) { File::open(dir)?.sync_all() } else { Ok(()) }
}
