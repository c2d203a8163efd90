//! A node whose provider answers at once, so that webhooks are sent. It rejects site keys that begin with `refuse`.

use async_trait::async_trait;
use quittance_engine::{Engine, Settings, World as Ports};
use quittance_gateway::{
    Accepted, Allowed, Caller, CommitFeed, Declined, KeyDigest, OrderRequest, OrderService, TenantSettings,
    Tenants, WebhookSettings, Webhooks, webhook_text,
};
use quittance_lifecycle::{
    Evidence, Fault, FaultClass, Key, Money, Payload, PollOutcome, ProviderAnswer, ReportOutcome,
    SubmitOutcome, Timestamp, Value,
};
use quittance_ports::{
    Account, Callback, CallbackMessage, Clock, Guard, MemoryMembership, MemorySpill, MemoryStore, Params,
    Provider, Submission,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

pub(crate) const SECRET: [u8; 32] = [9; 32];
const KEY: &str = "0123456789abcdef0123456789abcdef";

#[derive(Default)]
struct Prompt(AtomicUsize);

/// The answer for a site, encoded for a form.
pub(crate) fn token(site: &str) -> String {
    format!("token-{}", site.replace(':', "%3A"))
}

#[async_trait]
impl Provider for Prompt {
    async fn submit(&self, submission: Submission<'_>) -> SubmitOutcome {
        self.0.fetch_add(1, Ordering::SeqCst);
        let Some(Value::Text(site)) = submission.terms.params.get("sitekey") else {
            return SubmitOutcome::InDoubt(Evidence::default());
        };
        // One that is refused with a code that no client knows.
        if site.starts_with("refuse") {
            return SubmitOutcome::Rejected(Fault::new(FaultClass::Caller, "ERROR_OF_ITS_OWN"));
        }
        let payload = Payload::text(format!("token-{site}"));
        SubmitOutcome::Answered(ProviderAnswer { payload, took_at_least: None, cost: Some(Money(2990)) })
    }

    fn preview(&self, _: &str, _: &Params, _: &Guard<'_>) -> Result<(), String> {
        Ok(())
    }

    async fn poll(&self, _tasks: &[String]) -> Vec<(String, PollOutcome)> {
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

    async fn report(&self, _task: &str, _is_good: bool) -> ReportOutcome {
        ReportOutcome::Accepted
    }

    async fn account(&self) -> Option<Account> {
        None
    }
}

/// A clock that runs a hundred times as fast, so that retries take no time.
struct Hasty(tokio::time::Instant);

const HASTE: u32 = 100;

#[async_trait]
impl Clock for Hasty {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000) + self.0.elapsed() * HASTE
    }

    async fn sleep_until(&self, moment: Timestamp) {
        tokio::time::sleep(moment.since(self.now()) / HASTE).await;
    }
}

pub(crate) struct World {
    pub(crate) orders: OrderService,
    pub(crate) caller: Caller,
    pub(crate) webhooks: Webhooks,
    provider: Arc<Prompt>,
}

impl World {
    pub(crate) async fn start(allow: &[&str]) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(Hasty(tokio::time::Instant::now()));
        let webhooks = Webhooks::new(
            WebhookSettings {
                allow: allow.iter().map(|text| Allowed::parse(text).unwrap()).collect(),
                secrets: [("ada".to_owned(), SECRET)].into(),
                ..WebhookSettings::default()
            },
            Arc::clone(&clock),
            webhook_text,
        );
        let provider = Arc::new(Prompt::default());
        let ports = Ports {
            store: Arc::new(MemoryStore::default()),
            providers: vec![Arc::clone(&provider) as Arc<dyn Provider>],
            clock: Arc::clone(&clock),
            spill: Arc::new(MemorySpill::default()),
            webhook_sender: Arc::new(webhooks.clone()),
            membership: Arc::new(MemoryMembership::default()),
        };
        let commit_feed = CommitFeed::new([]);
        let mut settings = Settings::new(1, quittance_protocol::kinds::kind);
        settings.on_commit = Some(commit_feed.on_commit());
        let engine = Arc::new(Engine::new(ports, settings));
        let worker = Arc::clone(&engine);
        tokio::spawn(async move { worker.work().await });
        let tenants = Tenants::new(vec![TenantSettings::new("ada", KeyDigest::of(KEY))], None);
        let caller = tenants.caller(KEY).unwrap();
        let orders = OrderService::new(engine, tenants, commit_feed, webhooks.clone());
        Self { orders, caller, webhooks, provider }
    }

    pub(crate) async fn place(&self, request: OrderRequest) -> Result<Accepted, Declined> {
        self.orders.place(self.caller.clone(), request, Duration::from_secs(4)).await
    }

    pub(crate) fn submits(&self) -> usize {
        self.provider.0.load(Ordering::SeqCst)
    }

    pub(crate) async fn until_solved(&self, key: Key) {
        self.until(key, |order| !order.is_awaited()).await;
    }

    pub(crate) async fn until_delivered(&self, key: Key) {
        self.until(key, |order| order.webhooks.is_empty()).await;
    }

    async fn until(&self, key: Key, is_so: impl Fn(&quittance_lifecycle::Order) -> bool) {
        let mut events = self.orders.commit_feed().watch();
        loop {
            if self.orders.engine().read(&key).await.unwrap().is_some_and(|order| is_so(&order)) {
                return;
            }
            events.recv().await.unwrap();
        }
    }

    pub(crate) async fn stop(&self) {
        self.orders.engine().stop();
    }
}
