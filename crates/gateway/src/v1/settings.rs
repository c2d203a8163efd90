//! The settings in force, for the operator: what this node was started with, and where each of them was said. No secret is among
//! them.

use super::AppState;
use super::caller::Operator;
use super::problem::problems;
use crate::monitor::ShownSetting;
use axum::extract::State;
use axum::response::Response;
use hyper::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

problems!(SettingsProblems: Unauthorized, Forbidden);

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
