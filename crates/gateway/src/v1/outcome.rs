//! What became of the orders that bulk work has sent on their way: whoever replays a great many wants to know how many came to an
//! answer, and the sheet only knows how many were sent.

use super::Room;
use super::bulk::Number;
use super::caller::Operator;
use super::letter::Walk;
use super::page::{Listed, read_key, senseless};
use super::problem::{Refused, problems};
use super::story::operators_trouble;
use axum::extract::{FromRequestParts, Query, State};
use axum::http::request::Parts;
use axum::response::Response;
use hyper::StatusCode;
use quittance_lifecycle::{Beat, Key, LetterFilter, Order, Phase, Timestamp};
use quittance_ports::{BulkSheet, StoreError, Which};
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
    /// Which of them are counted; the open ones, if not said: there are fewer to read.
    #[param(inline)]
    status: Option<Listed>,
    /// The `next` of the answer before: what it told is to be added up.
    #[param(pattern = "^[0-9a-fA-F]{64}$")]
    after: Option<String>,
}

pub(super) struct Wanted {
    which: Which<'static>,
    after: Option<Key>,
}

impl FromRequestParts<Room> for Wanted {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, room: &Room) -> Result<Self, Refused> {
        let query = Query::<OutcomeQuery>::from_request_parts(parts, room).await.map_err(senseless)?;
        let Query(OutcomeQuery { status, after }) = query;
        Ok(Self { which: status.unwrap_or_default().which(), after: read_key("after", after.as_deref())? })
    }
}

/// Of the records that were read, those that it has replayed.
#[derive(Default, Serialize, ToSchema)]
pub(super) struct Outcome {
    open: u64,
    /// How many of the open ones wait for a person to mend the provider's account.
    held: u64,
    /// How many of the open ones the provider is asked for now.
    working: u64,
    answered: u64,
    failed: u64,
    /// Dead letters again.
    dead: u64,
    /// Where to go on, as `after`; absent if these were all.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Counts what became of what bulk work has replayed
///
/// A request reads a bounded number of records; `next` says where to go on.
#[utoipa::path(
    get, path = "/v1/admin/dead/bulk/{number}/outcome", operation_id = "readOutcome", tag = "admin",
    params(("number" = u64, Path, description = "Its number."), OutcomeQuery),
    responses((status = 200, body = Outcome, description = "As it is now."), OutcomeProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn outcome(
    State(room): State<Room>,
    _: Operator,
    Number(number): Number,
    wanted: Wanted,
) -> Result<Response, Refused> {
    let sheet = room.sheet(number).await?;
    let told = room.outcome(&sheet, &wanted).await.map_err(|error| operators_trouble(&error))?;
    Ok(super::json(StatusCode::OK, &told))
}

impl Room {
    async fn outcome(&self, sheet: &BulkSheet, wanted: &Wanted) -> Result<Outcome, StoreError> {
        let mut told = Outcome::default();
        let mut walk = Walk::new(wanted.which, wanted.after);
        loop {
            let page = walk.page(self).await?;
            if page.is_empty() {
                return Ok(Outcome { next: walk.next(), ..told });
            }
            page.iter().flatten().for_each(|found| told.add(sheet, &found.order));
        }
    }
}

impl Outcome {
    fn add(&mut self, sheet: &BulkSheet, order: &Order) {
        if !is_of(sheet, order) || !is_replayed_by(sheet, order) {
            return;
        }
        match &order.phase {
            _ if order.letter().is_some() => self.dead += 1,
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
fn is_of(sheet: &BulkSheet, order: &Order) -> bool {
    let LetterFilter { kind, site, tenant, .. } = &sheet.filter;
    let is = |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
    let terms = &order.terms;
    order.born < sheet.begun && is(kind, &terms.kind) && is(site, &terms.site) && is(tenant, &terms.tenant)
}

/// Whether it was replayed while the work went on, and no caller has asked for the same again since. A story that is long leaves
/// out what stood in its middle; then it is the new life that tells.
fn is_replayed_by(sheet: &BulkSheet, order: &Order) -> bool {
    let last = order.story.entries.iter().rev().find_map(|entry| match entry.beat {
        Beat::Replayed => Some(Some(entry.at)),
        Beat::Placed { .. } => Some(None),
        _ => None,
    });
    let is_then = |at: Timestamp| at >= sheet.begun && sheet.ended.is_none_or(|ended| at <= ended + SKEW);
    last.unwrap_or(Some(order.placed)).is_some_and(is_then)
}
