//! The counters of this node, and the account of the first provider.

use crate::AppState;
use axum::extract::State;
use axum::response::Response;
use hyper::StatusCode;
use quittance_gateway::problems;
use quittance_gateway::v1::Operator;
use quittance_gateway::v1::decimal;
use quittance_gateway::v1::json;
use quittance_telemetry::ignored_reason;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

problems!(OperatorProblems: Unauthorized, Forbidden);
problems!(StateProblems: Unauthorized, Forbidden);

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ShownFault {
    /// Class of the fault.
    pub class: String,
    /// The provider's own error code.
    pub code: String,
}

/// Counters of this node since its start.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct NodeState {
    /// Why submits are paused until an operator resumes them; absent: not paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<ShownFault>,
    /// Callbacks with an invalid signature.
    pub forged: u64,
    /// Events that changed nothing, by reason.
    pub ignored: BTreeMap<String, u64>,
    /// Tasks of this node that ended in a panic; each is a bug.
    pub panics: u64,
    /// Records that could not be read.
    pub unreadable: u64,
    /// Open live streams.
    pub streams: usize,
}

/// The account of the first provider, as reported a moment ago.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ShownAccount {
    /// Balance in `currency`; `null` if it is not known.
    #[schema(pattern = "^[0-9]+(\\.[0-9]{1,6})?$")]
    pub balance: Option<String>,
    pub balance_micros: Option<u64>,
    #[schema(pattern = "^[A-Z]{3}$", example = "USD")]
    pub currency: String,
    /// For providers that sell threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<ShownThreads>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ShownThreads {
    pub total: u64,
    pub working: u64,
}

/// Read the counters of this node
#[utoipa::path(
    get, path = "/v1/admin/state", operation_id = "nodeState", tag = "admin",
    responses((status = 200, body = NodeState, description = "Counters since the start of the node."), StateProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(crate) async fn state(State(state): State<AppState>, _: Operator) -> Response {
    let engine = state.orders.engine();
    let paused =
        engine.paused().map(|fault| ShownFault { class: fault.class.name().to_owned(), code: fault.code });
    let state = NodeState {
        paused,
        forged: engine.forged(),
        ignored: engine
            .ignored()
            .into_iter()
            .map(|(why, count)| (ignored_reason(why).to_owned(), count))
            .collect(),
        panics: engine.panics(),
        unreadable: engine.unreadable(),
        streams: state.orders.streams().open(),
    };
    json(StatusCode::OK, &state)
}

/// Read the account of the first provider
///
/// `/v1/admin/providers` has those of all. The values may be half a minute old. Values that the provider does not
/// report are absent.
#[utoipa::path(
    get, path = "/v1/account", operation_id = "account", tag = "admin",
    responses((status = 200, body = ShownAccount, description = "The values that the provider reports."), OperatorProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(crate) async fn account(State(state): State<AppState>, _: Operator) -> Response {
    let account = state.orders.account().await.unwrap_or_default();
    let shown = ShownAccount {
        balance: account.balance.map(decimal),
        balance_micros: account.balance.map(|balance| balance.0),
        currency: state.orders.engine().currency().to_owned(),
        threads: account
            .threads
            .map(|threads| ShownThreads { total: threads.total, working: threads.working }),
    };
    json(StatusCode::OK, &shown)
}
