//! The metrics for a monitoring system.

use crate::AppState;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use quittance_gateway::problems;
use quittance_gateway::v1::Operator;
use quittance_telemetry::metrics_text;
use utoipa::ToSchema;

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

problems!(MetricsProblems: Unauthorized, Forbidden);

/// Metrics in the Prometheus text format.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it only describes the response")]
pub(crate) struct Exposition(String);

/// Read the metrics
///
/// In the Prometheus text format. If the store is down, `quittance_store_up` is 0 and values from the store are left out.
/// Counters from the usage restart each day and are the same on all nodes.
#[utoipa::path(
    get, path = "/metrics", operation_id = "metrics", tag = "admin",
    responses(
        (status = 200, body = Exposition, content_type = "text/plain", description = "The metrics."),
        MetricsProblems,
    ),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(crate) async fn metrics(State(state): State<AppState>, _: Operator) -> Response {
    let text =
        metrics_text(&state.monitor, state.orders.commit_feed().traces(), state.orders.api_counts()).await;
    ([(CONTENT_TYPE, TEXT)], text).into_response()
}
