//! The TLS certificate of the server. It can be replaced while the server runs: open connections keep the old one.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

/// The only protocol that the server speaks. A client that prefers another one learns that in the handshake.
const PROTOCOL: &[u8] = b"http/1.1";

/// The TLS settings of the server. Clones share them.
#[derive(Clone)]
pub struct Tls(Arc<RwLock<Arc<ServerConfig>>>);

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    #[must_use]
    pub fn new(config: Arc<ServerConfig>) -> Self {
        Self(Arc::new(RwLock::new(with_protocol(config))))
    }

    /// Replaces the certificate for new connections.
    pub fn replace(&self, config: Arc<ServerConfig>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = with_protocol(config);
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner)).into()
    }
}

fn with_protocol(mut config: Arc<ServerConfig>) -> Arc<ServerConfig> {
    Arc::make_mut(&mut config).alpn_protocols = vec![PROTOCOL.to_vec()];
    config
}
