//! Where the daemon listens, in the folder that it has to itself. It names its process as the lock does: what one that was
//! killed has left there is not believed.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

const NAME: &str = "daemon.at";
/// A number and an address.
const BYTES_MAX: usize = 128;

pub(crate) struct Note(PathBuf);

impl Note {
    pub(crate) fn of(dir: &Path) -> Self {
        Self(dir.join(NAME))
    }

    /// Written whole under another name first: half an address would be believed. Nothing is lost if it does not
    /// outlive a power cut, because the process does not either.
    pub(crate) fn write(&self, at: SocketAddr) -> io::Result<()> {
        let draft = self.0.with_extension("new");
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&draft)?.write_all(format!("{} http://{at}\n", std::process::id()).as_bytes())?;
        std::fs::rename(&draft, &self.0)
    }

    /// Where this process listens, if it is a daemon.
    pub(crate) fn read(&self, pid: u32) -> Option<SocketAddr> {
        let text = std::fs::read_to_string(&self.0).ok().filter(|text| text.len() <= BYTES_MAX)?;
        let (process, address) = text.trim().split_once(' ')?;
        let is_it = process.parse() == Ok(pid);
        address.strip_prefix("http://").filter(|_| is_it)?.parse().ok()
    }

    /// Whoever comes later finds that nobody listens there anyway.
    pub(crate) fn take_away(&self) {
        _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_process_that_wrote_it_is_asked() {
        let folder = tempfile::tempdir().unwrap();
        let note = Note::of(folder.path());
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
}
