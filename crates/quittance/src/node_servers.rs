//! The servers of a node: the gateway for callers over HTTP, the operator's API, the address for callbacks, and the
//! sender of webhooks. `no_servers.rs` replaces this file if the crate is built without the feature `gateway`.

use crate::builder::SecretSource;
use crate::{Builder, Quittance, StartError};
use quittance_admin::{Admin, AdminSettings};
use quittance_engine::{CallbackAddress, Engine, Settings, TenantRule};
pub(crate) use quittance_gateway::Webhooks;
use quittance_gateway::{
    CALLBACK_PATH, CallbackApi, CommitFeed, Gateway, GatewaySettings, KeyDigest, Limits, OrderService,
    ReuseRule, TenantSettings, Tenants, WebhookSettings, webhook_text,
};
use quittance_ports::{Clock, Leases};
use quittance_telemetry::{TraceSettings, Traces};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinHandle};

/// How providers can call us.
#[derive(Clone)]
pub struct Callbacks {
    /// The address on which this process listens for callbacks; `None` if its gateway does.
    pub listen: Option<SocketAddr>,
    /// The address that providers call, such as `https://q.example.com`. A proxy before us may pass calls on.
    pub public_url: String,
    /// The secret that signs callback addresses, equal on every node. `None`: one is drawn and kept beside the store.
    pub secret: Option<[u8; 32]>,
    pub limits: Limits,
}

impl Callbacks {
    #[must_use]
    pub fn new(listen: SocketAddr, public_url: impl Into<String>) -> Self {
        Self { listen: Some(listen), ..Self::through_gateway(public_url) }
    }

    /// Callbacks that come in through the [gateway](Builder::gateway).
    #[must_use]
    pub fn through_gateway(public_url: impl Into<String>) -> Self {
        Self { listen: None, public_url: public_url.into(), secret: None, limits: Limits::default() }
    }
}

impl fmt::Debug for Callbacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { listen, public_url, .. } = self;
        write!(f, "Callbacks({listen:?}, reached at {public_url})")
    }
}

/// The settings that make a node a gateway, for callers over HTTP.
#[derive(Debug, Default)]
pub struct GatewaySetup {
    pub tenants: Vec<TenantSettings>,
    /// The operator's own key.
    pub admin: Option<KeyDigest>,
    pub settings: GatewaySettings,
    /// The settings of the operator's API.
    pub operator: AdminSettings,
    /// The rule for sharing answers, if it is more than one setting for each tenant.
    pub reuse: Option<ReuseRule>,
    /// The collector of traces; `None` for no traces.
    pub traces: Option<TraceSettings>,
}

impl Builder {
    /// Lets the provider call us, which settles attempts in doubt. Without callbacks, answers are polled.
    #[must_use]
    pub fn callbacks(mut self, callbacks: Callbacks) -> Self {
        self.server.callbacks = Some(callbacks);
        self
    }

    /// Adds a gateway for callers over HTTP: see [`Quittance::gateway`].
    #[must_use]
    pub fn gateway(mut self, setup: GatewaySetup) -> Self {
        self.server.gateway = Some(setup);
        self
    }

    /// Sets how webhooks are called. Every node on a store should have the same settings.
    #[must_use]
    pub fn webhooks(mut self, settings: WebhookSettings) -> Self {
        self.server.webhooks = settings;
        self
    }
}

impl Quittance {
    /// The router for callers over HTTP, if the node was built with [a gateway](Builder::gateway). It needs something
    /// to listen on.
    #[must_use]
    pub fn gateway(&self) -> Option<&Gateway> {
        self.server.gateway.as_ref()
    }

    /// The operator's API of the gateway. Run [`Admin::run`] for samples and alerts.
    #[must_use]
    pub fn admin(&self) -> Option<&Admin> {
        self.server.admin.as_ref()
    }
}

/// The builder's settings for the servers.
#[derive(Debug, Default)]
pub(crate) struct ServerSetup {
    callbacks: Option<Callbacks>,
    gateway: Option<GatewaySetup>,
    webhooks: WebhookSettings,
}

/// The parts of the servers that must exist before the engine.
pub(crate) struct Prepared {
    setup: Option<GatewaySetup>,
    commit_feed: Option<CommitFeed>,
    pub(crate) webhooks: Webhooks,
}

impl ServerSetup {
    /// These parts without callbacks, for a node that only reads its store.
    pub(crate) fn without_callbacks(self) -> Self {
        Self { callbacks: None, ..self }
    }

    /// Whether the operator has set no secret, so that callbacks and webhooks are signed with the store's.
    pub(crate) fn uses_secret_of_store(&self) -> bool {
        self.callbacks.as_ref().is_none_or(|callbacks| callbacks.secret.is_none())
    }

    /// Gives the engine's settings what the servers need: tenants, the callback address, and a notice of every
    /// commit.
    pub(crate) fn prepare(
        self,
        settings: &mut Settings,
        secrets: SecretSource,
        clock: Arc<dyn Clock>,
    ) -> Prepared {
        let tenants = self.gateway.as_ref().map_or(&[][..], |setup| &setup.tenants);
        settings.tenants.extend(tenant_rules(tenants));
        let SecretSource { of_store, known } = secrets;
        let mut root_secret = of_store;
        if let Some(Callbacks { public_url, secret, .. }) = self.callbacks {
            root_secret = secret.unwrap_or(of_store);
            let base = format!("{}{CALLBACK_PATH}", public_url.trim_end_matches('/'));
            let address = CallbackAddress::new(base, root_secret);
            if secret.is_none() {
                address.set_secrets(known);
            }
            settings.callback = Some(address);
        }
        // What signs calls to callers follows from the secret that proves calls to us: one to keep, not two.
        let currency = settings.providers[0].currency.clone();
        let webhooks =
            Webhooks::new(WebhookSettings { root_secret, currency, ..self.webhooks }, clock, webhook_text);
        let commit_feed = self.gateway.as_ref().map(|setup| {
            CommitFeed::new(limited(&setup.tenants)).with_traces(setup.traces.clone().map(Traces::start))
        });
        settings.on_commit = commit_feed.as_ref().map(CommitFeed::on_commit).or(settings.on_commit.take());
        Prepared { setup: self.gateway, commit_feed, webhooks }
    }

    /// The separate listener for callbacks, if there is one.
    pub(crate) fn callback_listener(&self) -> Option<CallbackListener> {
        let Callbacks { listen, limits, .. } = self.callbacks.as_ref()?;
        listen.map(|address| CallbackListener { address, limits: *limits })
    }
}

/// What the engine has to know about these tenants.
pub(crate) fn tenant_rules(tenants: &[TenantSettings]) -> impl Iterator<Item = (String, TenantRule)> {
    tenants.iter().map(|tenant| {
        let rule = TenantRule {
            targets: tenant.targets.clone(),
            kinds: tenant.kinds.clone(),
            weight: tenant.weight,
            priority: tenant.priority,
        };
        (tenant.name.clone(), rule)
    })
}

/// The tenants whose open orders are counted.
fn limited(tenants: &[TenantSettings]) -> impl Iterator<Item = String> {
    tenants.iter().filter(|tenant| tenant.open_max.is_some()).map(|tenant| tenant.name.clone())
}

impl Prepared {
    pub(crate) fn mount(self, engine: &Arc<Engine>, leases: Option<Arc<dyn Leases>>, number: u64) -> Server {
        let Self { setup: Some(setup), commit_feed: Some(commit_feed), webhooks } = self else {
            return Server::default();
        };
        let tenants = Tenants::new(setup.tenants, setup.admin).with_reuse(setup.reuse);
        let orders = OrderService::new(Arc::clone(engine), tenants, commit_feed, webhooks);
        let orders = orders.with_limits(&setup.settings.limits);
        let orders = match leases {
            Some(leases) => orders.with_neighbours(leases, number),
            None => orders,
        };
        let admin = Admin::new(orders.clone(), setup.operator);
        let gateway = Gateway::mounted(orders, setup.settings, admin.mount());
        Server { gateway: Some(gateway), admin: Some(admin) }
    }
}

/// The gateway of a node and its operator's API, if the node has them. Clones share both.
#[derive(Clone, Default)]
pub(crate) struct Server {
    gateway: Option<Gateway>,
    admin: Option<Admin>,
}

impl Server {
    /// Counts the open orders of tenants, as long as other nodes may place some, too.
    pub(crate) fn keep_counting(&self) -> Option<JoinHandle<()>> {
        let orders = self.gateway.as_ref()?.orders().clone();
        Some(tokio::spawn(orders.keep_counting()))
    }

    pub(crate) async fn give_back_leases(&self) {
        if let Some(gateway) = &self.gateway {
            gateway.orders().give_back_leases().await;
        }
    }

    pub(crate) async fn finish_traces(&self) {
        if let Some(traces) =
            self.gateway.as_ref().and_then(|gateway| gateway.orders().commit_feed().traces())
        {
            traces.finish().await;
        }
    }
}

/// A listener for callbacks that is not the gateway.
pub(crate) struct CallbackListener {
    address: SocketAddr,
    limits: Limits,
}

impl CallbackListener {
    pub(crate) async fn start(self, engine: &Arc<Engine>) -> Result<CallbackServer, StartError> {
        let Self { address, limits } = self;
        let listener =
            TcpListener::bind(address).await.map_err(|source| StartError::Listen { address, source })?;
        let listens_on = listener.local_addr().ok();
        let api = CallbackApi::new(Arc::clone(engine), limits);
        Ok(CallbackServer { api: api.clone(), task: tokio::spawn(api.serve(listener)), listens_on })
    }
}

/// The running server for callbacks, if it is not the gateway.
pub(crate) struct CallbackServer {
    api: CallbackApi,
    task: JoinHandle<()>,
    pub(crate) listens_on: Option<SocketAddr>,
}

impl CallbackServer {
    pub(crate) fn senseless(&self) -> u64 {
        self.api.senseless()
    }

    pub(crate) fn abort_handle(&self) -> AbortHandle {
        self.task.abort_handle()
    }

    /// Stops the server. A request that is being read still gets its reply, and its content is safe either way.
    pub(crate) async fn close(self) {
        self.api.close().await;
        self.task.abort();
    }
}
