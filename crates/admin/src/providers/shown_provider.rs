//! How a provider is shown: its state, its account, what it gets, and what was measured there.

use quittance_engine::{Engine, Measured, ProviderState, ProviderView};
use quittance_lifecycle::time::millis;
use quittance_lifecycle::{RoutingRule, Timestamp};
use quittance_ports::{Account, AccountPause, ProviderMode};
use quittance_telemetry::KnownAccount;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The protocol and the dialect of a provider, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderDialect {
    pub protocol: String,
    pub dialect: String,
}

/// The state of a provider and of its account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShownProvider {
    pub name: String,
    /// What the operator wants.
    #[schema(pattern = "^(active|paused|drained)$")]
    pub mode: String,
    /// Whether it gets work now. `throttled` and `tripped` are what this node has met. Null if this process submits
    /// nothing, and all nodes together know of no pause.
    #[schema(pattern = "^(ok|throttled|tripped|paused|drained)$")]
    pub state: Option<String>,
    /// Moment until which nothing is submitted.
    pub until_ms: Option<u64>,
    /// Time between two submits.
    pub spacing_ms: Option<u64>,
    /// Why nothing is submitted until the account is fixed.
    pub fault: Option<ShownGateFault>,
    /// Moment since which the account is faulty; null if that is not known.
    pub since_ms: Option<u64>,
    /// Currency of the account.
    #[schema(pattern = "^[A-Z]{3}$", example = "USD")]
    pub currency: String,
    /// Null if the balance is not known.
    pub balance_micros: Option<u64>,
    /// Null if the provider sells no threads, or if they are not known.
    pub threads: Option<ShownWorking>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShownGateFault {
    pub class: String,
    pub code: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShownWorking {
    pub total: u64,
    pub working: u64,
}

/// A provider, with what it gets and what was measured there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProviderDetail {
    #[serde(flatten)]
    pub provider: ShownProvider,
    /// Null if it is not known.
    #[schema(pattern = "^(classic|json)$")]
    pub protocol: Option<String>,
    /// Null if it is not known.
    pub dialect: Option<String>,
    /// Balance in `currency`; null if it is not known.
    #[schema(pattern = "^[0-9]+(\\.[0-9]{1,6})?$")]
    pub balance: Option<String>,
    /// Spent here in the last 24 hours, by the usage of all nodes; that of yesterday counts in proportion. Null if a cost is
    /// not known.
    #[schema(pattern = "^[0-9]+(\\.[0-9]{1,6})?$")]
    pub spent_last_day: Option<String>,
    pub spent_last_day_micros: Option<u64>,
    /// When the balance ends at the spending of the last 24 hours; null if nothing was spent, or if one of them is not known.
    #[schema(format = DateTime)]
    pub balance_ends: Option<String>,
    /// Since when the account is faulty; null if that is not known.
    #[schema(format = DateTime)]
    pub since: Option<String>,
    /// Tasks of open orders that this provider has or may have; null if there are more than a thousand open orders.
    pub open_tasks: Option<u64>,
    /// Kinds that it gets; null means all.
    pub kinds: Option<Vec<String>>,
    /// Tenants whose orders it gets; null means all.
    pub tenants: Option<Vec<String>>,
    /// Its share of the orders with the rule `weighted`.
    pub weight: u32,
    /// What this node has measured since its start, by kind.
    pub measured: Vec<ShownMeasured>,
}

/// Measured solve times and success of one kind at a provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShownMeasured {
    pub kind: String,
    /// Remembered solve times: at most the last 128.
    pub solves: u64,
    /// Half of the answers came within this time; null before there are 20.
    pub p50_ms: Option<u64>,
    pub p95_ms: Option<u64>,
    pub p99_ms: Option<u64>,
    /// Answers / tasks that ended, in thousandths, of the last few dozen tasks; null before the first.
    pub success_permille: Option<u32>,
}

/// How providers are chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShownRouting {
    #[schema(pattern = "^(ordered|weighted|cheapest|fastest|best)$")]
    pub rule: String,
    /// How long an order waits for a provider that is only busy, before it goes to the next one.
    pub busy_wait_ms: u64,
    /// Other rules for some kinds.
    pub kinds: BTreeMap<String, String>,
    /// Other rules for some tenants; they come before those for kinds.
    pub tenants: BTreeMap<String, String>,
}

/// All providers, in the order of the configuration.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ProviderList {
    pub routing: ShownRouting,
    pub providers: Vec<ProviderDetail>,
}

/// A provider after a change.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ChangedProvider {
    pub provider: ProviderDetail,
    /// Number of orders that continue because of it.
    pub continued: usize,
}

/// Orders that continue.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Resumed {
    /// Number of orders that continue.
    pub continued: usize,
}

const fn mode_name(mode: ProviderMode) -> &'static str {
    match mode {
        ProviderMode::Active => "active",
        ProviderMode::Paused => "paused",
        ProviderMode::Drained => "drained",
    }
}

/// The state of a provider: what all nodes know comes first, because this node may follow it a moment later. A process
/// that submits nothing knows nothing else.
fn state(view: &ProviderView, is_at_work: bool) -> Option<&'static str> {
    match (view.mode, &view.pause) {
        (ProviderMode::Drained, _) => Some("drained"),
        (ProviderMode::Paused, _) | (_, Some(_)) => Some("paused"),
        (ProviderMode::Active, None) => is_at_work.then(|| view.state.name()),
    }
}

/// The fault of the account, and since when.
pub(super) fn fault(view: &ProviderView) -> (Option<ShownGateFault>, Option<Timestamp>) {
    if let Some(AccountPause { code, at, is_no_funds, .. }) = &view.pause {
        let class = if *is_no_funds { "no_funds" } else { "account_blocked" };
        return (Some(ShownGateFault { class: class.to_owned(), code: code.clone() }), Some(*at));
    }
    let ProviderState::Paused { fault: Some(fault) } = &view.state else { return (None, None) };
    let shown = ShownGateFault { class: fault.class.name().to_owned(), code: fault.code.clone() };
    (Some(shown), None)
}

impl ShownProvider {
    pub(crate) fn of(view: &ProviderView, account: Option<Account>, is_at_work: bool) -> Self {
        let (mut until_ms, mut spacing_ms) = (None, None);
        match &view.state {
            ProviderState::Throttled { spacing, until } => {
                spacing_ms = Some(millis(*spacing)).filter(|spacing| *spacing > 0);
                until_ms = until.map(Timestamp::as_millis);
            }
            ProviderState::Tripped { until } => until_ms = Some(until.as_millis()),
            ProviderState::Ok | ProviderState::Paused { .. } | ProviderState::Drained => {}
        }
        let (fault, since) = fault(view);
        let account = account.unwrap_or_default();
        let working = |threads: quittance_ports::Threads| ShownWorking {
            total: threads.total,
            working: threads.working,
        };
        Self {
            name: view.name.clone(),
            mode: mode_name(view.mode).to_owned(),
            state: state(view, is_at_work).map(str::to_owned),
            until_ms,
            spacing_ms,
            fault,
            since_ms: since.map(Timestamp::as_millis),
            currency: view.currency.clone(),
            balance_micros: account.balance.map(|balance| balance.0),
            threads: account.threads.map(working),
        }
    }
}

/// The account of the provider of this name among those that were read.
pub(crate) fn account_of(accounts: &[KnownAccount], name: &str) -> Option<Account> {
    accounts.iter().find(|known| known.provider == name)?.account
}

impl ShownRouting {
    pub(super) fn of(engine: &Engine) -> Self {
        let rules = engine.routing_rules();
        let named = |rules: &BTreeMap<String, RoutingRule>| {
            rules.iter().map(|(name, rule)| (name.clone(), rule.name().to_owned())).collect()
        };
        Self {
            rule: rules.routing.rule.name().to_owned(),
            busy_wait_ms: millis(rules.routing.busy_wait),
            kinds: named(&rules.kinds),
            tenants: named(&rules.tenants),
        }
    }
}

impl ShownMeasured {
    pub(super) fn of((kind, measured): (String, Measured)) -> Self {
        let pace = measured.pace;
        Self {
            kind,
            solves: measured.solves as u64,
            p50_ms: pace.map(|pace| millis(pace.p50)),
            p95_ms: pace.map(|pace| millis(pace.p95)),
            p99_ms: pace.map(|pace| millis(pace.p99)),
            success_permille: measured.success,
        }
    }
}
