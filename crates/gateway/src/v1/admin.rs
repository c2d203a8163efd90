//! What only the operator may do: let a mended account go on, and read what this node has counted. Dead letters are in
//! `dead.rs`.

use super::Room;
use super::caller::Operator;
use super::moment::decimal;
use super::orders::store_trouble;
use super::problem::{Refused, problems};
use axum::extract::State;
use axum::response::Response;
use hyper::StatusCode;
use quittance_lifecycle::WhyIgnored;
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

problems!(OperatorProblems: Unauthorized, Forbidden);
problems!(StateProblems: Unauthorized, Forbidden);
problems!(ReleaseProblems: Unauthorized, Forbidden, NeedsAPerson, StoreUnavailable);

#[derive(Serialize, ToSchema)]
pub(super) struct Released {
    /// How many orders go on.
    released: usize,
}

#[derive(Serialize, ToSchema)]
pub(super) struct ShownFault {
    /// What sort of fault it is.
    class: &'static str,
    /// The provider's own word for it.
    code: String,
}

/// What this node has seen since it was started.
#[derive(Serialize, ToSchema)]
pub(super) struct NodeState {
    /// Why nothing is submitted until the operator releases it; absent if all is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    paused: Option<ShownFault>,
    /// Callbacks whose proof was not ours.
    forged: u64,
    /// Events that changed nothing, by reason.
    ignored: BTreeMap<&'static str, u64>,
    /// Pieces of work that ended in a panic: each is a bug.
    panics: u64,
    /// Records that could not be understood.
    unreadable: u64,
    /// Live streams that are open.
    streams: usize,
}

/// The account with the provider, as it was told a moment ago.
#[derive(Serialize, ToSchema)]
pub(super) struct ShownAccount {
    /// In `currency`; `null` where it is not known.
    #[schema(pattern = "^[0-9]+(\\.[0-9]{1,6})?$")]
    balance: Option<String>,
    balance_micros: Option<u64>,
    #[schema(pattern = "^[A-Z]{3}$", example = "USD")]
    currency: String,
    /// Of a provider that sells threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    threads: Option<ShownThreads>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct ShownThreads {
    total: u64,
    working: u64,
}

/// The provider's account has been mended: all that waits for it goes on
#[utoipa::path(
    post, path = "/v1/admin/release", operation_id = "release", tag = "admin",
    responses((status = 200, body = Released, description = "How many orders go on."), ReleaseProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn release(State(room): State<Room>, _: Operator) -> Result<Response, Refused> {
    let released = room.desk.engine().release_for_all().await.map_err(|error| store_trouble(&error))?;
    Ok(super::json(StatusCode::OK, &Released { released }))
}

/// What this node has seen
#[utoipa::path(
    get, path = "/v1/admin/state", operation_id = "nodeState", tag = "admin",
    responses((status = 200, body = NodeState, description = "Since it was started."), StateProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn state(State(room): State<Room>, _: Operator) -> Response {
    let engine = room.desk.engine();
    let paused = engine.paused().map(|fault| ShownFault { class: fault.class.name(), code: fault.code });
    let state = NodeState {
        paused,
        forged: engine.forged(),
        ignored: engine.ignored().into_iter().map(|(why, count)| (reason(why), count)).collect(),
        panics: engine.panics(),
        unreadable: engine.unreadable(),
        streams: room.streams.taken() + room.operators_streams.taken(),
    };
    super::json(StatusCode::OK, &state)
}

pub(super) const fn reason(why: WhyIgnored) -> &'static str {
    match why {
        WhyIgnored::NotDueYet => "not_due_yet",
        WhyIgnored::WrongPhase => "wrong_phase",
        WhyIgnored::UnknownAttempt => "unknown_attempt",
        WhyIgnored::AlreadyAnswered => "already_answered",
        WhyIgnored::OldNews => "old_news",
        WhyIgnored::NotFinal => "not_final",
        WhyIgnored::TakenByAnother => "taken_by_another",
        WhyIgnored::AlreadyYours => "already_yours",
        WhyIgnored::TooOld => "too_old",
        WhyIgnored::TooMany => "too_many",
        WhyIgnored::OtherTask => "other_task",
    }
}

/// The account with the provider
///
/// Asked for seldom, so it may be half a minute old. What the provider does not tell is absent.
#[utoipa::path(
    get, path = "/v1/account", operation_id = "account", tag = "admin",
    responses((status = 200, body = ShownAccount, description = "As far as it is told."), OperatorProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn account(State(room): State<Room>, _: Operator) -> Response {
    let account = room.desk.account().await.unwrap_or_default();
    let shown = ShownAccount {
        balance: account.balance.map(decimal),
        balance_micros: account.balance.map(|balance| balance.0),
        currency: room.desk.engine().currency().to_owned(),
        threads: account
            .threads
            .map(|threads| ShownThreads { total: threads.total, working: threads.working }),
    };
    super::json(StatusCode::OK, &shown)
}
