//! Bulk actions: replay or drop many dead letters, estimate the result first, and read the progress.

use crate::AppState;
use crate::dead_letter::{
    DeadLetterQuery, DeadLetterSelection, Record, ShownFilter, Walk, action_name, is_selected,
};
use crate::replay_price::Prices;
use crate::timeline::operator_error;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::response::Response;
use hyper::StatusCode;
use quittance_engine::{BulkError, PER_SECOND_MAX};
use quittance_gateway::problems;
use quittance_gateway::v1::Operator;
use quittance_gateway::v1::json;
use quittance_gateway::v1::order_problems::{store_away, store_problem};
use quittance_gateway::v1::problem::{Code, Refused};
use quittance_gateway::v1::request_body::JsonBody;
use quittance_lifecycle::{DeadLetterCause, OnReplay, PriceSum};
use quittance_ports::moment::rfc3339;
use quittance_ports::{BulkAction, BulkDocument, StoreError, Which};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Default number of dead letters per second.
const PER_SECOND: u32 = 50;

problems!(BulkProblems: Unauthorized, Forbidden, UnknownBulk, NeedsAPerson, StoreUnavailable);
problems!(BulkListProblems: Unauthorized, Forbidden, NeedsAPerson, StoreUnavailable);
problems!(BeginProblems: BadJson, BrokenBody, Unauthorized, Forbidden, TooSlow, NeedsAPerson, Unreadable, TooManyBulks, TooLarge,
    WrongContentType, BadParams, StoreUnavailable);

/// A bulk action: what to do, and a filter for dead letters.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct NewBulk {
    #[schema(pattern = "^(replay|drop)$")]
    pub action: String,
    #[schema(pattern = "^(retries_spent|deadline|in_doubt|budget_spent|delivery|unreadable|store_forgot)$")]
    pub cause: Option<String>,
    pub kind: Option<String>,
    /// Host of the page.
    pub site: Option<String>,
    pub tenant: Option<String>,
    #[schema(format = DateTime)]
    pub before: Option<String>,
    #[schema(format = DateTime)]
    pub since: Option<String>,
    /// Dead letters per second; default 50.
    #[schema(minimum = 1, maximum = 1000)]
    pub per_second: Option<u32>,
    /// Whether to do nothing, and only estimate the result.
    pub dry_run: Option<bool>,
    /// `next` of the dry run before; add up the results of all pages.
    #[schema(pattern = "^[0-9a-fA-F]{64}$")]
    pub after: Option<String>,
}

/// Estimated result, for the dead letters that were read.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct DryRun {
    pub dry_run: bool,
    pub dead_letters: u64,
    /// Number that may be paid.
    pub would_pay: u64,
    /// Currency of all amounts.
    #[schema(pattern = "^[A-Z]{3}$", example = "USD")]
    pub currency: String,
    /// Estimated cost, from recent prices of the same kind, in millionths; null if some may be paid and no
    /// price is known.
    pub cost_micros: Option<u64>,
    /// Number that may be paid at a price that is not known; they are not in `cost_micros`.
    pub unpriced: u64,
    /// Number that may be paid although an earlier attempt may have been paid too.
    pub may_pay_twice: u64,
    /// Number skipped because their site is no longer allowed.
    pub not_allowed: u64,
    /// Spent so far at known prices, in millionths; null if there are answers and no price is known.
    pub spent_micros: Option<u64>,
    /// Number of bought answers whose price is not known; they are not in `spent_micros`.
    pub spent_unpriced: u64,
    pub by_cause: BTreeMap<String, u64>,
    /// Number that cannot be read. A drop includes them in `dead_letters`; a replay skips them.
    pub unreadable: u64,
    /// Value of `after` for the next page; absent on the last page.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// The amounts of a dry run: what it would cost, and what the dead letters have cost so far.
#[derive(Default)]
struct DryRunMoney {
    cost: PriceSum,
    spent: PriceSum,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Bulk {
    pub number: u64,
    /// `replay` or `drop`.
    #[schema(pattern = "^(replay|drop)$")]
    pub action: String,
    #[serde(flatten)]
    pub filter: ShownFilter,
    /// Only orders that were dead letters before this moment are included.
    #[schema(format = DateTime)]
    pub begun_at: String,
    pub begun_ms: u64,
    pub per_second: u32,
    /// All dead letters up to this key are done.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    pub done: u64,
    /// Skipped: no longer a dead letter, unreadable and so not replayed, or written by a later version.
    pub skipped: u64,
    #[schema(format = DateTime)]
    pub ended_at: Option<String>,
    pub was_stopped: bool,
}

impl Bulk {
    pub(crate) fn of(document: &BulkDocument) -> Self {
        Self {
            number: document.number,
            action: action_name(document.action).to_owned(),
            filter: ShownFilter::of(&document.filter),
            begun_at: rfc3339(document.begun),
            begun_ms: document.begun.as_millis(),
            per_second: document.per_second,
            after: document.after.map(|key| key.to_string()),
            done: document.done,
            skipped: document.passed_over,
            ended_at: document.ended.map(rfc3339),
            was_stopped: document.was_stopped,
        }
    }
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct BulkList {
    pub bulks: Vec<Bulk>,
}

/// A request for a bulk action.
struct BulkRequest {
    action: BulkAction,
    selection: DeadLetterSelection,
    per_second: u32,
    is_dry_run: bool,
}

fn read_bulk(mut body: JsonBody) -> Result<BulkRequest, Refused> {
    let action = match body.text("action")?.as_deref() {
        Some("replay") => BulkAction::Replay,
        Some("drop") => BulkAction::Drop,
        _ => return Err(Refused::bad("action", "`action` is `replay` or `drop`.")),
    };
    let per_second = match body.take("per_second") {
        None => Some(PER_SECOND),
        Some(value) => value.as_u64().and_then(|number| u32::try_from(number).ok()),
    };
    let per_second = per_second.filter(|number| (1..=PER_SECOND_MAX).contains(number)).ok_or_else(|| {
        Refused::bad("per_second", format!("`per_second` is a number from 1 to {PER_SECOND_MAX}."))
    })?;
    let is_dry_run = body.truth("dry_run")?.unwrap_or(false);
    let query = DeadLetterQuery {
        cause: body.text("cause")?,
        kind: body.text("kind")?,
        site: body.text("site")?,
        tenant: body.text("tenant")?,
        before: body.text("before")?,
        since: body.text("since")?,
        after: body.text("after")?,
        limit: None,
    };
    body.done()?;
    let selection = query.read()?;
    if selection.after.is_some() && !is_dry_run {
        return Err(Refused::bad(
            "after",
            "`after` is for a dry run: the work itself handles all dead letters.",
        ));
    }
    Ok(BulkRequest { action, selection, per_second, is_dry_run })
}

/// Replay or drop many dead letters
///
/// Handles the matching dead letters of this moment, at the given rate. Orders that die again meanwhile are skipped. Any node
/// resumes the work after a crash. With `dry_run`, nothing is done and the estimated result is returned.
#[utoipa::path(
    post, path = "/v1/admin/dead/bulk", operation_id = "beginBulk", tag = "admin",
    request_body = NewBulk,
    responses(
        (status = 200, body = DryRun, description = "The estimated result."),
        (status = 202, body = Bulk, description = "The bulk action is in progress."),
        BeginProblems,
    ),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(crate) async fn begin(
    State(state): State<AppState>,
    _: Operator,
    body: JsonBody,
) -> Result<Response, Refused> {
    let BulkRequest { action, selection, per_second, is_dry_run } = read_bulk(body)?;
    if is_dry_run {
        let dry_run = state.dry_run(action, selection).await.map_err(|error| operator_error(&error))?;
        return Ok(json(StatusCode::OK, &dry_run));
    }
    let begun = state.orders.engine().begin_bulk(action, selection.filter, per_second).await;
    Ok(json(StatusCode::ACCEPTED, &Bulk::of(&begun.map_err(not_done)?)))
}

/// List the bulk actions in progress or ended within a day
#[utoipa::path(
    get, path = "/v1/admin/dead/bulk", operation_id = "listBulks", tag = "admin",
    responses((status = 200, body = BulkList, description = "Bulk actions, sorted by start."), BulkListProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(crate) async fn list(State(state): State<AppState>, _: Operator) -> Result<Response, Refused> {
    let bulks = state.orders.engine().bulks().await.map_err(|error| store_problem(&error))?;
    Ok(json(StatusCode::OK, &BulkList { bulks: bulks.iter().map(Bulk::of).collect() }))
}

/// Read the progress of a bulk action
#[utoipa::path(
    get, path = "/v1/admin/dead/bulk/{number}", operation_id = "readBulk", tag = "admin",
    params(("number" = u64, Path, description = "Number of the bulk action.")),
    responses((status = 200, body = Bulk, description = "The current state of the bulk action."), BulkProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(crate) async fn read(
    State(state): State<AppState>,
    _: Operator,
    Number(number): Number,
) -> Result<Response, Refused> {
    Ok(json(StatusCode::OK, &Bulk::of(&state.document(number).await?)))
}

/// Stop a bulk action; what is done stays done
#[utoipa::path(
    delete, path = "/v1/admin/dead/bulk/{number}", operation_id = "stopBulk", tag = "admin",
    params(("number" = u64, Path, description = "Number of the bulk action.")),
    responses((status = 200, body = Bulk, description = "The current state of the bulk action."), BulkProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(crate) async fn stop(
    State(state): State<AppState>,
    _: Operator,
    Number(number): Number,
) -> Result<Response, Refused> {
    let stopped = state.orders.engine().stop_bulk(number).await.map_err(not_done)?;
    let stopped = stopped.ok_or_else(|| unknown(number))?;
    Ok(json(StatusCode::OK, &Bulk::of(&stopped)))
}

fn unknown(number: u64) -> Refused {
    let detail = format!(
        "There is no bulk action {number}: it never was, or it ended more than a day ago. `quittance dead stop` without a number stops all."
    );
    Code::UnknownBulk.because(detail)
}

fn not_done(why: BulkError) -> Refused {
    let detail = why.to_string();
    match why {
        BulkError::BadRate => Refused::bad("per_second", detail),
        BulkError::TooMany | BulkError::NoRoom => Code::TooManyBulks.because(detail),
        BulkError::Conflict => store_away(),
        BulkError::Store(error) => store_problem(&error),
    }
}

/// The number in the path. An invalid number is an unknown bulk action.
pub(crate) struct Number(pub(crate) u64);

impl FromRequestParts<AppState> for Number {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Refused> {
        let path: Result<Path<u64>, PathRejection> = Path::from_request_parts(parts, state).await;
        path.map(|Path(number)| Self(number))
            .map_err(|_| Code::UnknownBulk.because("The number of a bulk action is a whole number."))
    }
}

impl AppState {
    pub(crate) async fn document(&self, number: u64) -> Result<BulkDocument, Refused> {
        let bulks = self.orders.engine().bulks().await.map_err(|error| store_problem(&error))?;
        bulks.into_iter().find(|document| document.number == number).ok_or_else(|| unknown(number))
    }

    /// Estimates the result. Changes nothing.
    async fn dry_run(
        &self,
        action: BulkAction,
        selection: DeadLetterSelection,
    ) -> Result<DryRun, StoreError> {
        let prices = self.prices().await?;
        let mut result = DryRun {
            dry_run: true,
            currency: self.orders.engine().currency().to_owned(),
            dead_letters: 0,
            would_pay: 0,
            cost_micros: None,
            unpriced: 0,
            may_pay_twice: 0,
            not_allowed: 0,
            spent_micros: None,
            spent_unpriced: 0,
            by_cause: BTreeMap::new(),
            unreadable: 0,
            next: None,
        };
        let mut walk = Walk::new(Which::DEAD, selection.after);
        let mut money = DryRunMoney::default();
        loop {
            let page = walk.page(self).await?;
            if page.is_empty() {
                let DryRunMoney { cost, spent } = money;
                result.cost_micros = cost.known().map(|cost| cost.0);
                result.spent_micros = spent.known().map(|spent| spent.0);
                (result.unpriced, result.spent_unpriced) = (cost.unpriced, spent.unpriced);
                return Ok(DryRun { next: walk.next(), ..result });
            }
            for record in page.iter().filter(|record| is_selected(&selection.filter, record)) {
                self.add(&mut result, &mut money, action, record, &prices);
            }
        }
    }

    fn add(
        &self,
        result: &mut DryRun,
        money: &mut DryRunMoney,
        action: BulkAction,
        record: &Record,
        prices: &Prices,
    ) {
        let Ok(found) = record else {
            result.unreadable += 1;
            result.dead_letters += u64::from(action == BulkAction::Drop);
            return *result.by_cause.entry(DeadLetterCause::Unreadable.name().to_owned()).or_default() += 1;
        };
        let Some(letter) = found.order.dead_letter() else { return };
        result.dead_letters += 1;
        money.spent += found.order.spent_in(&result.currency);
        *result.by_cause.entry(letter.cause.name().to_owned()).or_default() += 1;
        let engine = self.orders.engine();
        let replay = engine.on_replay(&found.order).filter(|_| action == BulkAction::Replay);
        result.not_allowed += u64::from(replay == Some(OnReplay::NotAllowed));
        if let Some(replay) = replay.filter(|replay| replay.may_pay()) {
            result.would_pay += 1;
            money.cost.add(prices.of(&found.order));
            // A replay that waits or polls first still buys if no answer comes.
            let is_second =
                matches!(replay, OnReplay::MayPayTwice | OnReplay::GoesOn | OnReplay::WaitsFirst { .. });
            result.may_pay_twice += u64::from(is_second);
        }
    }
}
