//! What a monitoring system reads: the pools and the stock, in the text form of Prometheus. Its labels are the names of
//! pools and of kinds that are described, so no caller can make their number grow.

use super::Room;
use super::caller::Operator;
use super::pools::spent_this_hour;
use super::problem::problems;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use quittance_engine::PoolShown;
use quittance_lifecycle::{Tally, Timestamp};
use quittance_ports::{Day, Demand, LevelShown, Line};
use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use utoipa::ToSchema;

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
/// What kinds that nobody has described are counted under: their names are whatever callers write.
const OTHER: &str = "other";

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

#[derive(Default)]
struct Page(String);

impl Page {
    fn head(&mut self, name: &str, sort: Sort, words: &str) {
        let sort = match sort {
            Sort::Gauge => "gauge",
            Sort::Counter => "counter",
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
    spent_micros: u64,
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
        "What the pool has set out to spend in this hour (UTC), in millionths.",
        |pool| Some(pool.spent_micros as f64),
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

macro_rules! of_books {
    ($($name:literal $line:ident $words:literal;)*) => {
        &[$(counter(concat!("quittance_stock_", $name, "_total"), $words, |tally| Some(tally.$line as f64))),*]
    };
}

const OF_BOOKS: &[Metric<Tally>] = of_books! {
    "asked" asked "Placements, by all nodes, today (UTC).";
    "from_stock" from_stock "Placements that were served from the stock, today (UTC).";
    "stocked" stocked "Answers that came to stand on the shelf, today (UTC).";
    "wasted" wasted "Answers paid for that nobody could use any more, today (UTC).";
    "wasted_micros" wasted_micros "What those cost, in millionths, today (UTC).";
    "age_milliseconds" stock_age_ms "How old answers were when they left the stock, added up, today (UTC).";
    "saved_milliseconds" saved_ms "How much sooner those were there than if bought, added up, today (UTC).";
    "reported_bad" reported_bad "Answers that a caller says the site refused, today (UTC).";
};

fn pools_now(pools: &[PoolShown], now: Timestamp) -> Vec<(String, PoolNow)> {
    let shown = pools.iter().map(|pool| {
        let sheet = &pool.sheet;
        let now = PoolNow {
            level: sheet.level.clone(),
            enabled: sheet.spec.is_on,
            spent_micros: spent_this_hour(&sheet.spent, now).money.0,
            budget_micros: sheet.spec.budget.map(|budget| budget.0),
        };
        (sheet.spec.name.clone(), now)
    });
    shown.collect()
}

fn by_kind(books: Vec<(Line, Tally)>) -> Vec<(String, Tally)> {
    let mut kinds: BTreeMap<String, Tally> = BTreeMap::new();
    for (line, tally) in books {
        let is_described = quittance_catalog::kind(&line.kind).is_some();
        let kind = if is_described { line.kind } else { OTHER.to_owned() };
        *kinds.entry(kind).or_default() += tally;
    }
    kinds.into_iter().collect()
}

/// What a monitoring system reads
///
/// In the text form of Prometheus. A store that is away shows as `quittance_store_up 0`, and what stands in it is left out.
/// What is counted from the books begins anew each day, and is the same on all nodes.
#[utoipa::path(
    get, path = "/metrics", operation_id = "metrics", tag = "stock",
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
    let (pools, books) = tokio::join!(engine.pools(), room.desk.books(today, today));
    let is_up = pools.is_ok() && books.is_ok();
    let mut page = Page::default();
    page.single("quittance_store_up", Sort::Gauge, "Whether the store answers.", u8::from(is_up));
    page.samples(OF_POOLS, "pool", &pools_now(&pools.unwrap_or_default(), now));
    let demand: Vec<_> = engine.demand().into_iter().collect();
    page.samples(OF_DEMAND, "pool", &demand);
    page.samples(OF_BOOKS, "kind", &by_kind(books.unwrap_or_default()));
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
