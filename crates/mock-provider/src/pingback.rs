//! Sends pingbacks, as POST or GET according to the dialect, and early, late, twice or not at all according to the
//! faults. Forged pingbacks come too. Only this machine is ever called.

use crate::answer::MockAnswer;
use crate::mock_server::MockShared;
use crate::rng::MockRng;
use crate::script::FaultAction;
use crate::settings::MockClassicDialect;
use crate::world::TaskOutcome;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The pingbacks that follow one task.
#[derive(Clone, Debug)]
pub(crate) struct Calls {
    pub id: u64,
    /// When the task is solved.
    pub at: u64,
    pub generation: u64,
    pub actions: Vec<FaultAction>,
}

impl Calls {
    pub(crate) fn is_early(&self) -> bool {
        self.actions.contains(&FaultAction::Early)
    }
}

/// The address of a pingback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PingbackAddress {
    socket: SocketAddr,
    authority: String,
    /// The path of the address, with the query.
    path: String,
}

impl PingbackAddress {
    /// Reads a URL. Only `http://` on this machine is allowed: the mock provider must never call another host.
    pub(crate) fn read(url: &str) -> Result<Self, &'static str> {
        let uri: Uri = url.parse().map_err(|_| "not an address")?;
        if uri.scheme_str() != Some("http") {
            return Err("not http");
        }
        let authority = uri.authority().ok_or("not an address")?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let ip = match host {
            "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
            _ => host.parse().map_err(|_| "not on this machine")?,
        };
        if !ip.is_loopback() {
            return Err("not on this machine");
        }
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Self {
            socket: SocketAddr::new(ip, authority.port_u16().unwrap_or(80)),
            authority: authority.to_string(),
            path: path.to_owned(),
        })
    }

    pub(crate) fn same_host(one: &str, other: &str) -> bool {
        matches!((Self::read(one), Self::read(other)), (Ok(one), Ok(other)) if one.socket.ip() == other.socket.ip())
    }
}

/// The part of an unescaped pingback URL before its first `&`: the rest arrived as parameters of in.php.
pub(crate) fn first_parameter_only(url: &str) -> String {
    url.split('&').next().unwrap_or_default().to_owned()
}

/// The content of a pingback.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Words {
    /// The form that services of this dialect send.
    Form {
        id: u64,
        code: String,
    },
    Json(String),
}

/// Sends the pingbacks that the actions ask for.
pub(crate) async fn run(shared: Arc<MockShared>, calls: Calls) {
    if calls.actions.contains(&FaultAction::Forged) {
        forge(&shared, &calls).await;
    }
    if calls.is_early() || calls.actions.contains(&FaultAction::Lost) {
        return;
    }
    let delay_ms: u64 =
        calls.actions.iter().map(|action| if let FaultAction::Delay { ms } = action { *ms } else { 0 }).sum();
    shared.clock.sleep_until(calls.at.saturating_add(delay_ms)).await;
    call(&shared, &calls).await;
    if calls.actions.contains(&FaultAction::Doubled) {
        call(&shared, &calls).await;
    }
}

/// Sends one genuine pingback. A fault can replace the answer by a code.
pub(crate) async fn call(shared: &MockShared, calls: &Calls) {
    let now = shared.clock.now_ms();
    let code = calls.actions.iter().find_map(|action| match action {
        FaultAction::Code(code) => Some((calls.id, TaskOutcome::Code(code.clone()))),
        _ => None,
    });
    let is_honest = code.is_none();
    let Some((url, words)) = shared.world().pingback(now, calls.generation, calls.id, code.as_ref()) else {
        return;
    };
    let is_acked = send(shared, &url, &words).await;
    shared.world().called(calls.generation, calls.id, is_acked, is_honest);
    shared.changed();
}

/// Sends two forged pingbacks: one for the task at a changed address, and one for an invented task.
async fn forge(shared: &MockShared, calls: &Calls) {
    let now = shared.clock.now_ms();
    for (id, is_known) in [(calls.id, true), (calls.id + 1_000_000_007, false)] {
        let lie = (id, TaskOutcome::Answer(MockAnswer::text(format!("sim-forged-{}", calls.id))));
        let Some((url, words)) = shared.world().pingback(now, calls.generation, calls.id, Some(&lie)) else {
            return;
        };
        let Ok(address) = PingbackAddress::read(&url) else { return };
        let nowhere = || format!("http://{}/sim-forged/{}", address.authority, calls.id);
        let url = if is_known { with_another_end(&address) } else { nowhere() };
        send(shared, &url, &words).await;
        shared.world().totals.pingbacks_forged += 1;
        shared.changed();
    }
}

/// The address with other last characters in its path or query. A MAC stands there, if there is one.
fn with_another_end(address: &PingbackAddress) -> String {
    let path = &address.path;
    let keep = path.len() - path.bytes().rev().take_while(u8::is_ascii_alphanumeric).count().min(8);
    let (start, end) = path.split_at(keep);
    let other = MockRng::of(0, path, 0).letters(b"0123456789abcdef", end.len().max(1));
    let other = if other == end { format!("{end}0") } else { other };
    format!("http://{}{start}{other}", address.authority)
}

/// Sends a pingback. Returns whether it was answered with 200.
async fn send(shared: &MockShared, url: &str, words: &Words) -> bool {
    let wait = Duration::from_millis(shared.settings.pingback_timeout_ms);
    let Ok(address) = PingbackAddress::read(url) else { return false };
    let request = request(shared.settings.dialect, &address, words);
    matches!(timeout(wait, exchange(&address, request)).await, Ok(Some(StatusCode::OK)))
}

fn request(dialect: MockClassicDialect, address: &PingbackAddress, words: &Words) -> Request<Full<Bytes>> {
    let request = Request::builder().header(HOST, &address.authority);
    let post =
        |kind: &'static str| request.method(Method::POST).uri(&address.path).header(CONTENT_TYPE, kind);
    let request = match words {
        Words::Json(body) => post("application/json").body(Full::from(body.clone())),
        Words::Form { id, code } => {
            let pairs = form_urlencoded::Serializer::new(String::new())
                .append_pair("id", &id.to_string())
                .append_pair("code", code)
                .finish();
            match dialect {
                MockClassicDialect::TwoCaptcha => {
                    post("application/x-www-form-urlencoded").body(Full::from(pairs))
                }
                MockClassicDialect::CaptchaAi => {
                    let joint = if address.path.contains('?') { '&' } else { '?' };
                    let target = format!("{}{joint}{pairs}", address.path);
                    Request::get(target).header(HOST, &address.authority).body(Full::default())
                }
            }
        }
    };
    request.expect("an address that was read once makes a request")
}

async fn exchange(address: &PingbackAddress, request: Request<Full<Bytes>>) -> Option<StatusCode> {
    let stream = TcpStream::connect(address.socket).await.ok()?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.ok()?;
    let mut answer = pin!(sender.send_request(request));
    let answer = tokio::select! {
        biased;
        answer = &mut answer => answer,
        _ = connection => answer.await,
    };
    answer.ok().map(|answer| answer.status())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_called() {
        for url in
            ["http://127.0.0.1:8080/a?b=c", "http://localhost/x", "http://[::1]:9/x", "http://127.9.9.9/"]
        {
            assert!(PingbackAddress::read(url).is_ok(), "{url}");
        }
        for url in [
            "https://127.0.0.1/",
            "http://10.0.0.1/",
            "http://example.com/",
            "http://127.0.0.1.example.com/",
            "ftp://x",
            "",
            "http://",
        ] {
            assert!(PingbackAddress::read(url).is_err(), "{url}");
        }
    }

    #[test]
    fn a_forged_address_differs_only_at_its_end() {
        let forge = |url: &str| with_another_end(&PingbackAddress::read(url).expect("an address"));
        let url = "http://127.0.0.1:1/cb/0a1b2c3d/deadbeefdeadbeef";
        let forged = forge(url);
        assert!(forged != url && forged.len() == url.len());
        assert!(forged.starts_with("http://127.0.0.1:1/cb/0a1b2c3d/deadbeef"));
        for bare in ["http://127.0.0.1:8080", "http://127.0.0.1:8080/"] {
            assert_eq!(forge(bare).len(), "http://127.0.0.1:8080/x".len(), "never another port");
            assert!(forge(bare).starts_with("http://127.0.0.1:8080/"));
        }
    }

    #[test]
    fn of_several_parameters_the_first_survives_a_query() {
        assert_eq!(first_parameter_only("http://a/p?x=1&y=2"), "http://a/p?x=1");
        assert_eq!(first_parameter_only("http://a/p"), "http://a/p");
    }
}
