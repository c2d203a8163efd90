//! A gateway before a tapped mock provider, and a caller that can use every API.

use crate::hosts::cases::{HostsCase, HostsDice, bytes_in};
use crate::hosts::dead_letters::dead_letter;
use crate::hosts::hide::unbase64;
use crate::hosts::holes::{Hole, OverwritingProvider};
use crate::hosts::tap::WireTap;
use quittance::{ApiKey, ClassicDialect, ClassicProvider, GatewaySetup, JsonDialect, JsonProvider, Place};
use quittance::{ProviderSettings, Quittance};
use quittance_engine::TenantRule;
use quittance_mock_provider::{DEMO_KEY, MockDialect, MockProvider, Settings as SimSettings};
use serde_json::{Map, Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(crate) const KEY: &str = "0123456789abcdef0123456789abcdef";

#[derive(Clone, Copy, Debug)]
pub(crate) enum HostsProvider {
    Classic(ClassicDialect),
    Json(MockDialect),
}

pub(crate) struct HostsWorld {
    pub(crate) gateway: SocketAddr,
    pub(crate) tap: WireTap,
    node: Quittance,
    pub(crate) mock: MockProvider,
}

impl HostsWorld {
    pub(crate) async fn start(provider: HostsProvider, hole: Hole) -> Self {
        Self::start_for(provider, hole, &[]).await
    }

    /// Starts the fixture on a node that knows these tenants.
    pub(crate) async fn start_for(
        provider: HostsProvider,
        hole: Hole,
        tenants: &'static [&'static str],
    ) -> Self {
        let played = match provider {
            HostsProvider::Classic(ClassicDialect::CaptchaAi) => {
                quittance_mock_provider::MockClassicDialect::CaptchaAi
            }
            _ => quittance_mock_provider::MockClassicDialect::TwoCaptcha,
        };
        let mock = MockProvider::start(SimSettings::quick(played)).await.unwrap();
        let tap = WireTap::default();
        let url = format!("http://{}", tap.clone().listen(mock.address()).await);
        let provider: Arc<dyn quittance_ports::Provider> = match provider {
            HostsProvider::Classic(dialect) => {
                let settings = ProviderSettings::new("mock", url, ApiKey::new(DEMO_KEY));
                Arc::new(ClassicProvider::new(dialect, settings).unwrap())
            }
            HostsProvider::Json(dialect) => {
                let url = format!("{url}/{}", named(dialect));
                let dialect = JsonDialect::parse(named(dialect)).unwrap();
                let settings = ProviderSettings::new("mock", url, ApiKey::new(DEMO_KEY));
                Arc::new(JsonProvider::new(dialect, settings).unwrap())
            }
        };
        let provider = OverwritingProvider { inner: provider, is_on: hole == Hole::WireName };
        let builder = Quittance::builder().place(Place::Memory).provider(provider).allow("*.example.org");
        let builder = builder.gateway(GatewaySetup::default()).settings(move |settings| {
            let policy = &mut settings.policy;
            policy.first_poll = Some(Duration::from_millis(20));
            policy.poll_interval = Some(Duration::from_millis(50));
            policy.backoff.base = Duration::from_millis(20);
            policy.backoff.cap = Duration::from_millis(100);
            settings.sweep_interval = Duration::from_millis(100);
            let rule = TenantRule::default();
            settings.tenants.extend(tenants.iter().map(|name| ((*name).to_owned(), rule.clone())));
            hole.plant(settings);
        });
        let node = builder.start().await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let gateway = listener.local_addr().unwrap();
        tokio::spawn(node.gateway().unwrap().serve(listener, None));
        Self { gateway, tap, node, mock }
    }

    /// Waits until nothing more is sent to the provider.
    pub(crate) async fn settle(&self) {
        let mut before = u64::MAX;
        while before != self.tap.arrived() {
            before = self.tap.arrived();
            tokio::time::sleep(Duration::from_millis(1200)).await;
        }
    }

    pub(crate) async fn stop(self) {
        self.node.stop().await;
    }
}

const fn named(dialect: MockDialect) -> &'static str {
    match dialect {
        MockDialect::TwoCaptcha => "2captcha",
        MockDialect::AntiCaptcha => "anticaptcha",
        MockDialect::CapSolver => "capsolver",
        MockDialect::CapMonster => "capmonster",
    }
}

/// Much longer than any reply takes: a missing reply fails the test instead of hanging it.
const REPLY_TIMEOUT: Duration = Duration::from_secs(60);

/// A caller with one connection that stays open.
pub(crate) struct HostsCaller {
    gateway: SocketAddr,
    stream: Option<TcpStream>,
    sent: u64,
}

fn percent(text: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric();
    text.bytes()
        .map(|byte| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

fn text(value: &Value) -> String {
    value.as_str().or_else(|| bytes_in(value)).map_or_else(|| value.to_string(), str::to_owned)
}

/// The parameters as `/v1` accepts them: text, or bytes in base64.
fn params(fields: &Map<String, Value>) -> Map<String, Value> {
    let one = |value: &Value| if bytes_in(value).is_some() { value.clone() } else { text(value).into() };
    fields.iter().map(|(name, value)| (name.clone(), one(value))).collect()
}

pub(crate) fn form(fields: &Map<String, Value>) -> String {
    let pair = |(name, value): (&String, &Value)| format!("{}={}", percent(name), percent(&text(value)));
    fields.iter().map(pair).collect::<Vec<_>>().join("&")
}

fn multipart(fields: &Map<String, Value>) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, value) in fields {
        let name = name.replace(['"', '\r', '\n', '\0'], "_");
        let bytes = bytes_in(value).and_then(unbase64);
        let file = if bytes.is_some() { "; filename=\"a\"" } else { "" };
        let head = format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n");
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(&bytes.unwrap_or_else(|| text(value).into_bytes()));
        body.extend_from_slice(b"\r\n");
    }
    [body, b"--b--\r\n".to_vec()].concat()
}

impl HostsCaller {
    pub(crate) fn new(gateway: SocketAddr) -> Self {
        Self { gateway, stream: None, sent: 0 }
    }

    /// Sends a task through some API. Returns whether it was accepted, and the response.
    pub(crate) async fn send(
        &mut self,
        case: &HostsCase,
        dice: &mut HostsDice,
    ) -> (&'static str, bool, String) {
        self.sent += 1;
        // Any API is given the words of any protocol.
        let fields = if dice.below(3) == 0 { &case.theirs } else { &case.ours };
        match dice.below(20) {
            0..=4 => self.v1(case, fields, dice).await,
            5..=9 => self.classic(case, fields, dice).await,
            10..=15 => self.json(case, dice).await,
            16 | 17 => self.pool(case, fields).await,
            _ => self.import(case, fields, dice).await,
        }
    }

    async fn v1(
        &mut self,
        case: &HostsCase,
        fields: &Map<String, Value>,
        dice: &mut HostsDice,
    ) -> (&'static str, bool, String) {
        let kind = if dice.below(3) == 0 { case.task } else { case.kind };
        let params = params(fields);
        let body = json!({ "kind": kind, "params": params, "reuse": "exclusive" }).to_string();
        let (status, output) = self.call("POST", "/v1/orders", "application/json", body.as_bytes()).await;
        ("v1", status < 300, format!("{body} {output}"))
    }

    async fn classic(
        &mut self,
        case: &HostsCase,
        fields: &Map<String, Value>,
        dice: &mut HostsDice,
    ) -> (&'static str, bool, String) {
        let mut fields = fields.clone();
        let method = if dice.below(4) == 0 { case.task } else { &case.method };
        fields.insert("method".into(), method.into());
        fields.insert("key".into(), KEY.into());
        // Only this way has bytes.
        let way = if fields.values().any(|value| bytes_in(value).is_some()) { 3 } else { dice.below(4) };
        let (verb, path, kind, body) = match way {
            0 => ("GET", format!("/in.php?{}", form(&fields)), "", Vec::new()),
            1 => ("POST", "/in.php".into(), "application/x-www-form-urlencoded", form(&fields).into_bytes()),
            2 => (
                "POST",
                "/in.php".into(),
                "application/json",
                Value::Object(fields.clone()).to_string().into_bytes(),
            ),
            _ => ("POST", "/in.php".into(), "multipart/form-data; boundary=b", multipart(&fields)),
        };
        let (_, output) = self.call(verb, &path, kind, &body).await;
        ("in.php", output.starts_with("OK|"), format!("{} {output}", form(&fields)))
    }

    async fn json(&mut self, case: &HostsCase, dice: &mut HostsDice) -> (&'static str, bool, String) {
        let plain = |value: &Value| bytes_in(value).map_or_else(|| value.clone(), Value::from);
        let mut task: Map<String, Value> =
            case.theirs.iter().map(|(name, value)| (name.clone(), plain(value))).collect();
        task.insert("type".into(), if dice.below(8) == 0 { case.method.as_str() } else { case.task }.into());
        let body = json!({ "clientKey": KEY, "task": task }).to_string();
        let path =
            format!("/{}/createTask", dice.one_of(&["2captcha", "anticaptcha", "capsolver", "capmonster"]));
        let (_, output) = self.call("POST", &path, "application/json", body.as_bytes()).await;
        ("createTask", output.contains("\"errorId\":0"), format!("{body} {output}"))
    }

    /// Tries a task as a pool. There may be few pools, so each is removed after it has had time to buy.
    async fn pool(&mut self, case: &HostsCase, fields: &Map<String, Value>) -> (&'static str, bool, String) {
        let params = params(fields);
        let body = json!({ "tenant": "default", "kind": case.kind, "params": params, "size": 1 }).to_string();
        let path = format!(
            "/v1/pools/p{}-{}",
            self.stream.as_ref().map_or(0, |stream| stream.local_addr().unwrap().port()),
            self.sent
        );
        let (status, output) = self.call("PUT", &path, "application/json", body.as_bytes()).await;
        if status < 300 {
            tokio::time::sleep(Duration::from_millis(if case.is_honest() { 0 } else { 1500 })).await;
            self.call("DELETE", &path, "", b"").await;
        }
        // Only what is described and good for one use can be kept in stock.
        let is_known = quittance_protocol::kinds::kind(case.kind).is_some_and(|kind| kind.single_use);
        ("pool", status < 300 || !is_known, format!("{body} {output}"))
    }

    async fn import(
        &mut self,
        case: &HostsCase,
        fields: &Map<String, Value>,
        dice: &mut HostsDice,
    ) -> (&'static str, bool, String) {
        let (key, line) = dead_letter(case.kind, fields, dice.next());
        self.call("POST", "/v1/admin/dead/import", "application/x-ndjson", line.as_bytes()).await;
        let (status, output) =
            self.call("POST", &format!("/v1/admin/dead/{key}/replay"), "application/json", b"{}").await;
        // What names things as the wire does was never placed here, so even an honest one is refused.
        ("import", status < 300 || case.is_honest(), output)
    }

    pub(crate) async fn call(&mut self, verb: &str, path: &str, kind: &str, body: &[u8]) -> (u16, String) {
        for _ in 0..3 {
            let answer = tokio::time::timeout(REPLY_TIMEOUT, self.try_call(verb, path, kind, body)).await;
            let answer = answer
                .unwrap_or_else(|_| panic!("no reply to {verb} {path}: {}", String::from_utf8_lossy(body)));
            if let Some(answer) = answer {
                return answer;
            }
            self.stream = None;
        }
        (599, "no answer".into())
    }

    async fn try_call(&mut self, verb: &str, path: &str, kind: &str, body: &[u8]) -> Option<(u16, String)> {
        if self.stream.is_none() {
            self.stream = Some(TcpStream::connect(self.gateway).await.ok()?);
        }
        let stream = self.stream.as_mut()?;
        let kind = if kind.is_empty() { String::new() } else { format!("Content-Type: {kind}\r\n") };
        let head = format!(
            "{verb} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{kind}X-Requested-With: fuzz\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.ok()?;
        stream.write_all(body).await.ok()?;
        let (mut answer, mut chunk) = (Vec::new(), vec![0; 16 * 1024]);
        loop {
            let head = answer.windows(4).position(|four: &[u8]| four == b"\r\n\r\n");
            if let Some(head) = head {
                let lines = String::from_utf8_lossy(&answer[..head]).to_ascii_lowercase();
                let length = lines
                    .lines()
                    .find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
                let length = length.unwrap_or(0);
                if answer.len() >= head + 4 + length {
                    let status = lines.split(' ').nth(1)?.parse().ok()?;
                    if lines.contains("connection: close") {
                        self.stream = None;
                    }
                    return Some((status, String::from_utf8_lossy(&answer[head + 4..]).into_owned()));
                }
            }
            let count = stream.read(&mut chunk).await.ok().filter(|count| *count > 0)?;
            answer.extend_from_slice(&chunk[..count]);
        }
    }
}
