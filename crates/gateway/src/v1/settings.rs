//! The settings in force, for the operator: what this node was started with, and where each of them was said. No secret is among
//! them.

use super::AppState;
use super::caller::Operator;
use super::problem::problems;
use axum::extract::State;
use axum::response::Response;
use hyper::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

problems!(SettingsProblems: Unauthorized, Forbidden);

/// One effective setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ShownSetting {
    pub name: String,
    /// Value as in a config file; for a secret, whether it is set.
    pub value: String,
    /// Where the value came from.
    pub origin: String,
}

#[derive(Serialize, ToSchema)]
pub(super) struct ShownSettings {
    settings: Vec<ShownSetting>,
}

/// Read the effective settings
///
/// The settings of this node since its start. For a secret, only whether it is set and where it is kept.
#[utoipa::path(
    get, path = "/v1/admin/settings", operation_id = "settings", tag = "admin",
    responses((status = 200, body = ShownSettings, description = "All settings."), SettingsProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn settings(State(state): State<AppState>, _: Operator) -> Response {
    super::json(StatusCode::OK, &ShownSettings { settings: state.shown.to_vec() })
}
