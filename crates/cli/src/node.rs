//! One node, as the configuration describes it: from settings to a running library, and what goes wrong on the way in
//! words that say what to do.

use crate::config::{self, Config, ProviderConfig, StoreUrl};
use crate::exit::{Exit, Trouble};
use crate::output;
use quittance::lifecycle::{Reuse, Value, terms::page_host};
use quittance::{Builder, Callbacks, ClassicProvider, Order, Quittance, StartError};
use std::time::Duration;

/// How long what is under way may take to end before the process does. Ending sooner loses nothing, but a submit that is
/// cut off in the middle becomes a doubt.
const STOP_WAIT: Duration = Duration::from_secs(10);
/// When a person is told why the prompt does not come back.
const STOP_TOLD: Duration = Duration::from_secs(1);

/// Opens the store and carries orders out.
pub(crate) async fn start(config: &Config) -> Result<Quittance, Trouble> {
    let Some(first) = config.providers.first() else {
        let what = "there is no provider: add a [[provider]] to quittance.toml (see docs/config.md), or try \
                    `quittance demo`, which needs none";
        return Err(Trouble::new(Exit::Config, what));
    };
    if config.providers.len() > 1 {
        output::tell(&format!("note: only the first provider, {}, is used in this version\n", first.name));
    }
    let mut builder = builder(config).provider(provider(first)?);
    if let Some(public_url) = &config.public_url {
        let secret = config.callback_secret().map_err(|error| Trouble::of(Exit::Config, &error))?;
        let mut callbacks = Callbacks::new(config.listen, public_url);
        (callbacks.secret, callbacks.limits) = (secret, config.listener);
        builder = builder.callbacks(callbacks);
    }
    builder.start().await.map_err(|error| start_trouble(&error))
}

/// Opens the store to look and to mend.
pub(crate) fn open(config: &Config) -> Result<Quittance, Trouble> {
    builder(config).open().map_err(|error| start_trouble(&error))
}

fn builder(config: &Config) -> Builder {
    let settings = config.clone();
    let builder = Quittance::builder()
        .spill_bytes_max(config.spill_bytes_max)
        .settings(move |engine| settings.apply(engine));
    match &config.store {
        StoreUrl::Embedded(dir) => builder.embedded(dir),
        StoreUrl::Memory => builder.in_memory(),
    }
}

pub(crate) fn provider(config: &ProviderConfig) -> Result<ClassicProvider, Trouble> {
    let settings = config.classic().map_err(|error| Trouble::of(Exit::Config, &error))?;
    ClassicProvider::new(settings).map_err(|error| Trouble::of(Exit::Config, &error))
}

fn start_trouble(error: &StartError) -> Trouble {
    let exit = match error {
        StartError::Store(_) | StartError::Spill { .. } | StartError::Secret(_) => Exit::Store,
        StartError::NoProvider | StartError::BadPattern(_) | StartError::Listen { .. } => Exit::Config,
    };
    Trouble::of(exit, error)
}

/// Ends what is under way, within limits.
pub(crate) async fn stop(node: &Quittance) {
    let mut stopping = std::pin::pin!(node.stop());
    if tokio::time::timeout(STOP_TOLD, &mut stopping).await.is_err() {
        output::tell("ending what is under way; it is safe to interrupt\n");
        _ = tokio::time::timeout(STOP_WAIT, stopping).await;
    }
}

/// What the configuration says about sharing, for an order that does not say itself.
pub(crate) fn with_reuse(config: &Config, order: Order) -> Order {
    let draft = order.draft();
    let host = match draft.params.get("pageurl") {
        Some(Value::Text(page)) => page_host(page).ok(),
        _ => None,
    };
    match config.reuse.of(&draft.tenant, order.kind(), host) {
        Reuse::Shared => order.shared(),
        Reuse::Exclusive => order.exclusive(),
    }
}

pub(crate) fn span(typed: &str) -> Result<Duration, String> {
    config::span::parse(typed).ok_or_else(|| format!("write it as {}", config::span::FORM))
}
