//! One node, built from the configuration: from settings to a running library, with errors that say what to do.

use crate::api_client::LocalNode;
use crate::daemon::bearer;
use crate::doctor::is_daemon_at;
use crate::exit::{CliError, Exit, OrExit};
use crate::{output, place, tenant};
use quittance::lifecycle::{Reuse, Value};
use quittance::{
    Account, Builder, Callbacks, ClassicProvider, GatewaySetup, Order, Quittance, StartError, StoreOpenError,
    embedded,
};
use quittance_config::{Config, ProviderConfig, TenantConfig, duration};
use quittance_engine::targets::host_of_page;
use quittance_gateway::KeyDigest;
use quittance_ports::SpillError;
use quittance_protocol::Protocol;
use quittance_provider::json::JsonProvider;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// How long the work in progress may take before the process ends. An earlier end loses nothing, but a submit that is
/// cut off is in doubt.
pub(crate) const STOP_WAIT: Duration = Duration::from_secs(10);
/// How many commands may work on a shared store from one folder. Each needs a folder of its own.
const HOMES_MAX: usize = 64;
/// After this time, the command says why it does not end.
const STOP_NOTE: Duration = Duration::from_secs(1);

/// A node, unless another process uses the embedded store.
pub(crate) enum UnlessInUse<T> {
    Opened(T),
    InUse(embedded::EmbeddedOpenError),
}

/// Starts a node that processes orders. It may run beside other nodes if the store is shared.
pub(crate) async fn start_unless_in_use(config: &Config) -> Result<UnlessInUse<Quittance>, CliError> {
    begin(config, None).await
}

/// Starts a node with our API, for [`ApiClient`](crate::api_client::ApiClient).
pub(crate) async fn start_with_api(config: &Config) -> Result<LocalNode, CliError> {
    let key = tenant::draw()?;
    match begin(config, Some(&key)).await? {
        UnlessInUse::Opened(node) => Ok(local(node, &key)),
        UnlessInUse::InUse(error) => Err(place::open_error(&StoreOpenError::Embedded(error))),
    }
}

fn local(node: Quittance, key: &str) -> LocalNode {
    LocalNode { node, key: bearer(key).expect("it has only hexadecimal digits") }
}

/// The setup of an API that only this process calls, with this operator's key. It knows the tenants by name, and none of their keys.
fn api(config: &Config, key: &str) -> GatewaySetup {
    let tenant = |tenant: &TenantConfig| tenant.settings_without_key(&config.targets);
    let tenants = config.tenants.iter().map(tenant).collect();
    GatewaySetup { tenants, admin: Some(KeyDigest::of(key)), ..GatewaySetup::default() }
}

async fn begin(config: &Config, api_key: Option<&str>) -> Result<UnlessInUse<Quittance>, CliError> {
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
    Err(CliError::new(Exit::Store, what))
}

fn unless_in_use(started: Result<Quittance, StartError>) -> Result<UnlessInUse<Quittance>, CliError> {
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
    homes.sort_by_key(|home| place::spilled(home).is_none());
    homes.into_iter().map(Some).collect()
}

/// Starts a node that serves callers over HTTP and takes callbacks.
pub(crate) async fn serve(config: &Config, setup: GatewaySetup, name: &str) -> Result<Quittance, CliError> {
    let settings = config.clone();
    let builder = carrier(config)?.name(name).gateway(setup);
    let builder = config.pools.iter().cloned().fold(builder, Builder::pool);
    let builder = match &config.store.home {
        Some(home) => builder.home(home),
        None => builder,
    };
    let builder = builder.settings(move |engine| {
        settings.apply(engine);
    });
    let callbacks = config.public_url.as_ref().map(Callbacks::through_gateway);
    with_callbacks(builder, config, callbacks)?.start().await.map_err(|error| start_error(&error))
}

/// The pools of the configuration that cannot be set with this setup, each with the reason. A node in memory checks
/// them.
pub(crate) async fn refused_pools(config: &Config, setup: GatewaySetup) -> Vec<CliError> {
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
pub(crate) fn check_provider(config: &Config) -> Result<(), CliError> {
    only_provider(config).and_then(provider).map(drop)
}

fn only_provider(config: &Config) -> Result<&ProviderConfig, CliError> {
    config.providers.first().ok_or_else(|| {
        let what = "there is no provider: run `quittance init`, which writes quittance.toml, or try \
                    `quittance serve --mock`, which needs none";
        CliError::new(Exit::Config, what)
    })
}

/// A node with a provider, which also delivers webhooks.
fn carrier(config: &Config) -> Result<Builder, CliError> {
    let webhooks = config.webhook_settings();
    let webhooks = webhooks.or_exit(Exit::Config)?;
    let builder = builder(config)?.webhooks(webhooks);
    Ok(match provider(only_provider(config)?)? {
        Adapter::Classic(provider) => builder.provider(*provider),
        Adapter::Json(provider) => builder.provider(*provider),
    })
}

fn with_callbacks(
    builder: Builder,
    config: &Config,
    callbacks: Option<Callbacks>,
) -> Result<Builder, CliError> {
    let Some(mut callbacks) = callbacks else { return Ok(builder) };
    callbacks.secret = config.callback_secret().or_exit(Exit::Config)?;
    callbacks.limits = config.listener;
    Ok(builder.callbacks(callbacks))
}

/// Opens the store as it is, with our API, for [`ApiClient`](crate::api_client::ApiClient). The node processes no orders.
pub(crate) async fn open_with_api(config: &Config) -> Result<UnlessInUse<LocalNode>, CliError> {
    let config = config.read_only();
    let key = tenant::draw()?;
    Ok(match unless_in_use(builder(&config)?.gateway(api(&config, &key)).open().await)? {
        UnlessInUse::Opened(node) => UnlessInUse::Opened(local(node, &key)),
        UnlessInUse::InUse(error) => UnlessInUse::InUse(error),
    })
}

fn builder(config: &Config) -> Result<Builder, CliError> {
    let settings = config.clone();
    let place = config.store.place().or_exit(Exit::Config)?;
    Ok(Quittance::builder()
        .place(place)
        .spill_bytes_max(config.spill_bytes_max)
        .settings(move |engine| settings.apply(engine)))
}

/// The name of this node: the configured name, or else its machine with its port or process.
pub(crate) fn named(config: &Config, listens_on: Option<SocketAddr>) -> String {
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

fn provider(config: &ProviderConfig) -> Result<Adapter, CliError> {
    let settings = config.settings().or_exit(Exit::Config)?;
    Ok(match config.protocol {
        Protocol::Classic(dialect) => {
            Adapter::Classic(Box::new(ClassicProvider::new(dialect, settings).or_exit(Exit::Config)?))
        }
        Protocol::Json(dialect) => {
            Adapter::Json(Box::new(JsonProvider::new(dialect, settings).or_exit(Exit::Config)?))
        }
    })
}

/// The account as the provider reports it now.
pub(crate) async fn account(config: &ProviderConfig) -> Result<Account, CliError> {
    match provider(config)? {
        Adapter::Classic(provider) => provider.look_at_account().await,
        Adapter::Json(provider) => provider.look_at_account().await,
    }
    .or_exit(Exit::Provider)
}

fn start_error(error: &StartError) -> CliError {
    let exit = match error {
        StartError::Open(error) => return place::open_error(error),
        StartError::Store(_)
        | StartError::Moved { .. }
        | StartError::BeingFilled { .. }
        | StartError::Home { .. }
        | StartError::Spill { .. }
        | StartError::Secret(_) => Exit::Store,
        StartError::Pool { source, .. } if crate::pool::exit_of(source) == Exit::Store => Exit::Store,
        // It stands in the configuration, so it is fixed there.
        StartError::Pool { .. } => Exit::Config,
        StartError::NoProvider
        | StartError::BadPattern(_)
        | StartError::NoHome
        | StartError::Listen { .. } => Exit::Config,
    };
    CliError::of(exit, error)
}

/// Finishes the work in progress, within limits.
pub(crate) async fn stop(node: &Quittance) {
    let mut stopping = std::pin::pin!(node.stop());
    if tokio::time::timeout(STOP_NOTE, &mut stopping).await.is_err() {
        output::tell("finishing the work in progress; Ctrl-C is safe\n");
        _ = tokio::time::timeout(STOP_WAIT, stopping).await;
    }
}

/// Applies the configured rules of sharing to an order that does not set its own.
pub(crate) fn with_reuse(config: &Config, order: Order) -> Order {
    let draft = order.draft();
    if draft.reuse.is_some() {
        return order;
    }
    let host = match draft.params.get("pageurl") {
        Some(Value::Text(page)) => host_of_page(page),
        _ => None,
    };
    match config.reuse.setting(&draft.tenant, order.kind(), host.as_deref()).map(|setting| setting.reuse) {
        Some(Reuse::Shared) => order.shared(),
        Some(Reuse::Exclusive) => order.exclusive(),
        None => order,
    }
}

/// An address to listen on.
pub(crate) fn listen_address(typed: &str) -> Result<SocketAddr, String> {
    typed.parse().map_err(|_| "write an IP address and a port, such as 127.0.0.1:8780 or [::1]:8780".into())
}

pub(crate) fn span(typed: &str) -> Result<Duration, String> {
    duration::parse(typed).ok_or_else(|| format!("write it as {}", duration::FORM))
}
