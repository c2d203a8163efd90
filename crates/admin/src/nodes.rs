//! The nodes that share the store: each with its share of the work and its state.

use crate::AppState;
use axum::extract::State;
use axum::response::Response;
use hyper::StatusCode;
use quittance_gateway::problems;
use quittance_gateway::v1::Operator;
use quittance_gateway::v1::json;
use quittance_gateway::v1::order_problems::store_problem;
use quittance_gateway::v1::problem::Refused;
use quittance_ports::membership::SILENT_AFTER;
use quittance_ports::moment::rfc3339;
use quittance_ports::{Member, Members};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

problems!(NodesProblems: Unauthorized, Forbidden, NeedsAPerson, StoreUnavailable);

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ShownNodes {
    /// Time by the store's clock.
    pub now: String,
    pub nodes: Vec<ShownNode>,
}

/// A node and its counters since its start.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ShownNode {
    /// Id of the node, new at each start.
    #[schema(pattern = "^[0-9a-f]{16}$")]
    pub node: String,
    pub name: String,
    pub version: String,
    /// Format of the records that it writes.
    pub format: u64,
    pub started: String,
    pub uptime_s: u64,
    /// Last heartbeat, by the store's clock.
    pub seen: String,
    /// Time since the last heartbeat.
    pub seen_s_ago: u64,
    /// Whether heartbeats are missing: the node has died, hangs, or is cut off.
    pub silent: bool,
    /// How far the node's clock is ahead of the store's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skew_ms: Option<i64>,
    /// New orders placed at this node; `joined` counts placements that joined an existing order.
    pub placed: u64,
    pub joined: u64,
    /// Timers that it handled; `share_percent` is its share of the timers of all listed nodes.
    pub attended: u64,
    pub share_percent: u64,
    pub submitted: u64,
    pub polled: u64,
    pub answered: u64,
    pub in_hand: u64,
    pub store_errors: u64,
    pub unreadable: u64,
    pub panics: u64,
    /// Whether submits are paused until an operator resumes the provider.
    pub paused: bool,
    /// Whether the store was unavailable to the node a moment ago.
    pub store_was_away: bool,
    /// Whether its spill is not empty.
    pub has_spilled: bool,
}

impl ShownNodes {
    #[must_use]
    pub fn of(members: &Members) -> Self {
        let all = members.nodes.iter().map(|signed| signed.node_status.node_stats.attended).sum();
        let nodes = members.nodes.iter().map(|signed| shown(signed, members, all)).collect();
        Self { now: rfc3339(members.now), nodes }
    }
}

fn shown(signed: &Member, members: &Members, attended_by_all: u64) -> ShownNode {
    let Member { node_status, seen } = signed;
    let (node_stats, seen_ago) = (&node_status.node_stats, members.now.since(*seen));
    // Its own two moments are by its own clock, the time since then is by the store's.
    let uptime = node_status.at.since(node_status.started) + seen_ago;
    ShownNode {
        node: format!("{:016x}", node_status.node),
        name: node_status.name.clone(),
        version: node_status.version.clone(),
        format: node_status.format,
        started: rfc3339(node_status.started),
        uptime_s: uptime.as_secs(),
        seen: rfc3339(*seen),
        seen_s_ago: seen_ago.as_secs(),
        silent: seen_ago > SILENT_AFTER,
        skew_ms: node_status.skew_ms,
        placed: node_stats.placed,
        joined: node_stats.joined,
        attended: node_stats.attended,
        share_percent: node_stats.attended.saturating_mul(100).checked_div(attended_by_all).unwrap_or(0),
        submitted: node_stats.submitted,
        polled: node_stats.polled,
        answered: node_stats.answered,
        in_hand: node_stats.in_hand,
        store_errors: node_stats.store_errors,
        unreadable: node_stats.unreadable,
        panics: node_stats.panics,
        paused: node_stats.is_paused,
        store_was_away: node_stats.store_was_away,
        has_spilled: node_stats.has_spilled,
    }
}

/// List the nodes that share the store
///
/// Each node sends a heartbeat every two seconds. A node that stopped cleanly is not listed; a killed one is listed as silent for ten
/// minutes.
#[utoipa::path(
    get, path = "/v1/admin/nodes", operation_id = "listNodes", tag = "admin",
    responses((status = 200, body = ShownNodes, description = "All nodes."), NodesProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(crate) async fn nodes(State(state): State<AppState>, _: Operator) -> Result<Response, Refused> {
    let members =
        state.orders.engine().membership().members().await.map_err(|error| store_problem(&error))?;
    Ok(json(StatusCode::OK, &ShownNodes::of(&members)))
}
