//! The outcomes of the orders that a bulk action has replayed. The document of the bulk action only counts the replays.

use crate::AppState;
use crate::bulk::Number;
use crate::dead_letter::Walk;
use crate::timeline::operator_error;
use axum::extract::{FromRequestParts, Query, State};
use axum::http::request::Parts;
use axum::response::Response;
use hyper::StatusCode;
use quittance_gateway::problems;
use quittance_gateway::v1::Operator;
use quittance_gateway::v1::json;
use quittance_gateway::v1::list_page::{Listed, bad_query, read_key};
use quittance_gateway::v1::problem::Refused;
use quittance_lifecycle::{DeadLetterFilter, Key, Order, Phase, TimelineEvent, Timestamp};
use quittance_ports::{BulkDocument, StoreError, Which};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};

/// The most by which the clocks of two nodes may differ.
const SKEW: Duration = Duration::from_secs(5);

problems!(OutcomeProblems: Unauthorized, Forbidden, UnknownBulk, NeedsAPerson, Unreadable, BadParams, StoreUnavailable);

#[derive(Debug, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct OutcomeQuery {
    /// Which orders to count; default the open ones, which are fewer to read.
    #[param(inline)]
    pub status: Option<Listed>,
    /// `next` of the response before; add up the results of all pages.
    #[param(pattern = "^[0-9a-fA-F]{64}$")]
    pub after: Option<String>,
}

pub(crate) struct OutcomeRequest {
    which: Which<'static>,
    after: Option<Key>,
}

impl FromRequestParts<AppState> for OutcomeRequest {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Refused> {
        let query = Query::<OutcomeQuery>::from_request_parts(parts, state).await.map_err(bad_query)?;
        let Query(OutcomeQuery { status, after }) = query;
        Ok(Self { which: status.unwrap_or_default().which(), after: read_key("after", after.as_deref())? })
    }
}

/// Counts of the replayed orders, among the records that were read.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ReplayOutcome {
    pub open: u64,
    /// Open orders that wait until a person fixes the provider's account.
    pub held: u64,
    /// Open orders that are submitting or solving.
    pub working: u64,
    pub answered: u64,
    pub failed: u64,
    /// Orders that are dead letters again.
    pub dead: u64,
    /// Value of `after` for the next page; absent on the last page.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Count the outcomes of the orders that a bulk action replayed
///
/// A request reads a limited number of records; `next` leads to the next page.
#[utoipa::path(
    get, path = "/v1/admin/dead/bulk/{number}/outcome", operation_id = "readOutcome", tag = "admin",
    params(("number" = u64, Path, description = "Number of the bulk action."), OutcomeQuery),
    responses((status = 200, body = ReplayOutcome, description = "The current counts."), OutcomeProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(crate) async fn outcome(
    State(state): State<AppState>,
    _: Operator,
    Number(number): Number,
    request: OutcomeRequest,
) -> Result<Response, Refused> {
    let document = state.document(number).await?;
    let outcome = state.outcome(&document, &request).await.map_err(|error| operator_error(&error))?;
    Ok(json(StatusCode::OK, &outcome))
}

impl AppState {
    async fn outcome(
        &self,
        document: &BulkDocument,
        request: &OutcomeRequest,
    ) -> Result<ReplayOutcome, StoreError> {
        let mut outcome = ReplayOutcome::default();
        let mut walk = Walk::new(request.which, request.after);
        loop {
            let page = walk.page(self).await?;
            if page.is_empty() {
                return Ok(ReplayOutcome { next: walk.next(), ..outcome });
            }
            page.iter().flatten().for_each(|found| outcome.add(document, &found.order));
        }
    }
}

impl ReplayOutcome {
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

/// Whether the bulk action may have selected the order. The record no longer contains the earlier cause of the dead
/// letter.
fn is_of(document: &BulkDocument, order: &Order) -> bool {
    let DeadLetterFilter { kind, site, tenant, .. } = &document.filter;
    let is = |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
    let terms = &order.terms;
    order.born < document.begun && is(kind, &terms.kind) && is(site, &terms.site) && is(tenant, &terms.tenant)
}

/// Whether the order was replayed during the bulk action and not placed again since. A long timeline leaves out entries in its middle;
/// then the start of the current life decides.
fn is_replayed_by(document: &BulkDocument, order: &Order) -> bool {
    let last = order.timeline.entries.iter().rev().find_map(|entry| match entry.event {
        TimelineEvent::Replayed => Some(Some(entry.at)),
        TimelineEvent::Placed { .. } | TimelineEvent::ReplayedAfterOutage { .. } => Some(None),
        _ => None,
    });
    let is_then =
        |at: Timestamp| at >= document.begun && document.ended.is_none_or(|ended| at <= ended + SKEW);
    last.unwrap_or(Some(order.placed)).is_some_and(is_then)
}
