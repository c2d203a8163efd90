//! An engine behind the API: a store that can be down or hang, and a provider that takes every order and answers when
//! the test says so.

use crate::flaky_store::FlakyStore;
use crate::still_clock::StillClock;
use async_trait::async_trait;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::Request;
use hyper::header::{CONTENT_TYPE, USER_AGENT};
use quittance_engine::{CallbackAddress, Engine, Settings, World};
use quittance_gateway::{
    CommitFeed, Gateway, GatewaySettings, OrderService, TenantSettings, Tenants, WebhookSettings, Webhooks,
    webhook_text,
};
use quittance_lifecycle::{
    CallbackResult, Fault, FaultClass, Money, Payload, PollOutcome, ProviderAnswer, ReportOutcome,
    SubmitOutcome,
};
use quittance_ports::{
    Account, Callback, CallbackMessage, Guard, MemoryMembership, MemorySpill, MemoryWebhooks, Params,
    Provider, Submission,
};
use quittance_protocol::Dialect;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A key. Without tenants, any key is accepted.
pub(super) const KEY: &str = "0123456789abcdef0123456789abcdef";

/// A provider that takes every order and records callback addresses and reports.
#[derive(Default)]
pub(super) struct Scripted {
    calls: Mutex<Vec<String>>,
    pub(super) polls: AtomicUsize,
    pub(super) reports: Mutex<Vec<bool>>,
    pub(super) accounts: AtomicUsize,
    pub(super) hides_balance: AtomicBool,
}

impl Scripted {
    pub(super) fn submits(&self) -> usize {
        self.calls.lock().unwrap().len()
    }
}

#[async_trait]
impl Provider for Scripted {
    async fn submit(&self, submission: Submission<'_>) -> SubmitOutcome {
        let mut calls = self.calls.lock().unwrap();
        calls.push(submission.callback.expect("there is an address").to_owned());
        SubmitOutcome::Accepted { task: calls.len().to_string() }
    }

    fn preview(&self, _: &str, _: &Params, _: &Guard<'_>) -> Result<(), String> {
        Ok(())
    }

    async fn poll(&self, _tasks: &[String]) -> Vec<(String, PollOutcome)> {
        self.polls.fetch_add(1, Ordering::Relaxed);
        Vec::new()
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

    fn read_callback(&self, _callback: &Callback<'_>) -> Option<CallbackMessage> {
        None
    }

    async fn report(&self, _task: &str, is_good: bool) -> ReportOutcome {
        self.reports.lock().unwrap().push(is_good);
        ReportOutcome::Accepted
    }

    async fn account(&self) -> Option<Account> {
        self.accounts.fetch_add(1, Ordering::Relaxed);
        let balance = (!self.hides_balance.load(Ordering::Relaxed)).then_some(Money(3_500_000));
        Some(Account { balance, threads: None })
    }
}

pub(super) struct Fixture {
    pub(super) orders: OrderService,
    gateway: Gateway,
    pub(super) provider: Arc<Scripted>,
    pub(super) store_is_away: Arc<AtomicBool>,
    pub(super) store_hangs: Arc<AtomicBool>,
}

impl Fixture {
    pub(super) fn open() -> Self {
        Self::with(Vec::new(), None)
    }

    pub(super) fn with(tenants: Vec<TenantSettings>, dialect: Option<Dialect>) -> Self {
        let store_is_away = Arc::<AtomicBool>::default();
        let store = FlakyStore::new(&store_is_away);
        let store_hangs = Arc::clone(&store.hangs);
        let provider = Arc::new(Scripted::default());
        let world = World {
            store: Arc::new(store),
            providers: vec![Arc::clone(&provider) as Arc<dyn Provider>],
            clock: Arc::new(StillClock),
            spill: Arc::new(MemorySpill::default()),
            webhook_sender: Arc::new(MemoryWebhooks::default()),
            membership: Arc::new(MemoryMembership::default()),
        };
        let commit_feed = CommitFeed::new([]);
        let mut settings = Settings::new(1, |name| {
            Some(
                quittance_protocol::kinds::kind(name)
                    .unwrap_or_else(|| quittance_protocol::kinds::open_kind(name)),
            )
        });
        settings.callback = Some(CallbackAddress::new("http://127.0.0.1/callback", [7; 32]));
        settings.on_commit = Some(commit_feed.on_commit());
        let engine = Arc::new(Engine::new(world, settings));
        let worker = Arc::clone(&engine);
        tokio::spawn(async move { worker.work().await });
        let tenants = Tenants::new(tenants, None);
        let orders = OrderService::new(
            engine,
            tenants,
            commit_feed,
            Webhooks::new(WebhookSettings::default(), Arc::new(StillClock), webhook_text),
        );
        let settings = GatewaySettings { dialect, ..GatewaySettings::default() };
        let gateway = Gateway::new(orders.clone(), settings);
        Self { orders, gateway, provider, store_is_away, store_hangs }
    }

    /// The status, the content type and the body of a response.
    pub(super) async fn exchange(
        &self,
        method: &str,
        path: &str,
        agent: Option<&'static str>,
        body: impl Into<Bytes>,
    ) -> (u16, String, String) {
        let request = Request::builder().method(method).uri(path);
        // Whatever it says, the body is what it is.
        let request = request.header(CONTENT_TYPE, "text/plain");
        let request = agent.into_iter().fold(request, |request, agent| request.header(USER_AGENT, agent));
        let answer = self.gateway.ask(request.body(body.into()).unwrap()).await;
        let kind = answer.headers()[CONTENT_TYPE].to_str().unwrap().to_owned();
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, kind, String::from_utf8(body.to_vec()).unwrap())
    }

    /// The body of a response, which must be JSON with status 200.
    pub(super) async fn post(&self, path: &str, body: impl Into<Bytes>) -> String {
        let (status, kind, body) = self.exchange("POST", path, None, body).await;
        assert_eq!((status, kind.as_str()), (200, "application/json"), "{path}");
        body
    }

    pub(super) async fn ask(&self, path: &str, body: &Value) -> Value {
        serde_json::from_str(&self.post(path, body.to_string()).await).unwrap()
    }

    /// Sends a provider's result for the last task but `before`.
    async fn say(&self, before: usize, word: CallbackResult) {
        let (segment, task) = loop {
            let calls = self.provider.calls.lock().unwrap().clone();
            if let Some(at) = calls.len().checked_sub(before + 1) {
                break (calls[at].rsplit('/').next().unwrap().to_owned(), (at + 1).to_string());
            }
            tokio::task::yield_now().await;
        };
        self.orders.engine().called_back(&segment, Some(task), word, Duration::ZERO).await.unwrap();
    }

    pub(super) async fn solve(&self, payload: Payload) {
        self.solve_earlier(0, payload).await;
    }

    pub(super) async fn solve_earlier(&self, before: usize, payload: Payload) {
        let delivery = ProviderAnswer { payload, took_at_least: None, cost: Some(Money(2990)) };
        self.say(before, CallbackResult::Answered(delivery)).await;
    }

    pub(super) async fn refuse(&self, code: &str) {
        self.say(0, CallbackResult::Faulted(Fault::new(FaultClass::Caller, code))).await;
    }

    /// Waits until the provider has got `count` tasks.
    pub(super) async fn until_submitted(&self, count: usize) {
        while self.provider.submits() < count {
            tokio::task::yield_now().await;
        }
    }
}
