//! The metrics in the Prometheus text format: today's usage, this node, the provider, the pools and the budgets. Labels
//! are names of pools, budgets, providers and described kinds, so no caller can increase their number.

mod budgets;

use crate::account::KnownAccount;
use crate::latencies::{BUCKETS_S, Latencies};
use crate::money::in_currency;
use crate::monitor::{Monitor, MonitorSources};
use crate::trace::Traces;
use quittance_engine::{Engine, PoolView, ProviderState};
use quittance_lifecycle::{Counters, PriceSum, Timestamp, WhyIgnored, provider_of};
use quittance_ports::{Account, AlertNote, Day, Demand, LevelView, OrderCounts, UsageRow};
use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::time::Duration;

#[derive(Clone, Copy)]
enum MetricType {
    Gauge,
    Counter,
}

/// A metric and how its value is read.
struct Metric<T> {
    name: &'static str,
    metric_type: MetricType,
    help: &'static str,
    value: fn(&T) -> Option<f64>,
}

/// The text so far, and the currency of its amounts.
#[derive(Default)]
struct Page(String, String);

impl Page {
    /// The head of a metric. That of an amount names the currency of the node.
    fn head(&mut self, name: &str, metric_type: MetricType, help: &str) {
        match name.contains("_micros") {
            true => self.plain_head(name, metric_type, &format!("{} In {}.", help.trim(), self.1)),
            false => self.plain_head(name, metric_type, help),
        }
    }

    fn plain_head(&mut self, name: &str, metric_type: MetricType, help: &str) {
        let metric_type = match metric_type {
            MetricType::Gauge => "gauge",
            MetricType::Counter => "counter",
        };
        _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {metric_type}");
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.head(name, MetricType::Gauge, help);
        _ = writeln!(self.0, "{name} {value}");
    }

    fn counter(&mut self, name: &str, help: &str, count: u64) {
        self.head(name, MetricType::Counter, help);
        _ = writeln!(self.0, "{name} {count}");
    }

    /// One sample for each named value, with the name as label.
    fn samples<T>(&mut self, metrics: &[Metric<T>], label: &str, of: &[(String, T)]) {
        for Metric { name, metric_type, help, value } in metrics {
            self.head(name, *metric_type, help);
            for (label_value, source) in of {
                if let Some(value) = value(source) {
                    _ = writeln!(self.0, "{name}{{{label}=\"{}\"}} {value}", escaped(label_value));
                }
            }
        }
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// A pool, what it has spent in this hour, and whether an unknown price stops it.
type PoolState = (PoolView, PriceSum, bool);

fn level((pool, ..): &PoolState) -> Option<&LevelView> {
    pool.document.level.as_ref()
}

const fn gauge<T>(name: &'static str, help: &'static str, value: fn(&T) -> Option<f64>) -> Metric<T> {
    Metric { name, metric_type: MetricType::Gauge, help, value }
}

const fn counter<T>(name: &'static str, help: &'static str, value: fn(&T) -> Option<f64>) -> Metric<T> {
    Metric { name, metric_type: MetricType::Counter, help, value }
}

const POOL_METRICS: &[Metric<PoolState>] = &[
    gauge("quittance_pool_enabled", "1 if the pool is on.", |(pool, ..)| {
        Some(f64::from(u8::from(pool.document.spec.is_on)))
    }),
    gauge("quittance_pool_level", "Target size of the pool: answers in stock or ordered.", |pool| {
        level(pool).map(|level| level.size.into())
    }),
    gauge("quittance_pool_fresh", "Answers in the pool's stock that can be handed out.", |pool| {
        level(pool).map(|level| level.fresh.into())
    }),
    gauge("quittance_pool_on_their_way", "Refills that are ordered and have not arrived.", |pool| {
        level(pool).map(|level| level.on_their_way.into())
    }),
    gauge("quittance_pool_orders_per_second", "Orders per second that the pool expects.", |pool| {
        level(pool).map(|level| level.rate_milli as f64 / 1000.0)
    }),
    gauge("quittance_pool_lead_seconds", "Time that a refill takes to reach the stock.", |pool| {
        level(pool).map(|level| level.lead.as_secs_f64())
    }),
    gauge(
        "quittance_pool_spent_micros",
        "Planned spending of the pool in this hour (UTC) at known prices, in millionths; absent if no price is known.",
        |(_, spent, _)| spent.known().map(|spent| spent.0 as f64),
    ),
    gauge(
        "quittance_pool_unpriced",
        "Refills of this hour (UTC) whose price is not known; they are not in the spending.",
        |(_, spent, _)| Some(spent.unpriced as f64),
    ),
    gauge(
        "quittance_pool_price_not_known",
        "1 if the pool has a budget but buys nothing, because the price of the next answer, or of one that it bought in this hour (UTC), is not known.",
        |(_, _, is_stopped)| Some(f64::from(u8::from(*is_stopped))),
    ),
    gauge("quittance_pool_budget_micros", "Budget of the pool per hour, in millionths.", |(pool, ..)| {
        pool.document.spec.budget.map(|budget| budget.0 as f64)
    }),
];

const DEMAND_METRICS: &[Metric<Demand>] = &[
    counter("quittance_pool_served_total", "Orders that this node served from the pool's stock.", |demand| {
        Some(demand.served as f64)
    }),
    counter(
        "quittance_pool_missed_total",
        "Orders for the pool's target that this node had to buy.",
        |demand| Some(demand.missed as f64),
    ),
];

fn pool_states(pools: Vec<PoolView>, now: Timestamp) -> Vec<(String, PoolState)> {
    let states = pools.into_iter().map(|pool| {
        let spent = pool.document.spent.in_hour_of(now).sum();
        let is_stopped = pool.stopped_by_price(now).is_some();
        (pool.document.spec.name.clone(), (pool, spent, is_stopped))
    });
    states.collect()
}

/// Today's usage by kind and provider. Rows of yesterday without a row of today count as zero: a series that
/// disappears at midnight and comes back later would be no counter.
fn by_kind(usage: Vec<(UsageRow, Counters)>, today: Day) -> BTreeMap<(String, String), Counters> {
    let mut kinds: BTreeMap<_, Counters> = BTreeMap::new();
    for (line, counters) in usage {
        let counted = kinds
            .entry((
                quittance_protocol::kinds::label(&line.kind).to_owned(),
                provider_of(&line.account).to_owned(),
            ))
            .or_default();
        if line.day == today {
            *counted += counters;
        }
    }
    kinds
}

/// Whether an amount is not known. It then has no sample, because 0 would mean that nothing was spent.
fn is_unknown(line: &str, counters: &Counters) -> bool {
    match line {
        "cost_micros" => counters.spent_known().is_none(),
        "wasted_micros" => counters.wasted_cost().known().is_none(),
        _ => false,
    }
}

fn add_usage(page: &mut Page, usage: &BTreeMap<(String, String), Counters>) {
    for (n, (line, help)) in Counters::NAMES.iter().zip(Counters::WORDS).enumerate() {
        // Prometheus uses seconds for durations.
        let seconds = line.strip_suffix("_ms").map(|line| format!("quittance_{line}_seconds_total"));
        let is_duration = seconds.is_some();
        let name = seconds.unwrap_or_else(|| format!("quittance_{line}_total"));
        page.head(&name, MetricType::Counter, &format!("{} By all nodes, today (UTC).", help.trim()));
        for ((kind, provider), counters) in usage.iter().filter(|(_, counters)| !is_unknown(line, counters)) {
            let count = counters.lines().nth(n).map_or(0, |(_, count)| count);
            let (kind, provider) = (escaped(kind), escaped(provider));
            _ = write!(page.0, "{name}{{kind=\"{kind}\",provider=\"{provider}\"}} ");
            _ = match is_duration {
                true => writeln!(page.0, "{}", count as f64 / 1000.0),
                false => writeln!(page.0, "{count}"),
            };
        }
    }
}

/// Counters of this node since its start, and its state.
fn add_node(page: &mut Page, engine: &Engine) {
    let node_stats = engine.node_stats();
    let counts = [
        ("placed", node_stats.placed, "New orders that callers placed at this node."),
        ("joined_here", node_stats.joined, "Placements at this node that joined an existing order."),
        ("attended", node_stats.attended, "Timers of orders that this node has handled."),
        ("submitted", node_stats.submitted, "Submits made by this node."),
        ("polled", node_stats.polled, "Tasks polled by this node."),
        ("answered", node_stats.answered, "Orders that got their answer at this node."),
        ("store_errors", node_stats.store_errors, "Store requests of this node that got no answer."),
        ("unreadable", node_stats.unreadable, "Records that this node could not read."),
        ("panics", node_stats.panics, "Tasks of this node that ended in a panic; each is a bug."),
        ("forged_callbacks", engine.forged(), "Callbacks with an invalid signature."),
        (
            "callbacks_without_order",
            engine.kept_without_order(),
            "Genuine callbacks that are kept because the store does not have their order.",
        ),
    ];
    for (name, count, help) in counts {
        page.counter(&format!("quittance_node_{name}_total"), help, count);
    }
    let states = [
        ("in_hand", node_stats.in_hand, "Orders that this node is working on."),
        (
            "paused",
            u64::from(node_stats.is_paused),
            "1 if submits are paused until an operator fixes the provider's account.",
        ),
        ("store_away", u64::from(node_stats.store_was_away), "1 if the store was unavailable a moment ago."),
        ("spilled", u64::from(node_stats.has_spilled), "1 if this node's spill is not empty."),
    ];
    for (name, state, help) in states {
        page.gauge(&format!("quittance_node_{name}"), help, state);
    }
    let name = "quittance_node_ignored_total";
    page.head(name, MetricType::Counter, "Events that changed nothing, by reason.");
    for (why, count) in engine.ignored() {
        _ = writeln!(page.0, "{name}{{reason=\"{}\"}} {count}", ignored_reason(why));
    }
}

fn add_latency(page: &mut Page, latencies: &Latencies) {
    let (name, histogram) = ("quittance_order_seconds", latencies.histogram());
    _ = writeln!(
        page.0,
        "# HELP {name} Time from placement to answer, for orders solved at this node.\n# TYPE {name} histogram"
    );
    for (seconds, within) in BUCKETS_S.iter().zip(histogram.within) {
        _ = writeln!(page.0, "{name}_bucket{{le=\"{seconds}\"}} {within}");
    }
    let (count, sum) = (histogram.count, Duration::from_millis(histogram.total_ms).as_secs_f64());
    _ = writeln!(page.0, "{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_sum {sum}\n{name}_count {count}");
}

fn add_alerts(page: &mut Page, alerts: &[AlertNote]) {
    page.head("quittance_alerts", MetricType::Gauge, "Active alerts, by rule.");
    let mut rules: BTreeMap<&str, u64> = BTreeMap::new();
    for alert in alerts.iter().filter(|alert| alert.cleared.is_none()) {
        *rules.entry(&alert.rule).or_default() += 1;
    }
    for (rule, count) in rules {
        _ = writeln!(page.0, "quittance_alerts{{rule=\"{}\"}} {count}", escaped(rule));
    }
}

fn add_provider(page: &mut Page, engine: &Engine) {
    page.head(
        "quittance_provider_state",
        MetricType::Gauge,
        "State of each provider at this node: 1 for the current state, 0 for the others.",
    );
    for (name, state) in engine.provider_states() {
        let name = escaped(&name);
        for known in ProviderState::NAMES {
            let holds = u8::from(state.name() == known);
            _ = writeln!(page.0, "quittance_provider_state{{provider=\"{name}\",state=\"{known}\"}} {holds}");
        }
    }
}

/// The balance of each account, with its currency. A value that is not known has no sample.
fn add_accounts(page: &mut Page, accounts: &[KnownAccount]) {
    let mut gauge = |name: &str, help: &str, value: fn(&Account) -> Option<u64>, has_currency: bool| {
        let known = accounts.iter().filter_map(|known| Some((known, value(&known.account?)?)));
        let known: Vec<_> = known.collect();
        if known.is_empty() {
            return;
        }
        _ = writeln!(page.0, "# HELP {name} {help}\n# TYPE {name} gauge");
        for (KnownAccount { provider, currency, .. }, value) in known {
            let currency = match has_currency {
                true => format!(",currency=\"{}\"", escaped(currency)),
                false => String::new(),
            };
            _ = writeln!(page.0, "{name}{{provider=\"{}\"{currency}}} {value}", escaped(provider));
        }
    };
    let help = "Balance of each provider's account, in millionths of its currency.";
    gauge("quittance_balance_micros", help, |account| account.balance.map(|balance| balance.0), true);
    let help = "Threads that each provider account has.";
    gauge("quittance_threads", help, |account| account.threads.map(|threads| threads.total), false);
    let help = "Threads of each provider account that are in use.";
    gauge("quittance_threads_working", help, |account| account.threads.map(|threads| threads.working), false);
}

/// Counts of the APIs of this node since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApiCounts {
    /// Placements that got a single-use answer that another placement got too.
    pub shared_single_use: u64,
    /// Requests with an unknown key.
    pub wrong_keys: u64,
}

/// The metrics of a node. If the store is down, `quittance_store_up` is 0 and values from the store are left out.
pub async fn metrics_text(monitor: &Monitor, traces: Option<&Traces>, counts: ApiCounts) -> String {
    let MonitorSources { engine, latencies, .. } = monitor.sources();
    let now = engine.now();
    let today = Day::of(now);
    let yesterday = Day(today.0.saturating_sub(1));
    let (pools, usage, order_counts, budgets) = tokio::join!(
        engine.pools(),
        engine.usage(yesterday, today),
        engine.order_counts(),
        engine.budget_views()
    );
    let is_up = pools.is_ok() && usage.is_ok() && order_counts.is_ok() && budgets.is_ok();
    let mut page = Page(String::new(), engine.currency().to_owned());
    page.gauge("quittance_store_up", "1 if the store answers.", u8::from(is_up));
    if let Ok(OrderCounts { open, dead }) = order_counts {
        page.gauge("quittance_open_orders", "Orders without an outcome yet, on all nodes.", open);
        page.gauge("quittance_dead_letters", "Dead letters, on all nodes.", dead);
    }
    add_node(&mut page, engine);
    add_api_counts(&mut page, counts);
    add_latency(&mut page, latencies);
    add_alerts(&mut page, &monitor.alerts().await);
    add_provider(&mut page, engine);
    // At most half a minute old, however often the metrics are read.
    add_accounts(&mut page, &monitor.read_accounts().await);
    if let Some(traces) = traces {
        let help = "Trace spans that the collector accepted.";
        page.counter("quittance_traces_sent_total", help, traces.sent());
        let help = "Trace spans dropped: rejected by the collector, or no buffer space.";
        page.counter("quittance_traces_left_out_total", help, traces.dropped());
    }
    page.samples(POOL_METRICS, "pool", &pool_states(pools.unwrap_or_default(), now));
    let demand: Vec<_> = engine.demand().into_iter().collect();
    page.samples(DEMAND_METRICS, "pool", &demand);
    budgets::add(&mut page, &budgets.unwrap_or_default());
    let usage = in_currency(usage.unwrap_or_default(), engine.currency());
    add_usage(&mut page, &by_kind(usage, today));
    page.0
}

fn add_api_counts(page: &mut Page, counts: ApiCounts) {
    let ApiCounts { shared_single_use, wrong_keys } = counts;
    let help = "Placements at this node that got a single-use answer that another placement got too.";
    page.counter("quittance_node_shared_single_use_total", help, shared_single_use);
    page.counter("quittance_wrong_keys_total", "Requests with an unknown key.", wrong_keys);
}

/// The name of a reason why an event changed nothing.
#[must_use]
pub const fn ignored_reason(why: WhyIgnored) -> &'static str {
    match why {
        WhyIgnored::NotDueYet => "not_due_yet",
        WhyIgnored::WrongPhase => "wrong_phase",
        WhyIgnored::UnknownAttempt => "unknown_attempt",
        WhyIgnored::AlreadyAnswered => "already_answered",
        WhyIgnored::OldNews => "old_news",
        WhyIgnored::NotFinal => "not_final",
        WhyIgnored::TakenByAnother => "claimed_by_another",
        WhyIgnored::AlreadyYours => "already_yours",
        WhyIgnored::TooOld => "too_old",
        WhyIgnored::TooMany => "too_many",
        WhyIgnored::OtherTask => "other_task",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quittance_lifecycle::Money;
    use quittance_ports::Threads;

    #[test]
    fn a_label_cannot_break_out_of_its_line() {
        let mut page = Page::default();
        let odd = "a\\b\"} 1\nquittance_forged 1".to_owned();
        page.samples(DEMAND_METRICS, "pool", &[(odd, Demand { served: 1, missed: 2 })]);
        let expected = r#"quittance_pool_served_total{pool="a\\b\"} 1\nquittance_forged 1"} 1"#;
        assert!(page.0.lines().any(|line| line == expected), "{}", page.0);
        assert!(page.0.lines().all(|line| line.starts_with("# ") || line.starts_with("quittance_pool_")));
    }

    #[test]
    fn each_account_has_a_balance_with_its_provider_and_one_that_is_not_known_has_none() {
        let known = |provider: &str, currency: &str, account| KnownAccount {
            provider: provider.into(),
            currency: currency.into(),
            account,
        };
        let balance = |micros| Account { balance: Some(Money(micros)), threads: None };
        let threads = Account { balance: None, threads: Some(Threads { total: 5, working: 2 }) };
        let mut page = Page::default();
        add_accounts(
            &mut page,
            &[
                known("main", "USD", Some(balance(7))),
                known("spare", "RUB", Some(balance(9))),
                known("plan", "USD", Some(threads)),
                known("gone", "USD", None),
            ],
        );
        let samples: Vec<&str> = page.0.lines().filter(|line| !line.starts_with('#')).collect();
        let expected = [
            "quittance_balance_micros{provider=\"main\",currency=\"USD\"} 7",
            "quittance_balance_micros{provider=\"spare\",currency=\"RUB\"} 9",
            "quittance_threads{provider=\"plan\"} 5",
            "quittance_threads_working{provider=\"plan\"} 2",
        ];
        assert_eq!(samples, expected);
    }
}
