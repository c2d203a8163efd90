//! A certificate for development: a small authority of our own certifies localhost. It is kept in a folder, so that
//! clients that were set up once continue to trust it.

use crate::shown_certificate::CertificateError;
use quittance::SystemClock;
use quittance_ports::Clock;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::ServerCertVerifier;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime,
};

const DAY: Duration = Duration::from_secs(24 * 3600);
const CA_LIFE: Duration = Duration::from_secs(3650 * 24 * 3600);
/// The life of a certificate. Some clients refuse certificates that live much longer.
const CERT_LIFE: Duration = Duration::from_secs(365 * 24 * 3600);
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

pub(crate) struct MadeCertificate {
    pub(crate) cert: CertificateDer<'static>,
    pub(crate) key: PrivateKeyDer<'static>,
}

pub(crate) fn ca_file(dir: &Path) -> PathBuf {
    dir.join("ca.pem")
}

fn ca_key_file(dir: &Path) -> PathBuf {
    dir.join("ca-key.pem")
}

/// A new certificate from the authority in `dir`. The authority is created if it is missing or not valid any more.
pub(crate) fn make(dir: &Path) -> Result<MadeCertificate, CertificateError> {
    if let Some(made) = by_kept_authority(dir)? {
        return Ok(made);
    }
    if ca_file(dir).exists() {
        tracing::warn!(
            "the CA in {} cannot be used any more and is made again: give the new file to the clients",
            dir.display()
        );
    }
    let key = KeyPair::generate()?;
    let params = authority(&key)?;
    let ca = params.self_signed(&key)?;
    let unwritable = |path: PathBuf| |source| CertificateError::Unwritable { path, source };
    std::fs::create_dir_all(dir).map_err(unwritable(dir.to_owned()))?;
    // The key first: a certificate without its key would be made again, and a key without certificate is ignored.
    write(&ca_key_file(dir), &key.serialize_pem(), 0o600).map_err(unwritable(ca_key_file(dir)))?;
    write(&ca_file(dir), &ca.pem(), 0o644).map_err(unwritable(ca_file(dir)))?;
    sign(params, key)
}

fn by_kept_authority(dir: &Path) -> Result<Option<MadeCertificate>, CertificateError> {
    let read = |path: PathBuf| std::fs::read_to_string(path).ok();
    let (Some(ca), Some(key)) = (read(ca_file(dir)), read(ca_key_file(dir))) else { return Ok(None) };
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).ok().and_then(|key| KeyPair::try_from(&key).ok());
    let Some(key) = key else { return Ok(None) };
    let made = sign(authority(&key)?, key)?;
    Ok(is_vouched_for(&made.cert, &ca).then_some(made))
}

/// The parameters of the authority. All of them follow from its key, so the key is enough.
fn authority(key: &KeyPair) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(Vec::new())?;
    let mark: String = params.key_identifier(key).iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    params.distinguished_name.push(DnType::CommonName, format!("Quittance development CA {mark}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    limit(&mut params, CA_LIFE);
    Ok(params)
}

fn sign(authority: CertificateParams, key: KeyPair) -> Result<MadeCertificate, CertificateError> {
    let issuer = Issuer::new(authority, key);
    let own = KeyPair::generate()?;
    let mut params = CertificateParams::new(NAMES.map(str::to_owned))?;
    params.distinguished_name.push(DnType::CommonName, "localhost");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    limit(&mut params, CERT_LIFE);
    let cert = params.signed_by(&own, &issuer)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own.serialize_der()));
    Ok(MadeCertificate { cert: cert.der().clone(), key })
}

fn limit(params: &mut CertificateParams, life: Duration) {
    let now = rcgen::date_time_ymd(1970, 1, 1) + since_1970();
    // A clock that is a little behind ours must not refuse it.
    params.not_before = now - DAY;
    params.not_after = now + life;
}

fn since_1970() -> Duration {
    Duration::from_millis(SystemClock.now().as_millis())
}

/// Whether a client that trusts `ca` accepts the certificate today and in a month.
fn is_vouched_for(cert: &CertificateDer<'_>, ca: &str) -> bool {
    let mut roots = RootCertStore::empty();
    let Ok(ca) = CertificateDer::from_pem_slice(ca.as_bytes()) else { return false };
    if roots.add(ca).is_err() {
        return false;
    }
    let provider = Arc::new(ring::default_provider());
    let Ok(verifier) = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build() else {
        return false;
    };
    let Ok(name) = ServerName::try_from(NAMES[0]) else { return false };
    [Duration::ZERO, 30 * DAY].into_iter().all(|later| {
        let at = UnixTime::since_unix_epoch(since_1970() + later);
        verifier.verify_server_cert(cert, &[], &name, &[], at).is_ok()
    })
}

/// Writes a file: all of it, or nothing.
fn write(path: &Path, text: &str, mode: u32) -> std::io::Result<()> {
    let beside = path.with_extension("new");
    _ = std::fs::remove_file(&beside);
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    let mut file = options.open(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ca(dir: &Path) -> String {
        std::fs::read_to_string(ca_file(dir)).unwrap()
    }

    #[test]
    fn the_authority_stays_the_same_from_start_to_start() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("a/b");
        let first = make(&dir).unwrap();
        let kept = ca(&dir);
        let second = make(&dir).unwrap();
        assert_eq!(ca(&dir), kept, "clients go on trusting it");
        assert_ne!(first.cert, second.cert, "the certificate itself is new");
        for made in [first, second] {
            assert!(is_vouched_for(&made.cert, &kept));
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_key_of_the_authority_is_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        make(folder.path()).unwrap();
        let mode = std::fs::metadata(ca_key_file(folder.path())).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(!ca(folder.path()).contains("PRIVATE"));
    }

    #[test]
    fn an_authority_that_cannot_be_used_is_made_again() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let dir = folder.path();
        make(dir).unwrap();
        make(other.path()).unwrap();
        for (file, text) in [
            (ca_file(dir), "no certificate".to_owned()),
            (ca_key_file(dir), "no key".to_owned()),
            (ca_key_file(dir), std::fs::read_to_string(ca_key_file(other.path())).unwrap()),
        ] {
            let before = ca(dir);
            std::fs::write(file, text).unwrap();
            let made = make(dir).unwrap();
            assert_ne!(ca(dir), before);
            assert!(is_vouched_for(&made.cert, &ca(dir)));
        }
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let error = make(&file.join("below")).err().unwrap().to_string();
        assert!(error.contains("cannot be written") && error.contains("--tls-self-signed"), "{error}");
    }
}
