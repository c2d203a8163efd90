//! The usage of the stock: how many orders it served, how old its answers were, how many expired, and how long the
//! answers of each site are trusted.

use crate::AppState;
use crate::days::read_days;
use crate::pools::{PoolInShort, share};
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Query, State};
use axum::http::request::Parts;
use axum::response::Response;
use hyper::StatusCode;
use quittance_engine::TrustView;
use quittance_gateway::problems;
use quittance_gateway::v1::Watcher;
use quittance_gateway::v1::decimal;
use quittance_gateway::v1::json;
use quittance_gateway::v1::order_problems::store_problem;
use quittance_gateway::v1::problem::Refused;
use quittance_lifecycle::Counters;
use quittance_lifecycle::time::millis;
use quittance_ports::moment::date_text;
use quittance_ports::{Day, UsageRow};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// How many days one request may cover: three years and a day.
const DAYS_MAX: u64 = 1_097;
/// How many rows a response has; those with the most orders come first.
const ROWS_MAX: usize = 1000;

problems!(StockProblems: Unauthorized, NeedsAPerson, BadParams, StoreUnavailable);

/// The query parameters for a range of days, as the caller typed them.
#[derive(Debug, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct DaysQuery {
    /// First day, in UTC; default today.
    #[param(format = Date, pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", example = "2026-11-16")]
    pub from: Option<String>,
    /// Last day; default today. At most 1097 days in all.
    #[param(format = Date, pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", example = "2026-11-16")]
    pub to: Option<String>,
}

/// The days of a request, both included.
pub(crate) struct DayRange {
    from: Day,
    to: Day,
}

impl FromRequestParts<AppState> for DayRange {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Refused> {
        let query: Result<Query<DaysQuery>, QueryRejection> = Query::from_request_parts(parts, state).await;
        let Query(DaysQuery { from, to }) = query.map_err(|_| {
            Refused::bad("query", "The parameters are `from` and `to`; send each at most once.")
        })?;
        let (from, to) = read_days(from, to, state.orders.clock().now(), DAYS_MAX)?;
        Ok(Self { from, to })
    }
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct StockReport {
    #[schema(format = Date)]
    pub from: String,
    #[schema(format = Date)]
    pub to: String,
    /// Currency of all amounts.
    #[schema(pattern = "^[A-Z]{3}$", example = "USD")]
    pub currency: String,
    pub all: StockCounts,
    /// Rows with the most orders first.
    pub rows: Vec<StockRow>,
    /// Number of rows that are left out.
    pub left_out: usize,
    pub pools: Vec<PoolInShort>,
}

/// Usage of one tenant for one kind and one site.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct StockRow {
    pub tenant: String,
    pub kind: String,
    /// Host of the page; empty for orders without a page.
    pub site: String,
    #[serde(flatten)]
    pub counts: StockCounts,
    /// How long answers live before any reports of bad answers; absent if they never expire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub life_ms: Option<u64>,
    /// Present if callers have reported bad answers: how long answers are trusted now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<ShownTrust>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct StockCounts {
    /// Placements, with any outcome.
    pub asked: u64,
    pub from_stock: u64,
    /// `from_stock / (asked - joined - cached - refused)`.
    #[schema(minimum = 0, maximum = 1)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hit_rate: Option<f64>,
    /// Answers added to the stock.
    pub stocked: u64,
    /// Answers that were paid for and could not be used; their cost is null if no price is known.
    pub wasted: u64,
    #[schema(pattern = "^[0-9]+(\\.[0-9]{1,6})?$")]
    pub wasted_cost: Option<String>,
    pub wasted_micros: Option<u64>,
    /// Wasted answers whose price is not known; they are not in the cost.
    pub wasted_unpriced: u64,
    /// Mean age of answers from the stock when they were handed out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_age_ms: Option<u64>,
    /// Total time that answers from the stock saved, compared with buying them.
    pub saved_ms: u64,
    /// Answers that a caller reported as refused by the site.
    pub reported_bad: u64,
}

impl StockCounts {
    fn of(counters: &Counters) -> Self {
        let wasted_cost = counters.wasted_cost().known();
        let needed = counters.asked.saturating_sub(counters.joined).saturating_sub(counters.cached);
        Self {
            asked: counters.asked,
            from_stock: counters.from_stock,
            hit_rate: share(counters.from_stock, needed.saturating_sub(counters.refused)),
            stocked: counters.stocked,
            wasted: counters.wasted,
            wasted_cost: wasted_cost.map(decimal),
            wasted_micros: wasted_cost.map(|cost| cost.0),
            wasted_unpriced: counters.wasted_unpriced,
            mean_age_ms: counters.stock_age_ms.checked_div(counters.from_stock),
            saved_ms: counters.saved_ms,
            reported_bad: counters.reported_bad,
        }
    }
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ShownTrust {
    /// How long answers should be good.
    pub life_s: u64,
    /// How long answers are trusted.
    pub trusted_s: u64,
    /// Reports of bad answers on record; `approvals` counts good ones.
    pub refusals: usize,
    pub approvals: usize,
    pub why: String,
}

impl ShownTrust {
    fn of(shown: &TrustView) -> Self {
        let refusals = shown.trust.refusals.len();
        let why = if shown.trusted < shown.life {
            "the site rejected answers late in their life, so its answers are trusted for less time"
        } else {
            "no report shows that answers expire too early"
        }
        .to_owned();
        Self {
            life_s: shown.life.as_secs(),
            trusted_s: shown.trusted.as_secs(),
            refusals,
            approvals: shown.trust.approvals.len(),
            why,
        }
    }
}

/// Tenant, kind and site.
type Name = (String, String, String);

/// The usage of several days and what was learned from reports, one row for each tenant, kind and site.
fn rows(
    usage: Vec<(UsageRow, Counters)>,
    trusts: &[TrustView],
) -> BTreeMap<Name, (Counters, Option<ShownTrust>)> {
    let mut rows: BTreeMap<Name, (Counters, Option<ShownTrust>)> = BTreeMap::new();
    for (UsageRow { tenant, kind, site, .. }, counters) in usage {
        rows.entry((tenant, kind, site)).or_default().0 += counters;
    }
    for shown in trusts {
        let name = (shown.tenant.clone(), shown.kind.clone(), shown.site.clone());
        rows.entry(name).or_default().1 = Some(ShownTrust::of(shown));
    }
    rows
}

/// Read the usage of the stock
///
/// For these days, by tenant, kind and site. The operator's key sees all tenants, a tenant's key its own rows.
#[utoipa::path(
    get, path = "/v1/stock", operation_id = "stock", tag = "stock",
    params(DaysQuery),
    responses((status = 200, body = StockReport, description = "From the usage of all nodes."), StockProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(crate) async fn stock(
    State(state): State<AppState>,
    Watcher(caller): Watcher,
    DayRange { from, to }: DayRange,
) -> Result<Response, Refused> {
    let engine = state.orders.engine();
    let is_shown = |tenant: &str| caller.as_ref().is_none_or(|caller| caller.tenant.name() == tenant);
    let mut usage = state.orders.usage(from, to).await.map_err(|error| store_problem(&error))?;
    usage.retain(|(line, _)| is_shown(&line.tenant));
    let documents = engine.membership().documents().await.map_err(|error| store_problem(&error))?;
    let members = engine.membership().members().await.map_err(|error| store_problem(&error))?;
    let mut trusts = engine.trusts_among(&documents);
    trusts.retain(|shown| is_shown(&shown.tenant));
    let pools = engine.pools_among(&documents, &members);
    let pools =
        pools.iter().filter(|pool| is_shown(&pool.document.spec.tenant)).map(PoolInShort::of).collect();

    let mut all = Counters::default();
    usage.iter().for_each(|(_, counters)| all += *counters);
    let mut rows: Vec<_> = rows(usage, &trusts).into_iter().collect();
    rows.sort_by_key(|(_, (counters, _))| Reverse(counters.asked));
    let left_out = rows.len().saturating_sub(ROWS_MAX);
    rows.truncate(ROWS_MAX);
    let rows = rows.into_iter().map(|((tenant, kind, site), (counters, trust))| StockRow {
        life_ms: engine.life(&kind, &site).map(millis),
        tenant,
        kind,
        site,
        counts: StockCounts::of(&counters),
        trust,
    });
    let report = StockReport {
        from: date_text(from.0),
        to: date_text(to.0),
        currency: engine.currency().to_owned(),
        all: StockCounts::of(&all),
        rows: rows.collect(),
        left_out,
        pools,
    };
    Ok(json(StatusCode::OK, &report))
}
