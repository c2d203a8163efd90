//! The native API: one resource, the order, in plain HTTP. It offers placing and waiting in one call, stable errors
//! and live events. The OpenAPI document is made from the same code.

mod about;
pub mod caller;
pub mod events;
pub mod list_page;
pub mod order_problems;
mod order_view;
mod orders;
pub mod problem;
pub mod request_body;

pub use caller::{Operator, Watcher};
pub use order_view::{ErrorView, OrderInFull, OrderInShort, ShownAnswer, Source, Status};
pub use problem::native_code;

use crate::OrderService;
use crate::api::Body;
use axum::Router;
use axum::extract::FromRef;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::StreamExt;
use http_body_util::{BodyExt, Either, Full, StreamBody};
use hyper::body::Frame;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, StatusCode};
use problem::{Code, Refused};
use quittance_http_server::RequestError;
use quittance_lifecycle::Money;
use serde::Serialize;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tower::ServiceExt;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// How long the store may take to accept an order or a pool before the request fails.
pub const PLACE_WAIT: Duration = Duration::from_secs(4);

/// What the endpoints of the native API share.
#[derive(Clone)]
struct AppState {
    orders: OrderService,
    ready: Arc<AtomicBool>,
    document: Bytes,
}

impl FromRef<AppState> for OrderService {
    fn from_ref(state: &AppState) -> Self {
        state.orders.clone()
    }
}

/// Endpoints that another crate adds, with their OpenAPI description.
#[derive(Clone, Default)]
pub struct Endpoints {
    pub router: Router,
    pub document: utoipa::openapi::OpenApi,
}

impl std::fmt::Debug for Endpoints {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Endpoints({} paths)", self.document.paths.paths.len())
    }
}

/// The native API: `/v1`, `/openapi.json`, `/healthz`, `/readyz`, and added endpoints.
pub(crate) struct V1Api {
    router: Router,
}

impl V1Api {
    pub(crate) fn new(orders: OrderService, ready: Arc<AtomicBool>, added: Endpoints) -> Self {
        let (router, mut document) = routes();
        document.merge(added.document);
        let state = AppState { orders, ready, document: json_text(&document).into() };
        let router = router.with_state(state).merge(added.router);
        Self { router: router.fallback(not_found).method_not_allowed_fallback(method_not_allowed) }
    }

    pub(crate) async fn answer(&self, request: Request<Bytes>) -> hyper::Response<Body> {
        let is_options = request.method() == Method::OPTIONS;
        let Ok(mut response) = self.router.clone().oneshot(request.map(axum::body::Body::from)).await;
        if is_options && response.status() == StatusCode::METHOD_NOT_ALLOWED {
            response = allowed_methods(&response);
        }
        // An answer is as good as money: no cache may keep it.
        response.headers_mut().entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
        whole_or_live(response).await
    }
}

/// The response to a request that did not reach the API.
pub(crate) fn refuse_unread(why: RequestError) -> hyper::Response<Body> {
    let (code, again_in) = match why {
        RequestError::TooLarge => (Code::TooLarge, None),
        RequestError::TooSlow => (Code::TooSlow, None),
        RequestError::Broken => (Code::BrokenBody, None),
        RequestError::Overloaded => (Code::Overloaded, Some(Duration::from_secs(1))),
        RequestError::Panicked => (Code::Internal, None),
    };
    whole(again_in.into_iter().fold(code.plain(), Refused::again_in))
}

/// The response to a request that is not allowed at all.
pub(crate) fn forbidden(why: &str) -> hyper::Response<Body> {
    whole(Code::Forbidden.because(why))
}

fn whole(refused: Refused) -> hyper::Response<Body> {
    let (status, headers, text) = refused.parts();
    let mut response = hyper::Response::new(Either::Left(Full::new(text.into())));
    (*response.status_mut(), *response.headers_mut()) = (status, headers);
    response
}

/// The OpenAPI document, including the endpoints of another crate.
#[must_use]
pub fn openapi(added: utoipa::openapi::OpenApi) -> String {
    let mut document = routes().1;
    document.merge(added);
    json_text(&document)
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Quittance",
        description = "Orders for captcha answers: paid once, never lost, never stale. If no tenant is configured, \
            no key is needed. Each error is an application/problem+json with a code from /v1/errors.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    components(schemas(problem::Problem, order_view::StreamedChange)),
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

/// How a key is sent.
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
        .split_for_parts()
}

async fn not_found() -> Refused {
    Code::NotFound.plain()
}

async fn method_not_allowed() -> Refused {
    Code::MethodNotAllowed.plain()
}

/// The response to OPTIONS: the methods of the path.
fn allowed_methods(refused: &Response) -> Response {
    let others = refused.headers().get(ALLOW).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut response = StatusCode::NO_CONTENT.into_response();
    let allow = HeaderValue::try_from(format!("{others},OPTIONS"));
    response.headers_mut().extend(allow.ok().map(|allow| (ALLOW, allow)));
    response
}

/// An amount as a decimal, such as `0.00299`.
#[must_use]
pub fn decimal(amount: Money) -> String {
    amount.to_string()
}

/// A body as JSON.
///
/// # Panics
/// If a map in it has keys that are no strings.
#[must_use]
pub fn json_text(body: &impl Serialize) -> String {
    serde_json::to_string(body).expect("it has string keys and nothing that can fail")
}

/// A response with a JSON body.
pub fn json(status: StatusCode, body: &impl Serialize) -> Response {
    let content_type = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    (status, content_type, json_text(body)).into_response()
}

/// The content type of lines of JSON, which are sent as they are made.
pub const JSON_LINES: &str = "application/x-ndjson";
/// Content types of streams: they are sent as they are made.
const STREAMED: [&str; 2] = [events::EVENT_STREAM, JSON_LINES];

/// Converts a response into the server's form: whole, or as a stream.
async fn whole_or_live(response: Response) -> hyper::Response<Body> {
    let (head, body) = response.into_parts();
    let is_live =
        head.headers.get(CONTENT_TYPE).is_some_and(|value| STREAMED.iter().any(|streamed| value == streamed));
    let body = if is_live {
        // A stream of ours has no errors: it can only end.
        let frames = body.into_data_stream().filter_map(|bytes| ready(bytes.ok().map(Frame::data).map(Ok)));
        Either::Right(StreamBody::new(frames).boxed_unsync())
    } else {
        // It is in memory already, and cannot fail.
        let whole = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        Either::Left(Full::new(whole))
    };
    hyper::Response::from_parts(head, body)
}
