//! Budgets on every real store: three nodes buy as fast as they can, one after the other is killed, and nothing is
//! paid beyond the limit.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use async_trait::async_trait;
use futures_util::future::{BoxFuture, FutureExt};
use quittance::{Place, PostgresSettings, RedisSettings, SystemClock};
use quittance_engine::{
    AtLimit, BudgetPeriod, BudgetRule, BudgetScope, Engine, ProviderRules, Settings, World,
};
use quittance_lifecycle::{
    Draft, Fault, FaultClass, Key, Money, Payload, PollOutcome, ProviderAnswer, ReportOutcome, SubmitOutcome,
};
use quittance_ports::{
    Account, Callback, CallbackMessage, Guard, MemorySpill, MemoryWebhooks, Params, Penalty, Provider,
    Submission, Which,
};
use quittance_servers::{shared_postgres, shared_redis};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;

const PRICE: u64 = 3_000;
/// How many answers the budget of an hour allows.
const ANSWERS: u64 = 25;
const HOUR_MS: u64 = 3_600_000;
/// Longer than a busy machine needs.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A provider that answers, rejects or never replies, and its ledger: the order, the attempt, and the cost.
#[derive(Clone, Default)]
struct Counter(Arc<Mutex<Vec<(Key, u32, u64)>>>);

#[async_trait]
impl Provider for Counter {
    async fn submit(&self, submission: Submission<'_>) -> SubmitOutcome {
        let dice = submission.key.grain().wrapping_add(submission.attempt.into()) % 8;
        let is_taken = dice < 6;
        let entry = (submission.key, submission.attempt, if is_taken { PRICE } else { 0 });
        self.0.lock().unwrap().push(entry);
        if dice == 0 {
            // It is taken, and the reply never comes.
            return std::future::pending().await;
        }
        if !is_taken {
            return SubmitOutcome::Rejected(Fault::new(FaultClass::Unsolvable, "ERROR_BAD_DAY"));
        }
        let (payload, cost) = (Payload::text("answer"), Some(Money(PRICE)));
        SubmitOutcome::Answered(ProviderAnswer { payload, took_at_least: None, cost })
    }

    fn preview(&self, _: &str, _: &Params, _: &Guard<'_>) -> Result<(), String> {
        Ok(())
    }

    async fn poll(&self, _: &[String]) -> Vec<(String, PollOutcome)> {
        Vec::new()
    }

    fn poll_batch_max(&self) -> usize {
        1
    }

    fn submit_interval(&self) -> Duration {
        Duration::ZERO
    }

    fn penalty(&self, _: &Fault) -> Option<Penalty> {
        None
    }

    fn read_callback(&self, _: &Callback<'_>) -> Option<CallbackMessage> {
        None
    }

    async fn report(&self, _: &str, _: bool) -> ReportOutcome {
        ReportOutcome::Accepted
    }

    async fn account(&self) -> Option<Account> {
        None
    }
}

struct RunningNode {
    engine: Arc<Engine>,
    work: JoinHandle<()>,
}

impl RunningNode {
    fn start(world: World) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mut settings = Settings::new(number, quittance_protocol::kinds::kind);
        settings.in_hand_max = 10_000;
        settings.providers = vec![ProviderRules {
            name: "a".into(),
            prices: BTreeMap::from([("turnstile".to_owned(), Money(PRICE))]),
            ..ProviderRules::default()
        }];
        settings.budgets = vec![BudgetRule {
            name: "all".into(),
            scope: BudgetScope::default(),
            period: BudgetPeriod::Hour,
            limit: Money(ANSWERS * PRICE),
            currency: "USD".into(),
            at_limit: AtLimit::Wait,
        }];
        let engine = Arc::new(Engine::new(world, settings));
        let worker = Arc::clone(&engine);
        Self { engine, work: tokio::spawn(async move { worker.work().await }) }
    }

    /// Places orders one after the other, as a caller of this node. The order of a caller whose node is killed stays.
    fn is_asked_for(&self, names: std::ops::Range<u64>) -> JoinHandle<()> {
        let engine = Arc::clone(&self.engine);
        tokio::spawn(async move {
            for name in names {
                let draft = Draft::new("ada")
                    .with("sitekey", format!("site-{name}").as_str())
                    .with("pageurl", "https://example.com/login");
                // The store may not answer in time: then the order is not placed.
                let _placed_or_not = engine.place("turnstile", draft).await;
            }
        })
    }
}

/// Looks until a condition holds; the timeout of the test ends it otherwise.
async fn eventually(mut holds: impl AsyncFnMut() -> bool) {
    while !holds().await {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Whether nothing is left to spend. What killed nodes had leased may be lost to this hour, and no more than that.
async fn is_used_up(engine: &Engine, provider: &Counter) -> bool {
    let paid: u64 = provider.0.lock().unwrap().iter().map(|(.., cost)| cost).sum();
    let view = &engine.budget_views().await.unwrap()[0];
    paid >= ANSWERS * PRICE / 2 && view.spent.0 + view.reserved.0 > (ANSWERS - 1) * PRICE
}

/// Runs three nodes on a store, kills some of them, and checks what was paid. `opens` opens the store for one more
/// node.
async fn nothing_is_overspent(opens: impl Fn() -> BoxFuture<'static, World>, provider: Counter) {
    let submits = || provider.0.lock().unwrap().len();
    let mut nodes = Vec::new();
    for _ in 0..3 {
        nodes.push(RunningNode::start(opens().await));
    }
    let mut callers = Vec::new();
    for round in 0..4_u64 {
        let before = submits();
        for (at, node) in (0..).zip(&nodes) {
            let first = (round * 3 + at) * 15;
            callers.push(node.is_asked_for(first..first + 15));
        }
        // In the middle of its work, or when there is nothing left to spend.
        eventually(async || submits() >= before + 3 || is_used_up(&nodes[1].engine, &provider).await).await;
        nodes.remove(0).work.abort();
        nodes.push(RunningNode::start(opens().await));
    }
    for caller in callers {
        caller.await.unwrap();
    }
    eventually(async || is_used_up(&nodes[0].engine, &provider).await).await;
    let view = &nodes[0].engine.budget_views().await.unwrap()[0];
    assert!(view.spent.0 + view.reserved.0 <= ANSWERS * PRICE, "{view:?}");
    nodes.iter().for_each(|node| node.work.abort());
    for node in nodes {
        assert!(node.work.await.is_err_and(|error| error.is_cancelled()), "it works until it is killed");
    }
    let record = opens().await.store.list(Which::ALL, None, 10_000).await.unwrap();
    let orders: BTreeMap<Key, _> =
        record.into_iter().flatten().map(|row| (row.order.key, row.order)).collect();
    let mut hours: BTreeMap<u64, u64> = BTreeMap::new();
    for (key, attempt, cost) in provider.0.lock().unwrap().iter() {
        let sent = orders[key].attempt(*attempt).unwrap().sent.as_millis();
        *hours.entry(sent / HOUR_MS).or_default() += cost;
    }
    assert!(hours.values().all(|paid| *paid <= ANSWERS * PRICE), "{hours:?}");
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(TIMEOUT, test).await.expect("it waits for ever") });
}

async fn world_on(place: &Place, provider: Counter) -> World {
    let opened = place.open().await.unwrap();
    World {
        store: opened.store,
        providers: vec![Arc::new(provider)],
        clock: Arc::new(SystemClock),
        spill: Arc::new(MemorySpill::default()),
        webhook_sender: Arc::new(MemoryWebhooks::default()),
        membership: opened.membership,
    }
}

fn check_on(place: &Place) {
    run(async {
        let provider = Counter::default();
        let opens = || {
            let (place, provider) = (place.clone(), provider.clone());
            async move { world_on(&place, provider).await }.boxed()
        };
        nothing_is_overspent(opens, provider.clone()).await;
    });
}

#[test]
fn three_nodes_on_redis_spend_no_more_than_the_budget_while_some_are_killed() {
    let url = format!("{}?prefix=budgets", shared_redis().url());
    check_on(&Place::Redis(RedisSettings::parse(&url).unwrap().into()));
}

#[test]
fn three_nodes_on_postgres_spend_no_more_than_the_budget_while_some_are_killed() {
    let url = format!("{}?schema=budgets", shared_postgres().url());
    check_on(&Place::Postgres(PostgresSettings::parse(&url).unwrap().into()));
}

/// The nodes of an embedded store run in one process.
#[test]
fn nodes_on_an_embedded_store_spend_no_more_than_the_budget_while_some_are_killed() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let (place, provider) = (Place::Embedded(folder.path().to_owned()), Counter::default());
        let opened = world_on(&place, provider.clone()).await;
        let opens = || {
            let world = World {
                store: Arc::clone(&opened.store),
                providers: vec![Arc::new(provider.clone())],
                clock: Arc::clone(&opened.clock),
                spill: Arc::new(MemorySpill::default()),
                webhook_sender: Arc::clone(&opened.webhook_sender),
                membership: Arc::clone(&opened.membership),
            };
            async move { world }.boxed()
        };
        nothing_is_overspent(opens, provider.clone()).await;
    });
}
