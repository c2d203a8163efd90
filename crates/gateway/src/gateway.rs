//! The whole house: one address, and behind it every door. Here a request finds its door, and whoever cannot be let in is
//! told so in the words of the door that he came to.

mod guard;
mod turned;

use crate::callbacks::{CALLBACK_PATH, CallbackDoor};
use crate::classic::ClassicDoor;
use crate::desk::Desk;
use crate::door::{self, Asked, Body};
use crate::json::JsonDoor;
use crate::lookout::{AlertSettings, Lookout, ShownSetting};
use crate::once::Once;
use crate::page;
use crate::server::{Counts, House, Limits, Server, Turned};
use crate::tls::Tls;
use crate::v1::{self, V1Door};
use bytes::Bytes;
use guard::Reach;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Either};
use hyper::header::CONTENT_TYPE;
use hyper::{Method, Request, Response, StatusCode};
use quittance_engine::targets::HostPattern;
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
    doors: Arc<Doors>,
    server: Server,
}

struct Doors {
    desk: Desk,
    callbacks: CallbackDoor,
    classic: ClassicDoor,
    json: JsonDoor,
    v1: V1Door,
    lookout: Lookout,
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
            path if CallbackDoor::is_for(path) => Self::Callback,
            path if ClassicDoor::is_for(path) => Self::Classic,
            path if JsonDoor::is_for(path) => Self::Json,
            path if page::is_for(path) => Self::Page,
            _ => Self::Nowhere,
        }
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("desk", &self.doors.desk).finish_non_exhaustive()
    }
}

impl Gateway {
    #[must_use]
    pub fn new(desk: Desk, settings: GatewaySettings) -> Self {
        let GatewaySettings { limits, flavour, alerts, shown, store, hosts } = settings;
        let lookout = Lookout::new(desk.clone(), alerts, store);
        let (engine, provider) = (Arc::clone(desk.engine()), Arc::clone(desk.provider()));
        let ready = Arc::<AtomicBool>::default();
        let doors = Doors {
            callbacks: CallbackDoor::new(engine, provider, limits),
            classic: ClassicDoor::new(desk.clone(), flavour.clone()),
            json: JsonDoor::new(desk.clone(), flavour.clone()),
            v1: V1Door::new(desk.clone(), Arc::clone(&ready), lookout.clone(), shown),
            lookout,
            ready,
            flavour,
            hosts,
            logged: Once::default(),
            desk,
        };
        Self { doors: Arc::new(doors), server: Server::new(limits) }
    }

    /// Listens until it is dropped or drained. Several may run at once, within the same limits.
    pub fn serve(&self, listener: TcpListener, tls: Option<Tls>) -> impl Future<Output = ()> + Send + use<> {
        self.doors.desk.engine().listens_for_callbacks();
        self.server.clone().serve(self.clone(), listener, tls)
    }

    /// Asks `/v1` as a caller does, without a socket: what a command at the prompt is told is what the daemon would tell.
    pub async fn ask(&self, request: Request<Bytes>) -> Response<UnsyncBoxBody<Bytes, Infallible>> {
        let (head, body) = request.into_parts();
        let path = head.uri.path().to_owned();
        let content_type = head.headers.get(CONTENT_TYPE).cloned();
        let asked = Asked { head, path, flavour: None, content_type, body };
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
    pub async fn drain(&self, patience: Duration) -> bool {
        self.set_ready(false);
        self.doors.desk.stop_waiting();
        // Whoever watches would stay inside for ever.
        self.doors.lookout.close();
        self.server.drain(patience).await
    }

    #[must_use]
    pub fn desk(&self) -> &Desk {
        &self.doors.desk
    }

    /// What people look through who want to see this node at work. Somebody must run [`Lookout::keep_watch`] for samples to be
    /// taken and alerts to be raised.
    #[must_use]
    pub fn lookout(&self) -> &Lookout {
        &self.doors.lookout
    }

    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts { senseless_callbacks: self.doors.callbacks.senseless(), ..self.server.counts() }
    }
}

impl House for Gateway {
    async fn answer(&self, asked: Asked) -> Response<Body> {
        let route = Route::of(&asked.path);
        let Doors { desk, callbacks, classic, json, v1, .. } = &*self.doors;
        // Where nobody needs a key, a page in a browser must not be able to act for whoever sits in front of it.
        let is_guarded = route != Route::Callback && desk.tenants().is_open();
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
                Route::Classic => ClassicDoor::refuse(&asked, guard::CODE, &why),
                Route::Json => turned::json_code(&asked, self.doors.flavour.as_deref(), guard::CODE, &why),
                _ => door::answer(StatusCode::FORBIDDEN, PLAIN, why),
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

    fn turn_away(&self, asked: &Asked, why: Turned) -> Response<Body> {
        match Route::of(&asked.path) {
            Route::Callback => self.doors.callbacks.refuse(asked, why),
            Route::Classic => ClassicDoor::turn_away(asked, why),
            Route::Json => turned::json(asked, self.doors.flavour.as_deref(), why),
            Route::V1 => v1::turn_away(why),
            Route::Page => page::turn_away(why),
            Route::Nowhere => nowhere(),
        }
    }

    fn has_one_tenant(&self) -> bool {
        self.doors.desk.tenants().is_only_one()
    }

    fn needs_no_key(&self) -> bool {
        self.doors.desk.tenants().local().is_some()
    }

    fn has_own_seat(&self, asked: &Asked) -> bool {
        match Route::of(&asked.path) {
            Route::Callback | Route::Page => true,
            Route::V1 => {
                let path = asked.path.as_str();
                matches!(path, "/metrics" | "/healthz" | "/readyz") || path.starts_with("/v1/admin/")
            }
            Route::Classic | Route::Json | Route::Nowhere => false,
        }
    }

    fn route(&self, asked: &Asked) -> &'static str {
        match Route::of(&asked.path) {
            Route::Callback => CALLBACK_PATH,
            Route::Classic => ClassicDoor::name(&asked.path),
            Route::Json => "json",
            Route::V1 => "v1",
            Route::Page => "page",
            Route::Nowhere => "nowhere",
        }
    }
}

fn nowhere() -> Response<Body> {
    door::answer(StatusCode::NOT_FOUND, PLAIN, WHAT_THERE_IS)
}
