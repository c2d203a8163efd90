//! Reads the configuration of a running daemon again: the checks of a start, what differs, and what of it is applied. A
//! configuration with an error changes nothing.

use crate::configured_node::adapter;
use crate::gateway_setup::gateway_setup;
use crate::refusals::{refusals, refused_pools};
use crate::serving::ServeRequest;
use crate::setup_error::with_causes;
use crate::sockets::is_kept_inside;
use quittance::ports::Provider;
use quittance::{NotReloaded, Quittance, ReloadSetup};
use quittance_admin::reload::{ReloadRefused, ReloadRequest, ShownChange, ShownReload};
use quittance_config::{Config, ReadAgain, SettingChange, Sources, secret_variables};
use quittance_protocol::Protocol;
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// How many names of removed providers are remembered: more than a node has tasks for.
const SERVICES_MAX: usize = 1024;

/// Sets the level of the log of a running daemon.
#[derive(Clone)]
pub struct LogLevel(pub Arc<dyn Fn(tracing::Level) + Send + Sync>);

impl fmt::Debug for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LogLevel")
    }
}

/// Where a running daemon reads its configuration again.
#[derive(Clone, Debug)]
pub struct ReloadSource {
    pub sources: Sources,
    /// Sets the level of the log; `None` if the command line sets it.
    pub log_level: Option<LogLevel>,
}

/// The one place that replaces the settings of a daemon, one reload at a time.
pub(crate) struct Reloader {
    pub(crate) source: ReloadSource,
    pub(crate) request: ServeRequest,
    pub(crate) node: Quittance,
    /// The name of the node.
    pub(crate) name: String,
    pub(crate) listens_on: Vec<SocketAddr>,
    /// The configuration in use.
    pub(crate) present: Config,
    /// The service of each provider that there was since the start, by its name: some of its tasks may still be open.
    pub(crate) services: BTreeMap<String, Protocol>,
    /// The variables with a secret, which no child process may get.
    pub(crate) secrets: watch::Sender<Vec<String>>,
}

impl Reloader {
    /// Carries out requests until the daemon ends.
    pub(crate) async fn run(mut self, mut requests: mpsc::Receiver<ReloadRequest>) {
        while let Some(ReloadRequest { is_dry_run, reply }) = requests.recv().await {
            let outcome = Box::pin(self.reload(is_dry_run)).await;
            if !is_dry_run {
                log(&outcome);
            }
            // The caller may be gone. The log has the outcome.
            _ = reply.send(outcome);
        }
    }

    async fn reload(&mut self, is_dry_run: bool) -> Result<ShownReload, ReloadRefused> {
        let again = self.present.read_again(&self.source.sources, Path::new(""));
        let again = again
            .map_err(|errors| ReloadRefused::Wrong(errors.0.iter().map(|it| with_causes(it)).collect()))?;
        self.check(&again).await?;
        let ReadAgain { live, changes, .. } = again;
        let mut notes = live.warnings.clone();
        if !is_dry_run {
            notes.extend(self.apply(live).await?);
        }
        Ok(ShownReload {
            file: self.present.file().map(|path| path.display().to_string()),
            is_applied: !is_dry_run,
            changes: changes.into_iter().map(shown).collect(),
            notes,
        })
    }

    /// Refuses what a start would refuse, and what this daemon cannot change.
    async fn check(&self, again: &ReadAgain) -> Result<(), ReloadRefused> {
        let ReadAgain { whole, live, .. } = again;
        let mut wrong: Vec<String> =
            refusals(whole, &self.request).into_iter().map(|refusal| refusal.what).collect();
        if wrong.is_empty() {
            wrong = refused_pools(whole).await.into_iter().map(|refusal| refusal.what).collect();
        }
        wrong.extend(self.unchangeable(live));
        if wrong.is_empty() {
            wrong.extend(refusals(live, &self.request).into_iter().map(|refusal| refusal.what));
        }
        if wrong.is_empty() { Ok(()) } else { Err(ReloadRefused::Wrong(wrong)) }
    }

    fn unchangeable(&self, next: &Config) -> Vec<String> {
        let mut wrong = Vec::new();
        let (from, to) = (self.present.currency(), next.currency());
        if from != to && !next.providers.is_empty() {
            wrong.push(format!(
                "the first provider would have another currency ({to}, not {from}), and all amounts of the node are in it: \
                 restart the daemon"
            ));
        }
        for provider in &next.providers {
            if self.services.get(&provider.name).is_some_and(|service| *service != provider.protocol) {
                wrong.push(format!(
                    "`provider.{}` would be another service under the same name, which cannot be asked for the tasks that \
                     the first one has: give the new one another name",
                    provider.name
                ));
            }
        }
        let outside = self.listens_on.iter().find(|address| !is_kept_inside(**address));
        if let Some(address) = outside.filter(|_| next.tenants.is_empty()) {
            wrong.push(format!(
                "no tenant is left, so no key would be needed, and the daemon listens on {address}, where other machines \
                 can connect: keep a tenant, or restart the daemon"
            ));
        }
        wrong
    }

    /// Replaces the settings. Returns what could not be done, and does not stop the rest.
    async fn apply(&mut self, next: Config) -> Result<Vec<String>, ReloadRefused> {
        let wrong = |what: String| ReloadRefused::Wrong(vec![what]);
        let mut adapters = Vec::new();
        for provider in &next.providers {
            let adapter = self.new_adapter(&next, &provider.name).map_err(wrong)?;
            adapters.push(adapter);
        }
        let pools = next.pools.iter().filter(|pool| !self.present.pools.contains(pool)).cloned().collect();
        let gateway = gateway_setup(&next, &self.name).map_err(|error| wrong(error.what))?;
        let webhooks = next.webhook_settings().map_err(|error| wrong(with_causes(&error)))?;
        let engine = next.clone();
        let settings = Box::new(move |settings: &mut _| engine.apply(settings));
        let setup = ReloadSetup { settings, adapters, gateway, webhooks, pools };
        let refused = self.node.reload(setup).await.map_err(|error| match error {
            NotReloaded::Store(_) => ReloadRefused::StoreAway(with_causes(&error)),
            error => wrong(with_causes(&error)),
        })?;
        if let Some(LogLevel(set)) = &self.source.log_level {
            set(next.log.level);
        }
        self.secrets.send_replace(secret_variables(&next));
        if self.services.len() > SERVICES_MAX {
            self.services.clear();
        }
        self.services.extend(services(&next));
        self.present = next;
        let pool = |(name, why)| format!("the pool `{name}` could not be set: {}", with_causes(&why));
        Ok(refused.into_iter().map(pool).collect())
    }

    /// The adapter for this provider; `None` if the present one is called in the same way. A present one stays, because it
    /// keeps the pace that the service demands.
    fn new_adapter(&self, next: &Config, name: &str) -> Result<Option<Arc<dyn Provider>>, String> {
        let find = |config: &Config| config.providers.iter().find(|known| known.name == name).cloned();
        let (before, after) = (find(&self.present), find(next));
        let Some(after) = after else { return Err(format!("there is no provider `{name}`")) };
        let settings = after.settings().map_err(|error| with_causes(&error))?;
        let is_same = before.is_some_and(|before| before.settings().is_ok_and(|known| known == settings));
        if is_same { Ok(None) } else { adapter(&after).map(Some).map_err(|error| error.what) }
    }
}

/// The service of each provider.
pub(crate) fn services(config: &Config) -> impl Iterator<Item = (String, Protocol)> {
    config.providers.iter().map(|provider| (provider.name.clone(), provider.protocol))
}

fn shown(change: SettingChange) -> ShownChange {
    let SettingChange { name, from, to, origin, needs_restart } = change;
    let effect = if needs_restart { ShownChange::RESTART } else { ShownChange::LIVE };
    ShownChange { name, from, to, origin, effect: effect.into() }
}

fn log(outcome: &Result<ShownReload, ReloadRefused>) {
    match outcome {
        Ok(reload) => {
            for ShownChange { name, from, to, effect, .. } in &reload.changes {
                let word = |value: &Option<String>| value.clone().unwrap_or_else(|| "not set".into());
                let (from, to) = (word(from), word(to));
                if effect == ShownChange::RESTART {
                    tracing::warn!(
                        setting = name,
                        "needs a restart: {to} is in the configuration, {from} stays in use"
                    );
                } else {
                    tracing::info!(setting = name, "changed from {from} to {to}");
                }
            }
            for note in &reload.notes {
                tracing::warn!("{note}");
            }
            tracing::info!(changes = reload.changes.len(), "the configuration was read again");
        }
        Err(ReloadRefused::Wrong(errors)) => {
            for error in errors {
                tracing::error!("the configuration is wrong: {error}");
            }
            tracing::error!(errors = errors.len(), "the configuration was not reloaded: nothing has changed");
        }
        Err(ReloadRefused::StoreAway(why)) => {
            tracing::error!("the configuration was not reloaded, nothing has changed: {why}");
        }
    }
}
