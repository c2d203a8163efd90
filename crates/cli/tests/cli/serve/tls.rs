//! The daemon over https: a certificate for development that clients can trust, and one from files that is read
//! again.

use crate::serve::house::{Daemon, House, ask, until};
use rustix::process::Signal;
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// The status of one request from a client that trusts only this CA; `None` if it does not trust the server.
fn status(at: &str, host: &str, ca: &Path) -> Option<u16> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(ca).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let client = ClientConnection::new(Arc::new(config), host.to_owned().try_into().unwrap()).unwrap();
    let mut stream = StreamOwned::new(client, TcpStream::connect(at).unwrap());
    stream.conn.complete_io(&mut stream.sock).ok()?;
    Some(ask(&mut stream, "/res.php?action=get").status)
}

fn https(daemon: &Daemon) -> String {
    daemon.line_after("listening on https://")
}

#[test]
fn a_client_that_trusts_our_ca_comes_in_from_start_to_start() {
    let house = House::new();
    let mut ca = None;
    for _ in 0..2 {
        let daemon = house.serve(&["--tls-listen", "127.0.0.1:0", "--tls-self-signed", "tls"]);
        assert_eq!(daemon.printed.lines().count(), 4, "{}", daemon.printed);
        let file = house.path(&daemon.line_after("CA file: "));
        for host in ["localhost", "127.0.0.1", "::1"] {
            assert_eq!(status(&https(&daemon), host, &file), Some(200), "{host}");
        }
        let now = std::fs::read_to_string(&file).unwrap();
        assert_eq!(ca.get_or_insert_with(|| now.clone()), &now, "clients need no new file");
        assert_eq!(daemon.end(Signal::TERM).code, Some(0));
    }
}

/// Writes a new certificate, which is its own CA.
fn renew(house: &House, name: &str) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(house.path(name), made.cert.pem()).unwrap();
    std::fs::write(house.path("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(house.path("key.pem"), made.signing_key.serialize_pem()).unwrap();
}

#[test]
fn a_certificate_is_read_again_when_its_files_change_or_on_a_signal() {
    let house = House::new();
    renew(&house, "first.pem");
    let files = ["--set", "tls.cert_file=cert.pem", "--set", "tls.key_file=key.pem"];
    let daemon = house.serve(&[&["--tls-listen", "127.0.0.1:0"], &files[..]].concat());
    let (at, trusts) =
        (https(&daemon), |ca: &str| status(&https(&daemon), "localhost", &house.path(ca)) == Some(200));
    assert!(trusts("first.pem"));
    renew(&house, "second.pem");
    daemon.signal(Signal::HUP);
    until("the second is shown", || trusts("second.pem").then_some(()));
    renew(&house, "third.pem");
    until("the third is shown, without a word", || trusts("third.pem").then_some(()));
    std::fs::write(house.path("cert.pem"), "no certificate at all").unwrap();
    daemon.signal(Signal::HUP);
    daemon.logs("the old one stays in use");
    assert!(trusts("third.pem"), "the old one stays in use");
    assert!(!trusts("second.pem"));
    let ended = daemon.end(Signal::TERM);
    assert_eq!(ended.code, Some(0), "{at}");
    assert_eq!(ended.err.matches("the certificate was read again").count(), 2, "{}", ended.err);
    assert!(ended.err.contains("the old one stays in use"), "{}", ended.err);
}
