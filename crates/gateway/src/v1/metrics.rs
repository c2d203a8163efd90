//! What a monitoring system reads, in the text form of Prometheus: the usage of today, this node, the provider, the pools. Its
//! labels are the names of pools, of providers and of kinds that are described, so no caller can make their number grow.

use super::AppState;
use super::caller::Operator;
use super::pools::spent_this_hour;
use super::problem::problems;
use crate::monitor::{Latencies, SECONDS};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use quittance_engine::{Engine, PoolView, ProviderState};
use quittance_lifecycle::{Counters, PriceSum, Timestamp, provider_of};
use quittance_ports::{Account, AlertNote, Day, Demand, LevelView, OrderCounts, UsageRow};
use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::time::Duration;
use utoipa::ToSchema;

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

problems!(MetricsProblems: Unauthorized, Forbidden);

/// Metrics in the Prometheus text format.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it is written by hand, and only described here")]
pub(super) struct Exposition(String);

#[derive(Clone, Copy)]
enum Sort {
    Gauge,
    Counter,
}

/// A metric, and what one sample of it is.
struct Metric<T> {
    name: &'static str,
    sort: Sort,
    words: &'static str,
    value: fn(&T) -> Option<f64>,
}

/// The text, and the currency that money in it is in.
#[derive(Default)]
struct Page(String, String);

impl Page {
    fn head(&mut self, name: &str, sort: Sort, words: &str) {
        let sort = match sort {
            Sort::Gauge => "gauge",
            Sort::Counter => "counter",
        };
        let words = match name.contains("_micros") {
            true => format!("{} In {}.", words.trim(), self.1),
            false => words.to_owned(),
        };
        _ = writeln!(self.0, "# HELP {name} {words}\n# TYPE {name} {sort}");
    }

    fn single(&mut self, name: &str, sort: Sort, words: &str, value: impl Display) {
        self.head(name, sort, words);
        _ = writeln!(self.0, "{name} {value}");
    }

    /// One sample for each of these, under its label.
    fn samples<T>(&mut self, metrics: &[Metric<T>], label: &str, of: &[(String, T)]) {
        for Metric { name, sort, words, value } in metrics {
            self.head(name, *sort, words);
            for (named, sampled) in of {
                if let Some(value) = value(sampled) {
                    _ = writeln!(self.0, "{name}{{{label}=\"{}\"}} {value}", escaped(named));
                }
            }
        }
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// A pool at this moment, as far as it concerns a monitoring system.
struct PoolNow {
    level: Option<LevelView>,
    enabled: bool,
    spent: PriceSum,
    is_stopped: bool,
    budget_micros: Option<u64>,
}

const fn gauge<T>(name: &'static str, words: &'static str, value: fn(&T) -> Option<f64>) -> Metric<T> {
    Metric { name, sort: Sort::Gauge, words, value }
}

const fn counter<T>(name: &'static str, words: &'static str, value: fn(&T) -> Option<f64>) -> Metric<T> {
    Metric { name, sort: Sort::Counter, words, value }
}

const OF_POOLS: &[Metric<PoolNow>] = &[
    gauge("quittance_pool_enabled", "1 if the pool is on.", |pool| Some(f64::from(u8::from(pool.enabled)))),
    gauge("quittance_pool_level", "Target size of the pool: answers in stock or ordered.", |pool| {
        pool.level.as_ref().map(|level| level.size.into())
    }),
    gauge("quittance_pool_fresh", "Answers in the pool's stock that can be handed out.", |pool| {
        pool.level.as_ref().map(|level| level.fresh.into())
    }),
    gauge("quittance_pool_on_their_way", "Refills that are ordered and have not arrived.", |pool| {
        pool.level.as_ref().map(|level| level.on_their_way.into())
    }),
    gauge("quittance_pool_orders_per_second", "Orders per second that the pool expects.", |pool| {
        pool.level.as_ref().map(|level| level.rate_milli as f64 / 1000.0)
    }),
    gauge("quittance_pool_lead_seconds", "Time that a refill takes to reach the stock.", |pool| {
        pool.level.as_ref().map(|level| level.lead.as_secs_f64())
    }),
    gauge(
        "quittance_pool_spent_micros",
        "Planned spending of the pool in this hour (UTC) at known prices, in millionths; absent if no price is known.",
        |pool| pool.spent.known().map(|spent| spent.0 as f64),
    ),
    gauge(
        "quittance_pool_unpriced",
        "Refills of this hour (UTC) whose price is not known; they are not in the spending.",
        |pool| Some(pool.spent.unpriced as f64),
    ),
    gauge(
        "quittance_pool_price_not_known",
        "1 if the pool has a budget but buys nothing, because the price of an answer is not known.",
        |pool| Some(f64::from(u8::from(pool.is_stopped))),
    ),
    gauge("quittance_pool_budget_micros", "Budget of the pool per hour, in millionths.", |pool| {
        pool.budget_micros.map(|micros| micros as f64)
    }),
];

const OF_DEMAND: &[Metric<Demand>] = &[
    counter("quittance_pool_served_total", "Orders that this node served from the pool's stock.", |demand| {
        Some(demand.served as f64)
    }),
    counter(
        "quittance_pool_missed_total",
        "Orders for the pool's target that this node had to buy.",
        |demand| Some(demand.missed as f64),
    ),
];

fn pools_now(pools: &[PoolView], now: Timestamp) -> Vec<(String, PoolNow)> {
    let shown = pools.iter().map(|pool| {
        let document = &pool.document;
        let now = PoolNow {
            level: document.level.clone(),
            enabled: document.spec.is_on,
            spent: spent_this_hour(&document.spent, now).sum(),
            is_stopped: pool.stopped_by_price().is_some(),
            budget_micros: document.spec.budget.map(|budget| budget.0),
        };
        (document.spec.name.clone(), now)
    });
    shown.collect()
}

/// Today's usage by kind and provider; providers are the operator's, and of kinds there are as many as are described. What was
/// counted yesterday and not yet today is told as zero: a series that goes at midnight and comes back later is no counter.
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

/// Whether nothing is known of this sum of money: then it has no sample, because 0 would say that nothing was spent.
fn is_unknown(line: &str, counters: &Counters) -> bool {
    match line {
        "cost_micros" => counters.spent_known().is_none(),
        "wasted_micros" => counters.wasted_cost().known().is_none(),
        _ => false,
    }
}

fn show_usage(page: &mut Page, usage: &BTreeMap<(String, String), Counters>) {
    for (n, (line, words)) in Counters::NAMES.iter().zip(Counters::WORDS).enumerate() {
        // Prometheus has seconds for every span of time.
        let seconds = line.strip_suffix("_ms").map(|line| format!("quittance_{line}_seconds_total"));
        let is_span = seconds.is_some();
        let name = seconds.unwrap_or_else(|| format!("quittance_{line}_total"));
        page.head(&name, Sort::Counter, &format!("{} By all nodes, today (UTC).", words.trim()));
        for ((kind, provider), counters) in usage.iter().filter(|(_, counters)| !is_unknown(line, counters)) {
            let count = counters.lines().nth(n).map_or(0, |(_, count)| count);
            let (kind, provider) = (escaped(kind), escaped(provider));
            _ = write!(page.0, "{name}{{kind=\"{kind}\",provider=\"{provider}\"}} ");
            _ = match is_span {
                true => writeln!(page.0, "{}", count as f64 / 1000.0),
                false => writeln!(page.0, "{count}"),
            };
        }
    }
}

/// What this node itself has done since it started, and how it is.
fn show_node(page: &mut Page, engine: &Engine) {
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
    ];
    for (name, count, words) in counts {
        page.single(&format!("quittance_node_{name}_total"), Sort::Counter, words, count);
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
    for (name, state, words) in states {
        page.single(&format!("quittance_node_{name}"), Sort::Gauge, words, state);
    }
    let name = "quittance_node_ignored_total";
    page.head(name, Sort::Counter, "Events that changed nothing, by reason.");
    for (why, count) in engine.ignored() {
        _ = writeln!(page.0, "{name}{{reason=\"{}\"}} {count}", super::admin::reason(why));
    }
}

fn show_latency(page: &mut Page, latencies: &Latencies) {
    let (name, told) = ("quittance_order_seconds", latencies.histogram());
    _ = writeln!(
        page.0,
        "# HELP {name} Time from placement to answer, for orders solved at this node.\n# TYPE {name} histogram"
    );
    for (seconds, within) in SECONDS.iter().zip(told.within) {
        _ = writeln!(page.0, "{name}_bucket{{le=\"{seconds}\"}} {within}");
    }
    let (count, sum) = (told.count, Duration::from_millis(told.total_ms).as_secs_f64());
    _ = writeln!(page.0, "{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_sum {sum}\n{name}_count {count}");
}

fn show_alerts(page: &mut Page, alerts: &[AlertNote]) {
    page.head("quittance_alerts", Sort::Gauge, "Active alerts, by rule.");
    let mut rules: BTreeMap<&str, u64> = BTreeMap::new();
    for alert in alerts.iter().filter(|alert| alert.cleared.is_none()) {
        *rules.entry(&alert.rule).or_default() += 1;
    }
    for (rule, count) in rules {
        _ = writeln!(page.0, "quittance_alerts{{rule=\"{}\"}} {count}", escaped(rule));
    }
}

fn show_provider(page: &mut Page, engine: &Engine) {
    let (name, state) = (escaped(engine.provider_name()), engine.provider_state());
    page.head(
        "quittance_provider_state",
        Sort::Gauge,
        "State of the provider at this node: 1 for the current state, 0 for the others.",
    );
    for known in ProviderState::NAMES {
        let holds = u8::from(state.name() == known);
        _ = writeln!(page.0, "quittance_provider_state{{provider=\"{name}\",state=\"{known}\"}} {holds}");
    }
}

fn show_account(page: &mut Page, account: Account) {
    if let Some(balance) = account.balance {
        page.single(
            "quittance_balance_micros",
            Sort::Gauge,
            "Balance of the provider's account, in millionths.",
            balance.0,
        );
    }
    if let Some(threads) = account.threads {
        page.single(
            "quittance_threads",
            Sort::Gauge,
            "Threads that the provider account has.",
            threads.total,
        );
        page.single(
            "quittance_threads_working",
            Sort::Gauge,
            "Threads of the provider account that are in use.",
            threads.working,
        );
    }
}

/// Read the metrics
///
/// In the Prometheus text format. If the store is down, `quittance_store_up` is 0 and values from the store are left out.
/// Counters from the usage restart each day and are the same on all nodes.
#[utoipa::path(
    get, path = "/metrics", operation_id = "metrics", tag = "admin",
    responses(
        (status = 200, body = Exposition, content_type = "text/plain", description = "The metrics."),
        MetricsProblems,
    ),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn metrics(State(state): State<AppState>, _: Operator) -> Response {
    let engine = state.orders.engine();
    let now = state.orders.clock().now();
    let today = Day::of(now);
    let yesterday = Day(today.0.saturating_sub(1));
    let (pools, usage, order_counts) =
        tokio::join!(engine.pools(), state.orders.usage(yesterday, today), engine.order_counts());
    let is_up = pools.is_ok() && usage.is_ok() && order_counts.is_ok();
    let mut page = Page(String::new(), engine.currency().to_owned());
    page.single("quittance_store_up", Sort::Gauge, "1 if the store answers.", u8::from(is_up));
    if let Ok(OrderCounts { open, dead }) = order_counts {
        page.single(
            "quittance_open_orders",
            Sort::Gauge,
            "Orders without an outcome yet, on all nodes.",
            open,
        );
        page.single("quittance_dead_letters", Sort::Gauge, "Dead letters, on all nodes.", dead);
    }
    show_node(&mut page, engine);
    page.single(
        "quittance_node_shared_single_use_total",
        Sort::Counter,
        "Placements at this node that got a single-use answer that another placement got too.",
        state.orders.shared_single_use(),
    );
    let wrong = state.orders.wrong_keys().count();
    page.single("quittance_wrong_keys_total", Sort::Counter, "Requests with an unknown key.", wrong);
    show_latency(&mut page, state.orders.hub().latencies());
    show_alerts(&mut page, &state.monitor.alerts().await);
    show_provider(&mut page, engine);
    // As it was told within half a minute, however often somebody scrapes.
    show_account(&mut page, state.orders.account().await.unwrap_or_default());
    if let Some(traces) = state.orders.hub().traces() {
        page.single(
            "quittance_traces_sent_total",
            Sort::Counter,
            "Trace spans that the collector accepted.",
            traces.sent(),
        );
        let words = "Trace spans dropped: rejected by the collector, or no buffer space.";
        page.single("quittance_traces_left_out_total", Sort::Counter, words, traces.left_out());
    }
    page.samples(OF_POOLS, "pool", &pools_now(&pools.unwrap_or_default(), now));
    let demand: Vec<_> = engine.demand().into_iter().collect();
    page.samples(OF_DEMAND, "pool", &demand);
    show_usage(&mut page, &by_kind(usage.unwrap_or_default(), today));
    ([(CONTENT_TYPE, TEXT)], page.0).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_cannot_break_out_of_its_line() {
        let mut page = Page::default();
        let odd = "a\\b\"} 1\nquittance_forged 1".to_owned();
        page.samples(OF_DEMAND, "pool", &[(odd, Demand { served: 1, missed: 2 })]);
        let expected = r#"quittance_pool_served_total{pool="a\\b\"} 1\nquittance_forged 1"} 1"#;
        assert!(page.0.lines().any(|line| line == expected), "{}", page.0);
        assert!(page.0.lines().all(|line| line.starts_with("# ") || line.starts_with("quittance_pool_")));
    }
}
