//! A fixture for budgets: two providers with prices and ledgers, and nodes that share a store and budgets.

use crate::stories::world::{StoryCaller, StoryNode, StoryWorld, turnstile, world_with};
use async_trait::async_trait;
use quittance_engine::{
    AtLimit, BudgetPeriod, BudgetRule, BudgetScope, BudgetView, ProviderRules, Rules, Settings,
};
use quittance_lifecycle::{
    Evidence, Fault, FaultClass, Key, Money, Order, Payload, Policy, PollOutcome, ProviderAnswer,
    ReportOutcome, SubmitOutcome, Unsolvable,
};
use quittance_ports::{
    Account, Callback, CallbackMessage, DocumentWritten, Guard, Membership as _, MemorySpill, Params,
    Penalty, Provider, StoreError, Submission,
};
use quittance_sim::executor::Executor;
use quittance_sim::rng::Rng;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// What an answer costs at the provider `a`.
pub(crate) const PRICE: u64 = 3_000;
pub(crate) const HOUR_MS: u64 = 3_600_000;

/// What a shop does with a submit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deal {
    /// It takes the task, and solves it after so many seconds.
    Solves(u64),
    /// It takes the task, cannot solve it, and charges nothing.
    GivesUp,
    /// It does not take the task.
    Rejects,
    /// It takes the task, charges it, and its reply is lost.
    Silent,
    /// It does not take the task, and its reply is lost.
    Lost,
}

#[derive(Default)]
pub(crate) struct Till {
    rng: Option<Rng>,
    deal: Option<Deal>,
    /// Each submit: the order, the attempt, and what was charged for it.
    ledger: Vec<(Key, u32, u64)>,
    tasks: BTreeMap<String, (u64, Deal)>,
}

/// A provider with a price, and a ledger of what it has charged.
#[derive(Clone)]
pub(crate) struct Shop {
    name: &'static str,
    price: u64,
    executor: Executor,
    till: Arc<Mutex<Till>>,
}

impl Shop {
    pub(crate) fn new(name: &'static str, price: u64, executor: &Executor) -> Self {
        let till = Till { deal: Some(Deal::Solves(5)), ..Till::default() };
        Self { name, price, executor: executor.clone(), till: Arc::new(Mutex::new(till)) }
    }

    fn till(&self) -> MutexGuard<'_, Till> {
        self.till.lock().expect("nothing panics while it holds the till")
    }

    /// From now on, this is what it does.
    pub(crate) fn does(&self, deal: Deal) {
        self.till().deal = Some(deal);
    }

    pub(crate) fn rolls(&self, seed: u64) {
        (self.till().rng, self.till().deal) = (Some(Rng::new(seed, self.name)), None);
    }

    pub(crate) fn charged(&self) -> u64 {
        self.till().ledger.iter().map(|(.., cost)| cost).sum()
    }

    pub(crate) fn submits(&self) -> usize {
        self.till().ledger.len()
    }
}

impl Till {
    fn next(&mut self) -> Deal {
        let (Some(rng), None) = (&mut self.rng, self.deal) else { return self.deal.unwrap_or(Deal::Rejects) };
        match rng.in_range(0..100) {
            0..60 => Deal::Solves(rng.in_range(1..40)),
            60..70 => Deal::GivesUp,
            70..85 => Deal::Rejects,
            85..93 => Deal::Silent,
            _ => Deal::Lost,
        }
    }
}

#[async_trait]
impl Provider for Shop {
    async fn submit(&self, submission: Submission<'_>) -> SubmitOutcome {
        let (deal, task) = {
            let mut till = self.till();
            let deal = till.next();
            let cost = if matches!(deal, Deal::Solves(_) | Deal::Silent) { self.price } else { 0 };
            till.ledger.push((submission.key, submission.attempt, cost));
            let task = format!("{}-{}", self.name, till.ledger.len());
            till.tasks.insert(task.clone(), (self.executor.now(), deal));
            (deal, task)
        };
        self.executor.sleep(50).await;
        match deal {
            Deal::Solves(_) | Deal::GivesUp => SubmitOutcome::Accepted { task },
            Deal::Rejects => SubmitOutcome::Rejected(Fault::new(FaultClass::Unsolvable, "ERROR_BAD_DAY")),
            Deal::Silent | Deal::Lost => SubmitOutcome::InDoubt(Evidence::new("no reply")),
        }
    }

    fn preview(&self, _: &str, _: &Params, _: &Guard<'_>) -> Result<(), String> {
        Ok(())
    }

    async fn poll(&self, tasks: &[String]) -> Vec<(String, PollOutcome)> {
        let (now, till) = (self.executor.now(), self.till());
        let state = |task: &String| match till.tasks.get(task) {
            Some((_, Deal::GivesUp)) => {
                PollOutcome::Faulted(Fault::new(FaultClass::Unsolvable, "ERROR_UNSOLVABLE"))
            }
            Some((at, Deal::Solves(seconds))) if now >= at + seconds * 1000 => {
                let (payload, cost) = (Payload::text(task.clone()), Some(Money(self.price)));
                PollOutcome::Answered(ProviderAnswer { payload, took_at_least: None, cost })
            }
            _ => PollOutcome::Pending,
        };
        tasks.iter().map(|task| (task.clone(), state(task))).collect()
    }

    fn poll_batch_max(&self) -> usize {
        100
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

pub(crate) fn rule(answers: u64, at_limit: AtLimit) -> BudgetRule {
    BudgetRule {
        name: "all".into(),
        scope: BudgetScope::default(),
        period: BudgetPeriod::Hour,
        limit: Money(answers * PRICE),
        currency: "USD".into(),
        at_limit,
    }
}

/// The provider `a`, the cheaper provider `b`, and nodes that share a store and budgets.
pub(crate) struct Market {
    pub(crate) world: StoryWorld,
    pub(crate) a: Shop,
    pub(crate) b: Shop,
    budgets: Vec<BudgetRule>,
    /// Whether there is the provider `b`, too.
    pub(crate) has_b: bool,
    sow: fn(&mut Rules),
}

impl Market {
    pub(crate) fn new(seed: u64, budgets: Vec<BudgetRule>, sow: fn(&mut Rules)) -> Self {
        let world = world_with(Policy { unsolvable: Unsolvable::Free, ..Policy::DEFAULT }, seed);
        let (a, b) = (Shop::new("a", PRICE, &world.executor), Shop::new("b", PRICE / 3, &world.executor));
        Self { world, a, b, budgets, has_b: false, sow }
    }

    pub(crate) fn node(&self) -> StoryNode {
        self.node_with(|_| {})
    }

    pub(crate) fn node_with(&self, adjust: impl FnOnce(&mut Settings)) -> StoryNode {
        let shops: Vec<&Shop> = if self.has_b { vec![&self.a, &self.b] } else { vec![&self.a] };
        let adapters = shops.iter().map(|shop| Arc::new((*shop).clone()) as Arc<dyn Provider>).collect();
        self.world.node_at(Arc::new(MemorySpill::default()), adapters, |settings| {
            let rules = |shop: &&Shop| ProviderRules {
                name: shop.name.into(),
                prices: BTreeMap::from([("turnstile".to_owned(), Money(shop.price))]),
                ..ProviderRules::default()
            };
            settings.providers = shops.iter().map(rules).collect();
            settings.budgets.clone_from(&self.budgets);
            settings.in_hand_max = 10_000;
            (self.sow)(&mut settings.rules);
            adjust(settings);
        })
    }

    /// What was charged in each hour, by the moment of the submit as its attempt has it.
    pub(crate) fn paid_by_hour(&self) -> BTreeMap<u64, u64> {
        let orders: BTreeMap<Key, Arc<Order>> =
            self.world.orders().into_iter().map(|order| (order.key, order)).collect();
        let mut hours = BTreeMap::new();
        for shop in [&self.a, &self.b] {
            for (key, attempt, cost) in &shop.till().ledger {
                let attempt = orders.get(key).and_then(|order| order.attempt(*attempt));
                let sent = attempt.expect("every submit is on record").sent.as_millis();
                *hours.entry(sent / HOUR_MS).or_default() += cost;
            }
        }
        hours
    }

    pub(crate) fn places(&self, node: &StoryNode, names: std::ops::Range<u64>) -> Vec<StoryCaller> {
        names.map(|name| node.asks(turnstile(&format!("site-{name}")).within(600))).collect()
    }

    pub(crate) fn view(&self, node: &StoryNode) -> BudgetView {
        let engine = Arc::clone(&node.engine);
        let views = node.does(async move { engine.budget_views().await }).expect("the store is there");
        views.into_iter().next().expect("there is one budget")
    }

    pub(crate) fn forget_documents(&self, node: &StoryNode) {
        let membership = self.world.membership.clone();
        let forget = async move {
            for stored in membership.documents().await? {
                let written = membership.write_document(&stored.name, stored.version, None).await?;
                assert!(matches!(written, DocumentWritten::Done(_)), "{written:?}");
            }
            Ok::<_, StoreError>(())
        };
        node.does(forget).expect("the store is there");
    }
}
