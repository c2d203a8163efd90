//! What became of the orders that bulk work has sent on their way: whoever replays a great many wants to know how many came to an
//! answer, and the document only knows how many were sent.

use super::AppState;
use super::bulk::Number;
use super::caller::Operator;
use super::letter::Walk;
use super::page::{Listed, read_key, senseless};
use super::problem::{Refused, problems};
use super::timeline::operators_trouble;
use axum::extract::{FromRequestParts, Query, State};
use axum::http::request::Parts;
use axum::response::Response;
use hyper::StatusCode;
use quittance_lifecycle::{DeadLetterFilter, Key, Order, Phase, TimelineEvent, Timestamp};
use quittance_ports::{BulkDocument, StoreError, Which};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};

/// Two nodes may not agree on when it ended.
const SKEW: Duration = Duration::from_secs(5);

problems!(OutcomeProblems: Unauthorized, Forbidden, UnknownBulk, NeedsAPerson, Unreadable, BadParams, StoreUnavailable);

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct OutcomeQuery {
    /// Which orders to count; default the open ones, which are fewer to read.
    #[param(inline)]
    status: Option<Listed>,
    /// `next` of the response before; add up the results of all pages.
    #[param(pattern = "^[0-9a-fA-F]{64}$")]
    after: Option<String>,
}

pub(super) struct OutcomeRequest {
    which: Which<'static>,
    after: Option<Key>,
}

impl FromRequestParts<AppState> for OutcomeRequest {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Refused> {
        let query = Query::<OutcomeQuery>::from_request_parts(parts, state).await.map_err(senseless)?;
        let Query(OutcomeQuery { status, after }) = query;
        Ok(Self { which: status.unwrap_or_default().which(), after: read_key("after", after.as_deref())? })
    }
}

/// Counts of the replayed orders, among the records that were read.
#[derive(Default, Serialize, ToSchema)]
pub(super) struct Outcome {
    open: u64,
    /// Open orders that wait until a person fixes the provider's account.
    held: u64,
    /// Open orders that are submitting or solving.
    working: u64,
    answered: u64,
    failed: u64,
    /// Orders that are dead letters again.
    dead: u64,
    /// Value of `after` for the next page; absent on the last page.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Count the outcomes of the orders that bulk work replayed
///
/// A request reads a limited number of records; `next` leads to the next page.
#[utoipa::path(
    get, path = "/v1/admin/dead/bulk/{number}/outcome", operation_id = "readOutcome", tag = "admin",
    params(("number" = u64, Path, description = "Number of the bulk work."), OutcomeQuery),
    responses((status = 200, body = Outcome, description = "The current counts."), OutcomeProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn outcome(
    State(state): State<AppState>,
    _: Operator,
    Number(number): Number,
    wanted: OutcomeRequest,
) -> Result<Response, Refused> {
    let document = state.document(number).await?;
    let told = state.outcome(&document, &wanted).await.map_err(|error| operators_trouble(&error))?;
    Ok(super::json(StatusCode::OK, &told))
}

impl AppState {
    async fn outcome(&self, document: &BulkDocument, wanted: &OutcomeRequest) -> Result<Outcome, StoreError> {
        let mut told = Outcome::default();
        let mut walk = Walk::new(wanted.which, wanted.after);
        loop {
            let page = walk.page(self).await?;
            if page.is_empty() {
                return Ok(Outcome { next: walk.next(), ..told });
            }
            page.iter().flatten().for_each(|found| told.add(document, &found.order));
        }
    }
}

impl Outcome {
    fn add(&mut self, document: &BulkDocument, order: &Order) {
        if !is_of(document, order) || !is_replayed_by(document, order) {
            return;
        }
        match &order.phase {
            _ if order.dead_letter().is_some() => self.dead += 1,
            Phase::Failed { .. } => self.failed += 1,
            phase if phase.is_open() => {
                self.open += 1;
                self.held += u64::from(phase.is_held());
                self.working += u64::from(matches!(phase, Phase::Submitting { .. } | Phase::Solving { .. }));
            }
            _ => self.answered += 1,
        }
    }
}

/// Whether it may have been meant. Why it was a dead letter then, nobody knows any more.
fn is_of(document: &BulkDocument, order: &Order) -> bool {
    let DeadLetterFilter { kind, site, tenant, .. } = &document.filter;
    let is = |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
    let terms = &order.terms;
    order.born < document.begun && is(kind, &terms.kind) && is(site, &terms.site) && is(tenant, &terms.tenant)
}

/// Whether it was replayed while the work went on, and no caller has asked for the same again since. A story that is long leaves
/// out what stood in its middle; then it is the new life that tells.
fn is_replayed_by(document: &BulkDocument, order: &Order) -> bool {
    let last = order.timeline.entries.iter().rev().find_map(|entry| match entry.event {
        TimelineEvent::Replayed => Some(Some(entry.at)),
        TimelineEvent::Placed { .. } => Some(None),
        _ => None,
    });
    let is_then =
        |at: Timestamp| at >= document.begun && document.ended.is_none_or(|ended| at <= ended + SKEW);
    last.unwrap_or(Some(order.placed)).is_some_and(is_then)
}
