//! The books, for whoever pays the bill: what was asked, paid and saved on these days, in all and by whatever parts somebody
//! wants to see.

use super::Room;
use super::caller::Operator;
use super::days::read_days;
use super::moment::{date_text, decimal};
use super::orders::store_trouble;
use super::problem::{Refused, problems};
use super::sums::Sums;
use crate::money::{in_currency, other_currencies};
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Query, State};
use axum::http::request::Parts;
use axum::response::Response;
use hyper::StatusCode;
use quittance_lifecycle::{Tally, provider_of};
use quittance_ports::{Day, Line};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// How many days may be asked for at once: three years, and the day on which one looks.
const DAYS_MAX: u64 = 1_097;
/// How many rows are told; those that cost the most come first.
const ROWS_MAX: usize = 1000;

problems!(ReportProblems: Unauthorized, Forbidden, NeedsAPerson, BadParams, StoreUnavailable);

/// What the books can be told by.
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

    fn of(self, line: &Line) -> String {
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
    /// The first day, in UTC; today, if not said.
    #[param(format = Date, pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", example = "2026-11-16")]
    from: Option<String>,
    /// The last day; today, if not said. No more than 1097 days in all.
    #[param(format = Date, pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", example = "2026-11-16")]
    to: Option<String>,
    /// What each row is about: any of `day`, `tenant`, `site`, `kind` and `provider`, with commas between them; no rows,
    /// if not said.
    #[param(
        pattern = "^((day|tenant|site|kind|provider)(,(day|tenant|site|kind|provider))*)?$",
        example = "tenant,kind"
    )]
    by: Option<String>,
}

/// What it means.
pub(super) struct Asked {
    from: Day,
    to: Day,
    by: Vec<By>,
}

impl FromRequestParts<Room> for Asked {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, room: &Room) -> Result<Self, Refused> {
        let query: Result<Query<ReportQuery>, QueryRejection> = Query::from_request_parts(parts, room).await;
        let Query(ReportQuery { from, to, by }) = query.map_err(|_| {
            Refused::bad("query", "There are `from`, `to` and `by`, and each is given once at most.")
        })?;
        let (from, to) = read_days(from, to, room.desk.clock().now(), DAYS_MAX)?;
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
    /// What all money is in.
    #[schema(pattern = "^[A-Z]{3}$", example = "USD")]
    currency: String,
    all: Sums,
    /// What was spent in other currencies before the account had this one. It is in no sum: the attempts are among the `unpriced`.
    other_currencies: Vec<OtherCurrency>,
    /// Those that cost the most first, and then those that were asked for most.
    rows: Vec<Row>,
    /// How many rows more there are.
    left_out: usize,
}

/// Amounts that were counted in another currency than the account has now.
#[derive(Serialize, ToSchema)]
pub(super) struct OtherCurrency {
    #[schema(pattern = "^[A-Z]{3}$", example = "EUR")]
    currency: String,
    #[schema(pattern = "^[0-9]+(\\.[0-9]{1,6})?$")]
    spent: Option<String>,
    cost_micros: Option<u64>,
    /// How many attempts were or may have been charged at a price that is not known: they are not in `spent`.
    unpriced: u64,
    wasted_micros: Option<u64>,
}

impl OtherCurrency {
    fn of((currency, tally): (String, Tally)) -> Self {
        let spent = tally.spent();
        Self {
            currency,
            spent: spent.known().map(decimal),
            cost_micros: spent.known().map(|spent| spent.0),
            unpriced: spent.unpriced,
            wasted_micros: tally.wasted_cost().known().map(|wasted| wasted.0),
        }
    }
}

/// What was counted for one day, tenant, site, kind, provider, or what was asked for of these.
#[derive(Serialize, ToSchema)]
pub(super) struct Row {
    #[schema(format = Date)]
    #[serde(skip_serializing_if = "Option::is_none")]
    day: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<String>,
    /// The host of the page; empty for what is on no page, and `*` for all sites of a day that is no longer kept in detail.
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

/// What was asked, paid and saved
///
/// Of these days, from the books of all nodes.
#[utoipa::path(
    get, path = "/v1/admin/report", operation_id = "report", tag = "admin",
    params(ReportQuery),
    responses((status = 200, body = Report, description = "From the books of all nodes."), ReportProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn report(
    State(room): State<Room>,
    _: Operator,
    Asked { from, to, by }: Asked,
) -> Result<Response, Refused> {
    let books = room.desk.all_books(from, to).await.map_err(|error| store_trouble(&error))?;
    let currency = room.desk.engine().currency().to_owned();
    let others = other_currencies(&books, &currency).into_iter().map(OtherCurrency::of).collect();
    let books = in_currency(books, &currency);
    let mut all = Sums::default();
    let mut rows: BTreeMap<Vec<String>, Sums> = BTreeMap::new();
    for (line, sums) in Sums::of(&books) {
        all.add(&sums);
        if !by.is_empty() {
            rows.entry(by.iter().map(|by| by.of(line)).collect()).or_default().add(&sums);
        }
    }
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_by_key(|(_, sums)| Reverse((sums.tally.cost_micros, sums.tally.asked)));
    let left_out = rows.len().saturating_sub(ROWS_MAX);
    rows.truncate(ROWS_MAX);
    let rows = rows.into_iter().map(|(names, sums)| Row::of(&by, names, sums)).collect();
    let (from, to) = (date_text(from.0), date_text(to.0));
    let report = Report { from, to, by, currency, all, other_currencies: others, rows, left_out };
    Ok(super::json(StatusCode::OK, &report))
}
