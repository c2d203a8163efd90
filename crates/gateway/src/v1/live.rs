//! This node at work, for the operator: a picture of this moment, the same as a stream that is drawn anew each second, and the curve
//! of the last hour.

use super::AppState;
use super::alerts::ShownAlert;
use super::bulk::Bulk;
use super::caller::Operator;
use super::events::{EVENT_STREAM, GREETING};
use super::pools::PoolInShort;
use super::problem::{Refused, problems};
use super::sums::Sums;
use crate::monitor::{Facts, Monitor, Phases, Sample};
use crate::seats::Seat;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use quittance_engine::ProviderState;
use quittance_lifecycle::time::millis;
use quittance_lifecycle::{Counters, Timestamp};
use quittance_ports::membership::SILENT_AFTER;
use quittance_ports::{Member, Members};
use serde::Serialize;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::watch::Receiver;
use utoipa::ToSchema;

problems!(NowProblems: Unauthorized, Forbidden);
problems!(LiveProblems: Unauthorized, Forbidden, TooManyStreams);

/// Snapshot of a node.
#[derive(Serialize, ToSchema)]
pub(super) struct Snapshot {
    at_ms: u64,
    node: ShownHere,
    orders: ShownOrders,
    /// Per second, over the last ten seconds, on all nodes; null while not known: before the second sample, and while the store is down.
    rates: ShownRates,
    latency_ms: ShownLatency,
    /// Newest sample of the last hour; it continues the samples of `/v1/admin/history`.
    sample: Option<Sample>,
    /// Every counter of today's usage (UTC), on all nodes, and `saved_micros`: what the placements that joined an order, or got an
    /// existing answer, would have cost. An amount is null if none of its prices is known.
    today: BTreeMap<&'static str, Option<u64>>,
    /// Currency of all amounts.
    #[schema(pattern = "^[A-Z]{3}$", example = "USD")]
    currency: String,
    balance: ShownBalance,
    providers: Vec<ShownProvider>,
    pools: Vec<PoolInShort>,
    nodes: Vec<ShownPeer>,
    /// Active alerts, and those cleared within the last day.
    alerts: Vec<ShownAlert>,
    /// Bulk work in progress.
    bulks: Vec<Bulk>,
    store: ShownStore,
}

/// The node of the snapshot.
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
    /// Whether the phases are estimated from the first thousand orders.
    is_sampled: bool,
}

#[derive(Serialize, ToSchema)]
struct ShownPhases {
    queued: u64,
    /// Orders that wait until a person fixes the provider's account.
    held: u64,
    submitting: u64,
    solving: u64,
    in_doubt: u64,
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

/// Time from placement to answer, for orders solved at this node in the last five minutes.
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

/// State of the provider at this node.
#[derive(Serialize, ToSchema)]
struct ShownProvider {
    name: String,
    #[schema(pattern = "^(ok|throttled|tripped|paused)$")]
    state: &'static str,
    /// Moment until which nothing is submitted.
    until_ms: Option<u64>,
    /// Time between two submits.
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
        let Phases { queued, held, submitting, solving, in_doubt } = phases;
        Self { queued, held, submitting, solving, in_doubt }
    }
}

impl ShownRates {
    /// To two places: it is looked at, not added up. One look has no rate, and an old rate is none.
    fn of(lately: &Counters, span: Duration, store_is_up: bool) -> Self {
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
    fn of(signed: &Member, members: &Members, here: u64) -> Self {
        let Member { node_status, seen } = signed;
        let node_stats = &node_status.node_stats;
        Self {
            name: node_status.name.clone(),
            is_here: node_status.node == here,
            is_alive: members.now.since(*seen) < SILENT_AFTER,
            in_hand: node_stats.in_hand,
            submitted: node_stats.submitted,
            answered: node_stats.answered,
            is_paused: node_stats.is_paused,
            store_was_away: node_stats.store_was_away,
            has_spilled: node_stats.has_spilled,
            skew_ms: node_status.skew_ms,
        }
    }
}

impl Snapshot {
    fn of(facts: &Facts<'_>) -> Self {
        let Facts { at, node, name, started, members, .. } = facts;
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
                open: facts.order_counts.open,
                dead: facts.order_counts.dead,
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
            today: Sums { counters: facts.today, saved: facts.saved }.lines(),
            currency: facts.currency.to_owned(),
            balance: ShownBalance {
                balance_micros: account.balance.map(|balance| balance.0),
                threads: account.threads.map(working),
            },
            providers: vec![ShownProvider::of(facts.provider.0, &facts.provider.1)],
            pools: facts.pools.iter().map(PoolInShort::of).collect(),
            nodes: members.nodes.iter().map(|signed| ShownPeer::of(signed, members, *node)).collect(),
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

/// Read a snapshot of the node
#[utoipa::path(
    get, path = "/v1/admin/now", operation_id = "now", tag = "admin",
    responses((status = 200, body = Snapshot, description = "The snapshot."), NowProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn now(State(state): State<AppState>, _: Operator) -> Response {
    let content_type = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (StatusCode::OK, content_type, state.monitor.picture().await).into_response()
}

/// One event of the stream of snapshots.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it is written by hand, and only described here")]
pub(super) struct NowEvent {
    #[schema(pattern = "^now$")]
    event: String,
    /// A Snapshot as JSON.
    data: String,
}

/// Watch snapshots of the node, one each second
///
/// Server-sent events `now`, the first at once. A slow reader gets fewer events, never old ones. The stream ends when the daemon
/// stops.
#[utoipa::path(
    get, path = "/v1/admin/live", operation_id = "live", tag = "events",
    responses(
        (status = 200, body = NowEvent, content_type = "text/event-stream",
            description = "Events `now`, each with a Snapshot as its data."),
        LiveProblems,
    ),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn live(State(state): State<AppState>, _: Operator) -> Result<Response, Refused> {
    let seat = state.stream_seat(None)?;
    let pictures = state.monitor.watch();
    let watching = Watching { monitor: state.monitor, pictures, is_greeted: false, _seat: seat };
    let events = stream::unfold(watching, |mut watching| async move {
        let event = watching.next().await?;
        Some((Ok::<_, Infallible>(event), watching))
    });
    let mut response = Response::new(axum::body::Body::from_stream(events));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    Ok(response)
}

struct Watching {
    monitor: Monitor,
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
            let picture = self.monitor.picture().await;
            return Some([GREETING.as_bytes(), b"event: now\ndata: ", &picture, b"\n\n"].concat().into());
        }
        // Whoever came too late would wait for a picture that nobody draws any more.
        if self.monitor.is_closed() {
            return None;
        }
        self.pictures.changed().await.ok()?;
        (!self.monitor.is_closed()).then(|| self.pictures.borrow_and_update().clone())
    }
}

#[derive(Serialize, ToSchema)]
pub(super) struct ShownHistory {
    step_ms: u64,
    /// Currency of all amounts in the samples.
    #[schema(pattern = "^[A-Z]{3}$", example = "USD")]
    currency: String,
    /// At most 720 samples, the newest last.
    samples: Vec<Sample>,
}

/// Read the samples of the last hour
///
/// Counters are of all nodes; solve times are of orders solved at this node.
#[utoipa::path(
    get, path = "/v1/admin/history", operation_id = "history", tag = "admin",
    responses((status = 200, body = ShownHistory, description = "The samples."), NowProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn history(State(state): State<AppState>, _: Operator) -> Response {
    let (step, samples) = state.monitor.history().await;
    let currency = state.orders.engine().currency().to_owned();
    super::json(StatusCode::OK, &ShownHistory { step_ms: millis(step), currency, samples })
}
