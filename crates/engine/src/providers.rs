//! The providers of this node, with one gate each, and the choice between them.

use crate::gate::ProviderGate;
use crate::quickest::QuickestTimes;
use crate::settings::listed_price;
use crate::shared_gates::KnownGate;
use crate::solve_times::Paces;
use crate::{Engine, ProviderState, Settings, Throttle, lock};
use quittance_lifecycle::{
    AttemptAccount, Candidate, GateReadiness, Money, Order, Pace, Policy, RetryLimits, Routing, Terms,
    Timestamp, Unsolvable, WhyPassedOver, account, is_in_another_currency, provider_of,
};
use quittance_ports::{Callback, CallbackMessage, Provider};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long a provider gets no more orders of a kind that it does not sell.
const NOT_SOLD_FOR: Duration = Duration::from_secs(600);
/// The most kinds of one provider that are remembered.
const KINDS_MAX: usize = 128;
/// A share of tasks with an answer is forgotten if no task has ended for this time, so that a provider which did badly
/// is tried again.
const SUCCESS_KEPT: Duration = Duration::from_secs(600);
/// The weight of one task in the share of tasks with an answer is at least 1 in this number.
const SUCCESS_MEMORY: u32 = 32;

/// What the operator sets about one provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderRules {
    pub name: String,
    /// The currency of the account, by ISO 4217.
    pub currency: String,
    /// The price of an answer by kind, used if the provider reports none. A kind without an entry has no known price.
    /// A name such as `recaptcha_v2+enterprise` is for orders of that kind that have this parameter set to 1.
    pub prices: BTreeMap<String, Money>,
    pub throttle: Throttle,
    /// What the provider charges for a task that it could not solve; `None` is what the policy says.
    pub unsolvable: Option<Unsolvable>,
    /// How long the provider keeps a result after the solve; `None` is what the policy says.
    pub result_kept: Option<Duration>,
    /// The kinds that it gets; `None` means all.
    pub kinds: Option<Vec<String>>,
    /// The tenants whose orders it gets; `None` means all.
    pub tenants: Option<Vec<String>>,
    /// Its share of the orders if they are given out by weight.
    pub weight: u32,
    /// Its own limits of retries.
    pub retry: RetryLimits,
}

impl Default for ProviderRules {
    fn default() -> Self {
        Self {
            name: String::new(),
            currency: "USD".to_owned(),
            prices: BTreeMap::new(),
            throttle: Throttle::DEFAULT,
            unsolvable: None,
            result_kept: None,
            kinds: None,
            tenants: None,
            weight: 1,
            retry: RetryLimits::NONE,
        }
    }
}

/// How providers are chosen, and for which orders differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutingRules {
    pub routing: Routing,
    /// The rule for a kind, by its name.
    pub kinds: BTreeMap<String, quittance_lifecycle::RoutingRule>,
    /// The rule for a tenant, by its name. It comes before that for a kind.
    pub tenants: BTreeMap<String, quittance_lifecycle::RoutingRule>,
}

impl Default for RoutingRules {
    fn default() -> Self {
        Self { routing: Routing::DEFAULT, kinds: BTreeMap::new(), tenants: BTreeMap::new() }
    }
}

impl RoutingRules {
    pub(crate) fn of(&self, terms: &Terms) -> Routing {
        let rule = self.tenants.get(&terms.tenant).or_else(|| self.kinds.get(&terms.kind));
        Routing { rule: rule.copied().unwrap_or(self.routing.rule), ..self.routing }
    }
}

/// What a node has measured about one kind at a provider since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// How many solve times are remembered: at most the last 128.
    pub solves: usize,
    /// The solve times; `None` before there are enough of them.
    pub pace: Option<Pace>,
    /// The share of tasks that came to an answer, in thousandths; `None` before the first. The last few dozen count.
    pub success: Option<u32>,
}

/// The share of tasks that came to an answer: the mean of the first ones, and later the last few dozen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SuccessShare {
    /// In thousandths.
    permille: u32,
    tasks: u32,
    at: Timestamp,
}

impl SuccessShare {
    fn learn(&mut self, is_answered: bool, now: Timestamp) {
        if self.at(now).is_none() {
            *self = Self::default();
        }
        self.tasks = self.tasks.saturating_add(1);
        let weight = self.tasks.min(SUCCESS_MEMORY);
        let outcome = if is_answered { 1000 } else { 0 };
        self.permille = (self.permille * (weight - 1) + outcome + weight / 2) / weight;
        self.at = now;
    }

    /// The share; `None` before the first task, and if the last one was long ago: then it must be measured again.
    fn at(&self, now: Timestamp) -> Option<u32> {
        (self.tasks > 0 && now.since(self.at) < SUCCESS_KEPT).then_some(self.permille)
    }
}

/// One provider account, as this node uses it. What is learned about it is shared with the same provider of later settings.
pub(crate) struct ProviderAccount {
    pub(crate) adapter: Arc<dyn Provider>,
    pub(crate) rules: ProviderRules,
    /// The provider and the currency, as orders and the usage write them.
    pub(crate) account: String,
    pub(crate) gate: Arc<Mutex<ProviderGate>>,
    pub(crate) paces: Arc<Mutex<Paces>>,
    pub(crate) quickest: Arc<Mutex<QuickestTimes>>,
    /// The kinds that it does not sell, and until when it gets none of them.
    not_sold: Arc<Mutex<BTreeMap<String, Timestamp>>>,
    /// What this node knows of the document that all nodes share about the gate.
    pub(crate) shared: Arc<Mutex<KnownGate>>,
    /// The share of tasks that came to an answer, by kind, in thousandths.
    success: Arc<Mutex<BTreeMap<String, SuccessShare>>>,
    /// How many tasks came to an answer.
    pub(crate) answers: Arc<AtomicU64>,
}

impl ProviderAccount {
    pub(crate) fn new(adapter: Arc<dyn Provider>, rules: ProviderRules, settings: &Settings) -> Self {
        let rules = with_demands(rules, &*adapter);
        let Settings { policy, is_shared, .. } = settings;
        Self {
            account: account(&rules.name, &rules.currency),
            gate: Arc::new(Mutex::new(ProviderGate::new(
                settings.rules.gate,
                policy.backoff,
                policy.faults,
                rules.throttle,
                *is_shared,
            ))),
            paces: Arc::default(),
            quickest: Arc::default(),
            not_sold: Arc::default(),
            shared: Arc::default(),
            success: Arc::default(),
            answers: Arc::default(),
            adapter,
            rules,
        }
    }

    /// This provider by other rules, with what is known about it. A kind that it did not sell may be sold now.
    pub(crate) fn with_rules(&self, adapter: Arc<dyn Provider>, rules: ProviderRules) -> Self {
        let rules = with_demands(rules, &*adapter);
        Self {
            account: account(&rules.name, &rules.currency),
            gate: Arc::clone(&self.gate),
            paces: Arc::clone(&self.paces),
            quickest: Arc::clone(&self.quickest),
            not_sold: Arc::clone(&self.not_sold),
            shared: Arc::clone(&self.shared),
            success: Arc::clone(&self.success),
            answers: Arc::clone(&self.answers),
            adapter,
            rules,
        }
    }

    /// How many tasks one poll may ask for.
    pub(crate) fn poll_batch_max(&self) -> usize {
        self.adapter.poll_batch_max().max(1)
    }

    fn takes(&self, kind: &str, tenant: &str) -> bool {
        let allows = |list: &Option<Vec<String>>, name: &str| {
            list.as_ref().is_none_or(|list| list.iter().any(|known| known == name))
        };
        allows(&self.rules.kinds, kind) && allows(&self.rules.tenants, tenant)
    }

    pub(crate) fn listed(&self, terms: &Terms) -> AttemptAccount {
        let price = listed_price(&self.rules.prices, terms);
        AttemptAccount { account: self.account.clone(), price }
    }

    /// An operator has fixed the account: submits of every kind may go out again.
    pub(crate) fn release(&self) {
        lock(&self.gate).release();
        lock(&self.not_sold).clear();
    }

    /// The provider does not sell this kind.
    pub(crate) fn note_not_sold(&self, kind: &str, now: Timestamp) {
        let mut not_sold = lock(&self.not_sold);
        not_sold.retain(|_, until| *until > now);
        if not_sold.len() < KINDS_MAX {
            not_sold.insert(kind.to_owned(), now + NOT_SOLD_FOR);
        }
    }

    /// Counts a task that came to an answer, or to none.
    pub(crate) fn note_success(&self, kind: &str, is_answered: bool, now: Timestamp) {
        self.answers.fetch_add(u64::from(is_answered), Ordering::Relaxed);
        let mut success = lock(&self.success);
        if !success.contains_key(kind) && success.len() >= KINDS_MAX {
            return;
        }
        success.entry(kind.to_owned()).or_default().learn(is_answered, now);
    }

    fn readiness(&self, order: &Order, now: Timestamp) -> GateReadiness {
        let kind = &order.terms.kind;
        if let Some(until) = lock(&self.not_sold).get(kind).filter(|until| **until > now) {
            return GateReadiness::Down(*until, WhyPassedOver::NotSold);
        }
        lock(&self.gate).readiness(&order.terms.tenant, now)
    }

    pub(crate) fn candidate(&self, order: &Order, now: Timestamp) -> Candidate {
        let kind = &order.terms.kind;
        Candidate {
            account: self.listed(&order.terms),
            readiness: self.readiness(order, now),
            weight: self.rules.weight,
            solve_time: lock(&self.paces).of(kind).map(|pace| pace.p50),
            success: lock(&self.success).get(kind).and_then(|share| share.at(now)),
            quickest: lock(&self.quickest).of(kind),
            shortage: None,
        }
    }
}

/// The rules, with the pace that the service demands.
fn with_demands(mut rules: ProviderRules, adapter: &dyn Provider) -> ProviderRules {
    rules.throttle.submit_interval = adapter.submit_interval().max(rules.throttle.submit_interval);
    rules
}

impl Engine {
    /// The providers that may get orders of this kind and tenant.
    pub(crate) fn providers_for(&self, kind: &str, tenant: &str) -> Vec<Arc<ProviderAccount>> {
        self.providers().iter().filter(|provider| provider.takes(kind, tenant)).cloned().collect()
    }

    /// The first provider.
    pub(crate) fn first_provider(&self) -> Arc<ProviderAccount> {
        Arc::clone(&self.providers()[0])
    }

    /// The provider of this name, as an order or an attempt names its account. It may have been removed by a reload.
    pub(crate) fn provider_at(&self, account: &str) -> Option<Arc<ProviderAccount>> {
        self.provider_named(provider_of(account))
    }

    /// The provider that this attempt went to. If this node does not have it any more, the first one.
    pub(crate) fn provider_of(&self, order: &Order, attempt: Option<u32>) -> Arc<ProviderAccount> {
        let attempt = attempt.and_then(|number| order.attempt(number));
        let account = attempt.map_or_else(|| order.account(), |attempt| order.account_of(attempt));
        self.provider_at(account).unwrap_or_else(|| self.first_provider())
    }

    /// The provider that is asked for the task of this attempt. `None` if this node does not have it: another provider
    /// would answer that there is no such task, or give the answer of a foreign one.
    pub(crate) fn provider_to_ask(
        &self,
        order: &Order,
        attempt: Option<u32>,
    ) -> Option<Arc<ProviderAccount>> {
        let number = attempt.and_then(|number| order.attempt(number));
        let account = number.map_or_else(|| order.account(), |attempt| order.account_of(attempt));
        let leaves = (self.settings().rules.reload.leaves_to_others)();
        self.provider_at(account).or_else(|| (!leaves).then(|| self.first_provider()))
    }

    /// Writes into new terms which provider comes first, and its price.
    pub(crate) fn set_account(&self, terms: &mut Terms) {
        let rule = self.settings().routing.of(terms).rule;
        let first = match rule {
            quittance_lifecycle::RoutingRule::Cheapest => {
                let providers = self.providers_for(&terms.kind, &terms.tenant);
                let listed = providers.iter().map(|it| it.listed(terms));
                listed.min_by_key(|listed| (listed.price.is_none(), listed.price))
            }
            _ => self.providers_for(&terms.kind, &terms.tenant).first().map(|it| it.listed(terms)),
        };
        let AttemptAccount { account, price } = first.unwrap_or_else(|| self.first_provider().listed(terms));
        (terms.account, terms.price) = (account, price);
    }

    /// Fills in what the policy says about the provider of this attempt, and about the others.
    pub(crate) fn with_provider(&self, policy: Policy, order: &Order, attempt: Option<u32>) -> Policy {
        let terms = &order.terms;
        let provider = self.provider_of(order, attempt);
        let number = attempt.and_then(|number| order.attempt(number));
        let account = number.map_or_else(|| order.account(), |attempt| order.account_of(attempt));
        let other = |it: &ProviderAccount| {
            it.account != account && !order.used_up.contains(&it.account) && is_affordable(terms, it)
        };
        let limits = self.settings().retries.of(terms);
        let own_limits = provider.rules.retry;
        Policy {
            max_retries: limits.max_retries.or(policy.max_retries),
            account_max_retries: own_limits.max_retries,
            backoff: own_limits.or(limits).replace(policy.backoff),
            unsolvable: provider.rules.unsolvable.unwrap_or(policy.unsolvable),
            result_kept: provider.rules.result_kept.or(policy.result_kept),
            other_currency: is_in_another_currency(account, &provider.rules.currency),
            // An order at a provider that is not there any more may go to the only one that is.
            can_fail_over: (self.providers().len() > 1 || self.provider_at(account).is_none())
                && self.providers_for(&terms.kind, &terms.tenant).iter().any(|it| other(it)),
            routing: self.settings().routing.of(terms),
            quickest: self.quickest(&terms.kind, &terms.tenant),
            ..policy
        }
    }

    /// The name and the state of each provider.
    #[must_use]
    pub fn provider_states(&self) -> Vec<(String, ProviderState)> {
        let now = self.now();
        let state = |it: &ProviderAccount| lock(&it.gate).state(now);
        self.providers().iter().map(|it| (it.rules.name.clone(), state(it))).collect()
    }

    /// What the operator has set about each provider, in the order of the configuration.
    #[must_use]
    pub fn provider_rules(&self) -> Vec<ProviderRules> {
        self.providers().iter().map(|it| it.rules.clone()).collect()
    }

    /// How providers are chosen.
    #[must_use]
    pub fn routing_rules(&self) -> RoutingRules {
        self.settings().routing.clone()
    }

    /// What this node has measured at the provider of this name, by kind.
    #[must_use]
    pub fn measured(&self, name: &str) -> BTreeMap<String, Measured> {
        let now = self.now();
        let Some(provider) = self.provider_at(name) else { return BTreeMap::new() };
        let mut measured: BTreeMap<String, Measured> = BTreeMap::new();
        for (kind, solves, pace) in lock(&provider.paces).all() {
            measured.insert(kind.to_owned(), Measured { solves, pace, success: None });
        }
        for (kind, success) in &*lock(&provider.success) {
            measured.entry(kind.clone()).or_default().success = success.at(now);
        }
        measured
    }

    /// The time within which half of the answers came at the provider of this name, and that for 95 %, as this node has
    /// measured them since its start: of one kind, or of all together. `None` if too few answers came.
    #[must_use]
    pub fn solve_quantiles(&self, name: &str, kind: Option<&str>) -> Option<(Duration, Duration)> {
        lock(&self.provider_at(name)?.paces).quantiles(kind)
    }

    /// The names of the providers, in the order of the configuration.
    #[must_use]
    pub fn provider_names(&self) -> Vec<String> {
        self.providers().iter().map(|it| it.rules.name.clone()).collect()
    }

    /// The adapter of the provider of this name.
    #[must_use]
    pub fn adapter(&self, name: &str) -> Option<Arc<dyn Provider>> {
        self.provider_at(name).map(|it| Arc::clone(&it.adapter))
    }

    /// The content of a callback to the address that ends in `segment`, read by the adapter of the provider that got
    /// the attempt. Without the order, any adapter that understands it.
    pub async fn read_callback(&self, segment: &str, callback: &Callback<'_>) -> Option<CallbackMessage> {
        let providers = self.providers_with_tasks();
        if let [only] = &providers[..] {
            return only.adapter.read_callback(callback);
        }
        if let Some((key, attempt)) = self.addressee(segment)
            && let Ok(Some(order)) = self.read(&key).await
            && order.attempt(attempt).is_some()
            && let Some(provider) = self.provider_to_ask(&order, Some(attempt))
        {
            return provider.adapter.read_callback(callback);
        }
        providers.iter().find_map(|it| it.adapter.read_callback(callback))
    }
}

/// Whether a provider may get this order at its price. A pool has counted the price of its terms against its budget,
/// so a refill goes to no provider that costs more.
pub(crate) fn is_affordable(terms: &Terms, provider: &ProviderAccount) -> bool {
    let is_cheap = |price: Money| provider.listed(terms).price.is_some_and(|other| other <= price);
    terms.slot.is_none() || terms.account == provider.account || terms.price.is_some_and(is_cheap)
}
