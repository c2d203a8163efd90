//! What a monitoring system reads, in the text form of Prometheus: the books of today, this node, the provider, the pools. Its
//! labels are the names of pools, of providers and of kinds that are described, so no caller can make their number grow.

use super::Room;
use super::caller::Operator;
use super::pools::spent_this_hour;
use super::problem::problems;
use crate::lookout::{Latencies, SECONDS};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use quittance_engine::{Engine, PoolShown, ProviderState};
use quittance_lifecycle::{PriceSum, Tally, Timestamp, provider_of};
use quittance_ports::{Account, AlertNote, Census, Day, Demand, LevelShown, Line};
use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::time::Duration;
use utoipa::ToSchema;

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

problems!(MetricsProblems: Unauthorized, Forbidden);

/// The text.
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
    level: Option<LevelShown>,
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
    gauge("quittance_pool_enabled", "Whether the pool is on.", |pool| {
        Some(f64::from(u8::from(pool.enabled)))
    }),
    gauge("quittance_pool_level", "How many answers the pool is to hold, fresh or on their way.", |pool| {
        pool.level.as_ref().map(|level| level.size.into())
    }),
    gauge("quittance_pool_fresh", "Answers on the pool's shelf that can be handed out.", |pool| {
        pool.level.as_ref().map(|level| level.fresh.into())
    }),
    gauge("quittance_pool_on_their_way", "Refills that have been ordered and have not come.", |pool| {
        pool.level.as_ref().map(|level| level.on_their_way.into())
    }),
    gauge("quittance_pool_orders_per_second", "Orders a second, as the pool expects them.", |pool| {
        pool.level.as_ref().map(|level| level.rate_milli as f64 / 1000.0)
    }),
    gauge("quittance_pool_lead_seconds", "How long a refill takes to reach the shelf.", |pool| {
        pool.level.as_ref().map(|level| level.lead.as_secs_f64())
    }),
    gauge(
        "quittance_pool_spent_micros",
        "What the pool has set out to spend in this hour (UTC), as far as prices are known, in millionths; absent if no price is.",
        |pool| pool.spent.known().map(|spent| spent.0 as f64),
    ),
    gauge(
        "quittance_pool_unpriced",
        "Refills of this hour (UTC) whose price is not known: they are not in what was spent.",
        |pool| Some(pool.spent.unpriced as f64),
    ),
    gauge(
        "quittance_pool_price_not_known",
        "Whether the pool has a budget and buys nothing because the price of an answer is not known.",
        |pool| Some(f64::from(u8::from(pool.is_stopped))),
    ),
    gauge(
        "quittance_pool_budget_micros",
        "The most that the pool may spend in an hour, in millionths.",
        |pool| pool.budget_micros.map(|micros| micros as f64),
    ),
];

const OF_DEMAND: &[Metric<Demand>] = &[
    counter("quittance_pool_served_total", "Orders that this node served from the pool's shelf.", |demand| {
        Some(demand.served as f64)
    }),
    counter(
        "quittance_pool_missed_total",
        "Orders for the pool's target that this node had to buy for.",
        |demand| Some(demand.missed as f64),
    ),
];

fn pools_now(pools: &[PoolShown], now: Timestamp) -> Vec<(String, PoolNow)> {
    let shown = pools.iter().map(|pool| {
        let sheet = &pool.sheet;
        let now = PoolNow {
            level: sheet.level.clone(),
            enabled: sheet.spec.is_on,
            spent: spent_this_hour(&sheet.spent, now).sum(),
            is_stopped: pool.stopped_by_price().is_some(),
            budget_micros: sheet.spec.budget.map(|budget| budget.0),
        };
        (sheet.spec.name.clone(), now)
    });
    shown.collect()
}

/// Today's books by kind and provider; providers are the operator's, and of kinds there are as many as are described. What was
/// counted yesterday and not yet today is told as zero: a series that goes at midnight and comes back later is no counter.
fn by_kind(books: Vec<(Line, Tally)>, today: Day) -> BTreeMap<(String, String), Tally> {
    let mut kinds: BTreeMap<_, Tally> = BTreeMap::new();
    for (line, tally) in books {
        let counted = kinds
            .entry((quittance_catalog::label(&line.kind).to_owned(), provider_of(&line.account).to_owned()))
            .or_default();
        if line.day == today {
            *counted += tally;
        }
    }
    kinds
}

/// Whether nothing is known of this sum of money: then it has no sample, because 0 would say that nothing was spent.
fn is_unknown(line: &str, tally: &Tally) -> bool {
    match line {
        "cost_micros" => tally.spent().known().is_none(),
        "wasted_micros" => tally.wasted_cost().known().is_none(),
        _ => false,
    }
}

fn show_books(page: &mut Page, books: &BTreeMap<(String, String), Tally>) {
    for (n, (line, words)) in Tally::NAMES.iter().zip(Tally::WORDS).enumerate() {
        // Prometheus has seconds for every span of time.
        let seconds = line.strip_suffix("_ms").map(|line| format!("quittance_{line}_seconds_total"));
        let is_span = seconds.is_some();
        let name = seconds.unwrap_or_else(|| format!("quittance_{line}_total"));
        page.head(&name, Sort::Counter, &format!("{} By all nodes, today (UTC).", words.trim()));
        for ((kind, provider), tally) in books.iter().filter(|(_, tally)| !is_unknown(line, tally)) {
            let count = tally.lines().nth(n).map_or(0, |(_, count)| count);
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
    let vitals = engine.vitals();
    let counts = [
        ("placed", vitals.placed, "New orders that callers placed at this node."),
        ("joined_here", vitals.joined, "Placements at this node that joined what was there."),
        ("attended", vitals.attended, "Orders whose alarm this node has attended to."),
        ("submitted", vitals.submitted, "Submits that this node has made."),
        ("polled", vitals.polled, "Tasks that this node has asked for."),
        ("answered", vitals.answered, "Orders that came to an answer at this node."),
        ("store_errors", vitals.store_errors, "How often the store did not answer this node."),
        ("unreadable", vitals.unreadable, "Records that this node could not understand."),
        ("panics", vitals.panics, "Pieces of work that ended in a panic: each is a bug."),
        ("forged_callbacks", engine.forged(), "Callbacks whose proof was not ours."),
    ];
    for (name, count, words) in counts {
        page.single(&format!("quittance_node_{name}_total"), Sort::Counter, words, count);
    }
    let states = [
        ("in_hand", vitals.in_hand, "Orders that this node has in hand."),
        (
            "paused",
            u64::from(vitals.is_paused),
            "Whether this node submits nothing until a person mends the account.",
        ),
        ("store_away", u64::from(vitals.store_was_away), "Whether the store did not answer a moment ago."),
        (
            "spilled",
            u64::from(vitals.has_spilled),
            "Whether something that came in waits in this node's spill.",
        ),
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
        "# HELP {name} From placing to the answer, of orders that this node saw solved.\n# TYPE {name} histogram"
    );
    for (seconds, within) in SECONDS.iter().zip(told.within) {
        _ = writeln!(page.0, "{name}_bucket{{le=\"{seconds}\"}} {within}");
    }
    let (count, sum) = (told.count, Duration::from_millis(told.total_ms).as_secs_f64());
    _ = writeln!(page.0, "{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_sum {sum}\n{name}_count {count}");
}

fn show_alerts(page: &mut Page, alerts: &[AlertNote]) {
    page.head("quittance_alerts", Sort::Gauge, "Alerts that stand, by rule.");
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
        "The provider's circuit as this node has it: 1 for the state that holds.",
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
            "The provider's account, in millionths.",
            balance.0,
        );
    }
    if let Some(threads) = account.threads {
        page.single("quittance_threads", Sort::Gauge, "Threads that the provider sells us.", threads.total);
        page.single("quittance_threads_working", Sort::Gauge, "Those that are at work.", threads.working);
    }
}

/// What a monitoring system reads
///
/// In the text form of Prometheus. A store that is away shows as `quittance_store_up 0`, and what stands in it is left out.
/// What is counted from the books begins anew each day, and is the same on all nodes.
#[utoipa::path(
    get, path = "/metrics", operation_id = "metrics", tag = "admin",
    responses(
        (status = 200, body = Exposition, content_type = "text/plain", description = "The metrics."),
        MetricsProblems,
    ),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn metrics(State(room): State<Room>, _: Operator) -> Response {
    let engine = room.desk.engine();
    let now = room.desk.clock().now();
    let today = Day::of(now);
    let yesterday = Day(today.0.saturating_sub(1));
    let (pools, books, census) =
        tokio::join!(engine.pools(), room.desk.books(yesterday, today), engine.census());
    let is_up = pools.is_ok() && books.is_ok() && census.is_ok();
    let mut page = Page(String::new(), engine.currency().to_owned());
    page.single("quittance_store_up", Sort::Gauge, "Whether the store answers.", u8::from(is_up));
    if let Ok(Census { open, dead }) = census {
        page.single(
            "quittance_open_orders",
            Sort::Gauge,
            "Orders that strive for an answer, on all nodes.",
            open,
        );
        page.single("quittance_dead_letters", Sort::Gauge, "What waits for a person, on all nodes.", dead);
    }
    show_node(&mut page, engine);
    page.single(
        "quittance_node_shared_single_use_total",
        Sort::Counter,
        "Placements at this node that were given a single-use answer which another placement was given, too.",
        room.desk.shared_single_use(),
    );
    let wrong = room.desk.wrong_keys().count();
    page.single("quittance_wrong_keys_total", Sort::Counter, "Requests with a key that nobody has.", wrong);
    show_latency(&mut page, room.desk.hub().latencies());
    show_alerts(&mut page, &room.lookout.alerts().await);
    show_provider(&mut page, engine);
    // As it was told within half a minute, however often somebody scrapes.
    show_account(&mut page, room.desk.account().await.unwrap_or_default());
    if let Some(traces) = room.desk.hub().traces() {
        page.single(
            "quittance_traces_sent_total",
            Sort::Counter,
            "Spans that the collector took.",
            traces.sent(),
        );
        let words = "Spans that it did not take, or that had no room.";
        page.single("quittance_traces_left_out_total", Sort::Counter, words, traces.left_out());
    }
    page.samples(OF_POOLS, "pool", &pools_now(&pools.unwrap_or_default(), now));
    let demand: Vec<_> = engine.demand().into_iter().collect();
    page.samples(OF_DEMAND, "pool", &demand);
    show_books(&mut page, &by_kind(books.unwrap_or_default(), today));
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
