//! The node at work: a snapshot, a stream of snapshots, and the samples of the last hour.

use crate::AppState;
use crate::alerts::ShownAlert;
use crate::bulk::Bulk;
use crate::pools::PoolInShort;
use crate::providers::{ShownProvider, account_of};
use crate::usage_sums::SumsBuilder;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use quittance_engine::ProviderView;
use quittance_gateway::StreamPermit;
use quittance_gateway::problems;
use quittance_gateway::v1::Operator;
use quittance_gateway::v1::events::{EVENT_STREAM, GREETING};
use quittance_gateway::v1::problem::Refused;
use quittance_gateway::v1::{json, json_text};
use quittance_lifecycle::time::millis;
use quittance_lifecycle::{Counters, Timestamp};
use quittance_ports::membership::SILENT_AFTER;
use quittance_ports::{Member, Members};
use quittance_telemetry::{LatencyPercentiles, OpenPhases, Sample, SnapshotData};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::watch::Receiver;
use utoipa::ToSchema;

problems!(NowProblems: Unauthorized, Forbidden);
problems!(LiveProblems: Unauthorized, Forbidden, TooManyStreams);

/// Snapshot of a node.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Snapshot {
    pub at_ms: u64,
    pub node: ShownHere,
    pub orders: ShownOrders,
    /// Per second, over the last ten seconds, on all nodes; null while not known: before the second sample, and while the store is down.
    pub rates: ShownRates,
    /// Over the last five minutes.
    pub latency_ms: LatencyPercentiles,
    /// Newest sample of the last hour; it continues the samples of `/v1/admin/history`.
    pub sample: Option<Sample>,
    /// Every counter of today's usage (UTC), on all nodes, and `saved_micros`: what the placements that joined an order, or got an
    /// existing answer, would have cost. An amount is null if none of its prices is known.
    pub today: BTreeMap<String, Option<u64>>,
    /// Currency of all amounts.
    #[schema(pattern = "^[A-Z]{3}$", example = "USD")]
    pub currency: String,
    /// The providers, with the state of each at this node.
    pub providers: Vec<ShownProvider>,
    pub pools: Vec<PoolInShort>,
    pub nodes: Vec<ShownPeer>,
    /// Active alerts, and those cleared within the last day.
    pub alerts: Vec<ShownAlert>,
    /// Bulk actions in progress.
    pub bulks: Vec<Bulk>,
    pub store: ShownStore,
}

/// The node of the snapshot.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ShownHere {
    pub name: String,
    pub version: String,
    pub started_ms: u64,
    pub uptime_s: u64,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ShownOrders {
    pub open: u64,
    pub dead: u64,
    pub phases: OpenPhases,
    /// Whether the phases are estimated from the first thousand orders.
    pub is_sampled: bool,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ShownRates {
    pub asked: Option<f64>,
    pub joined: Option<f64>,
    pub cached: Option<f64>,
    pub from_stock: Option<f64>,
    pub paid: Option<f64>,
    pub solved: Option<f64>,
    pub failed: Option<f64>,
    pub dead: Option<f64>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ShownPeer {
    pub name: String,
    pub is_here: bool,
    pub is_alive: bool,
    pub in_hand: u64,
    pub submitted: u64,
    pub answered: u64,
    pub is_paused: bool,
    pub store_was_away: bool,
    pub has_spilled: bool,
    pub skew_ms: Option<i64>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ShownStore {
    pub is_up: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

impl ShownRates {
    /// Rates with two decimal places. A single reading has no rate, and an old rate is not shown.
    fn of(recent: &Counters, period: Duration, store_is_up: bool) -> Self {
        let is_known = store_is_up && !period.is_zero();
        let rate =
            |count: u64| is_known.then(|| (count as f64 / period.as_secs_f64() * 100.0).round() / 100.0);
        Self {
            asked: rate(recent.asked),
            joined: rate(recent.joined),
            cached: rate(recent.cached),
            from_stock: rate(recent.from_stock),
            paid: rate(recent.paid),
            solved: rate(recent.solved),
            failed: rate(recent.failed),
            dead: rate(recent.dead),
        }
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

/// Today's usage by name; amounts in millionths.
fn today(data: &SnapshotData<'_>) -> BTreeMap<String, Option<u64>> {
    let sums = SumsBuilder { counters: data.today, saved: data.saved }.lines();
    sums.into_iter().map(|(name, sum)| (name.to_owned(), sum)).collect()
}

impl Snapshot {
    fn of(data: &SnapshotData<'_>) -> Self {
        let SnapshotData { at, node, name, started, members, .. } = data;
        let provider = |view: &ProviderView| {
            // The nodes that make snapshots are at work; `quittance top` leaves the providers out without one.
            ShownProvider::of(view, account_of(&data.accounts, &view.name), true)
        };
        let uptime_s = |started: Timestamp| at.since(started).as_secs();
        Self {
            at_ms: at.as_millis(),
            node: ShownHere {
                name: name.clone(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                started_ms: started.as_millis(),
                uptime_s: uptime_s(*started),
            },
            orders: ShownOrders {
                open: data.order_counts.open,
                dead: data.order_counts.dead,
                phases: data.phases,
                is_sampled: data.is_sampled,
            },
            rates: ShownRates::of(&data.recent, data.recent_period, data.store_is_up),
            latency_ms: data.latency,
            sample: data.sample,
            today: today(data),
            currency: data.currency.to_owned(),
            providers: data.providers.iter().map(provider).collect(),
            pools: data.pools.iter().map(PoolInShort::of).collect(),
            nodes: members.nodes.iter().map(|signed| ShownPeer::of(signed, members, *node)).collect(),
            alerts: data.alerts.iter().map(ShownAlert::of).collect(),
            bulks: data.bulks.iter().map(|bulk| Bulk::of(bulk)).collect(),
            store: ShownStore { is_up: data.store_is_up, kind: data.store.map(str::to_owned) },
        }
    }
}

/// A snapshot as JSON.
pub(crate) fn snapshot(data: &SnapshotData<'_>) -> String {
    json_text(&Snapshot::of(data))
}

/// Read a snapshot of the node
#[utoipa::path(
    get, path = "/v1/admin/now", operation_id = "now", tag = "admin",
    responses((status = 200, body = Snapshot, description = "The snapshot."), NowProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(crate) async fn now(State(state): State<AppState>, _: Operator) -> Response {
    let content_type = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (StatusCode::OK, content_type, state.monitor.snapshot().await).into_response()
}

/// One event of the stream of snapshots.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it only describes the response")]
pub(crate) struct NowEvent {
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
pub(crate) async fn live(State(state): State<AppState>, _: Operator) -> Result<Response, Refused> {
    let _seat = state.orders.streams().take(None)?;
    let snapshots = state.monitor.watch();
    let watching = Watching { state, snapshots, is_greeted: false, _seat };
    let events = stream::unfold(watching, |mut watching| async move {
        let event = watching.next().await?;
        Some((Ok::<_, Infallible>(event), watching))
    });
    let mut response = Response::new(axum::body::Body::from_stream(events));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    Ok(response)
}

/// A stream of snapshots.
struct Watching {
    state: AppState,
    snapshots: Receiver<Bytes>,
    is_greeted: bool,
    _seat: StreamPermit,
}

impl Watching {
    async fn next(&mut self) -> Option<Bytes> {
        if !self.is_greeted {
            self.is_greeted = true;
            // The last event of the stream may be old.
            let snapshot = self.state.monitor.snapshot().await;
            return Some([GREETING.as_bytes(), b"event: now\ndata: ", &snapshot, b"\n\n"].concat().into());
        }
        tokio::select! {
            biased;
            () = self.state.orders.closing() => None,
            changed = self.snapshots.changed() => {
                changed.ok()?;
                Some(self.snapshots.borrow_and_update().clone())
            }
        }
    }
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ShownHistory {
    pub step_ms: u64,
    /// Currency of all amounts in the samples.
    #[schema(pattern = "^[A-Z]{3}$", example = "USD")]
    pub currency: String,
    /// At most 720 samples, the newest last.
    pub samples: Vec<Sample>,
}

/// Read the samples of the last hour
///
/// Counters are of all nodes; solve times are of orders solved at this node.
#[utoipa::path(
    get, path = "/v1/admin/history", operation_id = "history", tag = "admin",
    responses((status = 200, body = ShownHistory, description = "The samples."), NowProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(crate) async fn history(State(state): State<AppState>, _: Operator) -> Response {
    let (step, samples) = state.monitor.history().await;
    let currency = state.orders.engine().currency().to_owned();
    json(StatusCode::OK, &ShownHistory { step_ms: millis(step), currency, samples })
}
