//! What the stock is worth, day by day: how many orders it served, how old its answers were, what spoiled on it, and how
//! long the answers of each site are trusted.

use super::Room;
use super::caller::Watcher;
use super::days::read_days;
use super::moment::{date_text, decimal};
use super::orders::store_trouble;
use super::pools::{PoolInShort, share};
use super::problem::{Refused, problems};
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Query, State};
use axum::http::request::Parts;
use axum::response::Response;
use hyper::StatusCode;
use quittance_engine::TrustShown;
use quittance_lifecycle::Tally;
use quittance_ports::{Day, Line};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// How many days may be asked for at once.
const DAYS_MAX: u64 = 92;
/// How many lines are told; those with the most orders come first.
const LINES_MAX: usize = 1000;

problems!(StockProblems: Unauthorized, NeedsAPerson, BadParams, StoreUnavailable);

/// As it is typed.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct DaysQuery {
    /// The first day, in UTC; today, if not said.
    #[param(format = Date, pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", example = "2026-11-16")]
    from: Option<String>,
    /// The last day; today, if not said. No more than 92 days in all.
    #[param(format = Date, pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", example = "2026-11-16")]
    to: Option<String>,
}

/// What it means: both are included.
pub(super) struct Days {
    from: Day,
    to: Day,
}

impl FromRequestParts<Room> for Days {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, room: &Room) -> Result<Self, Refused> {
        let query: Result<Query<DaysQuery>, QueryRejection> = Query::from_request_parts(parts, room).await;
        let Query(DaysQuery { from, to }) = query.map_err(|_| {
            Refused::bad("query", "There are `from` and `to`, and each is given once at most.")
        })?;
        let (from, to) = read_days(from, to, room.desk.clock().now(), DAYS_MAX)?;
        Ok(Self { from, to })
    }
}

#[derive(Serialize, ToSchema)]
pub(super) struct StockReport {
    #[schema(format = Date)]
    from: String,
    #[schema(format = Date)]
    to: String,
    /// What all money is in.
    #[schema(pattern = "^[A-Z]{3}$", example = "USD")]
    currency: String,
    all: StockCounts,
    /// Those with the most orders first.
    lines: Vec<StockLine>,
    /// How many lines more there are.
    left_out: usize,
    pools: Vec<PoolInShort>,
}

/// What the books say of one tenant's orders of one kind for one site.
#[derive(Serialize, ToSchema)]
pub(super) struct StockLine {
    tenant: String,
    kind: String,
    /// The host of the page; empty for what is on no page.
    site: String,
    #[serde(flatten)]
    counts: StockCounts,
    /// Where callers have reported refusals: how long its answers are trusted now.
    #[serde(skip_serializing_if = "Option::is_none")]
    trust: Option<ShownTrust>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct StockCounts {
    /// Placements, whatever became of them.
    asked: u64,
    from_stock: u64,
    /// The share of placements served from the stock, of those that neither joined, nor repeated, nor were refused.
    #[schema(minimum = 0, maximum = 1)]
    #[serde(skip_serializing_if = "Option::is_none")]
    hit_rate: Option<f64>,
    /// Answers that came to stand on the shelf.
    stocked: u64,
    /// Answers paid for that nobody could use any more, and what they cost: null if no price of them is known.
    wasted: u64,
    #[schema(pattern = "^[0-9]+(\\.[0-9]{1,6})?$")]
    wasted_cost: Option<String>,
    wasted_micros: Option<u64>,
    /// How many of them have no known price: they are not in the cost.
    wasted_unpriced: u64,
    /// How old answers from the stock were when they were handed out, on average.
    #[serde(skip_serializing_if = "Option::is_none")]
    mean_age_ms: Option<u64>,
    /// How much sooner they were there than if they had been bought, in all.
    saved_ms: u64,
    /// Answers that a caller says the site refused.
    reported_bad: u64,
}

impl StockCounts {
    fn of(tally: &Tally) -> Self {
        let wasted_cost = tally.wasted_cost().known();
        let needed = tally.asked.saturating_sub(tally.joined).saturating_sub(tally.cached);
        Self {
            asked: tally.asked,
            from_stock: tally.from_stock,
            hit_rate: share(tally.from_stock, needed.saturating_sub(tally.refused)),
            stocked: tally.stocked,
            wasted: tally.wasted,
            wasted_cost: wasted_cost.map(decimal),
            wasted_micros: wasted_cost.map(|cost| cost.0),
            wasted_unpriced: tally.wasted_unpriced,
            mean_age_ms: tally.stock_age_ms.checked_div(tally.from_stock),
            saved_ms: tally.saved_ms,
            reported_bad: tally.reported_bad,
        }
    }
}

#[derive(Serialize, ToSchema)]
pub(super) struct ShownTrust {
    /// How long its answers should live.
    life_s: u64,
    /// How long they are trusted.
    trusted_s: u64,
    /// How many refusals and approvals are remembered.
    refusals: usize,
    approvals: usize,
    why: String,
}

impl ShownTrust {
    fn of(shown: &TrustShown) -> Self {
        let refusals = shown.trust.refusals.len();
        let why = if shown.trusted < shown.life {
            let age = shown.trusted.as_secs();
            format!(
                "answers that were {age} s old or older when they were handed out were refused at the site"
            )
        } else {
            "what was refused does not say that answers live less long than they should".to_owned()
        };
        Self {
            life_s: shown.life.as_secs(),
            trusted_s: shown.trusted.as_secs(),
            refusals,
            approvals: shown.trust.approvals.len(),
            why,
        }
    }
}

/// Whose, of which kind, and for which site.
type Name = (String, String, String);

/// The books of several days, and what reports have taught, in one line for each name.
fn lines(books: Vec<(Line, Tally)>, trusts: &[TrustShown]) -> BTreeMap<Name, (Tally, Option<ShownTrust>)> {
    let mut lines: BTreeMap<Name, (Tally, Option<ShownTrust>)> = BTreeMap::new();
    for (Line { tenant, kind, site, .. }, tally) in books {
        lines.entry((tenant, kind, site)).or_default().0 += tally;
    }
    for shown in trusts {
        let name = (shown.tenant.clone(), shown.kind.clone(), shown.site.clone());
        lines.entry(name).or_default().1 = Some(ShownTrust::of(shown));
    }
    lines
}

/// What the stock has done
///
/// Of these days, for each tenant, kind and site. The operator's key sees all tenants, a tenant's his own.
#[utoipa::path(
    get, path = "/v1/stock", operation_id = "stock", tag = "stock",
    params(DaysQuery),
    responses((status = 200, body = StockReport, description = "From the books of all nodes."), StockProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn stock(
    State(room): State<Room>,
    Watcher(caller): Watcher,
    Days { from, to }: Days,
) -> Result<Response, Refused> {
    let engine = room.desk.engine();
    let is_shown = |tenant: &str| caller.as_ref().is_none_or(|caller| caller.tenant.name() == tenant);
    let mut books = room.desk.books(from, to).await.map_err(|error| store_trouble(&error))?;
    books.retain(|(line, _)| is_shown(&line.tenant));
    let mut trusts = engine.trusts();
    trusts.retain(|shown| is_shown(&shown.tenant));
    let pools = engine.pools().await.map_err(|error| store_trouble(&error))?;
    let pools = pools.iter().filter(|pool| is_shown(&pool.sheet.spec.tenant)).map(PoolInShort::of).collect();

    let mut all = Tally::default();
    books.iter().for_each(|(_, tally)| all += *tally);
    let mut lines: Vec<_> = lines(books, &trusts).into_iter().collect();
    lines.sort_by_key(|(_, (tally, _))| Reverse(tally.asked));
    let left_out = lines.len().saturating_sub(LINES_MAX);
    lines.truncate(LINES_MAX);
    let lines = lines.into_iter().map(|((tenant, kind, site), (tally, trust))| StockLine {
        tenant,
        kind,
        site,
        counts: StockCounts::of(&tally),
        trust,
    });
    let report = StockReport {
        from: date_text(from.0),
        to: date_text(to.0),
        currency: engine.currency().to_owned(),
        all: StockCounts::of(&all),
        lines: lines.collect(),
        left_out,
        pools,
    };
    Ok(super::json(StatusCode::OK, &report))
}
