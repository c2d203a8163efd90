//! The usage: what was asked, paid and saved on some days, in total and grouped.

use crate::AppState;
use crate::days::read_days;
use crate::usage_sums::{Sums, SumsBuilder};
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Query, State};
use axum::http::request::Parts;
use axum::response::Response;
use hyper::StatusCode;
use quittance_engine::Engine;
use quittance_gateway::problems;
use quittance_gateway::v1::Operator;
use quittance_gateway::v1::decimal;
use quittance_gateway::v1::json;
use quittance_gateway::v1::order_problems::store_problem;
use quittance_gateway::v1::problem::Refused;
use quittance_lifecycle::time::millis;
use quittance_lifecycle::{Counters, Money, provider_of};
use quittance_ports::moment::date_text;
use quittance_ports::{Day, UsageRow};
use quittance_telemetry::money::{in_currency, other_currencies};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};

/// How many days one request may cover: three years and a day.
const DAYS_MAX: u64 = 1_097;
/// How many rows a response has; the most expensive come first.
const ROWS_MAX: usize = 1000;

problems!(ReportProblems: Unauthorized, Forbidden, NeedsAPerson, BadParams, StoreUnavailable);

/// What the usage can be grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum By {
    Day,
    Tenant,
    Site,
    Kind,
    Provider,
}

impl By {
    pub const ALL: [(&'static str, Self); 5] = [
        ("day", Self::Day),
        ("tenant", Self::Tenant),
        ("site", Self::Site),
        ("kind", Self::Kind),
        ("provider", Self::Provider),
    ];

    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(_, by)| *by == self).map_or("", |(name, _)| name)
    }

    fn of(self, line: &UsageRow) -> String {
        match self {
            Self::Day => date_text(line.day.0),
            Self::Tenant => line.tenant.clone(),
            Self::Site => line.site.clone(),
            Self::Kind => line.kind.clone(),
            Self::Provider => provider_of(&line.account).to_owned(),
        }
    }
}

/// The query parameters of a usage report, as the caller typed them.
#[derive(Debug, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ReportQuery {
    /// First day, in UTC; default today.
    #[param(format = Date, pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", example = "2026-11-16")]
    pub from: Option<String>,
    /// Last day; default today. At most 1097 days in all.
    #[param(format = Date, pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", example = "2026-11-16")]
    pub to: Option<String>,
    /// Grouping of the rows: any of `day`, `tenant`, `site`, `kind` and `provider`, separated by commas; default: no
    /// rows.
    #[param(
        pattern = "^((day|tenant|site|kind|provider)(,(day|tenant|site|kind|provider))*)?$",
        example = "tenant,kind"
    )]
    pub by: Option<String>,
}

/// A parsed query of a usage report.
pub(crate) struct UsageRequest {
    from: Day,
    to: Day,
    by: Vec<By>,
}

impl FromRequestParts<AppState> for UsageRequest {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Refused> {
        let query: Result<Query<ReportQuery>, QueryRejection> = Query::from_request_parts(parts, state).await;
        let Query(ReportQuery { from, to, by }) = query.map_err(|_| {
            Refused::bad("query", "The parameters are `from`, `to` and `by`; send each at most once.")
        })?;
        let (from, to) = read_days(from, to, state.orders.clock().now(), DAYS_MAX)?;
        Ok(Self { from, to, by: read_by(by.as_deref().unwrap_or_default())? })
    }
}

fn read_by(typed: &str) -> Result<Vec<By>, Refused> {
    let mut read = Vec::new();
    for word in typed.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let found = By::ALL.into_iter().find(|(name, _)| *name == word).map(|(_, by)| by);
        match found {
            Some(by) if !read.contains(&by) => read.push(by),
            _ => {
                let words = "`by` is one or more of day, tenant, site, kind and provider, each once.";
                return Err(Refused::bad("by", words));
            }
        }
    }
    Ok(read)
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct UsageReport {
    #[schema(format = Date)]
    pub from: String,
    #[schema(format = Date)]
    pub to: String,
    pub by: Vec<By>,
    /// Currency of all amounts.
    #[schema(pattern = "^[A-Z]{3}$", example = "USD")]
    pub currency: String,
    pub all: Sums,
    /// Amounts in other currencies that the account had before. They are in no sum: the attempts are counted in `unpriced`.
    pub other_currencies: Vec<OtherCurrency>,
    /// Sorted by cost, then by placements, highest first.
    pub rows: Vec<UsageGroup>,
    /// Number of rows that are left out.
    pub left_out: usize,
}

/// Amounts in a currency other than the current one of the account.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct OtherCurrency {
    #[schema(pattern = "^[A-Z]{3}$", example = "EUR")]
    pub currency: String,
    #[schema(pattern = "^[0-9]+(\\.[0-9]{1,6})?$")]
    pub spent: Option<String>,
    pub cost_micros: Option<u64>,
    /// Attempts that were or may have been charged at a price that is not known; they are not in `spent`.
    pub unpriced: u64,
    pub wasted_micros: Option<u64>,
}

impl OtherCurrency {
    fn of((currency, counters): (String, Counters)) -> Self {
        let spent = counters.spent();
        Self {
            currency,
            spent: counters.spent_known().map(decimal),
            cost_micros: counters.spent_known().map(|spent| spent.0),
            unpriced: spent.unpriced,
            wasted_micros: counters.wasted_cost().known().map(|wasted| wasted.0),
        }
    }
}

/// Usage of one group: day, tenant, site, kind and provider, as far as requested.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct UsageGroup {
    #[schema(format = Date)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Host of the page; empty for orders without a page, and `*` for all sites of a day without details.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    #[serde(flatten)]
    pub sums: Sums,
    /// Figures that compare providers; only in a report that is grouped by provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<ProviderFigures>,
}

/// Figures that compare one provider with another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProviderFigures {
    /// Cost / solved; null if nothing was solved, or if a price is not known.
    #[schema(pattern = "^[0-9]+(\\.[0-9]{1,6})?$")]
    pub price_per_answer: Option<String>,
    pub price_per_answer_micros: Option<u64>,
    /// Solved / paid, in thousandths; null if nothing was paid.
    pub success_permille: Option<u64>,
    /// Rejected / attempts, in thousandths; null if no attempt was made.
    pub rejected_permille: Option<u64>,
    /// Half of the answers came within this time, as this node has measured since its start. Null if it has measured fewer
    /// than 20, or if the rows are grouped by more than provider and kind.
    pub p50_ms: Option<u64>,
    /// 95 % of the answers came within this time, measured as `p50_ms`.
    pub p95_ms: Option<u64>,
}

impl ProviderFigures {
    fn of(counters: &Counters, solve_times: Option<(Duration, Duration)>) -> Self {
        let is_priced = counters.spent().unpriced == 0;
        let cost = counters.spent_known().filter(|_| is_priced);
        let price = cost.and_then(|cost| cost.0.checked_div(counters.solved));
        Self {
            price_per_answer: price.map(|price| decimal(Money(price))),
            price_per_answer_micros: price,
            success_permille: counters.solved.saturating_mul(1000).checked_div(counters.paid),
            rejected_permille: counters.rejected.saturating_mul(1000).checked_div(counters.attempts),
            p50_ms: solve_times.map(|(half, _)| millis(half)),
            p95_ms: solve_times.map(|(_, most)| millis(most)),
        }
    }
}

impl UsageGroup {
    /// Name of the group by this part; `None` if the report is not grouped by it.
    #[must_use]
    pub fn name(&self, by: By) -> Option<&str> {
        let name = match by {
            By::Day => &self.day,
            By::Tenant => &self.tenant,
            By::Site => &self.site,
            By::Kind => &self.kind,
            By::Provider => &self.provider,
        };
        name.as_deref()
    }

    fn of(by: &[By], names: Vec<String>, sums: SumsBuilder, engine: &Engine) -> Self {
        let times = || solve_times(by, &names, engine);
        let comparison = by.contains(&By::Provider).then(|| ProviderFigures::of(&sums.counters, times()));
        let sums = sums.build();
        let mut row =
            Self { day: None, tenant: None, site: None, kind: None, provider: None, sums, comparison };
        for (by, name) in by.iter().zip(names) {
            let field = match by {
                By::Day => &mut row.day,
                By::Tenant => &mut row.tenant,
                By::Site => &mut row.site,
                By::Kind => &mut row.kind,
                By::Provider => &mut row.provider,
            };
            *field = Some(name);
        }
        row
    }
}

/// The solve times of a row, half and 95 %: of the provider, or of one kind there. They are not kept by day, tenant or
/// site.
fn solve_times(by: &[By], names: &[String], engine: &Engine) -> Option<(Duration, Duration)> {
    let name = |part: By| by.iter().position(|known| *known == part).and_then(|place| names.get(place));
    let is_known = by.iter().all(|part| matches!(part, By::Provider | By::Kind));
    let provider = name(By::Provider).filter(|_| is_known)?;
    engine.solve_quantiles(provider, name(By::Kind).map(String::as_str))
}

/// Read the usage: asked, paid and saved
///
/// For these days, of all nodes.
#[utoipa::path(
    get, path = "/v1/admin/usage", operation_id = "usage", tag = "admin",
    params(ReportQuery),
    responses((status = 200, body = UsageReport, description = "From the usage of all nodes."), ReportProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(crate) async fn usage(
    State(state): State<AppState>,
    _: Operator,
    UsageRequest { from, to, by }: UsageRequest,
) -> Result<Response, Refused> {
    let usage = state.orders.all_usage(from, to).await.map_err(|error| store_problem(&error))?;
    let currency = state.orders.engine().currency().to_owned();
    let others = other_currencies(&usage, &currency).into_iter().map(OtherCurrency::of).collect();
    let usage = in_currency(usage, &currency);
    let mut all = SumsBuilder::default();
    let mut rows: BTreeMap<Vec<String>, SumsBuilder> = BTreeMap::new();
    for (line, sums) in SumsBuilder::of(&usage) {
        all.add(&sums);
        if !by.is_empty() {
            rows.entry(by.iter().map(|by| by.of(line)).collect()).or_default().add(&sums);
        }
    }
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_by_key(|(_, sums)| Reverse((sums.counters.cost_micros, sums.counters.asked)));
    let left_out = rows.len().saturating_sub(ROWS_MAX);
    rows.truncate(ROWS_MAX);
    let rows = rows
        .into_iter()
        .map(|(names, sums)| UsageGroup::of(&by, names, sums, state.orders.engine()))
        .collect();
    let (from, to) = (date_text(from.0), date_text(to.0));
    let report =
        UsageReport { from, to, by, currency, all: all.build(), other_currencies: others, rows, left_out };
    Ok(json(StatusCode::OK, &report))
}
