//! All APIs behind one address. A request finds its API here, and a refused request gets a response in the protocol of its API.

use crate::api::{self, ApiRequest, Body};
use crate::callbacks::CallbackApi;
use crate::classic_api::{self, ClassicApi};
use crate::early_key::early_key;
use crate::json_api::JsonApi;
use crate::log_once::LogOnce;
use crate::orders::OrderService;
use crate::route::Route;
use crate::v1::{self, Endpoints, V1Api};
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Either, Full};
use hyper::header::HeaderMap;
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use quittance_engine::targets::HostPattern;
use quittance_http_server::{
    Counts, HttpServer, Limits, PendingRequest, RequestError, RequestHandler, RequestReach, Shown, Tls,
    is_from_elsewhere,
};
use quittance_protocol::Dialect;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;

pub(crate) const PLAIN: &str = "text/plain; charset=utf-8";

/// The code for a request from another site, for clients that read only codes.
const NOT_LET_IN: &str = "ERROR_IP_NOT_ALLOWED";

/// The response at an unknown path.
const WHAT_THERE_IS: &str = "There is nothing here. There are /in.php and /res.php (classic), /createTask and \
    /getTaskResult (JSON), /v1 (described in /openapi.json), /page/ (for people), /metrics, /healthz and /readyz.";

#[derive(Clone, Debug, Default)]
pub struct GatewaySettings {
    pub limits: Limits,
    /// Dialect of callers that choose none in the path.
    pub dialect: Option<Dialect>,
    /// Names of this gateway besides localhost. Only a gateway without tenants checks them.
    pub hosts: Vec<HostPattern>,
}

/// Serves a file of the page at a path, for a method and headers. `None` if there is no file.
pub type PageHandler = fn(&Method, &str, &HeaderMap) -> Option<Response<Full<Bytes>>>;

/// What another crate adds to the gateway.
#[derive(Clone, Debug)]
pub struct Mount {
    pub endpoints: Endpoints,
    /// Serves [`PAGE_PATH`](crate::PAGE_PATH), and `/` for browsers.
    pub page: PageHandler,
}

impl Default for Mount {
    fn default() -> Self {
        Self { endpoints: Endpoints::default(), page: |_, _, _| None }
    }
}

/// The gateway. Clones share its state.
#[derive(Clone)]
pub struct Gateway {
    apis: Arc<Apis>,
    server: HttpServer,
}

struct Apis {
    orders: OrderService,
    callbacks: CallbackApi,
    classic: ClassicApi,
    json: JsonApi,
    v1: V1Api,
    page: PageHandler,
    ready: Arc<AtomicBool>,
    hosts: Vec<HostPattern>,
    logged: LogOnce,
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("orders", &self.apis.orders).finish_non_exhaustive()
    }
}

impl Gateway {
    #[must_use]
    pub fn new(orders: OrderService, settings: GatewaySettings) -> Self {
        Self::mounted(orders, settings, Mount::default())
    }

    /// A gateway with the endpoints and the page of another crate.
    #[must_use]
    pub fn mounted(orders: OrderService, settings: GatewaySettings, mount: Mount) -> Self {
        let GatewaySettings { limits, dialect, hosts } = settings;
        let engine = Arc::clone(orders.engine());
        let ready = Arc::<AtomicBool>::default();
        let apis = Apis {
            callbacks: CallbackApi::new(engine, limits),
            classic: ClassicApi::new(orders.clone(), dialect),
            json: JsonApi::new(orders.clone(), dialect),
            v1: V1Api::new(orders.clone(), Arc::clone(&ready), mount.endpoints),
            page: mount.page,
            ready,
            hosts,
            logged: LogOnce::default(),
            orders,
        };
        Self { apis: Arc::new(apis), server: HttpServer::new(limits) }
    }

    /// Accepts connections until the future is dropped or drained. Several listeners can run at once, within the same
    /// limits.
    pub fn serve(&self, listener: TcpListener, tls: Option<Tls>) -> impl Future<Output = ()> + Send + use<> {
        self.apis.orders.engine().listens_for_callbacks();
        self.server.clone().serve(Arc::new(self.clone()), listener, tls)
    }

    /// Answers a request without a socket: a command gets the same response as from the daemon.
    pub async fn ask(&self, request: Request<Bytes>) -> Response<UnsyncBoxBody<Bytes, Infallible>> {
        let (head, body) = request.into_parts();
        let request = ApiRequest { body, ..ApiRequest::new(head) };
        let mut request = RoutedRequest { apis: Arc::clone(&self.apis), request };
        request.pass_on().await.map(|body| match body {
            Either::Left(whole) => whole.boxed_unsync(),
            Either::Right(live) => live,
        })
    }

    /// Whether `/readyz` reports that the node serves.
    pub fn set_ready(&self, is_ready: bool) {
        self.apis.ready.store(is_ready, Ordering::Relaxed);
    }

    /// Stops accepting connections and answers the requests in progress. A request that waits for an answer gets the
    /// pending order at once. Returns whether all requests were answered; if not, some were cut off.
    pub async fn drain(&self, timeout: Duration) -> bool {
        self.set_ready(false);
        self.apis.orders.stop_waiting();
        self.server.drain(timeout).await
    }

    #[must_use]
    pub fn orders(&self) -> &OrderService {
        &self.apis.orders
    }

    #[must_use]
    pub fn counts(&self) -> Counts {
        self.server.counts()
    }
}

impl RequestHandler for Gateway {
    fn begin(&self, head: Parts) -> Box<dyn PendingRequest> {
        Box::new(RoutedRequest { apis: Arc::clone(&self.apis), request: ApiRequest::new(head) })
    }

    fn has_one_tenant(&self) -> bool {
        self.apis.orders.tenants().is_only_one()
    }

    fn needs_no_key(&self) -> bool {
        self.apis.orders.tenants().local().is_some()
    }

    fn accepts_late(&self, waited: Duration, is_over: bool) {
        self.apis.orders.engine().callbacks_waited(waited, is_over);
    }
}

/// A request on its way to its API.
struct RoutedRequest {
    apis: Arc<Apis>,
    request: ApiRequest,
}

impl RoutedRequest {
    async fn pass_on(&mut self) -> Response<Body> {
        let Self { apis, request } = self;
        match request.route {
            Route::Classic(page) => apis.classic.answer(page, request).await,
            Route::Json(method) => apis.json.answer(method, request).await,
            Route::Callback(ref segment) => apis.callbacks.answer(segment, request).await,
            Route::V1 | Route::Operator => apis.v1.answer(request.take()).await,
            Route::Page(ref path) => (apis.page)(&request.head.method, path, &request.head.headers)
                .map_or_else(not_found, |response| response.map(Either::Left)),
            Route::Unknown => not_found(),
        }
    }

    /// Why a request is refused, if it may come from a web page of another site. Without keys, such a page must not
    /// act for the user of the browser.
    fn cross_site(&self) -> Option<String> {
        let Self { apis, request } = self;
        let reach = match request.route {
            Route::Callback(_) => return None,
            _ if !apis.orders.tenants().is_open() => return None,
            Route::Classic(_) | Route::Json(_) => RequestReach::Acts,
            Route::V1 | Route::Operator if request.head.method != Method::GET => RequestReach::Acts,
            _ => RequestReach::Reads,
        };
        let why = is_from_elsewhere(&request.head, reach, &apis.hosts)?.to_string();
        if apis.logged.is_first(&why) {
            tracing::warn!("refused a request: {why}");
        }
        Some(why)
    }

    fn forbid(&self, why: &str) -> Response<Body> {
        match self.request.route {
            Route::V1 | Route::Operator => v1::forbidden(why),
            Route::Classic(_) => classic_api::forbid(&self.request, NOT_LET_IN, why),
            Route::Json(_) => self.apis.json.forbid(&self.request, NOT_LET_IN, why),
            Route::Callback(_) | Route::Page(_) | Route::Unknown => {
                api::answer(StatusCode::FORBIDDEN, PLAIN, why.to_owned())
            }
        }
    }
}

impl PendingRequest for RoutedRequest {
    fn route_name(&self) -> &'static str {
        self.request.route.name()
    }

    fn is_reserved(&self) -> bool {
        self.request.route.is_reserved()
    }

    fn shown_early(&self, beginning: &[u8]) -> Shown {
        let Self { apis, request } = self;
        let tenants = apis.orders.tenants();
        let of = |key: &str| match tenants.caller(key) {
            Ok(caller) => Shown::Tenant(caller.tenant.name().to_owned()),
            Err(_) if tenants.is_admin(key) => Shown::Operator,
            Err(_) => Shown::Nothing,
        };
        let in_head = || {
            v1::caller::key_in_headers(&request.head.headers)
                .or_else(|| early_key(request.query().as_bytes()))
        };
        let key = if beginning.is_empty() { in_head() } else { early_key(beginning) };
        key.map_or(Shown::Nothing, of)
    }

    fn set_body(&mut self, body: Bytes) {
        self.request.body = body;
    }

    fn answer(&mut self) -> BoxFuture<'_, Response<Body>> {
        match self.cross_site() {
            Some(why) => std::future::ready(self.forbid(&why)).boxed(),
            None => self.pass_on().boxed(),
        }
    }

    fn refuse(&self, why: RequestError) -> Response<Body> {
        let Self { apis, request } = self;
        match request.route {
            Route::Classic(page) => classic_api::refuse_unread(page, request, why),
            Route::Json(method) => apis.json.refuse_unread(method, request, why),
            Route::Callback(ref segment) => apis.callbacks.refuse(segment, request, why),
            Route::V1 | Route::Operator => v1::refuse_unread(why),
            Route::Page(_) => refuse_page(why),
            Route::Unknown => not_found(),
        }
    }
}

fn not_found() -> Response<Body> {
    api::answer(StatusCode::NOT_FOUND, PLAIN, WHAT_THERE_IS)
}

fn refuse_page(why: RequestError) -> Response<Body> {
    let (status, words) = match why {
        RequestError::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "Too large."),
        RequestError::TooSlow => (StatusCode::REQUEST_TIMEOUT, "Too slow."),
        RequestError::Broken => (StatusCode::BAD_REQUEST, "The request is incomplete."),
        RequestError::Overloaded => {
            (StatusCode::TOO_MANY_REQUESTS, "Too many requests. Try again in a moment.")
        }
        RequestError::Panicked => (StatusCode::INTERNAL_SERVER_ERROR, "Internal error."),
    };
    api::answer(status, PLAIN, words)
}
