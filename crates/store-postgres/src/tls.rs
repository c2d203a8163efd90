//! How a connection is encrypted, and whether the server's certificate is checked.

use crate::settings::{Protection, ServerAddress};
use std::sync::Arc;
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// Why the given certificate authority cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum BadCa {
    #[error("the file of the certificate authority holds no certificate in PEM")]
    Empty,
    #[error("a certificate of the authority cannot be read")]
    Unreadable,
    #[error(transparent)]
    Rustls(#[from] Error),
}

pub(crate) fn connector(server: &ServerAddress, ca: Option<&[u8]>) -> Result<MakeRustlsConnect, BadCa> {
    let provider = Arc::new(ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    let config = match (ca, server.protection) {
        (Some(pem), _) => builder.with_root_certificates(authority(pem)?).with_no_client_auth(),
        (None, Protection::VerifyFull) => {
            let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
            builder.with_root_certificates(roots).with_no_client_auth()
        }
        (None, Protection::Disable | Protection::Prefer | Protection::Require) => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyServer(provider)))
            .with_no_client_auth(),
    };
    Ok(MakeRustlsConnect::new(config))
}

fn authority(pem: &[u8]) -> Result<RootCertStore, BadCa> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        roots.add(certificate.map_err(|_| BadCa::Unreadable)?).map_err(|_| BadCa::Unreadable)?;
    }
    if roots.is_empty() { Err(BadCa::Empty) } else { Ok(roots) }
}

/// Accepts any server, as `prefer` and `require` do everywhere: the connection is encrypted, but the server is not
/// identified. The handshake itself is still checked.
#[derive(Debug)]
struct AnyServer(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _between: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _stapled: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
