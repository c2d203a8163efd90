//! The whole house: one address, and behind it every door. Here a request finds its door, and whoever cannot be let in is
//! told so in the words of the door that he came to.

mod guard;
mod turned;

use crate::api::{self, ApiRequest, Body};
use crate::callbacks::{CALLBACK_PATH, CallbackApi};
use crate::classic::ClassicApi;
use crate::json::JsonApi;
use crate::once::Once;
use crate::orders::OrderService;
use crate::page;
use crate::server::{Counts, Limits, RequestError, RequestHandler, Server};
use crate::tls::Tls;
use crate::v1::{self, ShownSetting, V1Api};
use crate::wrong_keys::{Shown, early_key};
use bytes::Bytes;
use guard::Reach;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Either};
use hyper::header::CONTENT_TYPE;
use hyper::{Method, Request, Response, StatusCode};
use quittance_engine::targets::HostPattern;
use quittance_telemetry::{AlertSettings, Monitor, MonitorSources};
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;

pub(crate) const PLAIN: &str = "text/plain; charset=utf-8";

/// What there is, for whoever came to the wrong place.
const WHAT_THERE_IS: &str = "There is nothing here. There are /in.php and /res.php (classic), /createTask and \
    /getTaskResult (JSON), /v1 (described in /openapi.json), /page/ (for people), /metrics, /healthz and /readyz.";

#[derive(Clone, Debug, Default)]
pub struct GatewaySettings {
    pub limits: Limits,
    /// Whose manners the doors have for whoever has chosen none.
    pub flavour: Option<String>,
    /// When a person is told, and where.
    pub alerts: AlertSettings,
    /// The settings in force, for the operator to read; no secret is among them.
    pub shown: Vec<ShownSetting>,
    /// What sort of store is behind it all.
    pub store: Option<&'static str>,
    /// Names under which this gateway is reached besides localhost. Only a gateway without tenants asks for them.
    pub hosts: Vec<HostPattern>,
}

/// Clones share it.
#[derive(Clone)]
pub struct Gateway {
    doors: Arc<Apis>,
    server: Server,
}

struct Apis {
    orders: OrderService,
    callbacks: CallbackApi,
    classic: ClassicApi,
    json: JsonApi,
    v1: V1Api,
    monitor: Monitor,
    ready: Arc<AtomicBool>,
    flavour: Option<String>,
    hosts: Vec<HostPattern>,
    logged: Once,
}

/// Which door a path leads to.
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
        f.debug_struct("Gateway").field("desk", &self.doors.orders).finish_non_exhaustive()
    }
}

impl Gateway {
    #[must_use]
    pub fn new(orders: OrderService, settings: GatewaySettings) -> Self {
        let GatewaySettings { limits, flavour, alerts, shown, store, hosts } = settings;
        let engine = Arc::clone(orders.engine());
        let sources = MonitorSources {
            engine: Arc::clone(&engine),
            account: orders.account_cache().clone(),
            latencies: Arc::clone(orders.hub().latencies()),
            store,
        };
        let monitor = Monitor::new(sources, alerts, v1::snapshot);
        let ready = Arc::<AtomicBool>::default();
        let doors = Apis {
            callbacks: CallbackApi::new(engine, limits),
            classic: ClassicApi::new(orders.clone(), flavour.clone()),
            json: JsonApi::new(orders.clone(), flavour.clone()),
            v1: V1Api::new(orders.clone(), Arc::clone(&ready), monitor.clone(), shown),
            monitor,
            ready,
            flavour,
            hosts,
            logged: Once::default(),
            orders,
        };
        Self { doors: Arc::new(doors), server: Server::new(limits) }
    }

    /// Listens until it is dropped or drained. Several may run at once, within the same limits.
    pub fn serve(&self, listener: TcpListener, tls: Option<Tls>) -> impl Future<Output = ()> + Send + use<> {
        self.doors.orders.engine().listens_for_callbacks();
        self.server.clone().serve(self.clone(), listener, tls)
    }

    /// Asks `/v1` as a caller does, without a socket: what a command at the prompt is told is what the daemon would tell.
    pub async fn ask(&self, request: Request<Bytes>) -> Response<UnsyncBoxBody<Bytes, Infallible>> {
        let (head, body) = request.into_parts();
        let path = head.uri.path().to_owned();
        let content_type = head.headers.get(CONTENT_TYPE).cloned();
        let asked = ApiRequest { head, path, flavour: None, content_type, body };
        self.doors.v1.answer(asked).await.map(|body| match body {
            Either::Left(whole) => whole.boxed_unsync(),
            Either::Right(live) => live,
        })
    }

    /// What `/readyz` says.
    pub fn set_ready(&self, is_ready: bool) {
        self.doors.ready.store(is_ready, Ordering::Relaxed);
    }

    /// Lets nobody new in and answers those who are inside; a caller that waits for an answer is told at once that its order
    /// is on its way. Says whether all were answered, or some had to be cut off.
    pub async fn drain(&self, timeout: Duration) -> bool {
        self.set_ready(false);
        self.doors.orders.stop_waiting();
        // Whoever watches would stay inside for ever.
        self.doors.monitor.close();
        self.server.drain(timeout).await
    }

    #[must_use]
    pub fn orders(&self) -> &OrderService {
        &self.doors.orders
    }

    /// Takes samples, raises alerts and calls the operator's webhook until it is dropped.
    pub async fn keep_watch(self) {
        let monitor = &self.doors.monitor;
        let calling = async {
            if let Some(webhook) = &monitor.settings().webhook {
                self.doors.orders.webhooks().post_alerts(webhook, monitor.announced()).await;
            }
        };
        tokio::join!(monitor.clone().run(), calling);
    }

    #[must_use]
    pub fn monitor(&self) -> &Monitor {
        &self.doors.monitor
    }

    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts { senseless_callbacks: self.doors.callbacks.senseless(), ..self.server.counts() }
    }
}

impl RequestHandler for Gateway {
    async fn answer(&self, asked: ApiRequest) -> Response<Body> {
        let route = Route::of(&asked.path);
        let Apis { orders, callbacks, classic, json, v1, .. } = &*self.doors;
        // Where nobody needs a key, a page in a browser must not be able to act for whoever sits in front of it.
        let is_guarded = route != Route::Callback && orders.tenants().is_open();
        let reach = match route {
            Route::Classic | Route::Json => Reach::Acts,
            Route::V1 if asked.head.method != Method::GET => Reach::Acts,
            _ => Reach::Reads,
        };
        let elsewhere = guard::is_from_elsewhere(&asked.head, reach, &self.doors.hosts);
        if let Some(why) = elsewhere.filter(|_| is_guarded) {
            let why = why.to_string();
            if self.doors.logged.is_first(&why) {
                tracing::warn!("refused a request: {why}");
            }
            return match route {
                Route::V1 => v1::forbidden(&why),
                Route::Classic => ClassicApi::refuse(&asked, guard::CODE, &why),
                Route::Json => turned::json_code(&asked, self.doors.flavour.as_deref(), guard::CODE, &why),
                _ => api::answer(StatusCode::FORBIDDEN, PLAIN, why),
            };
        }
        match route {
            Route::Callback => callbacks.answer(asked).await,
            Route::Classic => classic.answer(asked).await,
            Route::Json => json.answer(asked).await,
            Route::V1 => v1.answer(asked).await,
            Route::Page => page::answer(&asked).unwrap_or_else(nowhere),
            Route::Nowhere => nowhere(),
        }
    }

    fn turn_away(&self, asked: &ApiRequest, why: RequestError) -> Response<Body> {
        match Route::of(&asked.path) {
            Route::Callback => self.doors.callbacks.refuse(asked, why),
            Route::Classic => ClassicApi::turn_away(asked, why),
            Route::Json => turned::json(asked, self.doors.flavour.as_deref(), why),
            Route::V1 => v1::turn_away(why),
            Route::Page => page::turn_away(why),
            Route::Nowhere => nowhere(),
        }
    }

    fn shown_early(&self, asked: &ApiRequest, beginning: &[u8]) -> Shown {
        let tenants = self.doors.orders.tenants();
        let of = |key: &str| match tenants.caller(key) {
            Ok(caller) => Shown::Tenant(caller.tenant.name().to_owned()),
            Err(_) if tenants.is_admin(key) => Shown::Operator,
            Err(_) => Shown::Nothing,
        };
        let in_head = || v1::key_in_head(&asked.head.headers).or_else(|| early_key(asked.query().as_bytes()));
        let key = if beginning.is_empty() { in_head() } else { early_key(beginning) };
        key.map_or(Shown::Nothing, of)
    }

    fn has_one_tenant(&self) -> bool {
        self.doors.orders.tenants().is_only_one()
    }

    fn needs_no_key(&self) -> bool {
        self.doors.orders.tenants().local().is_some()
    }

    fn has_own_seat(&self, asked: &ApiRequest) -> bool {
        match Route::of(&asked.path) {
            Route::Callback | Route::Page => true,
            Route::V1 => {
                let path = asked.path.as_str();
                matches!(path, "/metrics" | "/healthz" | "/readyz") || path.starts_with("/v1/admin/")
            }
            Route::Classic | Route::Json | Route::Nowhere => false,
        }
    }

    fn route(&self, asked: &ApiRequest) -> &'static str {
        match Route::of(&asked.path) {
            Route::Callback => CALLBACK_PATH,
            Route::Classic => ClassicApi::name(&asked.path),
            Route::Json => "json",
            Route::V1 => "v1",
            Route::Page => "page",
            Route::Nowhere => "nowhere",
        }
    }
}

fn nowhere() -> Response<Body> {
    api::answer(StatusCode::NOT_FOUND, PLAIN, WHAT_THERE_IS)
}
