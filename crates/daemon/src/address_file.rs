//! The file with the daemon's address, in the store's folder. It names the process, so that the file of a killed
//! daemon is ignored.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

const NAME: &str = "daemon.at";
/// The most bytes of the file: a number and an address.
const BYTES_MAX: u64 = 128;

/// The file of one store.
#[derive(Debug)]
pub struct AddressFile {
    path: PathBuf,
    /// The file, locked while the process that wrote it runs.
    written: Option<File>,
}

impl AddressFile {
    #[must_use]
    pub fn of(dir: &Path) -> Self {
        Self { path: dir.join(NAME), written: None }
    }

    /// Writes the address. The file is first written in full under another name, because half an address would be
    /// believed. It need not survive a power cut, because the process does not either.
    pub fn write(&mut self, at: SocketAddr) -> io::Result<()> {
        let draft = self.path.with_extension("new");
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&draft)?;
        file.try_lock()?;
        file.write_all(format!("{} http://{at}\n", std::process::id()).as_bytes())?;
        std::fs::rename(&draft, &self.path)?;
        self.written = Some(file);
        Ok(())
    }

    /// The address of this process, if it is a daemon.
    #[must_use]
    pub fn read(&self, pid: u32) -> Option<SocketAddr> {
        let (process, address) = parse(File::open(&self.path).ok()?)?;
        (process == pid).then_some(address)
    }

    /// The address, if the process that wrote it still runs. This does not touch the store's own lock, so it never
    /// keeps a process from opening the store.
    #[must_use]
    pub fn read_if_held(&self) -> Option<SocketAddr> {
        let file = File::open(&self.path).ok()?;
        let is_held = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
        is_held.then(|| parse(file))?.map(|(_, address)| address)
    }

    /// Removes the file. An error is ignored: without its process, the file is ignored, too.
    pub fn take_away(&self) {
        _ = std::fs::remove_file(&self.path);
    }
}

fn parse(file: File) -> Option<(u32, SocketAddr)> {
    let mut text = String::new();
    file.take(BYTES_MAX).read_to_string(&mut text).ok()?;
    let (process, address) = text.trim().split_once(' ')?;
    Some((process.parse().ok()?, address.strip_prefix("http://")?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_process_that_wrote_it_is_asked() {
        let folder = tempfile::tempdir().unwrap();
        let mut note = AddressFile::of(folder.path());
        let (us, at) = (std::process::id(), SocketAddr::from(([127, 0, 0, 1], 8780)));
        assert_eq!(note.read(us), None, "there is none");
        note.write(at).unwrap();
        assert_eq!((note.read(us), note.read(us + 1)), (Some(at), None));
        for odd in ["", "1", "x http://127.0.0.1:1", "127.0.0.1:1"] {
            std::fs::write(folder.path().join(NAME), odd).unwrap();
            assert_eq!(note.read(1), None, "{odd}");
        }
        note.take_away();
        assert!(!folder.path().join(NAME).exists());
    }

    #[test]
    fn a_note_is_held_for_as_long_as_its_writer_lives() {
        let folder = tempfile::tempdir().unwrap();
        let (mut note, at) = (AddressFile::of(folder.path()), SocketAddr::from(([127, 0, 0, 1], 8780)));
        let held = || AddressFile::of(folder.path()).read_if_held();
        assert_eq!(held(), None, "there is none");
        note.write(at).unwrap();
        assert_eq!((held(), held()), (Some(at), Some(at)), "a reader changes nothing");
        drop(note);
        assert!(folder.path().join(NAME).exists() && held().is_none(), "a daemon that was killed leaves it");
        let mut next = AddressFile::of(folder.path());
        next.write(at).unwrap();
        assert_eq!(held(), Some(at), "the next one writes its own");
    }
}
