//! The certificate of the https listener: from the operator's files, or made for development. It is read again when
//! its files change. A certificate that cannot be used never replaces one that can.

use crate::self_signed;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};

/// The only offered protocol, which is that of hyper.
const SPOKEN: &[u8] = b"http/1.1";

#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error("{} cannot be read: {source}: {}", path.display(), quittance_config::reading_remedy(source))]
    Unreadable { path: PathBuf, source: io::Error },
    #[error(
        "{} has no certificate in it: it must be PEM, with lines of `-----BEGIN CERTIFICATE-----`", path.display()
    )]
    NoCertificate { path: PathBuf },
    #[error("{} has no private key in it: it must be PEM, without a password", path.display())]
    NoKey { path: PathBuf },
    #[error("the key in {} does not belong to the certificate in {}: put the two that were made together there", key.display(), cert.display())]
    Strangers { cert: PathBuf, key: PathBuf },
    #[error("the certificate in {} and its key cannot be used: {source}", cert.display())]
    Refused { cert: PathBuf, source: rustls::Error },
    #[error("no certificate could be made")]
    Make(#[from] rcgen::Error),
    #[error("{} cannot be written: {source}; choose another folder for --tls-self-signed", path.display())]
    Unwritable { path: PathBuf, source: io::Error },
}

/// The source of a certificate.
#[derive(Clone, Debug)]
pub enum CertificateSource {
    Files { cert: PathBuf, key: PathBuf },
    SelfSigned { dir: PathBuf },
}

impl CertificateSource {
    /// Reads or creates the certificate.
    pub fn load(&self) -> Result<Arc<ServerConfig>, CertificateError> {
        match self {
            Self::Files { cert, key } => load(cert, key),
            Self::SelfSigned { dir } => {
                let made = self_signed::make(dir)?;
                configure(vec![made.cert], made.key)
                    .map_err(|source| CertificateError::Refused { cert: dir.clone(), source })
            }
        }
    }

    /// The file of the authority that clients must trust, if we made the certificate.
    #[must_use]
    pub fn ca_file(&self) -> Option<PathBuf> {
        match self {
            Self::Files { .. } => None,
            Self::SelfSigned { dir } => Some(self_signed::ca_file(dir)),
        }
    }

    /// Begins to watch the files of the certificate.
    #[must_use]
    pub fn watch(&self) -> WatchedFiles {
        let files = match self {
            Self::Files { cert, key } => vec![cert.clone(), key.clone()],
            Self::SelfSigned { .. } => Vec::new(),
        };
        let seen = stamps(&files);
        WatchedFiles { files, read: seen.clone(), seen }
    }
}

type Stamps = Vec<Option<(SystemTime, u64)>>;

/// Files that may change while the daemon runs.
#[derive(Debug)]
pub struct WatchedFiles {
    files: Vec<PathBuf>,
    /// The state of the files when they were last read.
    read: Stamps,
    seen: Stamps,
}

impl WatchedFiles {
    /// Whether the files differ from those that were read. Two files are never written at once, so a change counts
    /// only after two equal checks.
    pub fn have_changed(&mut self) -> bool {
        let now = stamps(&self.files);
        let is_settled = now == self.seen;
        self.seen = now;
        if !is_settled || self.seen == self.read {
            return false;
        }
        self.read.clone_from(&self.seen);
        true
    }
}

fn stamps(files: &[PathBuf]) -> Stamps {
    let stamp = |path: &PathBuf| {
        let found = std::fs::metadata(path).ok()?;
        Some((found.modified().ok()?, found.len()))
    };
    files.iter().map(stamp).collect()
}

/// A certificate and its key, if they can be used.
pub fn load(cert: &Path, key: &Path) -> Result<Arc<ServerConfig>, CertificateError> {
    let read = |path: &Path| {
        quittance_config::read_file(path)
            .map_err(|source| CertificateError::Unreadable { path: path.to_owned(), source })
    };
    let certs: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&read(cert)?)
        .collect::<Result<_, _>>()
        .map_err(|_| CertificateError::NoCertificate { path: cert.to_owned() })?;
    if certs.is_empty() {
        return Err(CertificateError::NoCertificate { path: cert.to_owned() });
    }
    let private = PrivateKeyDer::from_pem_slice(&read(key)?)
        .map_err(|_| CertificateError::NoKey { path: key.to_owned() })?;
    configure(certs, private).map_err(|source| match source {
        rustls::Error::InconsistentKeys(_) => {
            CertificateError::Strangers { cert: cert.to_owned(), key: key.to_owned() }
        }
        source => CertificateError::Refused { cert: cert.to_owned(), source },
    })
}

fn configure(
    certs: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<Arc<ServerConfig>, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(certs, key)?;
    config.alpn_protocols = vec![SPOKEN.to_vec()];
    // Clients that come back, as pollers do, are spared a whole handshake.
    config.ticketer = ring::Ticketer::new()?;
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(folder: &Path, name: &str) -> (PathBuf, PathBuf) {
        let made = rcgen::generate_simple_self_signed([format!("{name}.test")]).unwrap();
        let (cert, key) = (folder.join(format!("{name}.pem")), folder.join(format!("{name}.key")));
        std::fs::write(&cert, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        (cert, key)
    }

    #[test]
    fn a_certificate_that_cannot_be_used_is_reported_with_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let (cert, key) = pair(folder.path(), "one");
        let (_, other) = pair(folder.path(), "two");
        let empty = folder.path().join("empty");
        std::fs::write(&empty, "nothing").unwrap();
        assert!(load(&cert, &key).is_ok());
        for (cert, key, words) in [
            (&folder.path().join("gone"), &key, "gone cannot be read"),
            (&cert, &folder.path().join("gone"), "gone cannot be read"),
            (&empty, &key, "empty has no certificate"),
            (&key, &key, "one.key has no certificate"),
            (&cert, &empty, "empty has no private key"),
            (&cert, &other, "does not belong to"),
        ] {
            let error = load(cert, key).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
            assert!(!error.contains("PRIVATE"), "{error}");
        }
    }

    #[test]
    fn files_that_have_changed_are_reported_once_and_when_they_have_settled() {
        let folder = tempfile::tempdir().unwrap();
        let (cert, key) = pair(folder.path(), "one");
        let mut watched = CertificateSource::Files { cert: cert.clone(), key }.watch();
        assert!(!watched.have_changed() && !watched.have_changed());
        std::fs::write(&cert, "longer than before, or at least another text").unwrap();
        assert!(!watched.have_changed(), "perhaps the other one is still being written");
        assert!(watched.have_changed());
        assert!(!watched.have_changed(), "that was reported");
        std::fs::remove_file(&cert).unwrap();
        assert!(!watched.have_changed());
        assert!(watched.have_changed(), "a file that is gone has changed too");
        let mut nothing = CertificateSource::SelfSigned { dir: folder.path().to_owned() }.watch();
        assert!(!nothing.have_changed());
    }
}
