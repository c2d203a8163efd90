//! Tests over TLS: a call that fails before the end of the handshake never arrived, and unknown certificates are not
//! trusted.

use crate::classic::server::{ClassicClient, ClassicServer, ok, read_request};
use crate::classic::{accepted, hasty};
use crate::fixture::{in_doubt, refused, settings, submit};
use quittance_lifecycle::FaultClass::Unreachable;
use quittance_protocol::classic::ClassicDialect;
use quittance_provider::{BadSettings, ClassicProvider};
use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned, crypto};

type Secure = StreamOwned<ServerConnection, TcpStream>;

/// A server behind TLS, and its certificate.
fn secure(play: impl Fn(usize, ClassicClient, Secure) + Send + Sync + 'static) -> (ClassicServer, Vec<u8>) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let certificate = CertificateDer::from(made.cert.der().to_vec());
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let config = Arc::new(config);
    let server = ClassicServer::start(move |number, guest| {
        let connection = ServerConnection::new(config.clone()).unwrap();
        let stream = StreamOwned::new(connection, guest.stream.try_clone().unwrap());
        play(number, guest, stream);
    });
    (server, made.cert.pem().into_bytes())
}

fn url(server: &ClassicServer) -> String {
    format!("https://localhost:{}", server.port)
}

fn trusting(server: &ClassicServer, certificate: Vec<u8>) -> ClassicProvider {
    let mut settings = settings(&url(server));
    settings.extra_ca = certificate;
    settings.submit_timeout = Duration::from_secs(2);
    ClassicProvider::new(ClassicDialect::TwoCaptcha, settings).unwrap()
}

fn serve(guest: &ClassicClient, stream: &mut Secure) {
    let mut unread = Vec::new();
    while let Some(request) = read_request(stream, &mut unread) {
        guest.remember(&request);
        stream.write_all(ok("OK|123").as_bytes()).unwrap();
    }
}

#[tokio::test]
async fn an_order_goes_over_tls_and_the_connection_is_used_again() {
    let (server, certificate) = secure(|_, guest, mut stream| serve(&guest, &mut stream));
    let provider = trusting(&server, certificate);
    for _ in 0..5 {
        assert_eq!(submit(&provider).await, accepted("123"));
    }
    assert_eq!(server.received().len(), 5);
    // A ticket that comes after the handshake may make a resting connection look as if it had something to say.
    assert!(server.connections() <= 2, "{}", server.connections());
}

#[tokio::test]
async fn a_certificate_without_a_known_authority_is_unreachable() {
    let (server, _) = secure(|_, guest, mut stream| serve(&guest, &mut stream));
    let fault = refused(submit(&hasty(&url(&server))).await);
    assert_eq!(fault.class, Unreachable);
    assert!(fault.code.contains("TLS") && fault.code.contains("certificate"), "{fault}");
    assert!(server.received().is_empty());
}

#[tokio::test]
async fn a_certificate_for_another_name_is_unreachable() {
    let (server, certificate) = secure(|_, guest, mut stream| serve(&guest, &mut stream));
    let mut settings = settings(&format!("https://127.0.0.1:{}", server.port));
    settings.extra_ca = certificate;
    let fault = refused(submit(&ClassicProvider::new(ClassicDialect::TwoCaptcha, settings).unwrap()).await);
    assert_eq!(fault.class, Unreachable, "{fault}");
    assert!(server.received().is_empty());
}

#[tokio::test]
async fn half_a_handshake_is_unreachable() {
    let plays: [fn(ClassicClient); 4] = [
        |guest| {
            guest.wait_for_bytes();
            drop(guest);
        },
        |guest| {
            guest.wait_for_bytes();
            guest.reset();
        },
        |mut guest| {
            guest.read_some(100);
            guest.write("\x16\x03\x03\x00\x7a\x02");
        },
        |guest| guest.hold(),
    ];
    for play in plays {
        let server = ClassicServer::start(move |_, guest| play(guest));
        let fault = refused(submit(&hasty(&url(&server))).await);
        assert_eq!(fault.class, Unreachable, "{fault}");
        assert!(fault.code.starts_with("cannot agree on TLS"), "{fault}");
    }
}

#[tokio::test]
async fn tls_to_a_plain_port_is_unreachable() {
    let server = ClassicServer::start(|_, mut guest| {
        guest.wait_for_bytes();
        guest.write("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    });
    let fault = refused(submit(&hasty(&url(&server))).await);
    assert_eq!(fault.class, Unreachable, "{fault}");
}

/// The whole request was sent in the clear to another party.
#[tokio::test]
async fn plain_http_to_a_port_of_tls_is_in_doubt() {
    let (server, _) = secure(|_, _, mut stream| {
        let (connection, socket) = (&mut stream.conn, &mut stream.sock);
        _ = connection.complete_io(socket);
        while connection.wants_write() && connection.write_tls(socket).is_ok() {}
    });
    in_doubt(submit(&hasty(&format!("http://localhost:{}", server.port))).await);
    assert_eq!((server.received().len(), server.connections()), (0, 1));
}

#[tokio::test]
async fn a_close_or_reset_after_the_request_is_in_doubt() {
    let ends: [fn(ClassicClient, Secure); 3] = [
        |guest, mut stream| {
            stream.conn.send_close_notify();
            _ = stream.flush();
            drop(guest);
        },
        |guest, stream| {
            drop(stream);
            guest.reset();
        },
        // An answer without an end, and no close notice: it may have been cut.
        |_, mut stream| stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nOK|123").unwrap(),
    ];
    for end in ends {
        let (server, certificate) = secure(move |_, guest, mut stream| {
            let request = read_request(&mut stream, &mut Vec::new()).unwrap();
            guest.remember(&request);
            end(guest, stream);
        });
        in_doubt(submit(&trusting(&server, certificate)).await);
        assert_eq!((server.received().len(), server.connections()), (1, 1));
    }
}

#[tokio::test]
async fn a_connection_closed_between_two_requests_makes_no_doubt() {
    let (server, certificate) = secure(|number, guest, mut stream| {
        if number > 0 {
            return serve(&guest, &mut stream);
        }
        let request = read_request(&mut stream, &mut Vec::new()).unwrap();
        guest.remember(&request);
        stream.write_all(ok("OK|123").as_bytes()).unwrap();
        guest.wait_until_ended();
        stream.conn.send_close_notify();
        _ = stream.flush();
    });
    let provider = trusting(&server, certificate);
    assert_eq!(submit(&provider).await, accepted("123"));
    server.tell_and_wait_until_closed(1);
    assert_eq!(submit(&provider).await, accepted("123"));
    assert_eq!((server.received().len(), server.connections()), (2, 2));
}

#[test]
fn certificates_that_are_none_are_refused_at_once() {
    let mut settings = settings("https://localhost");
    settings.extra_ca = b"not a certificate".to_vec();
    assert!(matches!(
        ClassicProvider::new(ClassicDialect::TwoCaptcha, settings),
        Err(BadSettings::ExtraCa { .. })
    ));
}
