//! A node with two tenants and an operator behind a real socket, and a clock that moves only when the test moves it.

use super::counting_store::CountingStore;
use super::provider::Scripted;
use super::talk::{Answered, Ask};
use crate::flaky_store::FlakyStore;
use async_trait::async_trait;
use quittance_admin::{Admin, AdminSettings};
use quittance_engine::{BudgetRule, CallbackAddress, Engine, ProviderRules, Settings, World};
use quittance_gateway::{
    CALLBACK_PATH, CommitFeed, Gateway, GatewaySettings, KeyDigest, OrderService, TenantSettings, Tenants,
    WebhookSettings, Webhooks, webhook_text,
};
use quittance_lifecycle::{Key, Timestamp, WhenInDoubt};
use quittance_ports::{
    Clock, Leases, Membership, MemoryLeases, MemoryMembership, MemorySpill, MemoryWebhooks, NodeStats,
    NodeStatus, Provider, Store,
};
use quittance_telemetry::{TraceSettings, Traces};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub(crate) const ANNA: &str = "anna567890anna567890anna567890an";
pub(crate) const BERT: &str = "bert567890bert567890bert567890be";
pub(crate) const ADMIN: &str = "the operator's own key, of any length";

/// A clock that starts in the year 2100 and moves only when the test moves it. A pause of at most a second ends at
/// once.
pub(crate) struct SlowClock {
    now: AtomicU64,
    moved: tokio::sync::Notify,
}

#[async_trait]
impl Clock for SlowClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now.load(Ordering::Relaxed))
    }

    async fn sleep_until(&self, moment: Timestamp) {
        let soon = self.now() + Duration::from_secs(1);
        while moment > soon && moment > self.now() {
            let moved = self.moved.notified();
            if moment > self.now() {
                moved.await;
            }
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) struct Fixture {
    pub(crate) address: SocketAddr,
    pub(crate) engine: Arc<Engine>,
    pub(crate) provider: Arc<Scripted>,
    pub(crate) store_is_away: Arc<AtomicBool>,
    pub(crate) gateway: Gateway,
    pub(crate) admin: Admin,
    clock: Arc<SlowClock>,
    store: Arc<CountingStore>,
    worker: Mutex<Option<JoinHandle<()>>>,
    leases: Arc<dyn Leases>,
    twins: AtomicU64,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        let tenant = |name: &str, key: &str| TenantSettings::new(name, KeyDigest::of(key));
        Self::with(vec![tenant("anna", ANNA), tenant("bert", BERT)]).await
    }

    pub(crate) async fn with(tenants: Vec<TenantSettings>) -> Self {
        Self::build(tenants, true, GatewaySettings::default(), None).await
    }

    /// A node with these tenants and gateway settings.
    pub(crate) async fn limited(tenants: Vec<TenantSettings>, settings: GatewaySettings) -> Self {
        Self::build(tenants, true, settings, None).await
    }

    /// A node with the tenant anna and these settings of the operator's API.
    pub(crate) async fn operated(settings: AdminSettings) -> Self {
        let anna = TenantSettings::new("anna", KeyDigest::of(ANNA));
        Self::build_operated(vec![anna], true, GatewaySettings::default(), settings, None).await
    }

    /// A node with the tenant anna and two providers, `main` and `spare`, which are the same scripted one.
    pub(crate) async fn of_two_providers(settings: AdminSettings) -> Self {
        let anna = TenantSettings::new("anna", KeyDigest::of(ANNA));
        let set = GatewaySettings::default();
        Self::build_with(vec![anna], true, set, settings, None, (&["main", "spare"], Vec::new())).await
    }

    /// A node with the tenant anna and these budgets.
    pub(crate) async fn budgeted(budgets: Vec<BudgetRule>) -> Self {
        let anna = TenantSettings::new("anna", KeyDigest::of(ANNA));
        let (set, operator) = (GatewaySettings::default(), AdminSettings::default());
        Self::build_with(vec![anna], true, set, operator, None, (&["default"], budgets)).await
    }

    /// A node whose provider cannot call back, so that an order in doubt becomes a dead letter at once.
    pub(crate) async fn in_doubt() -> Self {
        Self::build(
            vec![TenantSettings::new("anna", KeyDigest::of(ANNA))],
            false,
            GatewaySettings::default(),
            None,
        )
        .await
    }

    /// A node that sends its traces to this collector.
    pub(crate) async fn traced(collector: SocketAddr) -> Self {
        let collector = format!("http://{collector}/v1/traces").parse().unwrap();
        let traces = TraceSettings { collector, node: "here".into() };
        let anna = TenantSettings::new("anna", KeyDigest::of(ANNA));
        Self::build(vec![anna], true, GatewaySettings::default(), Some(Traces::start(traces))).await
    }

    async fn build(
        tenants: Vec<TenantSettings>,
        has_callbacks: bool,
        set: GatewaySettings,
        traces: Option<Traces>,
    ) -> Self {
        Self::build_operated(tenants, has_callbacks, set, AdminSettings::default(), traces).await
    }

    async fn build_operated(
        tenants: Vec<TenantSettings>,
        has_callbacks: bool,
        set: GatewaySettings,
        operator: AdminSettings,
        traces: Option<Traces>,
    ) -> Self {
        Self::build_with(tenants, has_callbacks, set, operator, traces, (&["default"], Vec::new())).await
    }

    async fn build_with(
        tenants: Vec<TenantSettings>,
        has_callbacks: bool,
        set: GatewaySettings,
        operator: AdminSettings,
        traces: Option<Traces>,
        (names, budgets): (&[&str], Vec<BudgetRule>),
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let clock =
            Arc::new(SlowClock { now: AtomicU64::new(4_102_444_800_000), moved: tokio::sync::Notify::new() });
        let (provider, store_is_away) = (Arc::new(Scripted::default()), Arc::<AtomicBool>::default());
        let limited =
            tenants.iter().filter(|tenant| tenant.open_max.is_some()).map(|tenant| tenant.name.clone());
        let commit_feed = CommitFeed::new(limited.collect::<Vec<_>>()).with_traces(traces);
        let store = Arc::new(CountingStore::new(FlakyStore::new(&store_is_away)));
        let membership: Arc<dyn Membership> = Arc::new(MemoryMembership::default());
        let world = World {
            store: Arc::clone(&store) as Arc<dyn Store>,
            providers: names.iter().map(|_| Arc::clone(&provider) as Arc<dyn Provider>).collect(),
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            spill: Arc::new(MemorySpill::default()),
            webhook_sender: Arc::new(MemoryWebhooks::default()),
            membership: Arc::clone(&membership),
        };
        let mut settings = Settings::new(1, quittance_protocol::kinds::kind);
        if let [_, _, ..] = names {
            let rules = |name: &&str| ProviderRules { name: (*name).into(), ..ProviderRules::default() };
            settings.providers = names.iter().map(rules).collect();
        }
        settings.budgets = budgets;
        let callback = || CallbackAddress::new(format!("http://{address}{CALLBACK_PATH}"), [7; 32]);
        settings.callback = has_callbacks.then(callback);
        settings.policy.when_in_doubt = WhenInDoubt::DeadLetter;
        settings.on_commit = Some(commit_feed.on_commit());
        settings.meaning = Some(Arc::new(|kind, params| {
            let meant = quittance_protocol::json::meaning(kind, params, &quittance_protocol::kinds::kind)?;
            Ok(meant.map(|meant| (meant.kind, meant.params)))
        }));
        let engine = Arc::new(Engine::new(world, settings));
        let worker = Arc::clone(&engine);
        let worker = Mutex::new(Some(tokio::spawn(async move { worker.work().await })));
        let webhooks =
            Webhooks::new(WebhookSettings::default(), Arc::clone(&clock) as Arc<dyn Clock>, webhook_text);
        let key = (!tenants.is_empty()).then(|| KeyDigest::of(ADMIN));
        let orders =
            OrderService::new(Arc::clone(&engine), Tenants::new(tenants, key), commit_feed, webhooks);
        let orders = orders.with_limits(&set.limits);
        let admin = Admin::new(orders.clone(), operator);
        let gateway = Gateway::mounted(orders, set, admin.mount());
        tokio::spawn(gateway.serve(listener, None));
        let leases = Arc::new(MemoryLeases::new(Arc::clone(&clock) as Arc<dyn Clock>));
        let twins = AtomicU64::new(2);
        Self { address, engine, provider, store_is_away, gateway, admin, clock, store, worker, leases, twins }
    }

    /// Another node on the same orders, without a worker and a listener.
    pub(crate) fn neighbour(&self, node: u64, settings: AdminSettings) -> (Gateway, Admin) {
        let membership = self.gateway.orders().engine().membership();
        let world = World {
            store: Arc::clone(&self.store) as Arc<dyn Store>,
            providers: vec![Arc::clone(&self.provider) as Arc<dyn Provider>],
            clock: Arc::clone(&self.clock) as Arc<dyn Clock>,
            spill: Arc::new(MemorySpill::default()),
            webhook_sender: Arc::new(MemoryWebhooks::default()),
            membership: Arc::clone(membership),
        };
        let engine = Arc::new(Engine::new(world, Settings::new(node, quittance_protocol::kinds::kind)));
        let orders = OrderService::new(
            engine,
            Tenants::new(Vec::new(), None),
            CommitFeed::new([]),
            self.gateway.orders().webhooks().clone(),
        );
        let admin = Admin::new(orders.clone(), settings);
        (Gateway::mounted(orders, GatewaySettings::default(), admin.mount()), admin)
    }

    /// Another node on the same orders and for the same callers, without a worker. Returns its gateway and its
    /// address.
    pub(crate) async fn twin(&self, tenants: Vec<TenantSettings>) -> (Gateway, SocketAddr) {
        self.twin_in("USD", tenants).await
    }

    /// A twin whose account has this currency.
    pub(crate) async fn twin_in(
        &self,
        currency: &str,
        tenants: Vec<TenantSettings>,
    ) -> (Gateway, SocketAddr) {
        let world = World {
            store: Arc::clone(&self.store) as Arc<dyn Store>,
            providers: vec![Arc::clone(&self.provider) as Arc<dyn Provider>],
            clock: Arc::clone(&self.clock) as Arc<dyn Clock>,
            spill: Arc::new(MemorySpill::default()),
            webhook_sender: Arc::new(MemoryWebhooks::default()),
            membership: Arc::clone(self.gateway.orders().engine().membership()),
        };
        let commit_feed = CommitFeed::new(tenants.iter().map(|tenant| tenant.name.clone()));
        let node = self.twins.fetch_add(1, Ordering::Relaxed);
        let mut settings = Settings::new(node, quittance_protocol::kinds::kind);
        currency.clone_into(&mut settings.providers[0].currency);
        settings.on_commit = Some(commit_feed.on_commit());
        let orders = OrderService::new(
            Arc::new(Engine::new(world, settings)),
            Tenants::new(tenants, Some(KeyDigest::of(ADMIN))),
            commit_feed,
            self.gateway.orders().webhooks().clone(),
        );
        let orders = orders.with_neighbours(Arc::clone(&self.leases), node);
        let admin = Admin::new(orders.clone(), AdminSettings::default());
        let gateway = Gateway::mounted(orders, GatewaySettings::default(), admin.mount());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(gateway.serve(listener, None));
        (gateway, address)
    }

    /// Writes the heartbeat of a node.
    pub(crate) async fn heartbeat(&self, node: u64, name: &str) {
        let now = self.clock.now();
        let own = if node == 1 { self.engine.node_stats() } else { NodeStats::default() };
        let node_status = NodeStatus {
            node,
            name: name.into(),
            version: "1".into(),
            format: 1,
            started: now,
            at: now,
            skew_ms: None,
            node_stats: NodeStats {
                is_paused: own.is_paused,
                pause_code: own.pause_code,
                ..NodeStats::default()
            },
            reach: None,
            demand: BTreeMap::new(),
        };
        self.gateway.orders().engine().membership().heartbeat(&node_status).await.unwrap();
    }

    /// Moves the clock.
    pub(crate) fn pass(&self, span: Duration) {
        self.clock.now.fetch_add(u64::try_from(span.as_millis()).unwrap(), Ordering::Relaxed);
        self.clock.moved.notify_waiters();
    }

    /// Stops the worker: from now on only API requests call the store and the provider.
    pub(crate) async fn rest(&self) {
        self.engine.stop();
        let worker = self.worker.lock().unwrap().take();
        worker.expect("it rests once").await.unwrap();
        self.store_calls();
        self.provider.calls();
    }

    /// Makes this record unreadable.
    pub(crate) fn break_record(&self, key: &str) {
        self.store.break_record(Key::parse(key).unwrap(), false);
    }

    /// Makes this record one of a later version of Quittance.
    pub(crate) fn write_record_later(&self, key: &str) {
        self.store.break_record(Key::parse(key).unwrap(), true);
    }

    /// The calls of the store since the last look.
    pub(crate) fn store_calls(&self) -> Vec<&'static str> {
        self.store.calls()
    }

    /// Puts an answer for this site key, which begins with `hold`, into the stock.
    pub(crate) async fn stock(&self, sitekey: &str, token: &str) {
        let before = self.provider.submits(sitekey);
        let ask = json!({ "kind": "turnstile", "reuse": "exclusive", "no_stock": true,
            "params": { "sitekey": sitekey, "pageurl": "https://shop.example.com/" } });
        let path = path_of(&self.ask(Ask::post("/v1/orders", &ask).key(ANNA)).await.order(202));
        self.until(&path, "solving").await;
        assert_eq!(self.provider.submits(sitekey), before + 1);
        self.ask(Ask::new("DELETE", path.clone()).key(ANNA)).await.order(200);
        self.call_back(sitekey, token).await;
    }

    pub(crate) async fn ask(&self, ask: Ask) -> Answered {
        ask.of(self.address).await
    }

    /// Sends a GET as anna.
    pub(crate) async fn get(&self, path: &str) -> Answered {
        self.ask(Ask::get(path).key(ANNA)).await
    }

    /// Sends a GET as anna and waits for the end of the order.
    pub(crate) async fn end_of(&self, path: &str) -> Value {
        self.ask(Ask::get(path).key(ANNA).header("Prefer", "wait=60")).await.order(200)
    }

    /// Places an order as anna, without waiting.
    pub(crate) async fn place(&self, sitekey: &str) -> Answered {
        self.ask(Ask::post("/v1/orders", &order(sitekey)).key(ANNA)).await
    }

    /// Places an order as anna, under this idempotency key.
    pub(crate) async fn place_keyed(&self, sitekey: &str, key: &str) -> Answered {
        self.ask(keyed(&order(sitekey), key)).await
    }

    /// Calls back for a site key, as soon as the provider has taken it.
    pub(crate) async fn call_back(&self, sitekey: &str, token: &str) {
        let address = loop {
            if let Some(address) = self.provider.callback(sitekey) {
                break address;
            }
            tokio::task::yield_now().await;
        };
        let path = &address[address.find(CALLBACK_PATH).unwrap()..];
        assert_eq!(self.ask(Ask::get(format!("{path}?code={token}"))).await.status, 200);
    }

    /// Moves the clock in small steps until the order has ended.
    pub(crate) async fn run_out(&self, path: &str) -> Value {
        loop {
            let order = self.get(path).await.order(200);
            if order["status"] != "pending" {
                return order;
            }
            self.pass(Duration::from_millis(50));
            tokio::task::yield_now().await;
        }
    }

    /// Polls until the order is in this phase.
    pub(crate) async fn until(&self, path: &str, phase: &str) -> Value {
        loop {
            let order = self.get(path).await.order(200);
            if order["phase"] == phase {
                return order;
            }
            tokio::task::yield_now().await;
        }
    }
}

/// An order for a turnstile token that it shares with no other order.
pub(crate) fn exclusive(sitekey: &str) -> Value {
    let mut order = order(sitekey);
    order["reuse"] = json!("exclusive");
    order
}

/// An order for a turnstile token, shared with equal orders.
pub(crate) fn order(sitekey: &str) -> Value {
    let params = json!({ "sitekey": sitekey, "pageurl": "https://shop.example.com/" });
    json!({ "kind": "turnstile", "reuse": "shared", "params": params })
}

pub(crate) fn keyed(order: &Value, key: &str) -> Ask {
    Ask::post("/v1/orders", order).key(ANNA).header("Idempotency-Key", key).header("Prefer", "wait=60")
}

pub(crate) fn path_of(order: &Value) -> String {
    format!("/v1/orders/{}", order["id"].as_str().unwrap())
}
