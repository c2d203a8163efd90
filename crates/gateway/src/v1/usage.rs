//! The usage, for whoever pays the bill: what was asked, paid and saved on these days, in all and by whatever parts somebody
//! wants to see.

use super::AppState;
use super::caller::Operator;
use super::days::read_days;
use super::decimal;
use super::orders::store_trouble;
use super::problem::{Refused, problems};
use super::sums::Sums;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Query, State};
use axum::http::request::Parts;
use axum::response::Response;
use hyper::StatusCode;
use quittance_lifecycle::{Counters, provider_of};
use quittance_ports::moment::date_text;
use quittance_ports::{Day, UsageRow};
use quittance_telemetry::money::{in_currency, other_currencies};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// How many days may be asked for at once: three years, and the day on which one looks.
const DAYS_MAX: u64 = 1_097;
/// How many rows are told; those that cost the most come first.
const ROWS_MAX: usize = 1000;

problems!(ReportProblems: Unauthorized, Forbidden, NeedsAPerson, BadParams, StoreUnavailable);

/// What the usage can be grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum By {
    Day,
    Tenant,
    Site,
    Kind,
    Provider,
}

impl By {
    const ALL: [(&'static str, Self); 5] = [
        ("day", Self::Day),
        ("tenant", Self::Tenant),
        ("site", Self::Site),
        ("kind", Self::Kind),
        ("provider", Self::Provider),
    ];

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

/// As it is typed.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct ReportQuery {
    /// First day, in UTC; default today.
    #[param(format = Date, pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", example = "2026-11-16")]
    from: Option<String>,
    /// Last day; default today. At most 1097 days in all.
    #[param(format = Date, pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", example = "2026-11-16")]
    to: Option<String>,
    /// Grouping of the rows: any of `day`, `tenant`, `site`, `kind` and `provider`, separated by commas; default: no
    /// rows.
    #[param(
        pattern = "^((day|tenant|site|kind|provider)(,(day|tenant|site|kind|provider))*)?$",
        example = "tenant,kind"
    )]
    by: Option<String>,
}

/// What it means.
pub(super) struct UsageRequest {
    from: Day,
    to: Day,
    by: Vec<By>,
}

impl FromRequestParts<AppState> for UsageRequest {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Refused> {
        let query: Result<Query<ReportQuery>, QueryRejection> = Query::from_request_parts(parts, state).await;
        let Query(ReportQuery { from, to, by }) = query.map_err(|_| {
            Refused::bad("query", "There are `from`, `to` and `by`, and each is given once at most.")
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

#[derive(Serialize, ToSchema)]
pub(super) struct Report {
    #[schema(format = Date)]
    from: String,
    #[schema(format = Date)]
    to: String,
    by: Vec<By>,
    /// Currency of all amounts.
    #[schema(pattern = "^[A-Z]{3}$", example = "USD")]
    currency: String,
    all: Sums,
    /// Amounts in other currencies that the account had before. They are in no sum: the attempts are counted in `unpriced`.
    other_currencies: Vec<OtherCurrency>,
    /// Sorted by cost, then by placements, highest first.
    rows: Vec<Row>,
    /// Number of rows that are left out.
    left_out: usize,
}

/// Amounts in a currency other than the current one of the account.
#[derive(Serialize, ToSchema)]
pub(super) struct OtherCurrency {
    #[schema(pattern = "^[A-Z]{3}$", example = "EUR")]
    currency: String,
    #[schema(pattern = "^[0-9]+(\\.[0-9]{1,6})?$")]
    spent: Option<String>,
    cost_micros: Option<u64>,
    /// Attempts that were or may have been charged at a price that is not known; they are not in `spent`.
    unpriced: u64,
    wasted_micros: Option<u64>,
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
#[derive(Serialize, ToSchema)]
pub(super) struct Row {
    #[schema(format = Date)]
    #[serde(skip_serializing_if = "Option::is_none")]
    day: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<String>,
    /// Host of the page; empty for orders without a page, and `*` for all sites of a day without details.
    #[serde(skip_serializing_if = "Option::is_none")]
    site: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<String>,
    #[serde(flatten)]
    sums: Sums,
}

impl Row {
    fn of(by: &[By], names: Vec<String>, sums: Sums) -> Self {
        let mut row = Self { day: None, tenant: None, site: None, kind: None, provider: None, sums };
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

/// Read the usage: asked, paid and saved
///
/// For these days, of all nodes.
#[utoipa::path(
    get, path = "/v1/admin/usage", operation_id = "usage", tag = "admin",
    params(ReportQuery),
    responses((status = 200, body = Report, description = "From the usage of all nodes."), ReportProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn usage(
    State(state): State<AppState>,
    _: Operator,
    UsageRequest { from, to, by }: UsageRequest,
) -> Result<Response, Refused> {
    let usage = state.orders.all_usage(from, to).await.map_err(|error| store_trouble(&error))?;
    let currency = state.orders.engine().currency().to_owned();
    let others = other_currencies(&usage, &currency).into_iter().map(OtherCurrency::of).collect();
    let usage = in_currency(usage, &currency);
    let mut all = Sums::default();
    let mut rows: BTreeMap<Vec<String>, Sums> = BTreeMap::new();
    for (line, sums) in Sums::of(&usage) {
        all.add(&sums);
        if !by.is_empty() {
            rows.entry(by.iter().map(|by| by.of(line)).collect()).or_default().add(&sums);
        }
    }
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_by_key(|(_, sums)| Reverse((sums.counters.cost_micros, sums.counters.asked)));
    let left_out = rows.len().saturating_sub(ROWS_MAX);
    rows.truncate(ROWS_MAX);
    let rows = rows.into_iter().map(|(names, sums)| Row::of(&by, names, sums)).collect();
    let (from, to) = (date_text(from.0), date_text(to.0));
    let report = Report { from, to, by, currency, all, other_currencies: others, rows, left_out };
    Ok(super::json(StatusCode::OK, &report))
}
