//! The native API: one resource, the order, in plain HTTP. Place and wait in one call, errors that stay, live events; and the
//! OpenAPI document that is made from the same code, so that it cannot be wrong about it.

mod about;
mod admin;
mod alerts;
mod audit;
mod bulk;
mod caller;
mod days;
mod dead;
mod events;
mod find;
mod letter;
mod live;
mod metrics;
mod nodes;
mod orders;
mod outcome;
mod page;
mod pool_request;
mod pools;
mod prices;
mod problem;
mod request;
mod settings;
mod shown;
mod stock;
mod sums;
mod timeline;
mod told;
mod usage;

pub(crate) use caller::shown as key_in_head;
pub(crate) use live::snapshot;
pub use settings::ShownSetting;
pub(crate) use told::told;

use crate::OrderService;
use crate::api::{ApiRequest, Body};
use crate::seats::Seats;
use crate::server::RequestError;
use axum::Router;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Body as HttpBody, Frame};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, StatusCode};
pub use problem::native_code;
use problem::{Code, Refused};
use quittance_lifecycle::Money;
use quittance_telemetry::Monitor;
use serde::Serialize;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll};
use std::time::Duration;
use tower::ServiceExt;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// What every endpoint stands on.
#[derive(Clone)]
struct AppState {
    orders: OrderService,
    ready: Arc<AtomicBool>,
    /// A seat for each live stream of a tenant, and of the operator.
    streams: Seats,
    operators_streams: Seats,
    document: Bytes,
    monitor: Monitor,
    shown: Arc<[ShownSetting]>,
}

/// The door to `/v1`, `/openapi.json`, `/metrics`, `/healthz` and `/readyz`. Clones share it.
#[derive(Clone)]
pub(crate) struct V1Api {
    router: Router,
}

impl std::fmt::Debug for V1Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("V1Door")
    }
}

impl V1Api {
    pub(crate) fn new(
        orders: OrderService,
        ready: Arc<AtomicBool>,
        monitor: Monitor,
        shown: Vec<ShownSetting>,
    ) -> Self {
        let (router, document) = routes();
        let state = AppState {
            orders,
            ready,
            streams: Seats::new(events::STREAMS_MAX),
            operators_streams: Seats::new(events::OPERATORS_STREAMS_MAX),
            document: json_text(&document).into(),
            monitor,
            shown: shown.into(),
        };
        let router = router.fallback(nowhere).method_not_allowed_fallback(not_so).with_state(state);
        Self { router }
    }

    pub(crate) async fn answer(&self, asked: ApiRequest) -> hyper::Response<Body> {
        let is_question = asked.head.method == Method::OPTIONS;
        let request = Request::from_parts(asked.head, axum::body::Body::from(asked.body));
        let Ok(mut response) = self.router.clone().oneshot(request).await;
        if is_question && response.status() == StatusCode::METHOD_NOT_ALLOWED {
            response = what_may_be_done(&response);
        }
        // An answer is as good as money: it does not belong in anybody's cache.
        response.headers_mut().entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
        whole_or_live(response).await
    }
}

/// What a request is told that did not reach this door.
pub(crate) fn turn_away(why: RequestError) -> hyper::Response<Body> {
    let (code, again_in) = match why {
        RequestError::TooLarge => (Code::TooLarge, None),
        RequestError::TooSlow => (Code::TooSlow, None),
        RequestError::Broken => (Code::BrokenBody, None),
        RequestError::Overloaded => (Code::Overloaded, Some(Duration::from_secs(1))),
        RequestError::Panicked => (Code::Internal, None),
    };
    whole(again_in.into_iter().fold(code.plain(), Refused::again_in))
}

/// Whoever may not come in at all.
pub(crate) fn forbidden(why: &str) -> hyper::Response<Body> {
    whole(Code::Forbidden.because(why))
}

fn whole(refused: Refused) -> hyper::Response<Body> {
    let (status, headers, text) = refused.parts();
    let mut response = hyper::Response::new(Either::Left(Full::new(text.into())));
    (*response.status_mut(), *response.headers_mut()) = (status, headers);
    response
}

/// The OpenAPI document, as it is served.
#[must_use]
pub fn openapi() -> String {
    json_text(&routes().1)
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Quittance",
        description = "Orders for captcha answers: paid once, never lost, never stale. If no tenant is configured, \
            no key is needed. Each error is an application/problem+json with a code from /v1/errors.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    components(schemas(problem::Problem, shown::Change)),
    modifiers(&Keys),
    tags(
        (name = "orders", description = "Place, read, list, cancel, report."),
        (name = "stock", description = "The stock, and the pools that fill it."),
        (name = "events", description = "Live streams of changes."),
        (name = "about", description = "Endpoints, kinds, error codes, health."),
        (name = "admin", description = "For the operator; needs the operator's key."),
    ),
)]
struct Document;

/// How a key is shown.
struct Keys;

impl Modify for Keys {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
        let header = ApiKey::Header(ApiKeyValue::new("X-Api-Key"));
        components.add_security_scheme("api_key", SecurityScheme::ApiKey(header));
    }
}

fn routes() -> (Router<AppState>, utoipa::openapi::OpenApi) {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(orders::place, orders::list))
        .routes(routes!(orders::read, orders::cancel))
        .routes(routes!(orders::report))
        .routes(routes!(events::watch_one))
        .routes(routes!(events::watch_all))
        .routes(routes!(about::index))
        .routes(routes!(about::me))
        .routes(routes!(about::kinds))
        .routes(routes!(about::errors))
        .routes(routes!(about::error))
        .routes(routes!(about::alive))
        .routes(routes!(about::ready))
        .routes(routes!(about::document))
        .routes(routes!(admin::account))
        .routes(routes!(find::find))
        .routes(routes!(timeline::timeline))
        .routes(routes!(timeline::note))
        .routes(routes!(dead::list))
        .routes(routes!(dead::export))
        .routes(routes!(dead::import))
        .routes(routes!(bulk::list, bulk::begin))
        .routes(routes!(bulk::read, bulk::stop))
        .routes(routes!(outcome::outcome))
        .routes(routes!(dead::replay))
        .routes(routes!(dead::drop_dead))
        .routes(routes!(admin::release))
        .routes(routes!(admin::state))
        .routes(routes!(usage::usage))
        .routes(routes!(audit::audit))
        .routes(routes!(live::now))
        .routes(routes!(live::live))
        .routes(routes!(live::history))
        .routes(routes!(alerts::list))
        .routes(routes!(alerts::see))
        .routes(routes!(settings::settings))
        .routes(routes!(nodes::nodes))
        .routes(routes!(pools::list))
        .routes(routes!(pools::read, pools::set, pools::remove))
        .routes(routes!(stock::stock))
        .routes(routes!(metrics::metrics))
        .split_for_parts()
}

async fn nowhere() -> Refused {
    Code::NotFound.plain()
}

async fn not_so() -> Refused {
    Code::MethodNotAllowed.plain()
}

/// The answer to OPTIONS: what would not have been refused.
fn what_may_be_done(refused: &Response) -> Response {
    let others = refused.headers().get(ALLOW).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut response = StatusCode::NO_CONTENT.into_response();
    let allow = HeaderValue::try_from(format!("{others},OPTIONS"));
    response.headers_mut().extend(allow.ok().map(|allow| (ALLOW, allow)));
    response
}

/// An amount as a decimal, such as `0.00299`.
fn decimal(amount: Money) -> String {
    amount.to_string()
}

fn json_text(said: &impl Serialize) -> String {
    serde_json::to_string(said).expect("it has string keys and nothing that can fail")
}

fn json(status: StatusCode, said: &impl Serialize) -> Response {
    let content_type = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (status, content_type, json_text(said)).into_response()
}

/// Lines of JSON, one for each thing, as many as there are.
pub(crate) const JSON_LINES: &str = "application/x-ndjson";
/// What is sent as it is made, and not gathered first.
const STREAMED: [&str; 2] = [events::EVENT_STREAM, JSON_LINES];

/// The answer in the form that every door gives.
async fn whole_or_live(response: Response) -> hyper::Response<Body> {
    let (head, body) = response.into_parts();
    let is_live =
        head.headers.get(CONTENT_TYPE).is_some_and(|value| STREAMED.iter().any(|streamed| value == streamed));
    let body = if is_live {
        Either::Right(Endless(body).boxed_unsync())
    } else {
        // It is in memory already, and cannot fail to arrive.
        let whole = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        Either::Left(Full::new(whole))
    };
    hyper::Response::from_parts(head, body)
}

/// A stream that can only end.
struct Endless(axum::body::Body);

impl HttpBody for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.0).poll_frame(context).map(|frame| frame?.ok().map(Ok))
    }
}
