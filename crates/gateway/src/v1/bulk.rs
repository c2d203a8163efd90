//! Doing the same with a great many dead letters: what it would come to, the work itself, and how far it is.

use super::AppState;
use super::caller::Operator;
use super::letter::{DeadLetterQuery, DeadLetterSelection, Record, ShownFilter, Walk, deed_name, is_meant};
use super::orders::store_trouble;
use super::prices::Prices;
use super::problem::{Code, Refused, problems};
use super::request::JsonBody;
use super::timeline::operators_trouble;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::response::Response;
use hyper::StatusCode;
use quittance_engine::{BulkError, PER_SECOND_MAX};
use quittance_lifecycle::{DeadLetterCause, OnReplay, PriceSum};
use quittance_ports::moment::rfc3339;
use quittance_ports::{BulkAction, BulkDocument, StoreError, Which};
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// How many letters a second, if not said.
const PER_SECOND: u32 = 50;

problems!(BulkProblems: Unauthorized, Forbidden, UnknownBulk, NeedsAPerson, StoreUnavailable);
problems!(BulkListProblems: Unauthorized, Forbidden, NeedsAPerson, StoreUnavailable);
problems!(BeginProblems: BadJson, BrokenBody, Unauthorized, Forbidden, TooSlow, NeedsAPerson, Unreadable, TooManyBulks, TooLarge,
    WrongContentType, BadParams, StoreUnavailable);

/// Bulk work: an action, and a filter for dead letters.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it is read by hand, and only described here")]
pub(super) struct NewBulk {
    #[schema(pattern = "^(replay|drop)$")]
    action: String,
    #[schema(pattern = "^(retries_spent|deadline|in_doubt|delivery|unreadable|store_forgot)$")]
    cause: Option<String>,
    kind: Option<String>,
    /// Host of the page.
    site: Option<String>,
    tenant: Option<String>,
    #[schema(format = DateTime)]
    before: Option<String>,
    #[schema(format = DateTime)]
    since: Option<String>,
    /// Dead letters per second; default 50.
    #[schema(minimum = 1, maximum = 1000)]
    per_second: Option<u32>,
    /// Whether to do nothing, and only estimate the result.
    dry_run: Option<bool>,
    /// `next` of the dry run before; add up the results of all pages.
    #[schema(pattern = "^[0-9a-fA-F]{64}$")]
    after: Option<String>,
}

/// Estimated result, for the dead letters that were read.
#[derive(Serialize, ToSchema)]
pub(super) struct DryRun {
    dry_run: bool,
    letters: u64,
    /// Number that may be paid.
    would_pay: u64,
    /// Currency of all amounts.
    #[schema(pattern = "^[A-Z]{3}$", example = "USD")]
    currency: String,
    /// Estimated cost, from recent prices of the same kind, in millionths; null if some may be paid and no
    /// price is known.
    cost_micros: Option<u64>,
    /// Number that may be paid at a price that is not known; they are not in `cost_micros`.
    unpriced: u64,
    /// Number that may be paid although an earlier attempt may have been paid too.
    may_pay_twice: u64,
    /// Number skipped because their site is no longer allowed.
    not_allowed: u64,
    /// Spent so far at known prices, in millionths; null if there are answers and no price is known.
    spent_micros: Option<u64>,
    /// Number of bought answers whose price is not known; they are not in `spent_micros`.
    spent_unpriced: u64,
    by_cause: BTreeMap<&'static str, u64>,
    /// Number that cannot be read. A drop includes them in `letters`; a replay skips them.
    unreadable: u64,
    /// Value of `after` for the next page; absent on the last page.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// The sums of a dry run: what it would cost, and what its letters have cost.
#[derive(Default)]
struct DryRunMoney {
    cost: PriceSum,
    spent: PriceSum,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Bulk {
    number: u64,
    /// `replay` or `drop`.
    #[schema(pattern = "^(replay|drop)$")]
    action: &'static str,
    #[serde(flatten)]
    filter: ShownFilter,
    /// Only orders that were dead letters before this moment are included.
    #[schema(format = DateTime)]
    begun_at: String,
    begun_ms: u64,
    per_second: u32,
    /// All dead letters up to this key are done.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
    done: u64,
    /// Skipped: no longer a dead letter, unreadable and so not replayed, or written by a later version.
    passed_over: u64,
    #[schema(format = DateTime)]
    ended_at: Option<String>,
    was_stopped: bool,
}

impl Bulk {
    pub(super) fn of(document: &BulkDocument) -> Self {
        Self {
            number: document.number,
            action: deed_name(document.action),
            filter: ShownFilter::of(&document.filter),
            begun_at: rfc3339(document.begun),
            begun_ms: document.begun.as_millis(),
            per_second: document.per_second,
            after: document.after.map(|key| key.to_string()),
            done: document.done,
            passed_over: document.passed_over,
            ended_at: document.ended.map(rfc3339),
            was_stopped: document.was_stopped,
        }
    }
}

#[derive(Serialize, ToSchema)]
pub(super) struct BulkList {
    bulks: Vec<Bulk>,
}

/// What was said, understood.
struct BulkRequest {
    action: BulkAction,
    asked: DeadLetterSelection,
    per_second: u32,
    is_dry_run: bool,
}

impl JsonBody {
    fn bulk(mut self) -> Result<BulkRequest, Refused> {
        let action = match self.text("action")?.as_deref() {
            Some("replay") => BulkAction::Replay,
            Some("drop") => BulkAction::Drop,
            _ => return Err(Refused::bad("action", "`action` is `replay` or `drop`.")),
        };
        let per_second = match self.take("per_second") {
            None => Some(PER_SECOND),
            Some(said) => said.as_u64().and_then(|number| u32::try_from(number).ok()),
        };
        let per_second =
            per_second.filter(|number| (1..=PER_SECOND_MAX).contains(number)).ok_or_else(|| {
                Refused::bad("per_second", format!("`per_second` is a number from 1 to {PER_SECOND_MAX}."))
            })?;
        let is_dry_run = self.truth("dry_run")?.unwrap_or(false);
        let typed = DeadLetterQuery {
            cause: self.text("cause")?,
            kind: self.text("kind")?,
            site: self.text("site")?,
            tenant: self.text("tenant")?,
            before: self.text("before")?,
            since: self.text("since")?,
            after: self.text("after")?,
            limit: None,
        };
        self.done()?;
        let asked = typed.read()?;
        if asked.after.is_some() && !is_dry_run {
            return Err(Refused::bad(
                "after",
                "`after` is for a dry run: the work itself sees to all of them.",
            ));
        }
        Ok(BulkRequest { action, asked, per_second, is_dry_run })
    }
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
        (status = 202, body = Bulk, description = "The bulk work is in progress."),
        BeginProblems,
    ),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn begin(
    State(state): State<AppState>,
    _: Operator,
    said: JsonBody,
) -> Result<Response, Refused> {
    let BulkRequest { action, asked, per_second, is_dry_run } = said.bulk()?;
    if is_dry_run {
        let told = state.rehearse(action, asked).await.map_err(|error| operators_trouble(&error))?;
        return Ok(super::json(StatusCode::OK, &told));
    }
    let begun = state.orders.engine().begin_bulk(action, asked.filter, per_second).await;
    Ok(super::json(StatusCode::ACCEPTED, &Bulk::of(&begun.map_err(not_done)?)))
}

/// List bulk work in progress or ended within a day
#[utoipa::path(
    get, path = "/v1/admin/dead/bulk", operation_id = "listBulks", tag = "admin",
    responses((status = 200, body = BulkList, description = "Bulk work, sorted by start."), BulkListProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn list(State(state): State<AppState>, _: Operator) -> Result<Response, Refused> {
    let bulks = state.orders.engine().bulks().await.map_err(|error| store_trouble(&error))?;
    Ok(super::json(StatusCode::OK, &BulkList { bulks: bulks.iter().map(Bulk::of).collect() }))
}

/// Read the progress of bulk work
#[utoipa::path(
    get, path = "/v1/admin/dead/bulk/{number}", operation_id = "readBulk", tag = "admin",
    params(("number" = u64, Path, description = "Number of the bulk work.")),
    responses((status = 200, body = Bulk, description = "The current state of the bulk work."), BulkProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn read(
    State(state): State<AppState>,
    _: Operator,
    Number(number): Number,
) -> Result<Response, Refused> {
    Ok(super::json(StatusCode::OK, &Bulk::of(&state.document(number).await?)))
}

/// Stop bulk work; what is done stays done
#[utoipa::path(
    delete, path = "/v1/admin/dead/bulk/{number}", operation_id = "stopBulk", tag = "admin",
    params(("number" = u64, Path, description = "Number of the bulk work.")),
    responses((status = 200, body = Bulk, description = "The current state of the bulk work."), BulkProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn stop(
    State(state): State<AppState>,
    _: Operator,
    Number(number): Number,
) -> Result<Response, Refused> {
    let stopped = state.orders.engine().stop_bulk(number).await.map_err(not_done)?;
    let stopped = stopped.ok_or_else(|| Code::UnknownBulk.plain())?;
    Ok(super::json(StatusCode::OK, &Bulk::of(&stopped)))
}

fn not_done(why: BulkError) -> Refused {
    let detail = why.to_string();
    match why {
        BulkError::BadRate => Refused::bad("per_second", detail),
        BulkError::TooMany | BulkError::NoRoom => Code::TooManyBulks.because(detail),
        BulkError::Conflict => super::orders::store_away(),
        BulkError::Store(error) => store_trouble(&error),
    }
}

/// The work that the path names. What is no number names none.
pub(super) struct Number(pub(super) u64);

impl FromRequestParts<AppState> for Number {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Refused> {
        let path: Result<Path<u64>, PathRejection> = Path::from_request_parts(parts, state).await;
        path.map(|Path(number)| Self(number)).map_err(|_| Code::UnknownBulk.plain())
    }
}

impl AppState {
    pub(super) async fn document(&self, number: u64) -> Result<BulkDocument, Refused> {
        let bulks = self.orders.engine().bulks().await.map_err(|error| store_trouble(&error))?;
        bulks.into_iter().find(|document| document.number == number).ok_or_else(|| Code::UnknownBulk.plain())
    }

    /// What it would come to; nothing is done.
    async fn rehearse(&self, action: BulkAction, asked: DeadLetterSelection) -> Result<DryRun, StoreError> {
        let prices = self.prices().await?;
        let mut told = DryRun {
            dry_run: true,
            currency: self.orders.engine().currency().to_owned(),
            letters: 0,
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
        let mut walk = Walk::new(Which::DEAD, asked.after);
        let mut money = DryRunMoney::default();
        loop {
            let page = walk.page(self).await?;
            if page.is_empty() {
                let DryRunMoney { cost, spent } = money;
                told.cost_micros = cost.known().map(|cost| cost.0);
                told.spent_micros = spent.known().map(|spent| spent.0);
                (told.unpriced, told.spent_unpriced) = (cost.unpriced, spent.unpriced);
                return Ok(DryRun { next: walk.next(), ..told });
            }
            for record in page.iter().filter(|record| is_meant(&asked.filter, record)) {
                self.add(&mut told, &mut money, action, record, &prices);
            }
        }
    }

    fn add(
        &self,
        told: &mut DryRun,
        money: &mut DryRunMoney,
        action: BulkAction,
        record: &Record,
        prices: &Prices,
    ) {
        let Ok(found) = record else {
            told.unreadable += 1;
            told.letters += u64::from(action == BulkAction::Drop);
            return *told.by_cause.entry(DeadLetterCause::Unreadable.name()).or_default() += 1;
        };
        let Some(letter) = found.order.dead_letter() else { return };
        told.letters += 1;
        money.spent += found.order.spent_in(&told.currency);
        *told.by_cause.entry(letter.cause.name()).or_default() += 1;
        let engine = self.orders.engine();
        let replay = engine.on_replay(&found.order).filter(|_| action == BulkAction::Replay);
        told.not_allowed += u64::from(replay == Some(OnReplay::NotAllowed));
        if let Some(replay) = replay.filter(|replay| replay.may_pay()) {
            told.would_pay += 1;
            money.cost.add(prices.of(&found.order));
            // Whoever waits first, or asks for what is there, buys all the same if no word comes.
            let is_second =
                matches!(replay, OnReplay::MayPayTwice | OnReplay::GoesOn | OnReplay::WaitsFirst { .. });
            told.may_pay_twice += u64::from(is_second);
        }
    }
}
