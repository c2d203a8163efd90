//! The effective settings of this node and their origins, without secrets.

use crate::AppState;
use axum::extract::State;
use axum::response::Response;
use hyper::StatusCode;
use quittance_gateway::problems;
use quittance_gateway::v1::Operator;
use quittance_gateway::v1::json;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

problems!(SettingsProblems: Unauthorized, Forbidden);

/// One effective setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShownSetting {
    pub name: String,
    /// Value as in a config file; for a secret, whether it is set.
    pub value: String,
    /// Where the value came from.
    pub origin: String,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ShownSettings {
    pub settings: Vec<ShownSetting>,
}

/// Read the effective settings
///
/// The settings of this node since its start or the last reload. For a secret, only whether it is set and where it is kept.
#[utoipa::path(
    get, path = "/v1/admin/settings", operation_id = "settings", tag = "admin",
    responses((status = 200, body = ShownSettings, description = "All settings."), SettingsProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(crate) async fn settings(State(state): State<AppState>, _: Operator) -> Response {
    json(StatusCode::OK, &ShownSettings { settings: state.shown().settings.to_vec() })
}
