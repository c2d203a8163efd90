//! The active alerts and those of the last day, and acknowledging an alert.

use crate::AppState;
use axum::extract::State;
use axum::response::Response;
use hyper::StatusCode;
use quittance_gateway::problems;
use quittance_gateway::v1::Operator;
use quittance_gateway::v1::json;
use quittance_gateway::v1::order_problems::store_problem;
use quittance_gateway::v1::problem::{Code, Refused};
use quittance_gateway::v1::request_body::JsonBody;
use quittance_ports::AlertNote;
use quittance_ports::moment::rfc3339;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

problems!(AlertsProblems: Unauthorized, Forbidden);
problems!(SeenProblems: BadJson, BrokenBody, Unauthorized, Forbidden, UnknownAlert, NeedsAPerson, TooSlow, TooLarge,
    WrongContentType, BadParams, StoreUnavailable);

/// An alert.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ShownAlert {
    #[schema(pattern = "^[a-z_]+$")]
    pub rule: String,
    /// Name of the provider, pool or node; empty if there is only one.
    pub subject: String,
    /// Whether orders are late, lost or refused while the alert is active.
    pub is_grave: bool,
    /// What is wrong, and what to do next.
    pub words: String,
    pub raised_at: String,
    pub raised_ms: u64,
    /// Null while the alert is active.
    pub cleared_at: Option<String>,
    /// When a person acknowledged the alert.
    pub seen_at: Option<String>,
}

impl ShownAlert {
    pub(crate) fn of(note: &AlertNote) -> Self {
        Self {
            rule: note.rule.clone(),
            subject: note.subject.clone(),
            is_grave: note.is_grave,
            words: note.words.clone(),
            raised_at: rfc3339(note.raised),
            raised_ms: note.raised.as_millis(),
            cleared_at: note.cleared.map(rfc3339),
            seen_at: note.seen.map(rfc3339),
        }
    }
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ShownAlerts {
    pub alerts: Vec<ShownAlert>,
}

/// The alert to acknowledge.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SeenAlert {
    pub rule: String,
    pub subject: String,
}

/// List the alerts
///
/// Active alerts come first. Cleared alerts are kept for a day.
#[utoipa::path(
    get, path = "/v1/admin/alerts", operation_id = "listAlerts", tag = "admin",
    responses((status = 200, body = ShownAlerts, description = "All alerts."), AlertsProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(crate) async fn list(State(state): State<AppState>, _: Operator) -> Response {
    let alerts = state.monitor.alerts().await.iter().map(ShownAlert::of).collect();
    json(StatusCode::OK, &ShownAlerts { alerts })
}

/// Acknowledge an alert
///
/// The alert stays active until its cause is gone.
#[utoipa::path(
    post, path = "/v1/admin/alerts/seen", operation_id = "seeAlert", tag = "admin",
    request_body = SeenAlert,
    responses((status = 200, body = ShownAlert, description = "The alert."), SeenProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(crate) async fn see(
    State(state): State<AppState>,
    _: Operator,
    mut body: JsonBody,
) -> Result<Response, Refused> {
    let rule = body.text("rule")?.ok_or_else(|| Refused::bad("rule", "`rule` is missing."))?;
    let subject = body.text("subject")?.unwrap_or_default();
    body.done()?;
    let acknowledged =
        state.monitor.acknowledge(&rule, &subject).await.map_err(|error| store_problem(&error))?;
    let note = acknowledged.ok_or_else(|| Code::UnknownAlert.plain())?;
    Ok(json(StatusCode::OK, &ShownAlert::of(&note)))
}
