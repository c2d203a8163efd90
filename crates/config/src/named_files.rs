//! The files that settings name, and the folder in which this node keeps its own.

use crate::effective::Effective;
use crate::error::ConfigError;
use crate::setting_name::Name;
use crate::store::{StoreConfig, StoreUrl};
use quittance::embedded::{DATABASE, LOCK, TRAIL, will_restore};
use quittance::{SECRET_NAME, SPILL_NAME};
use rustix::fs::{Access, access};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

/// Folders of the system in which not even root can keep a file.
const SYSTEM_FOLDERS: [&str; 2] = ["/proc", "/sys"];
/// The head of a SQLite file, and where the application id stands in it.
const DATABASE_HEAD_BYTES: u64 = 100;
const APPLICATION_ID_AT: usize = 68;
const SECRET_BYTES: u64 = 32;

/// The content of a file. A pipe or a device is refused before it is opened: to open or read it could take for ever.
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let found = std::fs::metadata(path)?;
    if found.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    if !found.is_file() {
        return Err(io::Error::new(
            ErrorKind::InvalidInput,
            "it is a pipe, a socket or a device, and not a file",
        ));
    }
    let mut content = Vec::new();
    File::open(path)?.read_to_end(&mut content)?;
    Ok(content)
}

/// What to do about a file that cannot be read.
pub fn reading_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::NotFound => "put the file there, or correct its path in the configuration",
        ErrorKind::PermissionDenied => "let this user read the file and enter its folders",
        ErrorKind::IsADirectory => "name a file in it, not the folder",
        ErrorKind::InvalidInput => "name a regular file",
        ErrorKind::InvalidData => "it must be text",
        _ => "look at the disk that it is on",
    }
}

/// The certificates in the file that a setting names, as PEM; empty if it is not set.
pub(crate) fn certificates(effective: &Effective, name: &Name) -> Result<Vec<u8>, ConfigError> {
    let Some(path) = effective.text_at(name) else { return Ok(Vec::new()) };
    let unsound = |problem: String| {
        let remedy =
            "put certificates in PEM there, with lines of `-----BEGIN CERTIFICATE-----`, or leave it out";
        effective.unsound(name, format!("names {path}, {problem}"), remedy)
    };
    let pem = read_file(Path::new(&path)).map_err(|why| unsound(format!("which cannot be read ({why})")))?;
    match count_authorities(&pem) {
        Ok(0) => Err(unsound("which has no certificate in it".into())),
        Ok(_) => Ok(pem),
        Err(why) => Err(unsound(format!("and a certificate in it cannot be used ({why})"))),
    }
}

/// Counts the authorities in a PEM file. Each must be usable to check a connection.
fn count_authorities(pem: &[u8]) -> Result<usize, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|why| why.to_string())?;
        roots.add(certificate).map_err(|why| why.to_string())?;
    }
    Ok(roots.len())
}

/// Checks that this node can keep its files where the configuration says. Nothing is created.
pub fn check_folder(store: &StoreConfig) -> Result<(), ConfigError> {
    let (folder, setting) = match (&store.url, &store.home) {
        (StoreUrl::Embedded(folder), _) => (folder, "store.url"),
        (_, Some(home)) => (home, "store.home"),
        (_, None) => return Ok(()),
    };
    let wrong = |why: String| {
        ConfigError::about(setting, format!("`{setting}` names the folder {}, {why}", folder.display()))
    };
    match folder.metadata() {
        Ok(_) => {
            let why = cannot_create_files(folder).or_else(|| cannot_write_own_files(folder, store));
            return why.map_or(Ok(()), |why| Err(wrong(why)));
        }
        Err(error) if error.kind() == ErrorKind::NotFound && folder.symlink_metadata().is_ok() => {
            return Err(wrong(
                "which is a link to a folder that is not there: make that folder, mount its disk, or name another".into(),
            ));
        }
        // Whether it can be made depends on the folder above it.
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied
            ) => {}
        Err(error) => return Err(wrong(format!("which cannot be used ({error}): name another folder"))),
    }
    let exists = |above: &&Path| above.as_os_str().is_empty() || above.exists();
    // An embedded store creates only the last folder of its path.
    let above = match store.url {
        StoreUrl::Embedded(_) => folder.parent().filter(exists),
        _ => folder.ancestors().skip(1).find(exists),
    };
    let Some(above) = above else {
        let parent = folder.parent().unwrap_or(folder).display();
        return Err(wrong(format!(
            "and there is no folder {parent} to make it in: make that one (`mkdir -p {parent}`), or name another"
        )));
    };
    let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
    cannot_create_files(above).map_or(Ok(()), |why| Err(wrong(why)))
}

/// Why no file can be created in this folder; `None` if one can.
fn cannot_create_files(folder: &Path) -> Option<String> {
    let shown = folder.display();
    if !folder.is_dir() {
        return Some(format!("and {shown} is a file: name a folder"));
    }
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    if let Some(system) = SYSTEM_FOLDERS.iter().find(|system| whole.starts_with(system)) {
        return Some(format!(
            "and {system} is the system's own, where nothing can be kept: name another folder"
        ));
    }
    let error = access(folder, Access::WRITE_OK | Access::EXEC_OK).err()?;
    Some(format!("and this user cannot write in {shown} ({error}): let it, or name another folder"))
}

/// Why an existing file of this node in the folder cannot be opened as `serve` opens it; `None` if all can.
fn cannot_write_own_files(folder: &Path, store: &StoreConfig) -> Option<String> {
    let both = Access::READ_OK | Access::WRITE_OK;
    let (log, index) = (format!("{DATABASE}-wal"), format!("{DATABASE}-shm"));
    let of_store = [
        (DATABASE, both),
        (&log, both),
        (&index, both),
        (LOCK, both),
        (TRAIL, both),
        (SECRET_NAME, Access::READ_OK),
    ];
    let of_store = of_store.iter().filter(|_| matches!(store.url, StoreUrl::Embedded(_)));
    let spill_lock = format!("{SPILL_NAME}.lock");
    of_store.chain(&[(SPILL_NAME, both), (&spill_lock, both)]).find_map(|(name, need)| {
        let path = folder.join(name);
        let shown = path.display();
        let found = path.metadata().ok()?;
        if found.is_dir() {
            return Some(format!(
                "and {shown} is a folder: move it away, because this node keeps a file of that name"
            ));
        }
        if !found.is_file() {
            return Some(format!("and {shown} is not a regular file: move it away"));
        }
        if let Err(error) = access(&path, *need) {
            return Some(format!(
                "and this user cannot use the file {shown} ({error}): let it read and write the file"
            ));
        }
        match *name {
            // A database that was overwritten under a node is replaced by the copy that the node saved.
            DATABASE if is_foreign(&path) && !will_restore(folder) => {
                Some(format!("and {shown} is not a store of Quittance: name another folder"))
            }
            SECRET_NAME if found.len() != SECRET_BYTES => {
                Some(format!("and {shown} must hold exactly {SECRET_BYTES} bytes: restore it from a backup"))
            }
            _ => None,
        }
    })
}

/// Whether a file that should be our database is something else. An empty file becomes a database.
fn is_foreign(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(DATABASE_HEAD_BYTES).read_to_end(&mut head));
    let id = head.get(APPLICATION_ID_AT..APPLICATION_ID_AT + 4);
    read.is_ok() && !head.is_empty() && !(head.starts_with(b"SQLite format 3\0") && id == Some(b"QUIT"))
}
