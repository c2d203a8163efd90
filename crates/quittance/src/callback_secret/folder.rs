//! The secret of an embedded store: a file in its folder.

use super::keep;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// The file beside an embedded store with the secret that signs callback addresses.
pub const SECRET_NAME: &str = "callback-secret";

/// The secret in this directory. If there is none, writes `secret` and returns it.
pub(crate) fn kept_in(dir: &Path, secret: [u8; 32]) -> io::Result<[u8; 32]> {
    let path = dir.join(SECRET_NAME);
    if let Some(secret) = read(&path)? {
        return Ok(secret);
    }
    keep(dir, SECRET_NAME, &secret)?;
    Ok(secret)
}

/// The state of the secret in a directory while a node uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Unchanged,
    Deleted,
    Replaced,
}

/// Whether the file of the secret is unchanged. A file that cannot be read now is checked again later.
pub(crate) fn look_at(dir: &Path, secret: &[u8; 32]) -> Kept {
    match read(&dir.join(SECRET_NAME)) {
        Ok(None) => Kept::Deleted,
        Ok(Some(found)) if found != *secret => Kept::Replaced,
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Kept::Replaced,
        Ok(Some(_)) | Err(_) => Kept::Unchanged,
    }
}

/// Writes the secret into this directory again, and creates the directory if it is gone.
pub(crate) fn keep_again(dir: &Path, secret: [u8; 32]) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)?;
    keep(dir, SECRET_NAME, &secret)
}

/// The secret of this directory, if there is one.
pub(crate) fn found_in(dir: &Path) -> io::Result<Option<[u8; 32]>> {
    read(&dir.join(SECRET_NAME))
}

/// Replaces the secret in this directory.
pub(crate) fn replace_in(dir: &Path, secret: &[u8; 32]) -> io::Result<()> {
    keep(dir, SECRET_NAME, secret)
}

fn read(path: &Path) -> io::Result<Option<[u8; 32]>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut record = Vec::new();
    file.take(64).read_to_end(&mut record)?;
    let secret = record.try_into().map_err(|_| {
        let what = format!(
            "{} must hold exactly 32 bytes: restore it from a backup. The keys of orders follow from it: with a new one, \
             orders on record are not recognised when they are placed again, and are bought again",
            path.display()
        );
        io::Error::new(io::ErrorKind::InvalidData, what)
    })?;
    Ok(Some(secret))
}

#[cfg(test)]
mod tests {
    use super::super::draw;
    use super::*;

    #[test]
    fn a_secret_is_drawn_once_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        let first = kept_in(dir.path(), draw().unwrap()).unwrap();
        assert_eq!(kept_in(dir.path(), draw().unwrap()).unwrap(), first);
        assert_ne!(first, [0; 32]);
        fs::write(dir.path().join(SECRET_NAME), b"short").unwrap();
        let error = kept_in(dir.path(), [1; 32]).unwrap_err();
        assert!(error.to_string().contains("32 bytes"), "{error}");
    }
}
