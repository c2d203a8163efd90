//! One call to a caller. The name is looked up here, each of its addresses is judged, and the very address that was judged
//! is connected to, so that a name that changes its mind in between leads nowhere. Redirects are not followed.

use super::message::Message;
use super::reach::{Allowed, may_call};
use super::sign::SignedHeaders;
use crate::api::REMAINING_LIFE;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HOST, USER_AGENT};
use hyper::http::request;
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

const AGENT: &str = concat!("quittance/", env!("CARGO_PKG_VERSION"));

/// Why nobody could be told, without the address, which may hold the caller's secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    #[error("its name cannot be looked up")]
    NoSuchName,
    #[error("its name leads into the operator's network, which is not allowed")]
    Inside,
    #[error("nobody takes the connection")]
    NotConnected,
    #[error("its certificate is not one to be trusted, or TLS failed")]
    Tls,
    #[error("the connection ended without an answer")]
    NoAnswer,
}

#[derive(Clone)]
pub(crate) struct Caller {
    tls: TlsConnector,
}

impl Caller {
    pub(crate) fn new() -> Self {
        let mut roots = RootCertStore::empty();
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        Self { tls: TlsConnector::from(Arc::new(config)) }
    }

    pub(super) async fn call(
        &self,
        message: &Message,
        signed: &SignedHeaders,
        allowed: &[Allowed],
    ) -> Result<StatusCode, CallError> {
        let mut request = asking(&message.method, &message.uri)
            .header("webhook-id", &signed.id)
            .header("webhook-timestamp", &signed.timestamp)
            .header("webhook-signature", &signed.signature);
        if let Some(content_type) = message.content_type {
            request = request.header(CONTENT_TYPE, content_type);
        }
        if let Some(life) = message.remaining_life {
            request = request.header(REMAINING_LIFE, life.as_secs());
        }
        let request = request.body(Full::new(message.body.clone())).map_err(|_| CallError::NoAnswer)?;
        self.send(&message.uri, request, |host, address| may_call(allowed, host, address)).await
    }

    /// Sends JSON to an address that the operator has chosen himself, wherever it leads.
    pub(crate) async fn post(&self, uri: &Uri, body: Bytes) -> Result<StatusCode, CallError> {
        let request = asking(&Method::POST, uri).header(CONTENT_TYPE, "application/json");
        let request = request.body(Full::new(body)).map_err(|_| CallError::NoAnswer)?;
        self.send(uri, request, |_, _| true).await
    }

    async fn send(
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
        // One address inside is enough: nobody honest mixes them.
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

fn asking(method: &Method, uri: &Uri) -> request::Builder {
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
    // Both run here, so that whoever gives up on the call gives up on the connection, too.
    let mut answer = pin!(sender.send_request(request));
    let answered = tokio::select! {
        answered = &mut answer => answered,
        // It may have ended with the answer.
        _ = connection => answer.await,
    };
    answered.map(|response| response.status()).map_err(no_answer)
}
