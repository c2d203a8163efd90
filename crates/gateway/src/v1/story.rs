//! An order for the person who has to understand it: every event with its moment, its fault and what the provider really said,
//! every attempt with its cost, and what a replay would do. Parameters that open an account are left out.

use super::Room;
use super::caller::{ByKey, Operator};
use super::letter::Found;
use super::moment::{decimal, rfc3339};
use super::orders::store_trouble;
use super::prices::Prices;
use super::problem::{Code, Refused, problems};
use super::shown::{OrderInShort, Status, Trouble};
use super::wish::Said;
use axum::extract::State;
use axum::response::Response;
use hyper::StatusCode;
use quittance_engine::{Applied, Engine};
use quittance_lifecycle::secrets::shown_param;
use quittance_lifecycle::story::{Entry, NOTE_BYTES_MAX, STORY_BEGINNING};
use quittance_lifecycle::{
    Attempt, Beat, DeadCause, Evidence, Fault, OnReplay, Order, Progress, Signal, Timestamp,
};
use quittance_ports::StoreError;
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Of a longer parameter the beginning is shown: the rest helps nobody.
const PARAM_CHARS_MAX: usize = 2000;

problems!(StoryProblems: Unauthorized, Forbidden, UnknownOrder, Unreadable, StoreUnavailable);
problems!(NoteProblems: BadJson, BrokenBody, Unauthorized, Forbidden, UnknownOrder, TooSlow, Unreadable, TooLarge,
    WrongContentType, BadParams, StoreUnavailable);

#[derive(Serialize, ToSchema)]
pub(super) struct ToldFault {
    /// What sort of fault it is.
    class: &'static str,
    /// The provider's own word for it.
    code: String,
    /// All that it said, as it came, where that is more; without our keys.
    #[serde(skip_serializing_if = "String::is_empty")]
    said: String,
}

impl From<&Fault> for ToldFault {
    fn from(fault: &Fault) -> Self {
        Self { class: fault.class.name(), code: fault.code.clone(), said: fault.said.clone() }
    }
}

impl From<&Evidence> for ToldFault {
    fn from(evidence: &Evidence) -> Self {
        Self { class: Signal::InDoubt.name(), code: evidence.seen.clone(), said: evidence.said.clone() }
    }
}

/// One thing that happened.
#[derive(Serialize, ToSchema)]
pub(super) struct ToldBeat {
    #[schema(format = DateTime)]
    at: String,
    at_ms: u64,
    /// In words.
    what: String,
    #[schema(pattern = "^[a-z_]+$")]
    name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<ToldFault>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct ToldAttempt {
    number: u32,
    #[schema(format = DateTime)]
    sent_at: String,
    sent_ms: u64,
    /// Whether the provider is known to have taken it.
    accepted: bool,
    /// `sent`, `solving`, `trailing`, `given_up`, `faulted`, `answered` or `spare`.
    #[schema(pattern = "^[a-z_]+$")]
    progress: &'static str,
    task: Option<String>,
    /// What it cost; `null` if that is not known, or while it is being worked on.
    cost_micros: Option<u64>,
    /// It was charged, or may have been, and the price is not known.
    unpriced: bool,
    /// The order that it was made for, if its answer came from the shelf.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    made_for: Option<String>,
    /// What its caller said of the answer: `good` or `bad`.
    reported: Option<&'static str>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct ToldLetter {
    #[schema(pattern = "^[a-z_]+$")]
    cause: &'static str,
    why: String,
    #[schema(format = DateTime)]
    since: String,
    since_ms: u64,
}

#[derive(Serialize, ToSchema)]
pub(super) struct ToldReplay {
    #[schema(pattern = "^[a-z_]+$")]
    name: &'static str,
    words: String,
    /// Whether it may cost the price of an answer.
    may_pay: bool,
    /// What it may cost, in millionths; absent if it would not pay, and `null` if the price is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    price_micros: Option<Option<u64>>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Story {
    #[schema(pattern = "^[1-9][0-9]{0,15}$")]
    id: String,
    #[schema(pattern = "^[0-9a-f]{64}$")]
    key: String,
    kind: String,
    phase: &'static str,
    status: Status,
    #[schema(format = DateTime)]
    created_at: String,
    created_ms: u64,
    #[schema(format = DateTime)]
    deadline_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Trouble>,
    tenant: String,
    /// The host of the page that it is about; nothing, if it is about none.
    site: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<String>,
    /// Who is asked for it.
    provider: String,
    /// Each placement after the end starts a new life.
    life: u32,
    possible_doubles: u32,
    /// What its attempts have cost, in `currency`; `null` if some were or may have been charged and no price of them is known.
    #[schema(pattern = "^[0-9]+(\\.[0-9]{1,6})?$")]
    spent: Option<String>,
    spent_micros: Option<u64>,
    /// How many of its attempts were or may have been charged at a price that is not known: they are not in `spent`.
    unpriced: u64,
    #[schema(pattern = "^[A-Z]{3}$", example = "USD")]
    currency: String,
    /// Passwords and cookies are left out, and what is long is cut short.
    params: BTreeMap<String, String>,
    attempts: Vec<ToldAttempt>,
    story: Vec<ToldBeat>,
    /// How many entries are missing between the beginning and the end.
    left_out: u32,
    /// After how many entries they are left out, if any are.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out_after: Option<usize>,
    /// Why it waits for a person, if it does.
    letter: Option<ToldLetter>,
    /// What a replay would do, if there is anything to replay.
    on_replay: Option<ToldReplay>,
}

impl Story {
    pub(super) fn of(engine: &Engine, order: &Order, prices: &Prices, now: Timestamp) -> Self {
        let cut = |text: String| match text.char_indices().nth(PARAM_CHARS_MAX) {
            Some((at, _)) => format!("{}… ({} bytes)", &text[..at], text.len()),
            None => text,
        };
        let (spent, params) = (order.spent(), order.terms.params.iter());
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
            currency: order.terms.currency(engine.currency()).to_owned(),
            params: params.map(|(name, value)| (name.clone(), cut(shown_param(name, value)))).collect(),
            attempts: order.attempts.iter().map(|attempt| ToldAttempt::of(order, attempt)).collect(),
            story: order.story.entries.iter().map(ToldBeat::of).collect(),
            left_out: order.story.left_out,
            left_out_after: (order.story.left_out > 0).then_some(STORY_BEGINNING),
            letter: order.letter().map(|letter| ToldLetter {
                cause: letter.cause.name(),
                why: letter.why,
                since: rfc3339(letter.since),
                since_ms: letter.since.as_millis(),
            }),
            on_replay: engine.on_replay(order).map(|replay| ToldReplay {
                name: replay.name(),
                words: replay_words(engine, order, replay),
                may_pay: replay.may_pay(),
                price_micros: replay.may_pay().then(|| prices.of(order).map(|price| price.0)),
            }),
        }
    }
}

/// What a replay would do. A refusal names its true reason, and what to do about it.
fn replay_words(engine: &Engine, order: &Order, replay: OnReplay) -> String {
    match (replay, engine.check_target(order)) {
        (OnReplay::NotAllowed, Err(why)) => format!("is refused: {why}"),
        _ => replay.to_string(),
    }
}

impl ToldAttempt {
    /// An attempt that came to nothing has forgotten its task; whoever asks the provider about it finds it in the story.
    fn of(order: &Order, attempt: &Attempt) -> Self {
        Self {
            number: attempt.number,
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
                Progress::Spare { .. } => "spare",
            },
            task: order.task_of(attempt).map(str::to_owned),
            cost_micros: attempt.cost.map(|cost| cost.0),
            unpriced: attempt.is_unpriced(),
            made_for: attempt.made_for.map(|key| key.to_string()),
            reported: attempt.report.as_ref().map(|report| if report.is_good { "good" } else { "bad" }),
        }
    }
}

impl ToldBeat {
    pub(super) fn of(entry: &Entry) -> Self {
        let Entry { at, beat } = entry;
        let (name, attempt) = named(beat);
        let fault = match beat {
            Beat::Faulted { fault, .. }
            | Beat::Buried { cause: DeadCause::Spent(fault) | DeadCause::NotTaken(Some(fault)) } => {
                Some(fault.into())
            }
            Beat::LeftInDoubt { evidence, .. } | Beat::Buried { cause: DeadCause::DoubtsSpent(evidence) } => {
                Some(evidence.into())
            }
            _ => None,
        };
        Self { at: rfc3339(*at), at_ms: at.as_millis(), what: entry.to_string(), name, attempt, fault }
    }
}

/// What a beat is called, and which attempt it is about.
const fn named(beat: &Beat) -> (&'static str, Option<u32>) {
    match beat {
        Beat::Placed { .. } => ("placed", None),
        Beat::Rejoined => ("rejoined", None),
        Beat::Deferred { .. } => ("deferred", None),
        Beat::Submitted { attempt } => ("submitted", Some(*attempt)),
        Beat::Accepted { attempt, .. } => ("accepted", Some(*attempt)),
        Beat::Doubted { attempt, .. } => ("doubted", Some(*attempt)),
        Beat::GaveUp { attempt } => ("gave_up", Some(*attempt)),
        Beat::Faulted { attempt, .. } => ("faulted", Some(*attempt)),
        Beat::LeftInDoubt { attempt, .. } => ("left_in_doubt", Some(*attempt)),
        Beat::Retried { .. } => ("retried", None),
        Beat::Held => ("held", None),
        Beat::Released => ("released", None),
        Beat::Solved { attempt, .. } => ("solved", Some(*attempt)),
        Beat::CameLate { attempt } => ("came_late", Some(*attempt)),
        Beat::TooOld { attempt } => ("too_old", Some(*attempt)),
        Beat::Stocked { attempt } => ("stocked", Some(*attempt)),
        Beat::Taken => ("taken", None),
        Beat::Supplied { .. } => ("supplied", None),
        Beat::Returned => ("returned", None),
        Beat::Spoiled => ("spoiled", None),
        Beat::Failed => ("failed", None),
        Beat::PutBack => ("put_back", None),
        Beat::Recalled { attempt } => ("recalled", Some(*attempt)),
        Beat::Buried { .. } => ("buried", None),
        Beat::Cancelled => ("cancelled", None),
        Beat::Replayed => ("replayed", None),
        Beat::Dropped => ("dropped", None),
        Beat::Reported { attempt, .. } => ("reported", Some(*attempt)),
        Beat::Noted { .. } => ("noted", None),
        Beat::Told { .. } => ("told", None),
        Beat::NotTold { .. } => ("not_told", None),
    }
}

/// An order that is there and cannot be read is told with what is wrong with it: it is the operator who asks.
pub(super) fn operators_trouble(error: &StoreError) -> Refused {
    match error {
        StoreError::Corrupt { .. } => Code::Unreadable.because(error.to_string()),
        StoreError::Unavailable { .. } => store_trouble(error),
    }
}

impl Room {
    async fn tell(&self, order: &Order) -> Result<Response, Refused> {
        let prices = self.prices().await.map_err(|error| operators_trouble(&error))?;
        let story = Story::of(self.desk.engine(), order, &prices, self.desk.clock().now());
        Ok(super::json(StatusCode::OK, &story))
    }
}

/// Tells the whole story of an order
#[utoipa::path(
    get, path = "/v1/admin/orders/{key}", operation_id = "orderStory", tag = "admin",
    params(("key" = String, Path, pattern = "^[0-9a-fA-F]{64}$", description = "The order's key.")),
    responses((status = 200, body = Story, description = "All that happened to it."), StoryProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn story(
    State(room): State<Room>,
    _: Operator,
    ByKey(key): ByKey,
) -> Result<Response, Refused> {
    let found = room.desk.engine().read(&key).await.map_err(|error| operators_trouble(&error))?;
    let order = found.ok_or_else(|| Code::UnknownOrder.plain())?;
    room.tell(&order).await
}

/// What a person wants others to know about an order.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it is read by hand, and only described here")]
pub(super) struct NewNote {
    #[schema(min_length = 1, max_length = 1000)]
    text: String,
}

/// Leaves a note in the story of an order
#[utoipa::path(
    post, path = "/v1/admin/orders/{key}/note", operation_id = "noteOrder", tag = "admin",
    params(("key" = String, Path, pattern = "^[0-9a-fA-F]{64}$", description = "The order's key.")),
    request_body = NewNote,
    responses((status = 200, body = Story, description = "The story with the note in it."), NoteProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn note(
    State(room): State<Room>,
    _: Operator,
    ByKey(key): ByKey,
    mut said: Said,
) -> Result<Response, Refused> {
    let text = said.text("text")?.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    said.done()?;
    let text = text.filter(|text| text.len() <= NOTE_BYTES_MAX).ok_or_else(|| {
        Refused::bad("text", format!("`text` is what is to be noted, in 1 to {NOTE_BYTES_MAX} bytes."))
    })?;
    match room.desk.engine().note(&key, text).await.map_err(|error| operators_trouble(&error))? {
        Applied::Advanced { now, .. } | Applied::Act { now, .. } | Applied::Ignored { now, .. } => {
            room.tell(&now.order).await
        }
        Applied::Missing => Err(Code::UnknownOrder.plain()),
    }
}
