//! What a certificate says: its names, and from when to when it is valid.

use std::net::IpAddr;
use std::path::Path;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::time::{Time, Validity};

/// The facts in a certificate.
#[derive(Clone, Debug)]
pub struct CertificateFacts {
    /// The hosts and addresses that it is for.
    pub names: Vec<String>,
    /// From when on it is valid, in seconds since 1970.
    pub from: i64,
    pub until: i64,
    pub until_words: String,
}

impl CertificateFacts {
    /// The facts in the first certificate of a file; `None` if it cannot be read.
    #[must_use]
    pub fn read(path: &Path) -> Option<Self> {
        let der = CertificateDer::pem_slice_iter(&quittance_config::read_file(path).ok()?).next()?.ok()?;
        let cert = Certificate::from_der(&der).ok()?.tbs_certificate;
        let names = cert.get::<SubjectAltName>().ok().flatten().map(|(_, found)| found.0).unwrap_or_default();
        let name = |name: &GeneralName| match name {
            GeneralName::DnsName(name) => Some(name.to_string()),
            GeneralName::IpAddress(bytes) => match bytes.as_bytes() {
                v4 if v4.len() == 4 => <[u8; 4]>::try_from(v4).ok().map(|v4| IpAddr::from(v4).to_string()),
                v6 => <[u8; 16]>::try_from(v6).ok().map(|v6| IpAddr::from(v6).to_string()),
            },
            _ => None,
        };
        let seconds = |time: Time| i64::try_from(time.to_unix_duration().as_secs()).unwrap_or(i64::MAX);
        let Validity { not_before, not_after } = cert.validity;
        Some(Self {
            names: names.iter().filter_map(name).collect(),
            from: seconds(not_before),
            until: seconds(not_after),
            until_words: not_after.to_string(),
        })
    }
}
