//! Who works on the same orders, for the operator: each node with its share of the work and how it is.

use super::Room;
use super::caller::Operator;
use super::moment::rfc3339;
use super::orders::store_trouble;
use super::problem::{Refused, problems};
use axum::extract::State;
use axum::response::Response;
use hyper::StatusCode;
use quittance_ports::roster::SILENT_AFTER;
use quittance_ports::{Roll, Signed};
use serde::Serialize;
use utoipa::ToSchema;

problems!(NodesProblems: Unauthorized, Forbidden, NeedsAPerson, StoreUnavailable);

#[derive(Serialize, ToSchema)]
pub(super) struct ShownNodes {
    /// The store's own time.
    now: String,
    nodes: Vec<ShownNode>,
}

/// One node, and what it has done since it was started.
#[derive(Serialize, ToSchema)]
pub(super) struct ShownNode {
    /// New for each start.
    #[schema(pattern = "^[0-9a-f]{16}$")]
    node: String,
    name: String,
    version: String,
    /// The format in which it writes records.
    format: u64,
    started: String,
    /// When it last signed in, by the store's clock.
    seen: String,
    /// It has not signed in for a while: it is gone, frozen, or cut off.
    silent: bool,
    /// How far its clock is ahead of the store's.
    #[serde(skip_serializing_if = "Option::is_none")]
    skew_ms: Option<i64>,
    /// New orders that callers placed here, and those that joined one that was there.
    placed: u64,
    joined: u64,
    /// Alarms that it attended to, and its share of those of all nodes on this list, in percent.
    attended: u64,
    share_percent: u64,
    submitted: u64,
    polled: u64,
    answered: u64,
    in_hand: u64,
    store_errors: u64,
    unreadable: u64,
    panics: u64,
    /// It submits nothing until the operator releases it.
    paused: bool,
    /// The store did not answer a moment ago.
    store_was_away: bool,
    /// Something that came in waits in its spill.
    has_spilled: bool,
}

fn shown(signed: &Signed, roll: &Roll, attended_by_all: u64) -> ShownNode {
    let Signed { card, seen } = signed;
    let vitals = &card.vitals;
    ShownNode {
        node: format!("{:016x}", card.node),
        name: card.name.clone(),
        version: card.version.clone(),
        format: card.format,
        started: rfc3339(card.started),
        seen: rfc3339(*seen),
        silent: roll.now.since(*seen) >= SILENT_AFTER,
        skew_ms: card.skew_ms,
        placed: vitals.placed,
        joined: vitals.joined,
        attended: vitals.attended,
        share_percent: vitals.attended.saturating_mul(100).checked_div(attended_by_all).unwrap_or(0),
        submitted: vitals.submitted,
        polled: vitals.polled,
        answered: vitals.answered,
        in_hand: vitals.in_hand,
        store_errors: vitals.store_errors,
        unreadable: vitals.unreadable,
        panics: vitals.panics,
        paused: vitals.is_paused,
        store_was_away: vitals.store_was_away,
        has_spilled: vitals.has_spilled,
    }
}

/// The nodes that work on the same orders
///
/// Each signs in every two seconds. One that ended politely is not listed; one that was killed is, as silent, for ten
/// minutes.
#[utoipa::path(
    get, path = "/v1/admin/nodes", operation_id = "listNodes", tag = "admin",
    responses((status = 200, body = ShownNodes, description = "All of them."), NodesProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn nodes(State(room): State<Room>, _: Operator) -> Result<Response, Refused> {
    let roll = room.desk.roster().roll().await.map_err(|error| store_trouble(&error))?;
    let all = roll.nodes.iter().map(|signed| signed.card.vitals.attended).sum();
    let nodes = roll.nodes.iter().map(|signed| shown(signed, &roll, all)).collect();
    Ok(super::json(StatusCode::OK, &ShownNodes { now: rfc3339(roll.now), nodes }))
}
