//! The alerts, for the operator: those that stand, and those of the last day; and that he has seen one.

use super::Room;
use super::caller::Operator;
use super::moment::rfc3339;
use super::orders::store_trouble;
use super::problem::{Code, Refused, problems};
use super::wish::Said;
use axum::extract::State;
use axum::response::Response;
use hyper::StatusCode;
use quittance_ports::AlertNote;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

problems!(AlertsProblems: Unauthorized, Forbidden);
problems!(SeenProblems: BadJson, BrokenBody, Unauthorized, Forbidden, UnknownAlert, NeedsAPerson, TooSlow, TooLarge,
    WrongContentType, BadParams, StoreUnavailable);

/// Something that a person should know.
#[derive(Serialize, ToSchema)]
pub(super) struct ShownAlert {
    #[schema(pattern = "^[a-z_]+$")]
    rule: String,
    /// What it is about: a provider, a pool, a node; empty, if there is only one.
    subject: String,
    /// Whether orders are late, lost or refused for as long as it stands.
    is_grave: bool,
    /// What is the matter, and what to do next.
    words: String,
    raised_at: String,
    raised_ms: u64,
    /// Null, for as long as it stands.
    cleared_at: Option<String>,
    /// When a person said that he knows.
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

/// Which alert was seen.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "it is read by hand, and only described here")]
pub(super) struct SeenAlert {
    rule: String,
    subject: String,
}

/// Lists the alerts
///
/// Those that stand come first. What has been cleared is kept for a day.
#[utoipa::path(
    get, path = "/v1/admin/alerts", operation_id = "listAlerts", tag = "admin",
    responses((status = 200, body = ShownAlerts, description = "All of them."), AlertsProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn list(State(room): State<Room>, _: Operator) -> Response {
    let alerts = room.lookout.alerts().await.iter().map(ShownAlert::of).collect();
    super::json(StatusCode::OK, &ShownAlerts { alerts })
}

/// Says that a person knows of an alert
///
/// It stands all the same until what it is about is well again.
#[utoipa::path(
    post, path = "/v1/admin/alerts/seen", operation_id = "seeAlert", tag = "admin",
    request_body = SeenAlert,
    responses((status = 200, body = ShownAlert, description = "The alert as it is now."), SeenProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn see(State(room): State<Room>, _: Operator, mut said: Said) -> Result<Response, Refused> {
    let rule = said.text("rule")?.ok_or_else(|| Refused::bad("rule", "It must be said."))?;
    let subject = said.text("subject")?.unwrap_or_default();
    said.done()?;
    let seen = room.lookout.see(&rule, &subject).await.map_err(|error| store_trouble(&error))?;
    let note = seen.ok_or_else(|| Code::UnknownAlert.plain())?;
    Ok(super::json(StatusCode::OK, &ShownAlert::of(&note)))
}
