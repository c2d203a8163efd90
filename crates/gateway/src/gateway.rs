//! All APIs behind one address. A request finds its API here, and a refused request gets a response in the protocol of its API.

mod guard;
mod json_refusal;
mod page;

use crate::api::{self, ApiRequest, Body};
use crate::callbacks::{CALLBACK_PATH, CallbackApi};
use crate::classic::ClassicApi;
use crate::json::JsonApi;
use crate::once::Once;
use crate::orders::OrderService;
use crate::server::{Counts, Limits, RequestError, RequestHandler, Server};
use crate::tls::Tls;
use crate::v1::{self, Endpoints, V1Api};
use crate::wrong_keys::{Shown, early_key};
use bytes::Bytes;
use guard::Reach;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Either, Full};
use hyper::header::{CONTENT_TYPE, HeaderMap};
use hyper::{Method, Request, Response, StatusCode};
use quittance_engine::targets::HostPattern;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;

pub use page::PAGE_PATH;

pub(crate) const PLAIN: &str = "text/plain; charset=utf-8";

/// The response at an unknown path.
const WHAT_THERE_IS: &str = "There is nothing here. There are /in.php and /res.php (classic), /createTask and \
    /getTaskResult (JSON), /v1 (described in /openapi.json), /page/ (for people), /metrics, /healthz and /readyz.";

#[derive(Clone, Debug, Default)]
pub struct GatewaySettings {
    pub limits: Limits,
    /// Dialect of callers that choose none in the path.
    pub dialect: Option<String>,
    /// Names of this gateway besides localhost. Only a gateway without tenants checks them.
    pub hosts: Vec<HostPattern>,
}

/// A file of the page at a path, for a method and headers; `None` if there is nothing.
pub type PageHandler = fn(&Method, &str, &HeaderMap) -> Option<Response<Full<Bytes>>>;

/// What another crate adds to the gateway.
#[derive(Clone, Debug)]
pub struct Mount {
    pub endpoints: Endpoints,
    /// Serves [`PAGE_PATH`], and `/` for browsers.
    pub page: PageHandler,
}

impl Default for Mount {
    fn default() -> Self {
        Self { endpoints: Endpoints::default(), page: |_, _, _| None }
    }
}

/// Clones share it.
#[derive(Clone)]
pub struct Gateway {
    apis: Arc<Apis>,
    server: Server,
}

struct Apis {
    orders: OrderService,
    callbacks: CallbackApi,
    classic: ClassicApi,
    json: JsonApi,
    v1: V1Api,
    page: PageHandler,
    ready: Arc<AtomicBool>,
    dialect: Option<String>,
    hosts: Vec<HostPattern>,
    logged: Once,
}

/// The API of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    Callback,
    Classic,
    Json,
    V1,
    Page,
    Nowhere,
}

impl Route {
    fn of(path: &str) -> Self {
        match path {
            "/openapi.json" | "/metrics" | "/healthz" | "/readyz" | "/v1" => Self::V1,
            path if path.starts_with("/v1/") => Self::V1,
            path if CallbackApi::is_for(path) => Self::Callback,
            path if ClassicApi::is_for(path) => Self::Classic,
            path if JsonApi::is_for(path) => Self::Json,
            path if page::is_for(path) => Self::Page,
            _ => Self::Nowhere,
        }
    }
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
            classic: ClassicApi::new(orders.clone(), dialect.clone()),
            json: JsonApi::new(orders.clone(), dialect.clone()),
            v1: V1Api::new(orders.clone(), Arc::clone(&ready), mount.endpoints),
            page: mount.page,
            ready,
            dialect,
            hosts,
            logged: Once::default(),
            orders,
        };
        Self { apis: Arc::new(apis), server: Server::new(limits) }
    }

    /// Listens until it is dropped or drained. Several may run at once, within the same limits.
    pub fn serve(&self, listener: TcpListener, tls: Option<Tls>) -> impl Future<Output = ()> + Send + use<> {
        self.apis.orders.engine().listens_for_callbacks();
        self.server.clone().serve(self.clone(), listener, tls)
    }

    /// A request to `/v1` without a socket: a command gets the same response as from the daemon.
    pub async fn ask(&self, request: Request<Bytes>) -> Response<UnsyncBoxBody<Bytes, Infallible>> {
        let (head, body) = request.into_parts();
        let path = head.uri.path().to_owned();
        let content_type = head.headers.get(CONTENT_TYPE).cloned();
        let request = ApiRequest { head, path, dialect: None, content_type, body };
        self.apis.v1.answer(request).await.map(|body| match body {
            Either::Left(whole) => whole.boxed_unsync(),
            Either::Right(live) => live,
        })
    }

    /// Whether `/readyz` reports that the node serves.
    pub fn set_ready(&self, is_ready: bool) {
        self.apis.ready.store(is_ready, Ordering::Relaxed);
    }

    /// Accepts no new connections and answers the requests in progress; a request that waits for an answer gets the pending order at
    /// once. Returns whether all requests were answered, or some were cut off.
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
        Counts { senseless_callbacks: self.apis.callbacks.senseless(), ..self.server.counts() }
    }
}

impl Gateway {
    fn page(&self, request: &ApiRequest) -> Option<Response<Body>> {
        let response = (self.apis.page)(&request.head.method, &request.path, &request.head.headers)?;
        Some(response.map(Either::Left))
    }
}

impl RequestHandler for Gateway {
    async fn answer(&self, request: ApiRequest) -> Response<Body> {
        let route = Route::of(&request.path);
        let Apis { orders, callbacks, classic, json, v1, .. } = &*self.apis;
        // Without keys, a page of another site in a browser must not be able to act for the person who uses the browser.
        let is_guarded = route != Route::Callback && orders.tenants().is_open();
        let reach = match route {
            Route::Classic | Route::Json => Reach::Acts,
            Route::V1 if request.head.method != Method::GET => Reach::Acts,
            _ => Reach::Reads,
        };
        let elsewhere = guard::is_from_elsewhere(&request.head, reach, &self.apis.hosts);
        if let Some(why) = elsewhere.filter(|_| is_guarded) {
            let why = why.to_string();
            if self.apis.logged.is_first(&why) {
                tracing::warn!("refused a request: {why}");
            }
            return match route {
                Route::V1 => v1::forbidden(&why),
                Route::Classic => ClassicApi::refuse(&request, guard::CODE, &why),
                Route::Json => {
                    json_refusal::json_code(&request, self.apis.dialect.as_deref(), guard::CODE, &why)
                }
                _ => api::answer(StatusCode::FORBIDDEN, PLAIN, why),
            };
        }
        match route {
            Route::Callback => callbacks.answer(request).await,
            Route::Classic => classic.answer(request).await,
            Route::Json => json.answer(request).await,
            Route::V1 => v1.answer(request).await,
            Route::Page => self.page(&request).unwrap_or_else(not_found),
            Route::Nowhere => not_found(),
        }
    }

    fn turn_away(&self, request: &ApiRequest, why: RequestError) -> Response<Body> {
        match Route::of(&request.path) {
            Route::Callback => self.apis.callbacks.refuse(request, why),
            Route::Classic => ClassicApi::turn_away(request, why),
            Route::Json => json_refusal::json(request, self.apis.dialect.as_deref(), why),
            Route::V1 => v1::turn_away(why),
            Route::Page => page::turn_away(why),
            Route::Nowhere => not_found(),
        }
    }

    fn shown_early(&self, request: &ApiRequest, beginning: &[u8]) -> Shown {
        let tenants = self.apis.orders.tenants();
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

    fn has_one_tenant(&self) -> bool {
        self.apis.orders.tenants().is_only_one()
    }

    fn needs_no_key(&self) -> bool {
        self.apis.orders.tenants().local().is_some()
    }

    fn has_own_seat(&self, request: &ApiRequest) -> bool {
        match Route::of(&request.path) {
            Route::Callback | Route::Page => true,
            Route::V1 => {
                let path = request.path.as_str();
                matches!(path, "/metrics" | "/healthz" | "/readyz") || path.starts_with("/v1/admin/")
            }
            Route::Classic | Route::Json | Route::Nowhere => false,
        }
    }

    fn route(&self, request: &ApiRequest) -> &'static str {
        match Route::of(&request.path) {
            Route::Callback => CALLBACK_PATH,
            Route::Classic => ClassicApi::name(&request.path),
            Route::Json => "json",
            Route::V1 => "v1",
            Route::Page => "page",
            Route::Nowhere => "nowhere",
        }
    }
}

fn not_found() -> Response<Body> {
    api::answer(StatusCode::NOT_FOUND, PLAIN, WHAT_THERE_IS)
}
