//! Endpoints about this gateway: the index, the caller, the kinds, the codes, the OpenAPI document, health and
//! readiness.

use super::AppState;
use super::caller::Tenanted;
use super::problem::{Code, Refused};
use crate::problems;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use quittance_lifecycle::time::millis;
use quittance_lifecycle::{Kind, Shape};
use quittance_ports::Which;
use quittance_telemetry::STORE_ERROR_PERIOD;
use quittance_webhooks::secret_for_people;
use serde::Serialize;
use std::sync::atomic::Ordering;
use std::time::Duration;
use utoipa::ToSchema;

/// The timeout of the store in a readiness check.
const STORE_WAIT: Duration = Duration::from_secs(2);

problems!(MeProblems: Unauthorized, Forbidden);
problems!(PageProblems: NotFound);
problems!(AnyProblems);

#[derive(Serialize, ToSchema)]
pub(super) struct Index {
    name: &'static str,
    version: &'static str,
    /// The OpenAPI document.
    openapi: &'static str,
    orders: &'static str,
    events: &'static str,
    kinds: &'static str,
    errors: &'static str,
    me: &'static str,
    stock: &'static str,
    /// Needs the operator's key.
    pools: &'static str,
    metrics: &'static str,
}

/// List the endpoints
#[utoipa::path(
    get, path = "/v1", operation_id = "index", tag = "about",
    responses((status = 200, body = Index, description = "The addresses of the endpoints."), AnyProblems),
)]
pub(super) async fn index() -> Response {
    let index = Index {
        name: "quittance",
        version: env!("CARGO_PKG_VERSION"),
        openapi: "/openapi.json",
        orders: "/v1/orders",
        events: "/v1/events",
        kinds: "/v1/kinds",
        errors: "/v1/errors",
        me: "/v1/me",
        stock: "/v1/stock",
        pools: "/v1/pools",
        metrics: "/metrics",
    };
    super::json(StatusCode::OK, &index)
}

#[derive(Serialize, ToSchema)]
pub(super) struct ShownRate {
    /// Time after which one more order is allowed.
    every_ms: u64,
    /// Orders that are allowed at once.
    burst: u32,
}

#[derive(Serialize, ToSchema)]
pub(super) struct ShownLimits {
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<ShownRate>,
    /// Orders that may be open at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    open_max: Option<usize>,
    /// Kinds that the tenant may order; absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    kinds: Option<Vec<String>>,
    /// Hosts that the tenant may automate, of those that the operator allows; absent: all of those.
    #[serde(skip_serializing_if = "Option::is_none")]
    targets: Option<Vec<String>>,
}

/// The tenant and its limits.
#[derive(Serialize, ToSchema)]
pub(super) struct Me {
    tenant: String,
    limits: ShownLimits,
    /// Open orders of the tenant; counted only if there is a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    open_orders: Option<usize>,
    /// Secret that signs calls to `callback_url`, in the form of Standard Webhooks libraries.
    #[schema(pattern = "^whsec_[A-Za-z0-9+/]+=*$")]
    webhook_secret: String,
}

/// Read the tenant of the key, and its limits
#[utoipa::path(
    get, path = "/v1/me", operation_id = "me", tag = "about",
    responses((status = 200, body = Me, description = "The tenant of the key."), MeProblems),
    security(("bearer" = []), ("api_key" = [])),
)]
pub(super) async fn me(State(state): State<AppState>, Tenanted(caller): Tenanted) -> Response {
    let settings = &caller.tenant.settings;
    let targets = settings.targets.as_ref();
    let me = Me {
        tenant: settings.name.clone(),
        limits: ShownLimits {
            rate: settings.rate.map(|rate| ShownRate { every_ms: millis(rate.every), burst: rate.burst }),
            open_max: settings.open_max,
            kinds: settings.kinds.clone(),
            targets: targets.map(|targets| targets.allow.iter().map(ToString::to_string).collect()),
        },
        open_orders: settings.open_max.map(|_| state.orders.commit_feed().open_orders(&settings.name)),
        webhook_secret: secret_for_people(&state.orders.webhooks().secret_of(&settings.name)),
    };
    super::json(StatusCode::OK, &me)
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ShownShape {
    Text,
    PageAddress,
    VendorAddress,
    File,
}

#[derive(Serialize, ToSchema)]
pub(super) struct ShownField {
    name: &'static str,
    shape: ShownShape,
    required: bool,
    /// Whether orders with different values are different orders.
    identifies: bool,
    /// Value that is used if the field is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_min: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_max: Option<usize>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct ShownKind {
    name: String,
    fields: Vec<ShownField>,
    /// Whether a site accepts an answer only once.
    single_use: bool,
    /// How long an answer is good after the solve; absent: it does not expire.
    #[serde(skip_serializing_if = "Option::is_none")]
    life_s: Option<u64>,
    /// Life that a reused answer, cached or from the stock, must have left when it is handed out.
    margin_s: u64,
    /// Usual time to an answer.
    usual_s: u64,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Kinds)]
pub(super) struct KindList {
    kinds: Vec<ShownKind>,
}

/// List the kinds
#[utoipa::path(
    get, path = "/v1/kinds", operation_id = "kinds", tag = "about",
    responses((status = 200, body = KindList, description = "Every described kind."), AnyProblems),
)]
pub(super) async fn kinds(State(state): State<AppState>) -> Response {
    // What the operator has changed about a kind counts.
    let kinds = quittance_protocol::kinds::kinds().filter_map(|kind| state.orders.engine().kind(&kind.name));
    super::json(StatusCode::OK, &KindList { kinds: kinds.map(|kind| shown(&kind)).collect() })
}

fn shown(kind: &Kind) -> ShownKind {
    let fields = kind.fields.iter().map(|field| {
        let (shape, bounds) = match field.shape {
            Shape::Text | Shape::Document => (ShownShape::Text, None),
            Shape::PageAddress => (ShownShape::PageAddress, None),
            Shape::VendorAddress => (ShownShape::VendorAddress, None),
            Shape::File { bytes_min, bytes_max } => (ShownShape::File, Some((bytes_min, bytes_max))),
        };
        ShownField {
            name: field.name,
            shape,
            required: field.required,
            identifies: field.identifies,
            default: field.default.filter(|default| !default.is_empty()),
            bytes_min: bounds.map(|(least, _)| least),
            bytes_max: bounds.map(|(_, most)| most),
        }
    });
    ShownKind {
        name: kind.name.to_string(),
        fields: fields.collect(),
        single_use: kind.single_use,
        life_s: kind.life.map(|life| life.as_secs()),
        margin_s: kind.margin.as_secs(),
        usual_s: kind.pace.p50.as_secs(),
    }
}

/// An error code, and what to do.
#[derive(Serialize, ToSchema)]
pub(super) struct CodePage {
    #[serde(rename = "type")]
    #[schema(pattern = "^/v1/errors/[a-z_]+$")]
    about: String,
    #[schema(pattern = "^[a-z_]+$")]
    code: &'static str,
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    title: &'static str,
    hint: &'static str,
}

#[derive(Serialize, ToSchema)]
pub(super) struct CodePages {
    errors: Vec<CodePage>,
}

fn page(code: Code) -> CodePage {
    CodePage {
        about: code.page(),
        code: code.name(),
        status: code.status(),
        title: code.title(),
        hint: code.hint(),
    }
}

/// List the error codes
#[utoipa::path(
    get, path = "/v1/errors", operation_id = "errors", tag = "about",
    responses((status = 200, body = CodePages, description = "All error codes."), AnyProblems),
)]
pub(super) async fn errors() -> Response {
    super::json(StatusCode::OK, &CodePages { errors: Code::ALL.iter().copied().map(page).collect() })
}

/// Read an error code
#[utoipa::path(
    get, path = "/v1/errors/{code}", operation_id = "error", tag = "about",
    params(("code" = String, Path, pattern = "^[a-z_]+$", description = "The code.")),
    responses((status = 200, body = CodePage, description = "The meaning of the code."), PageProblems),
)]
pub(super) async fn error(path: Result<Path<String>, PathRejection>) -> Result<Response, Refused> {
    let name = path.map(|Path(name)| name).unwrap_or_default();
    let code = Code::ALL.iter().find(|code| code.name() == name);
    let code = code.ok_or_else(|| Code::NotFound.because("There is no such code."))?;
    Ok(super::json(StatusCode::OK, &page(*code)))
}

/// Check that the process is alive
#[utoipa::path(
    get, path = "/healthz", operation_id = "alive", tag = "about",
    responses((status = 200, body = String, content_type = "text/plain", description = "The process is alive."), AnyProblems),
)]
pub(super) async fn alive() -> Response {
    "ok".into_response()
}

const RECOVERING: &str = "the store is new, or was flushed, restored or replaced. The nodes agree on its secret and put back the orders that they hold. Try again in some seconds";

#[derive(Serialize, ToSchema)]
pub(super) struct Readiness {
    ready: bool,
    /// Whether the node has started and is not stopping.
    serving: bool,
    /// Whether the store answers.
    store: bool,
    /// Why the store does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// Check that the node is ready for work
#[utoipa::path(
    get, path = "/readyz", operation_id = "ready", tag = "about",
    responses(
        (status = 200, body = Readiness, description = "The node is ready."),
        (status = 503, body = Readiness, description = "The node is not ready."),
        AnyProblems,
    ),
)]
pub(super) async fn ready(State(state): State<AppState>) -> Response {
    let serving = state.ready.load(Ordering::Relaxed);
    let asked = state.orders.engine().list(Which::OPEN, None, 1);
    // One that can be read and not written shows only when something is written.
    let store = tokio::time::timeout(STORE_WAIT, asked).await.is_ok_and(|listed| listed.is_ok())
        && !state.orders.engine().store_was_away(STORE_ERROR_PERIOD);
    let engine = state.orders.engine();
    let recovering = engine.recovering().is_some();
    let ready = serving && store && !recovering;
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let forgetting = engine.forgetting().map(|forgetting| forgetting.what);
    let why = match (store, recovering) {
        (true, false) => None,
        (_, true) => forgetting.or_else(|| Some(RECOVERING.to_owned())),
        (false, false) => forgetting.or_else(|| engine.store_error()),
    };
    super::json(status, &Readiness { ready, serving, store, why })
}

/// Read this OpenAPI document
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "openapi", tag = "about",
    responses((status = 200, body = serde_json::Value, description = "OpenAPI 3.1."), AnyProblems),
)]
pub(super) async fn document(State(state): State<AppState>) -> Response {
    ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], state.document).into_response()
}
