//! The secret by which we know our own callback addresses, and under which the keys of orders are hashed. It is drawn
//! once and kept beside the store: addresses that were given out before a restart must still be ours after it, and a
//! repeat must be recognised.

#[cfg(feature = "embedded")]
mod folder;

#[cfg(feature = "embedded")]
pub use folder::SECRET_NAME;
#[cfg(feature = "embedded")]
pub(crate) use folder::{Kept, found_in, keep_again, kept_in, look_at, replace_in};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// A value that cannot be guessed.
pub(crate) fn draw<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

/// Writes a file that only the owner may read. Written whole under another name first: a crash in the middle must not
/// leave half of it.
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
