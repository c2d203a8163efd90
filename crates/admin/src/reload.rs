//! Reading the configuration again: the endpoint passes the request to the daemon, which answers with what has changed.

use crate::AppState;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use hyper::StatusCode;
use quittance_gateway::problems;
use quittance_gateway::v1::Operator;
use quittance_gateway::v1::json;
use quittance_gateway::v1::problem::{Code, Refused};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};
use utoipa::{IntoParams, ToSchema};

problems!(ReloadProblems: Unauthorized, Forbidden, NoConfig, BadParams, ConfigRefused, StoreUnavailable);

/// How many requests may wait for a reload in progress.
const WAITING_MAX: usize = 16;

/// A setting that the configuration sets differently now. A secret is shown as `set`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShownChange {
    pub name: String,
    /// The value in use before, as in a config file. Null: not set.
    pub from: Option<String>,
    /// The value in the configuration now. Null: not set.
    pub to: Option<String>,
    /// Where the new value came from.
    pub origin: Option<String>,
    /// `live`: applied by a reload. `restart`: the old value stays in use until the daemon restarts.
    pub effect: String,
}

impl ShownChange {
    pub const LIVE: &'static str = "live";
    pub const RESTART: &'static str = "restart";
}

/// What a reload has changed, or would change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShownReload {
    /// The config file, if there is one.
    pub file: Option<String>,
    /// Whether the changes are in use now: false for a dry run.
    pub is_applied: bool,
    pub changes: Vec<ShownChange>,
    /// What is valid, and may surprise.
    pub notes: Vec<String>,
}

/// Why the settings in use stay as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReloadRefused {
    /// The configuration is wrong, for these reasons.
    Wrong(Vec<String>),
    /// The store is away, so the new limits could not be counted.
    StoreAway(String),
}

/// A request to read the configuration again.
#[derive(Debug)]
pub struct ReloadRequest {
    pub is_dry_run: bool,
    pub reply: oneshot::Sender<Result<ShownReload, ReloadRefused>>,
}

/// Passes requests to the part of the process that reads the configuration.
pub type ReloadRequests = mpsc::Sender<ReloadRequest>;

/// The two ends for requests to read the configuration again.
#[must_use]
pub fn reload_requests() -> (ReloadRequests, mpsc::Receiver<ReloadRequest>) {
    mpsc::channel(WAITING_MAX)
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub(crate) struct ReloadQuery {
    /// Show what would change, and change nothing.
    dry_run: bool,
}

/// Reload the configuration
///
/// Reads the config file of this node again. A wrong file is refused whole. Otherwise the changes that need no restart are in use when
/// this returns; the others keep their old value. No order is lost, and no request is refused meanwhile.
#[utoipa::path(
    post, path = "/v1/admin/reload", operation_id = "reloadConfiguration", tag = "admin", params(ReloadQuery),
    responses((status = 200, body = ShownReload, description = "What has changed."), ReloadProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(crate) async fn reload(
    State(state): State<AppState>,
    _: Operator,
    query: Result<Query<ReloadQuery>, QueryRejection>,
) -> Result<Response, Refused> {
    let Query(query) = query.map_err(|why| Refused::bad("dry_run", why.body_text()))?;
    let requests = state.reloads.ok_or_else(|| Code::NoConfig.plain())?;
    let (reply, answer) = oneshot::channel();
    let request = ReloadRequest { is_dry_run: query.dry_run, reply };
    requests.send(request).await.map_err(|_| Code::NoConfig.plain())?;
    match answer.await.map_err(|_| Code::NoConfig.plain())? {
        Ok(reload) => Ok(json(StatusCode::OK, &reload)),
        Err(ReloadRefused::Wrong(errors)) => Err(Code::ConfigRefused.because(errors.join("\n"))),
        Err(ReloadRefused::StoreAway(why)) => Err(Code::StoreUnavailable.because(why)),
    }
}
