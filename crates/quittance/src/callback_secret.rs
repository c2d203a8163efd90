//! The secret that signs our callback addresses and hashes the keys of orders. It is drawn once and kept beside the
//! store. After a restart, addresses must still be valid and repeats must still be recognised.

#[cfg(feature = "embedded")]
mod folder;

#[cfg(feature = "embedded")]
pub use folder::SECRET_NAME;
#[cfg(feature = "embedded")]
pub(crate) use folder::{Kept, found_in, keep_again, kept_in, look_at, replace_in};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Draws a random value that cannot be guessed.
pub(crate) fn draw<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

/// Writes a file that only its owner may read. It is first written in full under another name, so that a crash leaves
/// no half file.
pub(crate) fn keep(dir: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let draft = dir.join(format!("{name}.new"));
    let mut file = private(&draft)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&draft, dir.join(name))?;
    File::open(dir)?.sync_all()
}

fn private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
