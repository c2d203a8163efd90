//! A gateway over real sockets: an engine on a store in memory that can be down, and a provider that takes every
//! order and answers when the test says so. Time stands still, so results do not depend on speed.

use crate::flaky_store::FlakyStore;
use crate::still_clock::StillClock;
use async_trait::async_trait;
use quittance_engine::{CallbackAddress, CallbackOutcome, Engine, Settings, World};
use quittance_gateway::{
    CommitFeed, Gateway, GatewaySettings, KeyDigest, OrderService, TenantSettings, Tenants, WebhookSettings,
    Webhooks, webhook_text,
};
use quittance_lifecycle::{
    CallbackResult, Fault, FaultClass, Key, Money, Order, Payload, PollOutcome, ProviderAnswer,
    ReportOutcome, SubmitOutcome,
};
use quittance_ports::{
    Account, Callback, CallbackMessage, Clock, Guard, MemoryMembership, MemorySpill, MemoryWebhooks, Params,
    Provider, Submission,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

pub(crate) const KEY: &str = "0123456789abcdef0123456789abcdef";
pub(crate) const FORM: &str = "application/x-www-form-urlencoded";

/// A provider that takes every order and records all calls.
#[derive(Default)]
pub(crate) struct Silent {
    /// The task and the last segment of its callback address, by order.
    taken: Mutex<BTreeMap<Key, (String, String)>>,
    pub(crate) polls: AtomicUsize,
    pub(crate) accounts: AtomicUsize,
    pub(crate) reports: Mutex<Vec<(String, bool)>>,
    pub(crate) account: Mutex<Option<Account>>,
}

impl Silent {
    pub(crate) fn tasks(&self) -> usize {
        self.taken.lock().unwrap().len()
    }
}

#[async_trait]
impl Provider for Silent {
    async fn submit(&self, submission: Submission<'_>) -> SubmitOutcome {
        let segment = submission.callback.unwrap().rsplit('/').next().unwrap().to_owned();
        let mut taken = self.taken.lock().unwrap();
        let task = (taken.len() + 1).to_string();
        taken.insert(submission.key, (task.clone(), segment));
        SubmitOutcome::Accepted { task }
    }

    fn preview(&self, _: &str, _: &Params, _: &Guard<'_>) -> Result<(), String> {
        Ok(())
    }

    async fn poll(&self, _tasks: &[String]) -> Vec<(String, PollOutcome)> {
        self.polls.fetch_add(1, Ordering::Relaxed);
        Vec::new()
    }

    async fn report(&self, task: &str, is_good: bool) -> ReportOutcome {
        self.reports.lock().unwrap().push((task.to_owned(), is_good));
        ReportOutcome::Accepted
    }

    async fn account(&self) -> Option<Account> {
        self.accounts.fetch_add(1, Ordering::Relaxed);
        *self.account.lock().unwrap()
    }

    fn poll_batch_max(&self) -> usize {
        1
    }

    fn penalty(&self, _fault: &quittance_lifecycle::Fault) -> Option<quittance_ports::Penalty> {
        None
    }

    fn submit_interval(&self) -> Duration {
        Duration::ZERO
    }

    /// Panics if the query contains `panic`, as a bug of ours would.
    fn read_callback(&self, callback: &Callback<'_>) -> Option<CallbackMessage> {
        assert!(!callback.query.contains("panic"), "on purpose");
        None
    }
}

/// One reply, as it came over the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

pub(crate) struct Fixture {
    pub(crate) gateway: Gateway,
    pub(crate) silent: Arc<Silent>,
    pub(crate) store_is_away: Arc<AtomicBool>,
    pub(crate) address: SocketAddr,
    engine: Arc<Engine>,
}

impl Fixture {
    /// A gateway without tenants, which accepts any key.
    pub(crate) async fn open() -> Self {
        Self::with(Vec::new(), GatewaySettings::default()).await
    }

    pub(crate) async fn with(tenants: Vec<TenantSettings>, settings: GatewaySettings) -> Self {
        let fixture = Self::unheard(tenants, settings);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(fixture.gateway.serve(listener, None));
        Self { address, ..fixture }
    }

    /// A gateway that does not listen yet.
    pub(crate) fn unheard(tenants: Vec<TenantSettings>, settings: GatewaySettings) -> Self {
        let store_is_away = Arc::new(AtomicBool::default());
        let silent = Arc::new(Silent::default());
        let clock: Arc<dyn Clock> = Arc::new(StillClock);
        let world = World {
            store: Arc::new(FlakyStore::new(&store_is_away)),
            providers: vec![Arc::clone(&silent) as Arc<dyn Provider>],
            clock: Arc::clone(&clock),
            spill: Arc::new(MemorySpill::default()),
            webhook_sender: Arc::new(MemoryWebhooks::default()),
            membership: Arc::new(MemoryMembership::default()),
        };
        let commit_feed = CommitFeed::new([]);
        let kinds = |name: &str| {
            Some(
                quittance_protocol::kinds::kind(name)
                    .unwrap_or_else(|| quittance_protocol::kinds::open_kind(name)),
            )
        };
        let mut engine = Settings::new(1, kinds);
        engine.callback = Some(CallbackAddress::new("http://localhost/callback", [7; 32]));
        engine.targets.allow.push(quittance_engine::targets::HostPattern::parse("*").unwrap());
        engine.on_commit = Some(commit_feed.on_commit());
        let engine = Arc::new(Engine::new(world, engine));
        let worker = Arc::clone(&engine);
        tokio::spawn(async move { worker.work().await });
        let orders = OrderService::new(
            Arc::clone(&engine),
            Tenants::new(tenants, None),
            commit_feed,
            Webhooks::new(WebhookSettings::default(), clock, webhook_text),
        );
        let gateway = Gateway::new(orders, settings);
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        Self { gateway, silent, store_is_away, address, engine }
    }

    // ---- speaking for the provider -------------------------------------------------------------------------

    async fn order(&self, id: &str, tenant: Option<&str>) -> Arc<Order> {
        let orders = self.gateway.orders();
        let caller = match tenant {
            Some(key) => orders.tenants().caller(key).unwrap(),
            None => orders.tenants().local().unwrap(),
        };
        orders.find(&caller, id.parse().unwrap()).await.unwrap()
    }

    /// Sends the provider's result for the order with this id.
    pub(crate) async fn settle(&self, id: &str, tenant: Option<&str>, word: CallbackResult) {
        while self.order(id, tenant).await.phase.name() != "solving" {
            tokio::task::yield_now().await;
        }
        let key = self.order(id, tenant).await.key;
        let (task, segment) = self.silent.taken.lock().unwrap()[&key].clone();
        assert_eq!(
            self.engine.called_back(&segment, Some(task), word, Duration::ZERO).await.unwrap(),
            CallbackOutcome::Applied
        );
    }

    /// The path of the callback for the order with this id.
    #[allow(dead_code, reason = "the tests of the server use it, those of the classic API do not")]
    pub(crate) async fn callback_path(&self, id: &str) -> String {
        while self.order(id, None).await.phase.name() != "solving" {
            tokio::task::yield_now().await;
        }
        let key = self.order(id, None).await.key;
        let (_, segment) = self.silent.taken.lock().unwrap()[&key].clone();
        format!("/callback/{segment}")
    }

    pub(crate) async fn solve(&self, id: &str, payload: Payload) {
        let word =
            CallbackResult::Answered(ProviderAnswer { payload, took_at_least: None, cost: Some(Money(850)) });
        self.settle(id, None, word).await;
    }

    pub(crate) async fn fail(&self, id: &str, code: &str) {
        self.settle(id, None, CallbackResult::Faulted(Fault::new(FaultClass::Caller, code))).await;
    }

    // ---- asking --------------------------------------------------------------------------------------------

    pub(crate) async fn connect(&self) -> Connection {
        Connection::new(TcpStream::connect(self.address).await.unwrap())
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.connect().await.ask("GET", path, &[], b"").await
    }

    pub(crate) async fn post(&self, path: &str, content_type: &str, body: impl AsRef<[u8]>) -> Reply {
        self.connect().await.ask("POST", path, &[("Content-Type", content_type)], body.as_ref()).await
    }

    /// Sends a GET to `res.php` with a key.
    pub(crate) async fn res(&self, query: &str) -> String {
        self.get(&format!("/res.php?key={KEY}&{query}")).await.body
    }

    /// Posts to `in.php` with a key.
    pub(crate) async fn place(&self, form: &str) -> String {
        self.post("/in.php", FORM, format!("key={KEY}&{form}")).await.body
    }

    /// Places an order for a token, shared with equal ones. Returns its id.
    pub(crate) async fn token(&self, sitekey: &str) -> String {
        let response = self
            .place(&format!("method=turnstile&sitekey={sitekey}&pageurl=https://example.com/&reuse=shared"))
            .await;
        response.strip_prefix("OK|").unwrap_or_else(|| panic!("{response}")).to_owned()
    }
}

pub(crate) fn tenant(name: &str, key: &str) -> TenantSettings {
    TenantSettings::new(name, KeyDigest::of(key))
}

/// A connection that is kept open.
pub(crate) struct Connection<S = TcpStream>(BufReader<S>);

impl<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin> Connection<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self(BufReader::new(stream))
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        // A server that turns a request away may do so before it has read all of it.
        _ = self.0.write_all(bytes).await;
    }

    pub(crate) async fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Reply {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            head.push_str("Host: localhost\r\n");
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        self.send(&[head.as_bytes(), body].concat()).await;
        self.reply().await.expect("an answer")
    }

    pub(crate) async fn line(&mut self) -> String {
        let mut line = String::new();
        _ = self.0.read_line(&mut line).await;
        line
    }

    /// The status of a reply without a body.
    pub(crate) async fn status(&mut self) -> u16 {
        self.line().await.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default()
    }

    /// The next reply, or `None` if the connection was closed without one.
    pub(crate) async fn reply(&mut self) -> Option<Reply> {
        let mut line = String::new();
        if self.0.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let status = line.split(' ').nth(1)?.parse().ok()?;
        let mut headers = BTreeMap::new();
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).await.ok()?;
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            headers.insert(name.to_owned(), value.to_owned());
        }
        let mut body = vec![0; headers.get("content-length").map_or(0, |length| length.parse().unwrap())];
        self.0.read_exact(&mut body).await.ok()?;
        Some(Reply { status, headers, body: String::from_utf8_lossy(&body).into_owned() })
    }
}
