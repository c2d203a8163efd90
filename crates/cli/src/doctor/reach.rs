//! Whether a provider's call would come in: our own public address is called, and it is seen whether the call arrives
//! where we listen.

use super::{Finding, State};
use crate::daemon::near;
use crate::serve;
use quittance_config::{Config, TlsConfig};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// How long a caller from outside may take to reach us.
const REACH_WAIT: Duration = Duration::from_secs(5);
/// How much of a response or of a request is read.
const HEAD_BYTES: usize = 4096;

pub(super) async fn callbacks(config: &Config, may_call_out: bool) -> Vec<Finding> {
    let finding = |state, what: String| Finding::new("callbacks", state, what);
    let Some(public_url) = &config.public_url else {
        let what = config.lost_reply_risk().unwrap_or_default();
        return vec![finding(State::Note, what.into())];
    };
    let Some(address) = Address::of(public_url) else {
        return vec![finding(State::Bad, format!("{public_url} is no address that can be called"))];
    };
    let remedy = "check public_url and what stands in front of us";
    let near = match address.is_near().await {
        Ok(near) => near,
        Err(why) => return vec![finding(State::Bad, format!("{public_url} leads nowhere: {why}; {remedy}"))],
    };
    let mut findings = Vec::new();
    if !address.is_https && !near {
        let what =
            "public_url is http: answers can be read on the way; put https in front of us, or set `tls`";
        findings.push(finding(State::Note, what.into()));
    }
    if !near && !may_call_out {
        let what = format!(
            "whether {public_url} leads here was not tried, because it is another machine: `quittance doctor --yes` calls it"
        );
        findings.push(finding(State::Note, what));
        return findings;
    }
    findings.push(match arrives(config, &address).await {
        Ok(to) => finding(State::Good, format!("{public_url} leads to {to}")),
        Err(why) => {
            finding(State::Bad, format!("{public_url} does not lead to {}: {why}; {remedy}", config.listen))
        }
    });
    findings
}

/// Whether a daemon of ours listens there.
pub(crate) async fn is_daemon_at(listen: SocketAddr) -> bool {
    let authority = near(listen).to_string();
    let address = Address { authority, base: String::new(), is_https: false };
    let asked = tokio::time::timeout(REACH_WAIT, Box::pin(address.call("/healthz", &[]))).await;
    matches!(asked, Ok(Ok(head)) if status(&head) == Some(200))
}

/// Why a daemon of ours that listens there takes no orders, if it says so.
pub(super) async fn not_ready(listen: SocketAddr) -> Option<String> {
    let address = Address { authority: near(listen).to_string(), base: String::new(), is_https: false };
    let asked = tokio::time::timeout(REACH_WAIT, Box::pin(address.call("/readyz", &[]))).await;
    let head = asked.ok()?.ok().filter(|head| status(head) == Some(503))?;
    let (_, body) = head.split_once("\r\n\r\n")?;
    let reply: serde_json::Value = serde_json::from_str(body).ok()?;
    reply["why"].as_str().map(str::to_owned)
}

/// Where the call came in.
async fn arrives(config: &Config, address: &Address) -> Result<String, String> {
    let extra: Vec<&[u8]> = config.providers.iter().map(quittance_config::ProviderConfig::extra_ca).collect();
    let listener = match TcpListener::bind(config.listen).await {
        Ok(listener) => listener,
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            // Most likely the daemon itself: it says so where it is asked.
            let head = within(Box::pin(address.call("/healthz", &extra))).await?;
            return match status(&head) {
                Some(200) => {
                    Ok("something that says it is well; most likely the daemon that listens here".into())
                }
                other => Err(format!(
                    "{} is in use, and what answers there is no daemon of ours (status {})",
                    config.listen,
                    other.unwrap_or_default()
                )),
            };
        }
        Err(error) => return Err(format!("it cannot be listened on: {error}; choose another `listen`")),
    };
    let token = format!("quittance-doctor-{}", std::process::id());
    let path = format!("/callback/{token}");
    let secure = secure_listener(&config.tls).await;
    let arrive = Box::pin(async {
        tokio::select! {
            arrived = read_callback(&listener, None, &token) => arrived.map(|()| config.listen.to_string()),
            arrived = async { match &secure {
                Some((listener, acceptor)) => read_callback(listener, Some(acceptor), &token).await.map(|()| "tls.listen".to_owned()),
                None => std::future::pending().await,
            } } => arrived,
        }
    });
    let call = Box::pin(async {
        match address.call(&path, &extra).await {
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

async fn within<T>(trial: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let late = |_| format!("nothing arrived within {} s", REACH_WAIT.as_secs());
    tokio::time::timeout(REACH_WAIT, trial).await.map_err(late)?
}

/// Where https would be heard, if there is a certificate and the address is free.
async fn secure_listener(tls: &TlsConfig) -> Option<(TcpListener, TlsAcceptor)> {
    let (cert, key) = tls.files().ok()??;
    let listener = TcpListener::bind(tls.listen.unwrap_or(serve::HTTPS_DEFAULT)).await.ok()?;
    Some((listener, serve::load(cert, key).ok()?.into()))
}

/// Until our own call has come in.
async fn read_callback(listener: &TcpListener, tls: Option<&TlsAcceptor>, token: &str) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        let heard = match tls {
            Some(acceptor) => match acceptor.accept(stream).await {
                Ok(stream) => hear_one(stream, token).await,
                Err(_) => Ok(false),
            },
            None => hear_one(stream, token).await,
        };
        if heard.unwrap_or(false) {
            return Ok(());
        }
    }
}

async fn hear_one(mut stream: impl AsyncRead + AsyncWrite + Unpin, token: &str) -> io::Result<bool> {
    let mut head = vec![0; HEAD_BYTES];
    let read = stream.read(&mut head).await?;
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await?;
    Ok(String::from_utf8_lossy(&head[..read]).contains(token))
}

fn status(head: &str) -> Option<u16> {
    head.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()
}

/// An http or https address, taken apart.
#[derive(Debug, PartialEq, Eq)]
struct Address {
    authority: String,
    /// Without a slash at its end.
    base: String,
    is_https: bool,
}

impl Address {
    fn of(url: &str) -> Option<Self> {
        let (is_https, rest) = match url.strip_prefix("https://") {
            Some(rest) => (true, rest),
            None => (false, url.strip_prefix("http://")?),
        };
        let (authority, path) =
            rest.split_once('/').map_or((rest, ""), |(authority, path)| (authority, path));
        let path = path.trim_end_matches('/');
        let base = if path.is_empty() { String::new() } else { format!("/{path}") };
        Some(Self { authority: authority.to_owned(), base, is_https })
    }

    fn has_port(&self) -> bool {
        self.authority.rsplit(']').next().is_some_and(|rest| rest.contains(':'))
    }

    fn host_and_port(&self) -> String {
        match (self.has_port(), self.is_https) {
            (true, _) => self.authority.clone(),
            (false, true) => format!("{}:443", self.authority),
            (false, false) => format!("{}:80", self.authority),
        }
    }

    fn host(&self) -> &str {
        let host = if self.has_port() {
            self.authority.rsplit_once(':').map_or("", |(host, _)| host)
        } else {
            &self.authority
        };
        host.trim_matches(['[', ']'])
    }

    /// Whether it leads to this machine and to no other.
    async fn is_near(&self) -> Result<bool, String> {
        let mut found =
            tokio::net::lookup_host(self.host_and_port()).await.map_err(|error| error.to_string())?;
        Ok(found.all(serve::is_kept_inside))
    }

    /// The beginning of the answer.
    async fn call(&self, path: &str, extra_roots: &[&[u8]]) -> Result<String, String> {
        let words = |error: io::Error| error.to_string();
        let stream = TcpStream::connect(self.host_and_port()).await.map_err(words)?;
        let request = format!(
            "GET {}{path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            self.base, self.authority
        );
        if !self.is_https {
            return exchange(stream, &request).await.map_err(words);
        }
        let name = ServerName::try_from(self.host().to_owned()).map_err(|error| error.to_string())?;
        let connector = TlsConnector::from(Arc::new(trusting(extra_roots)?));
        let stream = connector.connect(name, stream).await.map_err(|error| {
            format!("its certificate or its TLS is not accepted, and a provider would not accept it either ({error})")
        })?;
        exchange(stream, &request).await.map_err(words)
    }
}

async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &str) -> io::Result<String> {
    stream.write_all(request.as_bytes()).await?;
    let mut head = Vec::new();
    // An early end is no error: what came before it counts.
    _ = stream.take(HEAD_BYTES as u64).read_to_end(&mut head).await;
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// The usual roots, and what the operator trusts besides.
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
    use crate::test_config::config_with;

    #[test]
    fn an_address_is_taken_apart() {
        for (url, host_and_port, host, base) in [
            ("http://q.test", "q.test:80", "q.test", ""),
            ("https://q.test/a/b/", "q.test:443", "q.test", "/a/b"),
            ("http://127.0.0.1:8780/", "127.0.0.1:8780", "127.0.0.1", ""),
            ("https://[::1]", "[::1]:443", "::1", ""),
            ("https://[::1]:8743/x", "[::1]:8743", "::1", "/x"),
        ] {
            let address = Address::of(url).unwrap();
            assert_eq!(
                (address.host_and_port().as_str(), address.host(), address.base.as_str()),
                (host_and_port, host, base),
                "{url}"
            );
        }
        assert_eq!(Address::of("ftp://q.test"), None);
    }

    /// A port that was free a moment ago.
    fn free() -> u16 {
        std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
    }

    #[tokio::test]
    async fn a_call_that_arrives_is_good_over_http_and_https() {
        let folder = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
        std::fs::write(&cert, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let (http, https) = (free(), free());
        let mut settings = vec![
            format!("listen=127.0.0.1:{http}"),
            format!("tls.listen=127.0.0.1:{https}"),
            format!("tls.cert_file={}", cert.display()),
            format!("tls.key_file={}", key.display()),
            format!("provider.main.ca_file={}", cert.display()),
            "provider.main.profile=2captcha".into(),
            "provider.main.url=http://127.0.0.1:1".into(),
            "provider.main.key_env=K".into(),
        ];
        for (url, state, word) in [
            (format!("http://127.0.0.1:{http}/base"), State::Good, "leads to 127.0.0.1"),
            (format!("https://localhost:{https}"), State::Good, "leads to tls.listen"),
            (format!("https://127.0.0.1:{https}"), State::Bad, "not accepted"),
            (format!("http://127.0.0.1:{}", free()), State::Bad, "Connection refused"),
        ] {
            settings.push(format!("public_url={url}"));
            let config = config_with(&settings.iter().map(String::as_str).collect::<Vec<_>>());
            let findings = callbacks(&config, false).await;
            let last = findings.last().unwrap();
            assert!(last.state == state && last.what.contains(word), "{url}: {}", last.what);
            settings.pop();
        }
    }

    #[tokio::test]
    async fn another_machine_is_not_called_unless_that_is_wanted() {
        let findings =
            callbacks(&config_with(&["public_url=http://192.0.2.7", "listen=127.0.0.1:0"]), false).await;
        assert!(findings.iter().all(|found| found.state == State::Note), "nothing was tried");
        assert!(findings.iter().any(|found| found.what.contains("--yes")));
        assert!(findings.iter().any(|found| found.what.contains("can be read on the way")));
    }

    #[tokio::test]
    async fn only_what_says_it_is_well_is_a_daemon() {
        assert!(!is_daemon_at(SocketAddr::from(([127, 0, 0, 1], free()))).await);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let (heard, is_daemon) = tokio::join!(read_callback(&listener, None, "/healthz"), is_daemon_at(at));
        assert!(heard.is_ok() && is_daemon);
    }
}
