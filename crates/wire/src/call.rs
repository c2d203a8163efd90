//! One call to an address that is known only at run time: a caller's webhook, or a collector of traces. The name is
//! resolved here, the caller's check sees each of its addresses, and the connection goes to a checked address. So a
//! name that changes in between leads nowhere else. Redirects are not followed.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HOST, USER_AGENT};
use hyper::http::request;
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

const AGENT: &str = concat!("quittance/", env!("CARGO_PKG_VERSION"));

/// Why a call has no response. It does not show the address, which can hold a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    #[error("its name cannot be looked up")]
    NoSuchName,
    #[error("its name leads into the operator's network, which is not allowed")]
    Inside,
    #[error("the connection is refused")]
    NotConnected,
    #[error("its certificate is not trusted, or TLS failed")]
    Tls,
    #[error("the connection ended without a reply")]
    NoAnswer,
}

/// Makes calls over HTTP and HTTPS, each on a connection of its own. Clones share the TLS settings.
#[derive(Clone)]
pub struct HttpCaller {
    tls: TlsConnector,
}

impl fmt::Debug for HttpCaller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HttpCaller")
    }
}

impl Default for HttpCaller {
    fn default() -> Self {
        let mut roots = RootCertStore::empty();
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        Self { tls: TlsConnector::from(Arc::new(config)) }
    }
}

impl HttpCaller {
    /// Posts JSON to an address that the operator has configured, also inside the operator's network.
    pub async fn post_json(&self, uri: &Uri, body: Bytes) -> Result<StatusCode, CallError> {
        let request = request_to(&Method::POST, uri).header(CONTENT_TYPE, "application/json");
        let request = request.body(Full::new(body)).map_err(|_| CallError::NoAnswer)?;
        self.send(uri, request, |_, _| true).await
    }

    /// Sends a request that [`request_to`] has begun. `may_call` must accept every address of the host.
    pub async fn send(
        &self,
        uri: &Uri,
        request: Request<Full<Bytes>>,
        may_call: impl Fn(&str, IpAddr) -> bool,
    ) -> Result<StatusCode, CallError> {
        let host = uri.host().ok_or(CallError::NoSuchName)?.trim_matches(['[', ']']);
        let is_tls = uri.scheme_str().is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"));
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let found: Vec<SocketAddr> =
            lookup_host((host, port)).await.map_err(|_| CallError::NoSuchName)?.collect();
        // One forbidden address is enough: no honest name has public and private addresses.
        if found.iter().any(|found| !may_call(host, found.ip())) {
            return Err(CallError::Inside);
        }
        let stream = TcpStream::connect(&found[..]).await.map_err(|_| CallError::NotConnected)?;
        if !is_tls {
            return exchange(stream, request).await;
        }
        let name = ServerName::try_from(host.to_owned()).map_err(|_| CallError::Tls)?;
        let stream = self.tls.connect(name, stream).await.map_err(|_| CallError::Tls)?;
        exchange(stream, request).await
    }
}

/// Begins a request to this address.
pub fn request_to(method: &Method, uri: &Uri) -> request::Builder {
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    Request::builder().method(method).uri(path).header(HOST, authority).header(USER_AGENT, AGENT)
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> Result<StatusCode, CallError> {
    let no_answer = |_| CallError::NoAnswer;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(no_answer)?;
    // Both run here: dropping this future closes the connection, too.
    let mut response = pin!(sender.send_request(request));
    let received = tokio::select! {
        received = &mut response => received,
        // The connection may have ended together with the response.
        _ = connection => response.await,
    };
    received.map(|response| response.status()).map_err(no_answer)
}
