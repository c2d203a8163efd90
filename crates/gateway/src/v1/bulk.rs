//! Doing the same with a great many dead letters: what it would come to, the work itself, and how far it is.

use super::Room;
use super::caller::Operator;
use super::letter::{AskedLetters, LetterQuery, Record, ShownFilter, Walk, deed_name, is_meant};
use super::moment::rfc3339;
use super::orders::store_trouble;
use super::prices::Prices;
use super::problem::{Code, Refused, problems};
use super::story::operators_trouble;
use super::wish::Said;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::response::Response;
use hyper::StatusCode;
use quittance_engine::{BulkError, PER_SECOND_MAX};
use quittance_lifecycle::{LetterCause, OnReplay, PriceSum};
use quittance_ports::{BulkSheet, Deed, StoreError, Which};
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// How many letters a second, if not said.
const PER_SECOND: u32 = 50;

problems!(BulkProblems: Unauthorized, Forbidden, UnknownBulk, NeedsAPerson, StoreUnavailable);
problems!(BulkListProblems: Unauthorized, Forbidden, NeedsAPerson, StoreUnavailable);
problems!(BeginProblems: BadJson, BrokenBody, Unauthorized, Forbidden, TooSlow, NeedsAPerson, Unreadable, TooManyBulks, TooLarge,
    WrongContentType, BadParams, StoreUnavailable);

/// What is to be done with which dead letters.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it is read by hand, and only described here")]
pub(super) struct NewBulk {
    #[schema(pattern = "^(replay|drop)$")]
    deed: String,
    #[schema(pattern = "^(retries_spent|deadline|doubt|delivery|unreadable)$")]
    cause: Option<String>,
    kind: Option<String>,
    /// The host of the page.
    site: Option<String>,
    tenant: Option<String>,
    #[schema(format = DateTime)]
    before: Option<String>,
    #[schema(format = DateTime)]
    since: Option<String>,
    /// How many letters a second; 50, if not said.
    #[schema(minimum = 1, maximum = 1000)]
    per_second: Option<u32>,
    /// Whether to tell only what it would come to.
    dry_run: Option<bool>,
    /// The `next` of the dry run before: what it told is to be added up.
    #[schema(pattern = "^[0-9a-fA-F]{64}$")]
    after: Option<String>,
}

/// What it would come to, of the letters that were read.
#[derive(Serialize, ToSchema)]
pub(super) struct DryRun {
    dry_run: bool,
    letters: u64,
    /// How many of them may be paid for.
    would_pay: u64,
    /// What all money is in.
    #[schema(pattern = "^[A-Z]{3}$", example = "USD")]
    currency: String,
    /// What that would cost, by what answers of the same kind have cost lately, in millionths; null if some may be paid for and no
    /// price of them is known.
    cost_micros: Option<u64>,
    /// How many of those that may be paid for have no known price: they are not in `cost_micros`.
    unpriced: u64,
    /// How many may be paid for although an earlier attempt may have been paid for, too.
    may_pay_twice: u64,
    /// How many are left alone because their site may not be automated any more.
    not_allowed: u64,
    /// What has been spent on them so far, as far as prices are known, in millionths; null if they have answers and no price is known.
    spent_micros: Option<u64>,
    /// How many answers that were bought for them have no known price: they are not in `spent_micros`.
    spent_unpriced: u64,
    by_cause: BTreeMap<&'static str, u64>,
    /// How many cannot be read. They are among the `letters` that would be dropped, and a replay passes them over.
    unreadable: u64,
    /// Where to go on, as `after`; absent if these were all.
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
    deed: &'static str,
    #[serde(flatten)]
    filter: ShownFilter,
    /// What was no dead letter before this moment is not meant.
    #[schema(format = DateTime)]
    begun_at: String,
    begun_ms: u64,
    per_second: u32,
    /// All up to this key have been seen to.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
    done: u64,
    /// Meant, but no dead letter any more; or not to be read, and therefore not replayed, or left for a later version.
    passed_over: u64,
    #[schema(format = DateTime)]
    ended_at: Option<String>,
    was_stopped: bool,
}

impl Bulk {
    pub(super) fn of(sheet: &BulkSheet) -> Self {
        Self {
            number: sheet.number,
            deed: deed_name(sheet.deed),
            filter: ShownFilter::of(&sheet.filter),
            begun_at: rfc3339(sheet.begun),
            begun_ms: sheet.begun.as_millis(),
            per_second: sheet.per_second,
            after: sheet.after.map(|key| key.to_string()),
            done: sheet.done,
            passed_over: sheet.passed_over,
            ended_at: sheet.ended.map(rfc3339),
            was_stopped: sheet.was_stopped,
        }
    }
}

#[derive(Serialize, ToSchema)]
pub(super) struct BulkList {
    bulks: Vec<Bulk>,
}

/// What was said, understood.
struct Wanted {
    deed: Deed,
    asked: AskedLetters,
    per_second: u32,
    is_dry_run: bool,
}

impl Said {
    fn bulk(mut self) -> Result<Wanted, Refused> {
        let deed = match self.text("deed")?.as_deref() {
            Some("replay") => Deed::Replay,
            Some("drop") => Deed::Drop,
            _ => return Err(Refused::bad("deed", "`deed` is `replay` or `drop`.")),
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
        let typed = LetterQuery {
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
        Ok(Wanted { deed, asked, per_second, is_dry_run })
    }
}

/// Replays or drops a great many dead letters
///
/// Those that fit and are dead letters now, so many a second; what dies again meanwhile is left. Any node goes on with it after a
/// crash. With `dry_run` nothing is done, and told is what it would come to.
#[utoipa::path(
    post, path = "/v1/admin/dead/bulk", operation_id = "beginBulk", tag = "admin",
    request_body = NewBulk,
    responses(
        (status = 200, body = DryRun, description = "What it would come to."),
        (status = 202, body = Bulk, description = "It is under way."),
        BeginProblems,
    ),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn begin(State(room): State<Room>, _: Operator, said: Said) -> Result<Response, Refused> {
    let Wanted { deed, asked, per_second, is_dry_run } = said.bulk()?;
    if is_dry_run {
        let told = room.rehearse(deed, asked).await.map_err(|error| operators_trouble(&error))?;
        return Ok(super::json(StatusCode::OK, &told));
    }
    let begun = room.desk.engine().begin_bulk(deed, asked.filter, per_second).await;
    Ok(super::json(StatusCode::ACCEPTED, &Bulk::of(&begun.map_err(not_done)?)))
}

/// Lists bulk work that is under way or ended within a day
#[utoipa::path(
    get, path = "/v1/admin/dead/bulk", operation_id = "listBulks", tag = "admin",
    responses((status = 200, body = BulkList, description = "In the order in which they began."), BulkListProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn list(State(room): State<Room>, _: Operator) -> Result<Response, Refused> {
    let bulks = room.desk.engine().bulks().await.map_err(|error| store_trouble(&error))?;
    Ok(super::json(StatusCode::OK, &BulkList { bulks: bulks.iter().map(Bulk::of).collect() }))
}

/// Reads how far bulk work is
#[utoipa::path(
    get, path = "/v1/admin/dead/bulk/{number}", operation_id = "readBulk", tag = "admin",
    params(("number" = u64, Path, description = "Its number.")),
    responses((status = 200, body = Bulk, description = "As it is now."), BulkProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn read(
    State(room): State<Room>,
    _: Operator,
    Number(number): Number,
) -> Result<Response, Refused> {
    Ok(super::json(StatusCode::OK, &Bulk::of(&room.sheet(number).await?)))
}

/// Stops bulk work; what was done stays done
#[utoipa::path(
    delete, path = "/v1/admin/dead/bulk/{number}", operation_id = "stopBulk", tag = "admin",
    params(("number" = u64, Path, description = "Its number.")),
    responses((status = 200, body = Bulk, description = "As it is now."), BulkProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn stop(
    State(room): State<Room>,
    _: Operator,
    Number(number): Number,
) -> Result<Response, Refused> {
    let stopped = room.desk.engine().stop_bulk(number).await.map_err(not_done)?;
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

impl FromRequestParts<Room> for Number {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, room: &Room) -> Result<Self, Refused> {
        let path: Result<Path<u64>, PathRejection> = Path::from_request_parts(parts, room).await;
        path.map(|Path(number)| Self(number)).map_err(|_| Code::UnknownBulk.plain())
    }
}

impl Room {
    pub(super) async fn sheet(&self, number: u64) -> Result<BulkSheet, Refused> {
        let bulks = self.desk.engine().bulks().await.map_err(|error| store_trouble(&error))?;
        bulks.into_iter().find(|sheet| sheet.number == number).ok_or_else(|| Code::UnknownBulk.plain())
    }

    /// What it would come to; nothing is done.
    async fn rehearse(&self, deed: Deed, asked: AskedLetters) -> Result<DryRun, StoreError> {
        let prices = self.prices().await?;
        let mut told = DryRun {
            dry_run: true,
            currency: self.desk.engine().currency().to_owned(),
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
                self.add(&mut told, &mut money, deed, record, &prices);
            }
        }
    }

    fn add(&self, told: &mut DryRun, money: &mut DryRunMoney, deed: Deed, record: &Record, prices: &Prices) {
        let Ok(found) = record else {
            told.unreadable += 1;
            told.letters += u64::from(deed == Deed::Drop);
            return *told.by_cause.entry(LetterCause::Unreadable.name()).or_default() += 1;
        };
        let Some(letter) = found.order.letter() else { return };
        told.letters += 1;
        money.spent += found.order.spent_in(&told.currency);
        *told.by_cause.entry(letter.cause.name()).or_default() += 1;
        let engine = self.desk.engine();
        let replay = engine.on_replay(&found.order).filter(|_| deed == Deed::Replay);
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
