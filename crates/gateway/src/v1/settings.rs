//! The settings in force, for the operator: what this node was started with, and where each of them was said. No secret is among
//! them.

use super::Room;
use super::caller::Operator;
use super::problem::problems;
use crate::lookout::ShownSetting;
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

/// The settings in force
///
/// Of this node, since it was started. Of a secret is told only whether it is set, and where it is kept.
#[utoipa::path(
    get, path = "/v1/admin/settings", operation_id = "settings", tag = "admin",
    responses((status = 200, body = ShownSettings, description = "All of them."), SettingsProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn settings(State(room): State<Room>, _: Operator) -> Response {
    super::json(StatusCode::OK, &ShownSettings { settings: room.shown.to_vec() })
}
