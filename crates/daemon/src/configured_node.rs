//! One node, built from the configuration: from settings to a running library, with errors that say what to do.

use crate::configured_store::{open_error, spilled};
use crate::provider_names::dialects;
use crate::reach::is_daemon_at;
use crate::setup_error::{SetupError, SetupFault, with_causes};
use quittance::{
    Account, Builder, Callbacks, ClassicProvider, GatewaySetup, PlaceError, PoolError, Quittance, StartError,
    StoreOpenError, embedded,
};
use quittance_admin::AdminSettings;
use quittance_config::{Config, ProviderConfig, TenantConfig};
use quittance_gateway::KeyDigest;
use quittance_ports::{Provider, SpillError};
use quittance_protocol::Protocol;
use quittance_provider::json::JsonProvider;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long the work in progress may take before the process ends. An earlier end loses nothing, but a submit that is
/// cut off is in doubt.
pub const STOP_WAIT: Duration = Duration::from_secs(10);
/// How many commands may work on a shared store from one folder. Each needs a folder of its own.
const HOMES_MAX: usize = 64;

/// A node, unless another process uses the embedded store.
#[derive(Debug)]
pub enum UnlessInUse {
    Opened(Quittance),
    InUse(embedded::EmbeddedOpenError),
}

/// The setup of an API that only this process calls, with this operator's key. It knows the tenants by name, and none of their keys.
fn api(config: &Config, key: &str) -> GatewaySetup {
    let tenant = |tenant: &TenantConfig| tenant.settings_without_key(&config.targets);
    let tenants = config.tenants.iter().map(tenant).collect();
    let operator = AdminSettings { dialects: dialects(config), ..AdminSettings::default() };
    GatewaySetup { tenants, admin: Some(KeyDigest::of(key)), operator, ..GatewaySetup::default() }
}

/// Starts a node that processes orders. It may run beside other nodes if the store is shared. With a key, the node has
/// our API, for callers of this process that send this operator's key.
pub async fn start(config: &Config, api_key: Option<&str>) -> Result<UnlessInUse, SetupError> {
    let mut callbacks = config.public_url.as_ref().map(|url| Callbacks::new(config.listen, url));
    if let Some(callbacks) = &mut callbacks
        && config.store.url.scheme().is_shared()
        && is_daemon_at(config.listen).await
    {
        // The daemon receives the callbacks of all orders, and writes them to the store.
        callbacks.listen = None;
    }
    let name = named(config, None);
    for home in homes(config) {
        let (mut builder, is_shared) = (carrier(config)?.name(&name), home.is_some());
        if let Some(key) = api_key {
            builder = builder.gateway(api(config, key));
        }
        let builder = match home {
            Some(home) => builder.home(home),
            None => builder,
        };
        match with_callbacks(builder, config, callbacks.clone())?.start().await {
            Err(StartError::Spill { source: SpillError::Io(error), .. })
                if is_shared && error.kind() == ErrorKind::ResourceBusy => {}
            started => return unless_in_use(started),
        }
    }
    let what = format!("{HOMES_MAX} commands work on this store from here already: wait until one has ended");
    Err(SetupError::new(SetupFault::Store, what))
}

fn unless_in_use(started: Result<Quittance, StartError>) -> Result<UnlessInUse, SetupError> {
    match started {
        Err(StartError::Open(StoreOpenError::Embedded(
            in_use @ embedded::EmbeddedOpenError::InUse { .. },
        ))) => Ok(UnlessInUse::InUse(in_use)),
        Err(error) => Err(start_error(&error)),
        Ok(node) => Ok(UnlessInUse::Opened(node)),
    }
}

/// Folders that a command may use alone. Folders with something left by a dead process come first.
fn homes(config: &Config) -> Vec<Option<PathBuf>> {
    let Some(home) = &config.store.home else { return vec![None] };
    let mut homes: Vec<PathBuf> =
        (1..=HOMES_MAX).map(|number| home.join(format!("prompt-{number}"))).collect();
    homes.sort_by_key(|home| spilled(home).is_none());
    homes.into_iter().map(Some).collect()
}

/// Starts a node that serves callers over HTTP and takes callbacks.
pub async fn serve(config: &Config, setup: GatewaySetup, name: &str) -> Result<Quittance, SetupError> {
    let builder = carrier(config)?.name(name).gateway(setup);
    let builder = config.pools.iter().cloned().fold(builder, Builder::pool);
    let builder = match &config.store.home {
        Some(home) => builder.home(home),
        None => builder,
    };
    let callbacks = config.public_url.as_ref().map(Callbacks::through_gateway);
    with_callbacks(builder, config, callbacks)?.start().await.map_err(|error| start_error(&error))
}

/// The pools of the configuration that cannot be set with this setup, each with the reason. A node in memory checks
/// them.
pub async fn refused_pools(config: &Config, setup: GatewaySetup) -> Vec<SetupError> {
    let node = match carrier(config) {
        Ok(builder) => builder.in_memory().gateway(setup).open().await.map_err(|error| start_error(&error)),
        Err(error) => Err(error),
    };
    let node = match node {
        Ok(node) => node,
        Err(error) => return vec![error],
    };
    let mut refused = Vec::new();
    for spec in config.pools.iter().cloned() {
        let name = spec.name.clone();
        if let Err(source) = node.set_pool(spec).await {
            refused.push(start_error(&StartError::Pool { name, source }));
        }
    }
    refused
}

/// Checks that there is a provider that can be called, and a key for it.
pub fn check_provider(config: &Config) -> Result<(), SetupError> {
    let none = || {
        let what = "there is no provider: run `quittance init`, which writes quittance.toml, or try \
                    `quittance serve --mock`, which needs none";
        SetupError::new(SetupFault::Config, what)
    };
    config.providers.first().ok_or_else(none)?;
    config.providers.iter().try_for_each(|config| provider(config).map(drop))
}

/// A node with all providers, which also delivers webhooks.
fn carrier(config: &Config) -> Result<Builder, SetupError> {
    let webhooks = config.webhook_settings();
    let webhooks = webhooks.map_err(SetupError::config)?;
    let builder = builder(config)?.webhooks(webhooks);
    check_provider(config)?;
    // Their rules come with the settings.
    config.providers.iter().try_fold(builder, |builder, config| {
        Ok(match provider(config)? {
            Adapter::Classic(provider) => builder.provider(*provider),
            Adapter::Json(provider) => builder.provider(*provider),
        })
    })
}

fn with_callbacks(
    builder: Builder,
    config: &Config,
    callbacks: Option<Callbacks>,
) -> Result<Builder, SetupError> {
    let Some(mut callbacks) = callbacks else { return Ok(builder) };
    callbacks.secret = config.callback_secret().map_err(SetupError::config)?;
    callbacks.limits = config.listener;
    Ok(builder.callbacks(callbacks))
}

/// Opens the store as it is, with our API for callers of this process that send this operator's key. The node processes
/// no orders.
pub async fn open(config: &Config, api_key: &str) -> Result<UnlessInUse, SetupError> {
    let config = config.read_only();
    let mut api = api(&config, api_key);
    api.operator.is_idle = true;
    unless_in_use(builder(&config)?.gateway(api).open().await)
}

fn builder(config: &Config) -> Result<Builder, SetupError> {
    let settings = config.clone();
    let place = config.store.place().map_err(SetupError::config)?;
    Ok(Quittance::builder()
        .place(place)
        .spill_bytes_max(config.spill_bytes_max)
        .settings(move |engine| settings.apply(engine)))
}

/// The name of this node: the configured name, or else its machine with its port or process.
#[must_use]
pub fn named(config: &Config, listens_on: Option<SocketAddr>) -> String {
    let usual = || match listens_on {
        Some(address) => format!("{}:{}", host_name(), address.port()),
        None => format!("{}/{}", host_name(), std::process::id()),
    };
    config.node_name.clone().unwrap_or_else(usual)
}

#[cfg(unix)]
fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host_name() -> String {
    "node".into()
}

/// The adapter for a provider's protocol.
enum Adapter {
    Classic(Box<ClassicProvider>),
    Json(Box<JsonProvider>),
}

fn provider(config: &ProviderConfig) -> Result<Adapter, SetupError> {
    let settings = config.settings().map_err(SetupError::config)?;
    Ok(match config.protocol {
        Protocol::Classic(dialect) => {
            Adapter::Classic(Box::new(ClassicProvider::new(dialect, settings).map_err(SetupError::config)?))
        }
        Protocol::Json(dialect) => {
            Adapter::Json(Box::new(JsonProvider::new(dialect, settings).map_err(SetupError::config)?))
        }
    })
}

/// A new adapter for this provider.
pub(crate) fn adapter(config: &ProviderConfig) -> Result<Arc<dyn Provider>, SetupError> {
    Ok(match provider(config)? {
        Adapter::Classic(provider) => Arc::new(*provider),
        Adapter::Json(provider) => Arc::new(*provider),
    })
}

/// The account as the provider reports it now.
pub async fn account(config: &ProviderConfig) -> Result<Account, SetupError> {
    match provider(config)? {
        Adapter::Classic(provider) => provider.look_at_account().await,
        Adapter::Json(provider) => provider.look_at_account().await,
    }
    .map_err(|error| SetupError::new(SetupFault::Provider, with_causes(&error)))
}

fn start_error(error: &StartError) -> SetupError {
    let fault = match error {
        StartError::Open(error) => return open_error(error),
        StartError::Store(_)
        | StartError::Moved { .. }
        | StartError::BeingFilled { .. }
        | StartError::Home { .. }
        | StartError::Spill { .. }
        | StartError::Secret(_) => SetupFault::Store,
        StartError::Pool { source: PoolError::Store(_) | PoolError::Place(PlaceError::Store(_)), .. } => {
            SetupFault::Store
        }
        // It stands in the configuration, so it is fixed there.
        StartError::Pool { .. } => SetupFault::Config,
        StartError::NoProvider
        | StartError::BadPattern(_)
        | StartError::NoHome
        | StartError::Listen { .. } => SetupFault::Config,
    };
    SetupError::new(fault, with_causes(error))
}
