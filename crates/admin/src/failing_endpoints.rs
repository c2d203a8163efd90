//! The endpoints of webhooks that have failed for some minutes, and switching one on again.

use axum::extract::State;
use axum::response::Response;
use hyper::StatusCode;
use quittance_gateway::OrderService;
use quittance_gateway::problems;
use quittance_gateway::v1::Operator;
use quittance_gateway::v1::json;
use quittance_gateway::v1::order_problems::store_problem;
use quittance_gateway::v1::problem::Refused;
use quittance_gateway::v1::request_body::JsonBody;
use quittance_ports::EndpointNote;
use quittance_ports::moment::rfc3339;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

problems!(EndpointsProblems: Unauthorized, Forbidden, StoreUnavailable);
problems!(SwitchProblems: BadJson, BrokenBody, Unauthorized, Forbidden, NeedsAPerson, TooSlow, TooLarge,
    WrongContentType, BadParams, StoreUnavailable);

/// A host that the webhooks of a tenant call, and that fails.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ShownEndpoint {
    pub tenant: String,
    pub host: String,
    /// Since when every delivery has failed.
    pub failing_since: Option<String>,
    /// Why the last delivery failed.
    pub why: String,
    /// When the endpoint was switched off: its deliveries become dead letters at once. Null while it is called.
    pub off_since: Option<String>,
    /// When it was last tried although it is off.
    pub probed_at: Option<String>,
}

impl ShownEndpoint {
    fn of(note: &EndpointNote) -> Self {
        let probed = (note.probed_at.as_millis() > 0).then_some(note.probed_at);
        Self {
            tenant: note.tenant.clone(),
            host: note.host.clone(),
            failing_since: note.failing_since.map(rfc3339),
            why: note.why.clone(),
            off_since: note.off_at.map(rfc3339),
            probed_at: probed.map(rfc3339),
        }
    }
}

/// The endpoints of webhooks that have failed for some minutes.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ShownEndpoints {
    pub endpoints: Vec<ShownEndpoint>,
}

/// The endpoint to switch on.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SwitchOn {
    pub tenant: String,
    pub host: String,
}

/// List the webhook endpoints that fail
///
/// An endpoint is one host of one tenant. It is listed when it has failed for ten minutes.
#[utoipa::path(
    get, path = "/v1/admin/webhook-endpoints", operation_id = "listWebhookEndpoints", tag = "admin",
    responses((status = 200, body = ShownEndpoints, description = "All endpoints that fail."), EndpointsProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(crate) async fn list(State(orders): State<OrderService>, _: Operator) -> Result<Response, Refused> {
    let failing = orders.engine().failing_endpoints().await.map_err(|error| store_problem(&error))?;
    let endpoints = failing.iter().map(ShownEndpoint::of).collect();
    Ok(json(StatusCode::OK, &ShownEndpoints { endpoints }))
}

/// Switch a webhook endpoint on
///
/// Its next deliveries are sent again. Dead letters of the cause `delivery` are not replayed by this.
#[utoipa::path(
    post, path = "/v1/admin/webhook-endpoints/on", operation_id = "switchWebhookEndpointOn", tag = "admin",
    request_body = SwitchOn,
    responses((status = 200, body = ShownEndpoints, description = "The endpoints that still fail."), SwitchProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(crate) async fn switch_on(
    State(orders): State<OrderService>,
    operator: Operator,
    mut body: JsonBody,
) -> Result<Response, Refused> {
    let tenant = body.text("tenant")?.ok_or_else(|| Refused::bad("tenant", "`tenant` is missing."))?;
    let host = body.text("host")?.ok_or_else(|| Refused::bad("host", "`host` is missing."))?;
    body.done()?;
    let switched = orders.engine().switch_endpoint_on(&tenant, &host).await;
    if !switched.map_err(|error| store_problem(&error))? {
        return Err(Refused::bad("host", "No webhooks of this tenant to this host fail."));
    }
    list(State(orders), operator).await
}
