//! This node at work, for the operator: a picture of this moment, the same as a stream that is drawn anew each second, and the curve
//! of the last hour.

use super::Room;
use super::alerts::ShownAlert;
use super::bulk::Bulk;
use super::caller::Operator;
use super::events::{EVENT_STREAM, GREETING};
use super::pools::PoolInShort;
use super::problem::{Refused, problems};
use super::sums::Sums;
use crate::lookout::{Facts, Lookout, Phases, Sample};
use crate::seats::Seat;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use quittance_engine::ProviderState;
use quittance_lifecycle::time::millis;
use quittance_lifecycle::{Tally, Timestamp};
use quittance_ports::roster::SILENT_AFTER;
use quittance_ports::{Roll, Signed};
use serde::Serialize;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::watch::Receiver;
use utoipa::ToSchema;

problems!(NowProblems: Unauthorized, Forbidden);
problems!(LiveProblems: Unauthorized, Forbidden, TooManyStreams);

/// A node at one moment.
#[derive(Serialize, ToSchema)]
pub(super) struct Snapshot {
    at_ms: u64,
    node: ShownHere,
    orders: ShownOrders,
    /// A second, over the last ten, on all nodes; null while it is not known: before the second look, and while the store is away.
    rates: ShownRates,
    latency_ms: ShownLatency,
    /// The newest step of the curve of the last hour: whoever has read that goes on with this.
    sample: Option<Sample>,
    /// Every line of today's books (UTC), on all nodes, and `saved_micros`: what those who joined an order, or were given an answer
    /// that was there already, would have cost. A sum of money is null if no price that belongs to it is known.
    today: BTreeMap<&'static str, Option<u64>>,
    /// What all money is in.
    #[schema(pattern = "^[A-Z]{3}$", example = "USD")]
    currency: String,
    balance: ShownBalance,
    providers: Vec<ShownProvider>,
    pools: Vec<PoolInShort>,
    nodes: Vec<ShownPeer>,
    /// Those that stand, and those that were cleared within the last day.
    alerts: Vec<ShownAlert>,
    /// What people have set going and has not ended.
    bulks: Vec<Bulk>,
    store: ShownStore,
}

/// Who is looked at.
#[derive(Serialize, ToSchema)]
struct ShownHere {
    name: String,
    version: &'static str,
    started_ms: u64,
    uptime_s: u64,
}

#[derive(Serialize, ToSchema)]
struct ShownOrders {
    open: u64,
    dead: u64,
    phases: ShownPhases,
    /// Whether the phases are those of the first thousand, scaled up.
    is_sampled: bool,
}

#[derive(Serialize, ToSchema)]
struct ShownPhases {
    queued: u64,
    /// Wait for a person to mend the provider's account.
    held: u64,
    submitting: u64,
    solving: u64,
    unsure: u64,
}

#[derive(Serialize, ToSchema)]
struct ShownRates {
    asked: Option<f64>,
    joined: Option<f64>,
    cached: Option<f64>,
    from_stock: Option<f64>,
    paid: Option<f64>,
    solved: Option<f64>,
    failed: Option<f64>,
    dead: Option<f64>,
}

/// From placed to solved, of the orders that this node saw solved in the last five minutes.
#[derive(Serialize, ToSchema)]
struct ShownLatency {
    p50: Option<u64>,
    p95: Option<u64>,
    p99: Option<u64>,
    count: u64,
}

#[derive(Serialize, ToSchema)]
struct ShownBalance {
    balance_micros: Option<u64>,
    threads: Option<ShownWorking>,
}

#[derive(Serialize, ToSchema)]
struct ShownWorking {
    total: u64,
    working: u64,
}

/// Whether a provider is given work by this node.
#[derive(Serialize, ToSchema)]
struct ShownProvider {
    name: String,
    #[schema(pattern = "^(ok|throttled|tripped|paused)$")]
    state: &'static str,
    /// Nothing is submitted until then.
    until_ms: Option<u64>,
    /// Submits are kept so far apart.
    spacing_ms: Option<u64>,
    fault: Option<ShownTrouble>,
}

#[derive(Serialize, ToSchema)]
struct ShownTrouble {
    class: &'static str,
    code: String,
}

#[derive(Serialize, ToSchema)]
struct ShownPeer {
    name: String,
    is_here: bool,
    is_alive: bool,
    in_hand: u64,
    submitted: u64,
    answered: u64,
    is_paused: bool,
    store_was_away: bool,
    has_spilled: bool,
    skew_ms: Option<i64>,
}

#[derive(Serialize, ToSchema)]
struct ShownStore {
    is_up: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
}

impl ShownPhases {
    const fn of(phases: Phases) -> Self {
        let Phases { queued, held, submitting, solving, unsure } = phases;
        Self { queued, held, submitting, solving, unsure }
    }
}

impl ShownRates {
    /// To two places: it is looked at, not added up. One look has no rate, and an old rate is none.
    fn of(lately: &Tally, span: Duration, store_is_up: bool) -> Self {
        let is_known = store_is_up && !span.is_zero();
        let rate = |count: u64| is_known.then(|| (count as f64 / span.as_secs_f64() * 100.0).round() / 100.0);
        Self {
            asked: rate(lately.asked),
            joined: rate(lately.joined),
            cached: rate(lately.cached),
            from_stock: rate(lately.from_stock),
            paid: rate(lately.paid),
            solved: rate(lately.solved),
            failed: rate(lately.failed),
            dead: rate(lately.dead),
        }
    }
}

impl ShownProvider {
    fn of(name: &str, state: &ProviderState) -> Self {
        let (mut until_ms, mut spacing_ms, mut fault) = (None, None, None);
        match state {
            ProviderState::Ok => {}
            ProviderState::Throttled { spacing, until } => {
                spacing_ms = Some(millis(*spacing)).filter(|spacing| *spacing > 0);
                until_ms = until.map(Timestamp::as_millis);
            }
            ProviderState::Tripped { until } => until_ms = Some(until.as_millis()),
            ProviderState::Paused { fault: why } => {
                fault = Some(ShownTrouble { class: why.class.name(), code: why.code.clone() });
            }
        }
        Self { name: name.to_owned(), state: state.name(), until_ms, spacing_ms, fault }
    }
}

impl ShownPeer {
    fn of(signed: &Signed, roll: &Roll, here: u64) -> Self {
        let Signed { card, seen } = signed;
        let vitals = &card.vitals;
        Self {
            name: card.name.clone(),
            is_here: card.node == here,
            is_alive: roll.now.since(*seen) < SILENT_AFTER,
            in_hand: vitals.in_hand,
            submitted: vitals.submitted,
            answered: vitals.answered,
            is_paused: vitals.is_paused,
            store_was_away: vitals.store_was_away,
            has_spilled: vitals.has_spilled,
            skew_ms: card.skew_ms,
        }
    }
}

impl Snapshot {
    fn of(facts: &Facts<'_>) -> Self {
        let Facts { at, node, name, started, roll, .. } = facts;
        let account = facts.account.unwrap_or_default();
        let working = |threads: quittance_ports::Threads| ShownWorking {
            total: threads.total,
            working: threads.working,
        };
        let latency = facts.latency;
        let uptime_s = |started: Timestamp| at.since(started).as_secs();
        Self {
            at_ms: at.as_millis(),
            node: ShownHere {
                name: name.clone(),
                version: env!("CARGO_PKG_VERSION"),
                started_ms: started.as_millis(),
                uptime_s: uptime_s(*started),
            },
            orders: ShownOrders {
                open: facts.census.open,
                dead: facts.census.dead,
                phases: ShownPhases::of(facts.phases),
                is_sampled: facts.is_sampled,
            },
            rates: ShownRates::of(&facts.lately, facts.lately_span, facts.store_is_up),
            latency_ms: ShownLatency {
                p50: latency.p50,
                p95: latency.p95,
                p99: latency.p99,
                count: latency.count,
            },
            sample: facts.sample,
            today: Sums { tally: facts.today, saved: facts.saved }.lines(),
            currency: facts.currency.to_owned(),
            balance: ShownBalance {
                balance_micros: account.balance.map(|balance| balance.0),
                threads: account.threads.map(working),
            },
            providers: vec![ShownProvider::of(facts.provider.0, &facts.provider.1)],
            pools: facts.pools.iter().map(PoolInShort::of).collect(),
            nodes: roll.nodes.iter().map(|signed| ShownPeer::of(signed, roll, *node)).collect(),
            alerts: facts.alerts.iter().map(ShownAlert::of).collect(),
            bulks: facts.bulks.iter().map(|bulk| Bulk::of(bulk)).collect(),
            store: ShownStore { is_up: facts.store_is_up, kind: facts.store },
        }
    }
}

/// As it is shown.
pub(crate) fn picture(facts: &Facts<'_>) -> String {
    super::json_text(&Snapshot::of(facts))
}

/// What goes on at this moment
#[utoipa::path(
    get, path = "/v1/admin/now", operation_id = "now", tag = "admin",
    responses((status = 200, body = Snapshot, description = "The picture."), NowProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn now(State(room): State<Room>, _: Operator) -> Response {
    let content_type = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (StatusCode::OK, content_type, room.lookout.picture().await).into_response()
}

/// One event of the stream, as its lines say it.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it is written by hand, and only described here")]
pub(super) struct NowEvent {
    #[schema(pattern = "^now$")]
    event: String,
    /// A Snapshot, in JSON.
    data: String,
}

/// What goes on, drawn anew each second
///
/// Server-sent events `now`, the first at once. Whoever reads slowly is shown fewer, and never an old one. It ends when the daemon
/// does.
#[utoipa::path(
    get, path = "/v1/admin/live", operation_id = "live", tag = "events",
    responses(
        (status = 200, body = NowEvent, content_type = "text/event-stream",
            description = "Events `now`, each with a Snapshot as its data."),
        LiveProblems,
    ),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn live(State(room): State<Room>, _: Operator) -> Result<Response, Refused> {
    let seat = room.stream_seat(None)?;
    let pictures = room.lookout.watch();
    let watching = Watching { lookout: room.lookout, pictures, is_greeted: false, _seat: seat };
    let events = stream::unfold(watching, |mut watching| async move {
        let event = watching.next().await?;
        Some((Ok::<_, Infallible>(event), watching))
    });
    let mut response = Response::new(axum::body::Body::from_stream(events));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    Ok(response)
}

struct Watching {
    lookout: Lookout,
    pictures: Receiver<Bytes>,
    is_greeted: bool,
    /// Given back when the stream ends, however it does.
    _seat: Seat,
}

impl Watching {
    async fn next(&mut self) -> Option<Bytes> {
        if !self.is_greeted {
            self.is_greeted = true;
            // The last one that was drawn for others may be old.
            let picture = self.lookout.picture().await;
            return Some([GREETING.as_bytes(), b"event: now\ndata: ", &picture, b"\n\n"].concat().into());
        }
        // Whoever came too late would wait for a picture that nobody draws any more.
        if self.lookout.is_closed() {
            return None;
        }
        self.pictures.changed().await.ok()?;
        (!self.lookout.is_closed()).then(|| self.pictures.borrow_and_update().clone())
    }
}

#[derive(Serialize, ToSchema)]
pub(super) struct ShownHistory {
    step_ms: u64,
    /// What all money in the samples is in.
    #[schema(pattern = "^[A-Z]{3}$", example = "USD")]
    currency: String,
    /// The newest last, at most 720.
    samples: Vec<Sample>,
}

/// The last hour, in steps
///
/// What was counted in each, on all nodes; how long answers took is of those that this node saw.
#[utoipa::path(
    get, path = "/v1/admin/history", operation_id = "history", tag = "admin",
    responses((status = 200, body = ShownHistory, description = "The samples."), NowProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn history(State(room): State<Room>, _: Operator) -> Response {
    let (step, samples) = room.lookout.history().await;
    let currency = room.desk.engine().currency().to_owned();
    super::json(StatusCode::OK, &ShownHistory { step_ms: millis(step), currency, samples })
}
