//! The alerts, for the operator: those that stand, and those of the last day; and that he has seen one.

use super::AppState;
use super::caller::Operator;
use super::orders::store_trouble;
use super::problem::{Code, Refused, problems};
use super::request::JsonBody;
use axum::extract::State;
use axum::response::Response;
use hyper::StatusCode;
use quittance_ports::AlertNote;
use quittance_ports::moment::rfc3339;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

problems!(AlertsProblems: Unauthorized, Forbidden);
problems!(SeenProblems: BadJson, BrokenBody, Unauthorized, Forbidden, UnknownAlert, NeedsAPerson, TooSlow, TooLarge,
    WrongContentType, BadParams, StoreUnavailable);

/// An alert.
#[derive(Serialize, ToSchema)]
pub(super) struct ShownAlert {
    #[schema(pattern = "^[a-z_]+$")]
    rule: String,
    /// Name of the provider, pool or node; empty if there is only one.
    subject: String,
    /// Whether orders are late, lost or refused while the alert is active.
    is_grave: bool,
    /// What is wrong, and what to do next.
    words: String,
    raised_at: String,
    raised_ms: u64,
    /// Null while the alert is active.
    cleared_at: Option<String>,
    /// When a person acknowledged the alert.
    seen_at: Option<String>,
}

impl ShownAlert {
    pub(super) fn of(note: &AlertNote) -> Self {
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

#[derive(Serialize, ToSchema)]
pub(super) struct ShownAlerts {
    alerts: Vec<ShownAlert>,
}

/// The alert to acknowledge.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "it is read by hand, and only described here")]
pub(super) struct SeenAlert {
    rule: String,
    subject: String,
}

/// List the alerts
///
/// Active alerts come first. Cleared alerts are kept for a day.
#[utoipa::path(
    get, path = "/v1/admin/alerts", operation_id = "listAlerts", tag = "admin",
    responses((status = 200, body = ShownAlerts, description = "All alerts."), AlertsProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn list(State(state): State<AppState>, _: Operator) -> Response {
    let alerts = state.monitor.alerts().await.iter().map(ShownAlert::of).collect();
    super::json(StatusCode::OK, &ShownAlerts { alerts })
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
pub(super) async fn see(
    State(state): State<AppState>,
    _: Operator,
    mut said: JsonBody,
) -> Result<Response, Refused> {
    let rule = said.text("rule")?.ok_or_else(|| Refused::bad("rule", "It must be said."))?;
    let subject = said.text("subject")?.unwrap_or_default();
    said.done()?;
    let seen = state.monitor.acknowledge(&rule, &subject).await.map_err(|error| store_trouble(&error))?;
    let note = seen.ok_or_else(|| Code::UnknownAlert.plain())?;
    Ok(super::json(StatusCode::OK, &ShownAlert::of(&note)))
}
