//! Resolves the host, connects and does the TLS handshake. A failure here happens before the first byte of a request,
//! so no task was taken and a retry is free.

use crate::meter::{Meter, MeteredLayer, MeteredSocket, Probe};
use crate::{BadSettings, Base};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

/// A byte stream, with or without TLS.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

pub(crate) struct OpenConnection {
    pub(crate) stream: Box<dyn ByteStream>,
    pub(crate) meter: Meter,
    pub(crate) probe: Probe,
}

pub(crate) struct Connector {
    base: Base,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    time_limit: Duration,
}

impl Connector {
    pub(crate) fn new(base: Base, extra_ca: &[u8], time_limit: Duration) -> Result<Self, BadSettings> {
        let tls = if base.is_tls {
            let name = ServerName::try_from(base.host.clone())
                .map_err(|_| BadSettings::Url { why: "has a host that no certificate can be for" })?;
            Some((TlsConnector::from(Arc::new(tls_config(extra_ca)?)), name))
        } else {
            None
        };
        Ok(Self { base, tls, time_limit })
    }

    /// Opens a connection. An error is a short reason for people; no request was sent.
    pub(crate) async fn connect(&self) -> Result<OpenConnection, String> {
        let deadline = Instant::now() + self.time_limit;
        let connection = self.open(deadline).await?;
        // A node that was frozen in between must not send what other nodes hold to be in doubt by now. The timeouts
        // do not notice that: they look at the connection first, and at the clock only if it is not open yet.
        if Instant::now() > deadline {
            return Err("cannot connect: no answer in time".to_owned());
        }
        Ok(connection)
    }

    async fn open(&self, deadline: Instant) -> Result<OpenConnection, String> {
        let socket = self.socket(deadline).await?;
        // One small request and its answer: waiting for more to send would only cost time.
        socket.set_nodelay(true).map_err(|why| reason("cannot connect", &why))?;
        let (wire, probe, on_wire) = MeteredSocket::new(socket);
        let Some((connector, name)) = &self.tls else {
            return Ok(OpenConnection { stream: Box::new(wire), meter: Meter::new(on_wire), probe });
        };
        let handshake = connector.connect(name.clone(), wire);
        match timeout_at(deadline, handshake).await {
            Err(_) => Err("cannot agree on TLS: no answer in time".to_owned()),
            Ok(Err(why)) => Err(reason("cannot agree on TLS", &why)),
            Ok(Ok(stream)) => {
                let (stream, in_clear) = MeteredLayer::new(stream);
                Ok(OpenConnection {
                    stream: Box::new(stream),
                    meter: Meter::new(on_wire).and(in_clear),
                    probe,
                })
            }
        }
    }

    async fn socket(&self, deadline: Instant) -> Result<TcpStream, String> {
        let resolved =
            timeout_at(deadline, tokio::net::lookup_host((self.base.host.as_str(), self.base.port)));
        let addresses: Vec<SocketAddr> = match resolved.await {
            Err(_) => return Err("cannot find the host: no answer in time".to_owned()),
            Ok(Err(why)) => return Err(reason("cannot find the host", &why)),
            Ok(Ok(addresses)) => addresses.collect(),
        };
        let mut failed = "cannot find the host: it has no address".to_owned();
        for (tried, address) in addresses.iter().enumerate() {
            // A dead address must not use up the time of those behind it.
            let left = u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
            let share = deadline.saturating_duration_since(Instant::now()) / left;
            match timeout_at(Instant::now() + share, TcpStream::connect(address)).await {
                Ok(Ok(socket)) => return Ok(socket),
                Ok(Err(why)) => failed = reason("cannot connect", &why),
                Err(_) => failed = "cannot connect: no answer in time".to_owned(),
            }
        }
        Err(failed)
    }
}

fn reason(doing: &str, why: &io::Error) -> String {
    format!("{doing}: {why}")
}

fn tls_config(extra_ca: &[u8]) -> Result<ClientConfig, BadSettings> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    for certificate in CertificateDer::pem_slice_iter(extra_ca) {
        let bad = |why: String| BadSettings::ExtraCa { why };
        let certificate = certificate.map_err(|why| bad(why.to_string()))?;
        roots.add(certificate).map_err(|why| bad(why.to_string()))?;
    }
    if !extra_ca.is_empty() && roots.len() == webpki_roots::TLS_SERVER_ROOTS.len() {
        return Err(BadSettings::ExtraCa { why: "it holds no certificate in PEM".to_owned() });
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|why| BadSettings::Tls { why: why.to_string() })?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
