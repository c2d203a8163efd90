//! The settings: one TOML file, overridden by the environment, and that by flags, all described by one registry. This is the
//! only crate that may read, check and explain them; other crates get the typed [`Config`]. Start at `registry.rs`: it is data.
#![forbid(unsafe_code)]

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
pub mod lifetimes;
pub mod money;
mod name;
pub mod nearest;
mod origin;
mod place;
mod pools;
mod prices;
mod rate;
mod registry;
mod secret;
mod setting;
mod show;
pub mod span;
mod store;
#[cfg(test)]
mod tests;
mod types;
mod value;

pub use address::Scheme;
pub use alerts::AlertsConfig;
pub use error::{ConfigError, ConfigErrors};
pub use layers::{ADMIN_KEY, Environment, FROM_PASSWORD, TENANT_KEY, TO_PASSWORD};
pub use name::toml_text;
pub use secret::{CallerKey, Credential, reading_remedy};
pub use show::{Line, ORIGIN_COLUMN, in_force, lines, object, secret_files, secret_variables};
pub use store::{StoreConfig, StoreUrl};
pub use types::{
    CallbacksOut, Dialect, KindTable, LogConfig, OPEN_MAX_DEFAULT, ProviderConfig, RATE_DEFAULT, ReuseRules,
    TenantConfig, TlsConfig,
};
pub use value::is_label;

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

/// What the command line says about the configuration.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The file of `--config`.
    pub file: Option<PathBuf>,
    /// The values of `--set`, each as `NAME=VALUE`; a later one overrides an earlier one.
    pub overrides: Vec<String>,
}

/// The name of every setting; `*` stands for a part that the operator chooses.
pub fn setting_names() -> impl Iterator<Item = &'static str> {
    registry::settings().map(|setting| setting.path)
}

/// All that the operator decides, checked and in our own types.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub listen: SocketAddr,
    /// Without a slash at its end. None: no callbacks, polling only.
    pub public_url: Option<String>,
    pub callback_secret: Option<Credential>,
    pub listener: Limits,
    /// Names under which clients reach this gateway, besides localhost.
    pub hosts: Vec<HostPattern>,
    pub tls: TlsConfig,
    /// The operator's own key.
    pub admin: Option<CallerKey>,
    pub flavour: Option<String>,
    pub callbacks_out: CallbacksOut,
    pub alerts: AlertsConfig,
    pub log: LogConfig,
    /// Whoever collects traces.
    pub traces: Option<String>,
    pub store: StoreConfig,
    /// What people call this node, if the operator has said so.
    pub node_name: Option<String>,
    pub spill_bytes_max: u64,
    pub targets: Targets,
    pub keys: KeySettings,
    pub policy: Policy,
    pub engine: EngineLimits,
    /// The rules for every provider; each has its own copy with its own corrections.
    pub throttle: Throttle,
    pub reuse: ReuseRules,
    pub kinds: KindTable,
    /// How long answers live where that is not what their kind says.
    pub lifetimes: Vec<LifeRule>,
    /// What an answer of a kind costs, where the provider does not tell.
    pub prices: BTreeMap<String, Money>,
    /// How many days the usage is kept in detail, and how many at all.
    pub usage_days: u64,
    pub sums_days: u64,
    /// To be there from the start.
    pub pools: Vec<PoolSpec>,
    /// In the order of the file: the first is asked first.
    pub providers: Vec<ProviderConfig>,
    pub tenants: Vec<TenantConfig>,
    /// What looks like a mistake and changes nothing, such as a variable that is no setting.
    pub warnings: Vec<String>,
    /// Every value with its origin, to show.
    pub effective: Effective,
}

impl Config {
    /// Finds and reads the configuration. `folder` is where the process was started; it is empty for the real one.
    pub fn load(sources: &Sources, environment: &Environment, folder: &Path) -> Result<Self, ConfigErrors> {
        match Self::read(sources, environment, folder) {
            Ok((config, wrong)) if wrong.is_empty() => Ok(config),
            Ok((_, wrong)) => Err(ConfigErrors(wrong)),
            Err(error) => Err(ConfigErrors(vec![error])),
        }
    }

    /// Reads the configuration and says everything that is wrong with it. What is wrong has its default in the result, or is
    /// left out, so that the rest can be checked, too. An error if the file cannot be read at all.
    pub fn read(
        sources: &Sources,
        environment: &Environment,
        folder: &Path,
    ) -> Result<(Self, Vec<ConfigError>), ConfigError> {
        let mut wrong = Wrong::default();
        let path = layers::find_file(sources.file.as_deref(), environment, folder)?;
        let from_file = match &path {
            Some(path) => layers::from_file(path, &mut wrong)?,
            None => Vec::new(),
        };
        let from_flags = layers::from_flags(&sources.overrides, &mut wrong);
        let (from_environment, warnings) =
            layers::from_environment(environment, &[&from_file, &from_flags], &mut wrong);
        let read_errors = wrong.count();
        let entries = [from_file, from_environment, from_flags].concat();
        let config = build::config(Effective::of(path, entries), environment, &mut wrong);
        Ok((Self { warnings, ..config }, wrong.into_errors(read_errors)))
    }

    /// What it means that no callback address is set, if none is: the setting, `doctor`, `config check` and the start of `serve`
    /// say it alike.
    pub fn lost_reply_risk(&self) -> Option<&'static str> {
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
    pub fn kinds(&self) -> impl Fn(&str) -> Option<Kind> + Send + Sync + 'static {
        let table = self.kinds.clone();
        move |name| table.kind(name)
    }

    /// Whether orders may be placed for this tenant: for any name if there are no tenants, else for one of them.
    pub fn check_tenant(&self, name: &str) -> Result<(), String> {
        let names = || self.tenants.iter().map(|tenant| tenant.name.clone());
        if self.tenants.is_empty() || names().any(|known| known == name) {
            return Ok(());
        }
        let hint = match nearest::nearest(name, names()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "`quittance tenant list` shows who there is".into(),
        };
        Err(format!("there is no tenant `{}`: {hint}", name.escape_debug()))
    }

    /// A tenant's rate, as it was written.
    pub fn rate_of(&self, tenant: &str) -> Option<String> {
        self.effective.text_at(&name::Name::of(["tenant", tenant, "rate"]))
    }

    /// Everything that the engine takes, except who it is and where it is called back. The engine knows one provider,
    /// the first, and spares that one.
    pub fn apply(&self, settings: &mut Settings) {
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
    pub fn callback_secret(&self) -> Result<Option<[u8; 32]>, ConfigError> {
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
