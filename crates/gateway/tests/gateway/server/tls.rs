//! Tests of the APIs over TLS, with a certificate that is replaced at run time.

use super::with;
use crate::classic::fixture::{Connection, Fixture, KEY};
use quittance_gateway::{Limits, Tls};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig, crypto::ring};

/// A new certificate, and a server configuration with it.
fn certificate() -> (CertificateDer<'static>, Arc<ServerConfig>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = made.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key.into())
        .unwrap();
    (certificate, Arc::new(config))
}

async fn connect(
    address: SocketAddr,
    trusted: &CertificateDer<'static>,
    protocols: &[&[u8]],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    let stream = TcpStream::connect(address).await?;
    TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("localhost").unwrap(), stream).await
}

async fn fixture(limits: Limits, config: Arc<ServerConfig>) -> (Fixture, Tls, SocketAddr) {
    let fixture = Fixture::unheard(Vec::new(), with(limits));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let tls = Tls::new(config);
    tokio::spawn(fixture.gateway.serve(listener, Some(tls.clone())));
    (fixture, tls, address)
}

#[tokio::test]
async fn a_certificate_is_replaced_while_the_server_is_open() {
    let (first, config) = certificate();
    let (_room, tls, address) = fixture(Limits::default(), config).await;
    let path = format!("/res.php?key={KEY}&action=getbalance");
    let mut early = Connection::new(connect(address, &first, &[]).await.unwrap());
    assert_eq!(early.ask("GET", &path, &[], b"").await.body, "ERROR_NO_SLOT_AVAILABLE");
    let (second, config) = certificate();
    assert!(connect(address, &second, &[]).await.is_err(), "not yet");
    tls.replace(config);
    assert!(connect(address, &first, &[]).await.is_err(), "no longer");
    let mut late = Connection::new(connect(address, &second, &[]).await.unwrap());
    assert_eq!(late.ask("GET", &path, &[], b"").await.body, "ERROR_NO_SLOT_AVAILABLE");
    assert_eq!(
        early.ask("GET", &path, &[], b"").await.body,
        "ERROR_NO_SLOT_AVAILABLE",
        "who was there before stays"
    );
}

#[tokio::test]
async fn a_client_that_would_rather_speak_http_2_is_made_to_speak_http_1() {
    let (trusted, config) = certificate();
    let (_room, _tls, address) = fixture(Limits::default(), config).await;
    let stream = connect(address, &trusted, &[b"h2", b"http/1.1"]).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
}

#[tokio::test]
async fn a_handshake_that_never_ends_keeps_no_other_waiting() {
    let (trusted, config) = certificate();
    let limits = Limits { read_wait: Duration::from_millis(50), ..Limits::default() };
    let (fixture, _tls, address) = fixture(limits, config).await;
    let mut silent = Connection::new(TcpStream::connect(address).await.unwrap());
    let mut other = Connection::new(connect(address, &trusted, &[]).await.unwrap());
    assert_eq!(other.ask("GET", "/healthz", &[], b"").await.status, 200);
    assert_eq!(silent.reply().await, None, "and it is closed");
    let mut plain = Connection::new(TcpStream::connect(address).await.unwrap());
    plain.send(b"GET / HTTP/1.1\r\n\r\n").await;
    plain.status().await;
    while fixture.gateway.counts().failed_handshakes < 2 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn plain_and_tls_are_served_side_by_side_within_the_same_limits() {
    let (trusted, config) = certificate();
    let (fixture, _tls, address) = fixture(Limits::default(), config).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let plain = listener.local_addr().unwrap();
    tokio::spawn(fixture.gateway.serve(listener, None));
    let mut over_tls = Connection::new(connect(address, &trusted, &[]).await.unwrap());
    let mut over_tcp = Connection::new(TcpStream::connect(plain).await.unwrap());
    assert_eq!(over_tls.ask("GET", "/healthz", &[], b"").await.status, 200);
    assert_eq!(over_tcp.ask("GET", "/healthz", &[], b"").await.status, 200);
    assert_eq!(fixture.gateway.counts().connections_open, 2);
    assert!(fixture.gateway.drain(Duration::from_secs(30)).await);
}
