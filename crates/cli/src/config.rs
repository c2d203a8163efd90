//! The configuration: one TOML file, overruled by the environment and that by flags, all described by one registry.
//! This is the only room that reads it; everybody else gets the typed [`Config`]. Start at `registry.rs`, which is data.

mod address;
mod alerts;
mod build;
mod check;
#[cfg(test)]
mod docs;
mod effective;
mod entries;
mod error;
mod file;
mod layers;
pub(crate) mod lifetimes;
pub(crate) mod money;
mod name;
pub(crate) mod nearest;
mod origin;
mod place;
mod pools;
mod prices;
mod rate;
mod registry;
mod secret;
mod setting;
mod show;
pub(crate) mod span;
mod store;
#[cfg(test)]
pub(crate) mod tests;
mod types;
mod value;
mod verdict;

pub(crate) use address::Scheme;
pub(crate) use alerts::AlertsConfig;
pub(crate) use error::{ConfigError, ConfigErrors};
pub(crate) use layers::{ADMIN_KEY, Environment, FROM_PASSWORD, TENANT_KEY, TO_PASSWORD};
pub(crate) use name::toml_text;
#[cfg(test)]
pub(crate) use registry::settings;
pub(crate) use secret::{CallerKey, Credential};
pub(crate) use show::{ConfigCommand, in_force, refuse_to_overwrite, run, secret_files, secret_variables};
pub(crate) use store::{StoreConfig, StoreUrl};
pub(crate) use types::{
    CallbacksOut, Dialect, KindTable, LogConfig, OPEN_MAX_DEFAULT, ProviderConfig, RATE_DEFAULT, ReuseRules,
    TenantConfig, TlsConfig,
};
pub(crate) use value::is_label;
pub(crate) use verdict::check;

use clap::Args;
use effective::Effective;
use error::Wrong;
use quittance::{LifeRule, PoolSpec};
use quittance_engine::targets::HostPattern;
use quittance_engine::{Settings, Targets, Throttle};
use quittance_gateway::Limits;
use quittance_lifecycle::{KeySettings, Kind, Money, Policy, UnsettledDoubt};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use types::EngineLimits;

/// The flags that every command with a configuration has.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ConfigArgs {
    /// The config file
    ///
    /// Default: the file that QUITTANCE_CONFIG names, else ./quittance.toml if it exists.
    #[arg(long, value_name = "PATH", global = true)]
    pub(crate) config: Option<PathBuf>,
    /// Override one setting, such as timing.deadline=120s; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", global = true)]
    pub(crate) overrides: Vec<String>,
}

/// All that the operator decides, checked and in our own types.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config {
    pub(crate) listen: SocketAddr,
    /// Without a slash at its end. None: no callbacks, polling only.
    pub(crate) public_url: Option<String>,
    pub(crate) callback_secret: Option<Credential>,
    pub(crate) listener: Limits,
    /// Names under which clients reach this gateway, besides localhost.
    pub(crate) hosts: Vec<HostPattern>,
    pub(crate) tls: TlsConfig,
    /// The operator's own key.
    pub(crate) admin: Option<CallerKey>,
    pub(crate) flavour: Option<String>,
    pub(crate) callbacks_out: CallbacksOut,
    pub(crate) alerts: AlertsConfig,
    pub(crate) log: LogConfig,
    /// Whoever collects traces.
    pub(crate) traces: Option<String>,
    pub(crate) store: StoreConfig,
    /// What people call this node, if the operator has said so.
    pub(crate) node_name: Option<String>,
    pub(crate) spill_bytes_max: u64,
    pub(crate) targets: Targets,
    pub(crate) keys: KeySettings,
    pub(crate) policy: Policy,
    pub(crate) engine: EngineLimits,
    /// The rules for every provider; each has its own copy with its own corrections.
    pub(crate) throttle: Throttle,
    pub(crate) reuse: ReuseRules,
    pub(crate) kinds: KindTable,
    /// How long answers live where that is not what their kind says.
    pub(crate) lifetimes: Vec<LifeRule>,
    /// What an answer of a kind costs, where the provider does not tell.
    pub(crate) prices: BTreeMap<String, Money>,
    /// How many days the usage is kept in detail, and how many at all.
    pub(crate) usage_days: u64,
    pub(crate) sums_days: u64,
    /// To be there from the start.
    pub(crate) pools: Vec<PoolSpec>,
    /// In the order of the file: the first is asked first.
    pub(crate) providers: Vec<ProviderConfig>,
    pub(crate) tenants: Vec<TenantConfig>,
    /// What looks like a mistake and changes nothing, such as a variable that is no setting.
    pub(crate) warnings: Vec<String>,
    /// Every value with its origin, to show.
    pub(crate) effective: Effective,
}

impl Config {
    /// Finds and reads the configuration. `folder` is where the process was started; it is empty for the real one.
    pub(crate) fn load(
        args: &ConfigArgs,
        environment: &Environment,
        folder: &Path,
    ) -> Result<Self, ConfigErrors> {
        match Self::read(args, environment, folder) {
            Ok((config, wrong)) if wrong.is_empty() => Ok(config),
            Ok((_, wrong)) => Err(ConfigErrors(wrong)),
            Err(error) => Err(ConfigErrors(vec![error])),
        }
    }

    /// Reads the configuration and says everything that is wrong with it. What is wrong has its default in the result, or is
    /// left out, so that the rest can be checked, too. An error if the file cannot be read at all.
    pub(crate) fn read(
        args: &ConfigArgs,
        environment: &Environment,
        folder: &Path,
    ) -> Result<(Self, Vec<ConfigError>), ConfigError> {
        let mut wrong = Wrong::default();
        let path = layers::find_file(args.config.as_deref(), environment, folder)?;
        let from_file = match &path {
            Some(path) => layers::from_file(path, &mut wrong)?,
            None => Vec::new(),
        };
        let from_flags = layers::from_flags(&args.overrides, &mut wrong);
        let (from_environment, warnings) =
            layers::from_environment(environment, &[&from_file, &from_flags], &mut wrong);
        let read_errors = wrong.count();
        let entries = [from_file, from_environment, from_flags].concat();
        let config = build::config(Effective::of(path, entries), environment, &mut wrong);
        Ok((Self { warnings, ..config }, wrong.into_errors(read_errors)))
    }

    /// What it means that no callback address is set, if none is: the setting, `doctor`, `config check` and the start of `serve`
    /// say it alike.
    pub(crate) fn lost_reply_risk(&self) -> Option<&'static str> {
        match (&self.public_url, self.policy.unsettled_doubt) {
            (Some(_), _) => None,
            (None, UnsettledDoubt::Resubmit) => Some(
                "public_url is not set: when the reply to a submit is lost, the order is submitted again and may be paid \
                 twice. Set public_url to an address where the provider can call this node, or set \
                 retry.unsettled_doubt = \"dead_letter\" to make such an order a dead letter",
            ),
            (None, UnsettledDoubt::DeadLetter) => Some(
                "public_url is not set: when the reply to a submit is lost, the order becomes a dead letter. Set public_url to \
                 an address where the provider can call this node, and its callback settles the doubt",
            ),
        }
    }

    /// The kinds of the catalogue, with the operator's corrections.
    pub(crate) fn kinds(&self) -> impl Fn(&str) -> Option<Kind> + Send + Sync + 'static {
        let table = self.kinds.clone();
        move |name| table.kind(name)
    }

    /// A tenant's rate, as it was written.
    pub(crate) fn rate_of(&self, tenant: &str) -> Option<String> {
        self.effective.text_at(&name::Name::of(["tenant", tenant, "rate"]))
    }

    /// Everything that the engine takes, except who it is and where it is called back. The engine knows one provider,
    /// the first, and spares that one.
    pub(crate) fn apply(&self, settings: &mut Settings) {
        settings.policy = self.policy;
        settings.keys = self.keys;
        settings.targets = self.targets.clone();
        settings.is_shared = self.tenants.len() > 1;
        settings.throttle = self.providers.first().map_or(self.throttle, |provider| provider.throttle);
        settings.lifetimes.clone_from(&self.lifetimes);
        settings.provider = self.providers.first().map(|provider| provider.name.clone()).unwrap_or_default();
        settings.prices = self.price_table();
        self.currency().clone_into(&mut settings.currency);
        settings.usage_days = self.usage_days;
        settings.sums_days = self.sums_days;
        // `targets.undescribed` decides about kinds without a description: clients know new ones before we do.
        let known = self.kinds();
        settings.kinds = std::sync::Arc::new(move |name| {
            known(name).or_else(|| Some(quittance_protocol::kinds::open_kind(name)))
        });
        self.engine.apply(settings);
    }

    /// The secret that callback addresses are signed with, if the operator gave one.
    pub(crate) fn callback_secret(&self) -> Result<Option<[u8; 32]>, ConfigError> {
        let Some(credential) = &self.callback_secret else { return Ok(None) };
        let wrong = || ConfigError::BadSecret {
            name: credential.name.clone(),
            why: format!(
                "{} must hold 64 hexadecimal digits: make them with `openssl rand -hex 32`",
                credential.keeper
            ),
        };
        secret::bytes_of(credential.get()?.reveal()).map(Some).ok_or_else(wrong)
    }
}
