//! The operator's API and the page: the only crate that shows all tenants' orders, changes pools, and replays or drops dead letters
//! over HTTP. It is mounted into the gateway, which listens and checks keys. The types of its requests and responses are public, in
//! one module for each resource.
#![forbid(unsafe_code)]

pub mod alerts;
pub mod audit;
pub mod budgets;
pub mod bulk;
mod days;
pub mod dead;
pub mod dead_letter;
mod extract;
pub mod failing_endpoints;
pub mod find;
pub mod live;
mod metrics;
pub mod node_state;
pub mod nodes;
mod page;
mod paid;
mod pool_request;
pub mod pools;
pub mod providers;
pub mod reload;
pub mod replay_outcome;
mod replay_price;
pub mod settings;
pub mod stock;
pub mod store_status;
pub mod timeline;
pub mod usage;
pub mod usage_sums;

use axum::extract::FromRef;
use providers::ProviderDialect;
use quittance_gateway::v1::Endpoints;
use quittance_gateway::{Mount, OrderService};
use quittance_telemetry::{AlertSettings, Monitor, MonitorSources};
use reload::ReloadRequests;
use serde::{Deserialize, Deserializer};
use settings::ShownSetting;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

#[derive(Clone, Debug, Default)]
pub struct AdminSettings {
    /// The protocol and the dialect of each provider, by the name of the provider, as far as they are known.
    pub dialects: BTreeMap<String, ProviderDialect>,
    /// Whether this process only reads the store, and submits nothing.
    pub is_idle: bool,
    pub alerts: AlertSettings,
    /// The effective settings, for the operator to read; without secrets.
    pub shown: Vec<ShownSetting>,
    /// Kind of the store.
    pub store: Option<&'static str>,
    /// Reads the configuration again; `None` if this process cannot.
    pub reloads: Option<ReloadRequests>,
}

/// What the endpoints share.
#[derive(Clone)]
pub(crate) struct AppState {
    pub(crate) orders: OrderService,
    pub(crate) monitor: Monitor,
    pub(crate) shown: Arc<RwLock<ShownConfig>>,
    pub(crate) reloads: Option<ReloadRequests>,
    /// Whether this process submits orders.
    pub(crate) is_at_work: bool,
}

/// What the endpoints show of the configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShownConfig {
    pub(crate) settings: Arc<[ShownSetting]>,
    pub(crate) dialects: Arc<BTreeMap<String, ProviderDialect>>,
}

impl AppState {
    pub(crate) fn shown(&self) -> ShownConfig {
        self.shown.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl FromRef<AppState> for OrderService {
    fn from_ref(state: &AppState) -> Self {
        state.orders.clone()
    }
}

/// The operator's side of a node. Clones share it.
#[derive(Clone)]
pub struct Admin {
    state: AppState,
}

impl fmt::Debug for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Admin({:?})", self.state.monitor)
    }
}

impl Admin {
    #[must_use]
    pub fn new(orders: OrderService, settings: AdminSettings) -> Self {
        let AdminSettings { alerts, shown, store, dialects, is_idle, reloads } = settings;
        let sources = MonitorSources {
            engine: Arc::clone(orders.engine()),
            accounts: orders.accounts().clone(),
            latencies: Arc::clone(orders.commit_feed().latencies()),
            store,
        };
        let monitor = Monitor::new(sources, alerts, live::snapshot);
        let shown = ShownConfig { settings: shown.into(), dialects: Arc::new(dialects) };
        let shown = Arc::new(RwLock::new(shown));
        Self { state: AppState { orders, monitor, shown, reloads, is_at_work: !is_idle } }
    }

    /// Shows these settings from now on, and judges alerts by their thresholds. How alerts are sent stays.
    pub async fn reload(&self, settings: AdminSettings) {
        let AdminSettings { alerts, shown, dialects, .. } = settings;
        let next = ShownConfig { settings: shown.into(), dialects: Arc::new(dialects) };
        *self.state.shown.write().unwrap_or_else(PoisonError::into_inner) = next;
        self.monitor().set_thresholds(&alerts.thresholds).await;
    }

    /// The endpoints and the page, for the gateway.
    #[must_use]
    pub fn mount(&self) -> Mount {
        let (router, document) = operator_endpoints().with_state(self.state.clone()).split_for_parts();
        Mount { endpoints: Endpoints { router, document }, page: page::serve }
    }

    #[must_use]
    pub fn monitor(&self) -> &Monitor {
        &self.state.monitor
    }

    /// Takes samples, raises and clears alerts, and posts them to the operator's webhook, until this future is
    /// dropped.
    pub async fn run(self) {
        let AppState { orders, monitor, .. } = &self.state;
        let posting = async {
            if let Some(webhook) = &monitor.settings().webhook {
                orders.webhooks().post_alerts(webhook, monitor.announced()).await;
            }
        };
        tokio::join!(monitor.clone().run(), posting);
    }
}

/// The OpenAPI document of a gateway with these endpoints, as it is served.
#[must_use]
pub fn openapi() -> String {
    quittance_gateway::v1::openapi(operator_endpoints().into_openapi())
}

fn operator_endpoints() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(node_state::account))
        .routes(routes!(find::find))
        .routes(routes!(timeline::timeline))
        .routes(routes!(timeline::note))
        .routes(routes!(dead::list))
        .routes(routes!(dead::export))
        .routes(routes!(dead::import))
        .routes(routes!(bulk::list, bulk::begin))
        .routes(routes!(bulk::read, bulk::stop))
        .routes(routes!(replay_outcome::outcome))
        .routes(routes!(failing_endpoints::list))
        .routes(routes!(failing_endpoints::switch_on))
        .routes(routes!(dead::replay))
        .routes(routes!(dead::drop_dead))
        .routes(routes!(providers::list))
        .routes(routes!(providers::read))
        .routes(routes!(providers::pause))
        .routes(routes!(providers::resume))
        .routes(routes!(providers::drain))
        .routes(routes!(providers::resume_all))
        .routes(routes!(budgets::list))
        .routes(routes!(node_state::state))
        .routes(routes!(usage::usage))
        .routes(routes!(audit::audit))
        .routes(routes!(live::now))
        .routes(routes!(live::live))
        .routes(routes!(live::history))
        .routes(routes!(alerts::list))
        .routes(routes!(alerts::see))
        .routes(routes!(settings::settings))
        .routes(routes!(reload::reload))
        .routes(routes!(nodes::nodes))
        .routes(routes!(pools::list))
        .routes(routes!(pools::read, pools::set, pools::change, pools::remove))
        .routes(routes!(stock::stock))
        .routes(routes!(store_status::status))
        .routes(routes!(metrics::metrics))
}

/// Reads a field that may be absent, null or a value: an absent one is `None`, null is `Some(None)`.
pub(crate) fn present<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    T::deserialize(deserializer).map(Some)
}
