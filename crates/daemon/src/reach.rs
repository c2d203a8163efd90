//! Calls our own addresses: the daemon on this machine, and the public address, to see whether a provider's call would
//! arrive at our listener.

use crate::shown_certificate::load;
use crate::sockets::{HTTPS_DEFAULT, is_kept_inside};
use http_body_util::{BodyExt, Collected, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::CONNECTION;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use quittance_config::{Config, TlsConfig};
use quittance_wire::call::request_to;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// How long our own call may take to arrive.
const REACH_WAIT: Duration = Duration::from_secs(5);
/// How many bytes of a response or a request are read.
const BODY_BYTES: usize = 4096;
const HEAD_BYTES: usize = 4096;

/// Whether a daemon of ours listens at this address.
pub async fn is_daemon_at(listen: SocketAddr) -> bool {
    matches!(ask_daemon(listen, "/healthz").await, Some((StatusCode::OK, _)))
}

/// Why a daemon of ours at this address accepts no orders; `None` if it accepts orders.
pub async fn not_ready(listen: SocketAddr) -> Option<String> {
    let (status, body) = ask_daemon(listen, "/readyz").await?;
    let reply: serde_json::Value = serde_json::from_slice(&body).ok()?;
    reply["why"].as_str().filter(|_| status == StatusCode::SERVICE_UNAVAILABLE).map(str::to_owned)
}

async fn ask_daemon(listen: SocketAddr, path: &str) -> Option<(StatusCode, Bytes)> {
    let uri = format!("http://{}{path}", near(listen)).parse().ok()?;
    tokio::time::timeout(REACH_WAIT, Box::pin(get(&uri, &[]))).await.ok()?.ok()
}

/// An address that can be called.
#[derive(Debug)]
pub struct PublicAddress(Uri);

impl PublicAddress {
    /// The address in this URL; `None` if it is no address that can be called.
    #[must_use]
    pub fn parse(url: &str) -> Option<Self> {
        let uri: Uri = url.parse().ok()?;
        (uri.host().is_some() && matches!(uri.scheme_str(), Some("http" | "https"))).then_some(Self(uri))
    }

    #[must_use]
    pub fn is_https(&self) -> bool {
        is_https(&self.0)
    }

    /// Whether the address leads to this machine and to no other.
    pub async fn is_near(&self) -> Result<bool, String> {
        let found = tokio::net::lookup_host(host_and_port(&self.0)).await;
        Ok(found.map_err(|error| error.to_string())?.all(is_kept_inside))
    }
}

/// Calls the public address. Returns where the call arrived.
pub async fn arrives(config: &Config, public_url: &str) -> Result<String, String> {
    let extra: Vec<&[u8]> = config.providers.iter().map(quittance_config::ProviderConfig::extra_ca).collect();
    let at = |path: &str| {
        format!("{}{path}", public_url.trim_end_matches('/'))
            .parse::<Uri>()
            .map_err(|error| error.to_string())
    };
    let listener = match TcpListener::bind(config.listen).await {
        Ok(listener) => listener,
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            // Most likely the daemon itself: it says so where it is asked.
            let (status, _) = within(Box::pin(get(&at("/healthz")?, &extra))).await?;
            if status == StatusCode::OK {
                return Ok(
                    "a service that reports that it is healthy: most likely the daemon that listens here"
                        .into(),
                );
            }
            return Err(format!(
                "{} is in use, and what answers there is no daemon of ours (status {})",
                config.listen,
                status.as_u16()
            ));
        }
        Err(error) => return Err(format!("cannot listen there: {error}; choose another `listen`")),
    };
    let token = format!("quittance-doctor-{}", std::process::id());
    let uri = at(&format!("/callback/{token}"))?;
    let secure = secure_listener(&config.tls).await;
    let arrive = Box::pin(async {
        tokio::select! {
            arrived = await_probe(&listener, None, &token) => arrived.map(|()| config.listen.to_string()),
            arrived = async { match &secure {
                Some((listener, acceptor)) => await_probe(listener, Some(acceptor), &token).await.map(|()| "tls.listen".to_owned()),
                None => std::future::pending().await,
            } } => arrived,
        }
    });
    let call = Box::pin(async {
        match get(&uri, &extra).await {
            Err(why) => why,
            // There was a response; if it was not ours, nothing will arrive.
            Ok(_) => std::future::pending().await,
        }
    });
    within(async {
        tokio::select! {
            arrived = arrive => arrived.map_err(|error| error.to_string()),
            why = call => Err(why),
        }
    })
    .await
}

/// The address at which this machine reaches a listener.
#[must_use]
pub fn near(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

/// Sends a request on a connection of its own.
pub async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Bytes>,
) -> hyper::Result<Response<Incoming>> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // Its errors are also those of the response.
    tokio::spawn(connection);
    sender.send_request(request.map(Full::new)).await
}

async fn within<T>(trial: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let late = |_| format!("nothing arrived within {} s", REACH_WAIT.as_secs());
    tokio::time::timeout(REACH_WAIT, trial).await.map_err(late)?
}

/// A listener for https, if there is a certificate and the address is free.
async fn secure_listener(tls: &TlsConfig) -> Option<(TcpListener, TlsAcceptor)> {
    let (cert, key) = tls.files().ok()??;
    let listener = TcpListener::bind(tls.listen.unwrap_or(HTTPS_DEFAULT)).await.ok()?;
    Some((listener, load(cert, key).ok()?.into()))
}

/// Waits until our own call has come in.
async fn await_probe(listener: &TcpListener, tls: Option<&TlsAcceptor>, token: &str) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        let found = match tls {
            Some(acceptor) => match acceptor.accept(stream).await {
                Ok(stream) => has_token(stream, token).await,
                Err(_) => Ok(false),
            },
            None => has_token(stream, token).await,
        };
        if found.unwrap_or(false) {
            return Ok(());
        }
    }
}

async fn has_token(mut stream: impl AsyncRead + AsyncWrite + Unpin, token: &str) -> io::Result<bool> {
    let mut head = vec![0; HEAD_BYTES];
    let read = stream.read(&mut head).await?;
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await?;
    Ok(String::from_utf8_lossy(&head[..read]).contains(token))
}

fn is_https(uri: &Uri) -> bool {
    uri.scheme_str() == Some("https")
}

/// The host, without the brackets of an IPv6 address, and the port.
fn host_and_port(uri: &Uri) -> (&str, u16) {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    (host, uri.port_u16().unwrap_or(if is_https(uri) { 443 } else { 80 }))
}

/// Calls the address. Returns the status and the beginning of the body.
async fn get(uri: &Uri, extra_roots: &[&[u8]]) -> Result<(StatusCode, Bytes), String> {
    let (host, port) = host_and_port(uri);
    let stream = TcpStream::connect((host, port)).await.map_err(|error| error.to_string())?;
    let request = request_to(&Method::GET, uri).header(CONNECTION, "close").body(Bytes::new());
    let request = request.map_err(|error| error.to_string())?;
    let response = if is_https(uri) {
        let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
        let connector = TlsConnector::from(Arc::new(trusting(extra_roots)?));
        let stream = connector.connect(name, stream).await.map_err(|error| {
            format!("its certificate or its TLS is not accepted, and a provider would not accept it either ({error})")
        })?;
        exchange(stream, request).await
    } else {
        exchange(stream, request).await
    };
    let (head, body) = response.map_err(|error| error.to_string())?.into_parts();
    let body = Limited::new(body, BODY_BYTES).collect().await.map(Collected::to_bytes);
    Ok((head.status, body.unwrap_or_default()))
}

/// A client configuration with the usual roots and the operator's.
fn trusting(extra: &[&[u8]]) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    for cert in extra.iter().flat_map(|pem| CertificateDer::pem_slice_iter(pem)).flatten() {
        roots.add(cert).map_err(|error| error.to_string())?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_apart() {
        for (url, host, port) in [
            ("http://q.test", "q.test", 80),
            ("https://q.test/a/b/", "q.test", 443),
            ("http://127.0.0.1:8780/", "127.0.0.1", 8780),
            ("https://[::1]", "::1", 443),
            ("https://[::1]:8743/x", "::1", 8743),
        ] {
            assert_eq!(host_and_port(&PublicAddress::parse(url).unwrap().0), (host, port), "{url}");
        }
        assert!(PublicAddress::parse("ftp://q.test").is_none());
    }

    /// A port that was free a moment ago.
    fn free() -> u16 {
        std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
    }

    #[tokio::test]
    async fn only_what_says_it_is_well_is_a_daemon() {
        assert!(!is_daemon_at(SocketAddr::from(([127, 0, 0, 1], free()))).await);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let (heard, is_daemon) = tokio::join!(await_probe(&listener, None, "/healthz"), is_daemon_at(at));
        assert!(heard.is_ok() && is_daemon);
    }

    #[test]
    fn an_address_for_all_is_reached_on_this_machine() {
        for (listen, expected) in [
            ("0.0.0.0:8780", "127.0.0.1:8780"),
            ("[::]:8780", "[::1]:8780"),
            ("192.0.2.7:80", "192.0.2.7:80"),
            ("127.0.0.1:1", "127.0.0.1:1"),
        ] {
            assert_eq!(near(listen.parse().unwrap()), expected.parse().unwrap());
        }
    }
}
