//! The few operations that a spill needs from a disk, and the file that provides them. They are a trait so that tests
//! can make each of them fail.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

pub(crate) trait Disk: Send + fmt::Debug {
    fn read(&mut self) -> io::Result<Vec<u8>>;

    /// Appends to the file. This may fail half-way, and what was written is safe only after `sync`.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    fn sync(&mut self) -> io::Result<()>;

    /// Cuts the file to `length`; safe only after `sync`.
    fn cut(&mut self, length: u64) -> io::Result<()>;

    /// Replaces the content of the whole file: all of it or nothing, and durable when this returns. After a failure,
    /// the file may have either content.
    fn replace(&mut self, content: &[u8]) -> io::Result<()>;

    /// Adds bytes to those that an operator must look at. The bytes are durable when this returns.
    fn set_aside(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// How many bytes an operator must look at.
    fn set_aside_bytes(&self) -> io::Result<u64>;
}

/// A file of a spill, with `.lock` and `.unreadable` beside it, and `.new` while it is replaced.
#[derive(Debug)]
pub(crate) struct FileDisk {
    path: PathBuf,
    file: File,
    /// The lock, held as long as this value lives. It has a file of its own because the spill's file is replaced.
    _lock: File,
}

impl FileDisk {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let lock = open_private(&beside(path, ".lock"), OpenOptions::new().write(true))?;
        // A file that is replaced while another process has it open would let that process write into nowhere.
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => {
                io::Error::new(io::ErrorKind::ResourceBusy, "another process has this spill open")
            }
            TryLockError::Error(error) => error,
        })?;
        let file = open_private(path, OpenOptions::new().read(true).append(true))?;
        file.sync_all()?;
        sync_folder(path)?;
        Ok(Self { path: path.to_owned(), file, _lock: lock })
    }
}

impl Disk for FileDisk {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(0))?;
        self.file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Makes the content safe. `sync_data` includes the length; only times and so on are left out.
    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        if is_at(&self.path, &self.file) {
            return Ok(());
        }
        // It was moved or deleted, with its folder perhaps: all that is in it goes to where the next process looks
        // for it.
        let content = self.read()?;
        if let Some(folder) = self.path.parent().filter(|folder| !folder.exists()) {
            make_private_folder(folder)?;
        }
        self.replace(&content)
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn replace(&mut self, content: &[u8]) -> io::Result<()> {
        let new = beside(&self.path, ".new");
        let renamed = write_new(&new, content).and_then(|file| {
            fs::rename(&new, &self.path)?;
            Ok(file)
        });
        if renamed.is_err() {
            // The disk may be full, and half a file in its way. If it cannot go, the next try begins by cutting it.
            drop(fs::remove_file(&new));
        }
        self.file = renamed?;
        sync_folder(&self.path)
    }

    fn set_aside(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut file = open_private(&beside(&self.path, ".unreadable"), OpenOptions::new().append(true))?;
        file.write_all(bytes)?;
        file.sync_all()?;
        sync_folder(&self.path)
    }

    fn set_aside_bytes(&self) -> io::Result<u64> {
        match fs::metadata(beside(&self.path, ".unreadable")) {
            Ok(attributes) => Ok(attributes.len()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(error),
        }
    }
}

/// Whether `path` still names this file.
#[cfg(unix)]
fn is_at(path: &Path, file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    let which = |attributes: fs::Metadata| (attributes.dev(), attributes.ino());
    fs::metadata(path).map(which).ok() == file.metadata().map(which).ok()
}

#[cfg(not(unix))]
fn is_at(path: &Path, _: &File) -> bool {
    path.exists()
}

fn make_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn write_new(path: &Path, content: &[u8]) -> io::Result<File> {
    let mut file = open_private(path, OpenOptions::new().read(true).append(true))?;
    file.set_len(0)?;
    file.write_all(content)?;
    file.sync_all()?;
    Ok(file)
}

pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Opens a file that only its owner may read, or creates it: answers are worth money.
fn open_private(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    options.create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    let file = options.open(path)?;
    // One that was there already may have been made with wider permissions.
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    Ok(file)
}

/// Makes the names in the folder of `path` safe: a file without its name is lost.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    // Elsewhere folders cannot be opened, and the file system sees to it by itself.
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}
