//! The timeline of an order: every event with its moment, its fault and the provider's reply, every attempt with its
//! cost, and the effect of a replay. Passwords and cookies are left out.

use crate::AppState;
use crate::dead_letter::Found;
use crate::extract::ByKey;
use crate::replay_price::Prices;
use axum::extract::State;
use axum::response::Response;
use hyper::StatusCode;
use quittance_engine::{ApplyOutcome, Engine};
use quittance_gateway::problems;
use quittance_gateway::v1::Operator;
use quittance_gateway::v1::decimal;
use quittance_gateway::v1::json;
use quittance_gateway::v1::order_problems::store_problem;
use quittance_gateway::v1::problem::{Code, Refused};
use quittance_gateway::v1::request_body::JsonBody;
use quittance_gateway::v1::{ErrorView, OrderInShort, Status};
use quittance_lifecycle::secrets::harmless_param;
use quittance_lifecycle::timeline::{NOTE_BYTES_MAX, TIMELINE_BEGINNING, TimelineEntry};
use quittance_lifecycle::{
    Attempt, DeadCause, Evidence, Fault, OnReplay, Order, Progress, Signal, TimelineEvent, Timestamp,
    currency_of, provider_of,
};
use quittance_ports::StoreError;
use quittance_ports::moment::rfc3339;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The most characters of a parameter. A longer one is cut.
const PARAM_CHARS_MAX: usize = 2000;

problems!(TimelineProblems: Unauthorized, Forbidden, UnknownOrder, Unreadable, StoreUnavailable);
problems!(NoteProblems: BadJson, BrokenBody, Unauthorized, Forbidden, UnknownOrder, TooSlow, Unreadable, TooLarge,
    WrongContentType, BadParams, StoreUnavailable);

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct FaultView {
    /// Class of the fault.
    pub class: String,
    /// The provider's own error code.
    pub code: String,
    /// Full reply of the provider, if it is more than the code; without our keys.
    #[serde(default, rename = "reply", skip_serializing_if = "String::is_empty")]
    pub text: String,
}

impl From<&Fault> for FaultView {
    fn from(fault: &Fault) -> Self {
        Self { class: fault.class.name().to_owned(), code: fault.code.clone(), text: fault.text.clone() }
    }
}

impl From<&Evidence> for FaultView {
    fn from(evidence: &Evidence) -> Self {
        Self {
            class: Signal::InDoubt.name().to_owned(),
            code: evidence.summary.clone(),
            text: evidence.text.clone(),
        }
    }
}

/// One event of the timeline.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct TimelineEntryView {
    #[schema(format = DateTime)]
    pub at: String,
    pub at_ms: u64,
    /// The event as a sentence.
    pub what: String,
    #[schema(pattern = "^[a-z_]+$")]
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<FaultView>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct AttemptView {
    pub number: u32,
    /// Provider that the attempt went to.
    pub provider: String,
    #[schema(format = DateTime)]
    pub sent_at: String,
    pub sent_ms: u64,
    /// Whether the provider is known to have accepted the attempt.
    pub accepted: bool,
    /// `sent`, `solving`, `trailing`, `given_up`, `faulted`, `answered` or `surplus`.
    #[schema(pattern = "^[a-z_]+$")]
    pub progress: String,
    pub task: Option<String>,
    /// Cost; `null` if it is not known, or while the attempt is in progress.
    pub cost_micros: Option<u64>,
    /// Whether the attempt was, or may have been, charged at a price that is not known.
    pub unpriced: bool,
    /// Order that the attempt was made for, if the answer came from the stock.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    pub made_for: Option<String>,
    /// The caller's report on the answer: `good` or `bad`.
    pub reported: Option<String>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct DeadLetterView {
    #[schema(pattern = "^[a-z_]+$")]
    pub cause: String,
    pub why: String,
    #[schema(format = DateTime)]
    pub since: String,
    pub since_ms: u64,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ReplayView {
    #[schema(pattern = "^[a-z_]+$")]
    pub name: String,
    pub words: String,
    /// Whether the replay may cost the price of an answer.
    pub may_pay: bool,
    /// Possible cost, in millionths; absent if the replay would not pay, `null` if the price is not known.
    #[serde(default, deserialize_with = "crate::present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    pub price_micros: Option<Option<u64>>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct OrderTimeline {
    #[schema(pattern = "^[1-9][0-9]{0,15}$")]
    pub id: String,
    #[schema(pattern = "^[0-9a-f]{64}$")]
    pub key: String,
    pub kind: String,
    pub phase: String,
    pub status: Status,
    #[schema(format = DateTime)]
    pub created_at: String,
    pub created_ms: u64,
    #[schema(format = DateTime)]
    pub deadline_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorView>,
    pub tenant: String,
    /// Host of the page; empty for orders without a page.
    pub site: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
    /// Provider of the last attempt, or the first one by the operator's rule.
    pub provider: String,
    /// Each placement after the end starts a new life.
    pub life: u32,
    pub possible_doubles: u32,
    /// Cost of its attempts, in `currency`; `null` if some were or may have been charged and no price is known.
    #[schema(pattern = "^[0-9]+(\\.[0-9]{1,6})?$")]
    pub spent: Option<String>,
    pub spent_micros: Option<u64>,
    /// Attempts that were or may have been charged at a price that is not known; they are not in `spent`.
    pub unpriced: u64,
    #[schema(pattern = "^[A-Z]{3}$", example = "USD")]
    pub currency: String,
    /// Parameters, without passwords and cookies; long values are cut.
    pub params: BTreeMap<String, String>,
    pub attempts: Vec<AttemptView>,
    pub timeline: Vec<TimelineEntryView>,
    /// Number of entries left out in the middle.
    pub left_out: u32,
    /// Number of entries before the gap, if entries are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out_after: Option<usize>,
    /// Why the order is a dead letter, if it is.
    pub dead_letter: Option<DeadLetterView>,
    /// What a replay would do, if the order can be replayed.
    pub on_replay: Option<ReplayView>,
}

impl OrderTimeline {
    pub(crate) fn of(engine: &Engine, order: &Order, prices: &Prices, now: Timestamp) -> Self {
        let cut = |text: String| match text.char_indices().nth(PARAM_CHARS_MAX) {
            Some((at, _)) => format!("{}… ({} bytes)", &text[..at], text.len()),
            None => text,
        };
        let currency = currency_of(order.account()).unwrap_or(engine.currency());
        let (spent, params) = (order.spent_in(currency), order.terms.params.iter());
        let Found { order: short, tenant, site, page, provider } = Found::of(order, now);
        let OrderInShort { id, key, kind, phase, status, created_at, deadline_at, error, .. } = short;
        Self {
            id,
            key,
            kind,
            phase,
            status,
            created_at,
            created_ms: order.placed.as_millis(),
            deadline_at,
            error,
            tenant,
            site,
            page,
            provider,
            life: order.life,
            possible_doubles: order.possible_doubles,
            spent: spent.known().map(decimal),
            spent_micros: spent.known().map(|spent| spent.0),
            unpriced: spent.unpriced,
            currency: currency.to_owned(),
            params: params.map(|(name, value)| (name.clone(), cut(harmless_param(name, value)))).collect(),
            attempts: order.attempts.iter().map(|attempt| AttemptView::of(order, attempt)).collect(),
            timeline: order.timeline.entries.iter().map(TimelineEntryView::of).collect(),
            left_out: order.timeline.left_out,
            left_out_after: (order.timeline.left_out > 0).then_some(TIMELINE_BEGINNING),
            dead_letter: order.dead_letter().map(|letter| DeadLetterView {
                cause: letter.cause.name().to_owned(),
                why: letter.why,
                since: rfc3339(letter.since),
                since_ms: letter.since.as_millis(),
            }),
            on_replay: engine.on_replay(order).map(|replay| ReplayView {
                name: replay.name().to_owned(),
                words: replay_words(engine, order, replay),
                may_pay: replay.may_pay(),
                price_micros: replay.may_pay().then(|| prices.of(order).map(|price| price.0)),
            }),
        }
    }
}

/// What a replay would do, as a sentence. If a replay is not allowed, the reason and what to do.
fn replay_words(engine: &Engine, order: &Order, replay: OnReplay) -> String {
    match (replay, engine.check_target(order)) {
        (OnReplay::NotAllowed, Err(why)) => format!("is refused: {why}"),
        _ => replay.to_string(),
    }
}

impl AttemptView {
    /// The view of an attempt. An attempt without an answer has no task any more, but the timeline has it.
    fn of(order: &Order, attempt: &Attempt) -> Self {
        Self {
            number: attempt.number,
            provider: provider_of(order.account_of(attempt)).to_owned(),
            sent_at: rfc3339(attempt.sent),
            sent_ms: attempt.sent.as_millis(),
            accepted: attempt.accepted,
            progress: match attempt.progress {
                Progress::Sent => "sent",
                Progress::Solving { .. } => "solving",
                Progress::Trailing { .. } => "trailing",
                Progress::GivenUp { .. } => "given_up",
                Progress::Faulted => "faulted",
                Progress::Answered => "answered",
                Progress::Surplus { .. } => "surplus",
            }
            .to_owned(),
            task: order.task_of(attempt).map(str::to_owned),
            cost_micros: attempt.cost.map(|cost| cost.0),
            unpriced: attempt.is_unpriced(),
            made_for: attempt.made_for.map(|key| key.to_string()),
            reported: attempt
                .report
                .as_ref()
                .map(|report| if report.is_good { "good" } else { "bad" }.to_owned()),
        }
    }
}

impl TimelineEntryView {
    pub(crate) fn of(entry: &TimelineEntry) -> Self {
        let TimelineEntry { at, event } = entry;
        let (name, attempt) = named(event);
        let fault = match event {
            TimelineEvent::Faulted { fault, .. }
            | TimelineEvent::MovedToDeadLetters {
                cause: DeadCause::Spent(fault) | DeadCause::NotTaken(Some(fault)),
            } => Some(fault.into()),
            TimelineEvent::LeftInDoubt { evidence, .. }
            | TimelineEvent::MovedToDeadLetters { cause: DeadCause::DoubtsSpent(evidence) } => {
                Some(evidence.into())
            }
            _ => None,
        };
        Self {
            at: rfc3339(*at),
            at_ms: at.as_millis(),
            what: entry.to_string(),
            name: name.to_owned(),
            attempt,
            fault,
        }
    }
}

/// Name of an event, and its attempt.
const fn named(event: &TimelineEvent) -> (&'static str, Option<u32>) {
    match event {
        TimelineEvent::Placed { .. } => ("placed", None),
        TimelineEvent::Rejoined => ("rejoined", None),
        TimelineEvent::Hastened { .. } => ("hastened", None),
        TimelineEvent::Deferred { .. } => ("deferred", None),
        TimelineEvent::Routed { attempt, .. } => ("routed", Some(*attempt)),
        TimelineEvent::Submitted { attempt } => ("submitted", Some(*attempt)),
        TimelineEvent::Accepted { attempt, .. } => ("accepted", Some(*attempt)),
        TimelineEvent::InDoubt { attempt, .. } => ("in_doubt", Some(*attempt)),
        TimelineEvent::GaveUp { attempt } => ("gave_up", Some(*attempt)),
        TimelineEvent::Hedged { attempt } => ("hedged", Some(*attempt)),
        TimelineEvent::Faulted { attempt, .. } => ("faulted", Some(*attempt)),
        TimelineEvent::LeftInDoubt { attempt, .. } => ("left_in_doubt", Some(*attempt)),
        TimelineEvent::Retried { .. } => ("retried", None),
        TimelineEvent::Held => ("held", None),
        TimelineEvent::Released => ("released", None),
        TimelineEvent::Solved { attempt, .. } => ("solved", Some(*attempt)),
        TimelineEvent::CameLate { attempt } => ("came_late", Some(*attempt)),
        TimelineEvent::TooOld { attempt } => ("too_old", Some(*attempt)),
        TimelineEvent::Stocked { attempt } => ("stocked", Some(*attempt)),
        TimelineEvent::Claimed => ("claimed", None),
        TimelineEvent::ServedFromStock { .. } => ("served_from_stock", None),
        TimelineEvent::Returned => ("returned", None),
        TimelineEvent::HandedOver { .. } => ("handed_over", None),
        TimelineEvent::Expired => ("expired", None),
        TimelineEvent::Failed => ("failed", None),
        TimelineEvent::PutBack => ("put_back", None),
        TimelineEvent::Recalled { attempt } => ("recalled", Some(*attempt)),
        TimelineEvent::MovedToDeadLetters { .. } => ("moved_to_dead_letters", None),
        TimelineEvent::Cancelled => ("cancelled", None),
        TimelineEvent::Replayed => ("replayed", None),
        TimelineEvent::ReplayedAfterOutage { .. } => ("replayed_after_outage", None),
        TimelineEvent::Dropped => ("dropped", None),
        TimelineEvent::Reported { attempt, .. } => ("reported", Some(*attempt)),
        TimelineEvent::Noted { .. } => ("noted", None),
        TimelineEvent::WebhookDelivered { .. } => ("webhook_delivered", None),
        TimelineEvent::WebhookFailed { .. } => ("webhook_failed", None),
    }
}

/// The error for the operator: for an unreadable record, what is wrong with it.
pub(crate) fn operator_error(error: &StoreError) -> Refused {
    match error {
        StoreError::Corrupt { .. } => Code::Unreadable.because(error.to_string()),
        StoreError::Unavailable { .. } => store_problem(error),
    }
}

impl AppState {
    async fn timeline_response(&self, order: &Order) -> Result<Response, Refused> {
        let prices = self.prices().await.map_err(|error| operator_error(&error))?;
        let timeline = OrderTimeline::of(self.orders.engine(), order, &prices, self.orders.clock().now());
        Ok(json(StatusCode::OK, &timeline))
    }
}

/// Read the timeline of an order
#[utoipa::path(
    get, path = "/v1/admin/orders/{key}", operation_id = "orderTimeline", tag = "admin",
    params(("key" = String, Path, pattern = "^[0-9a-fA-F]{64}$", description = "The order's key.")),
    responses((status = 200, body = OrderTimeline, description = "The timeline."), TimelineProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(crate) async fn timeline(
    State(state): State<AppState>,
    _: Operator,
    ByKey(key): ByKey,
) -> Result<Response, Refused> {
    let found = state.orders.engine().read(&key).await.map_err(|error| operator_error(&error))?;
    let order = found.ok_or_else(|| Code::UnknownOrder.plain())?;
    state.timeline_response(&order).await
}

/// A note about an order.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct NewNote {
    #[schema(min_length = 1, max_length = 1000)]
    pub text: String,
}

/// Add a note to the timeline of an order
#[utoipa::path(
    post, path = "/v1/admin/orders/{key}/note", operation_id = "noteOrder", tag = "admin",
    params(("key" = String, Path, pattern = "^[0-9a-fA-F]{64}$", description = "The order's key.")),
    request_body = NewNote,
    responses((status = 200, body = OrderTimeline, description = "The timeline with the note."), NoteProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(crate) async fn note(
    State(state): State<AppState>,
    _: Operator,
    ByKey(key): ByKey,
    mut body: JsonBody,
) -> Result<Response, Refused> {
    let text = body.text("text")?.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    body.done()?;
    let text = text.filter(|text| text.len() <= NOTE_BYTES_MAX).ok_or_else(|| {
        Refused::bad("text", format!("`text` is the note, of 1 to {NOTE_BYTES_MAX} bytes."))
    })?;
    match state.orders.engine().note(&key, text).await.map_err(|error| operator_error(&error))? {
        ApplyOutcome::Advanced { now, .. }
        | ApplyOutcome::Act { now, .. }
        | ApplyOutcome::Ignored { now, .. } => state.timeline_response(&now.order).await,
        ApplyOutcome::Missing => Err(Code::UnknownOrder.plain()),
    }
}
