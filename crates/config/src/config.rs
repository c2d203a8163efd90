//! The typed configuration, made from the settings in force.

use crate::alerts::AlertsConfig;
use crate::budgets::{self, budgets};
use crate::effective::Effective;
use crate::error::{ConfigError, Errors};
use crate::kinds::{self, KindTable};
use crate::layers::Environment;
use crate::lifetimes::lifetimes;
use crate::named_secret::{CallerKey, Credential};
use crate::providers::{ProviderConfig, prices, provider, throttle};
use crate::retry_settings::retry_rules;
use crate::reuse::ReuseRules;
use crate::setting_name::Name;
use crate::store::{StoreConfig, StoreUrl};
use crate::tenants::{TenantConfig, tenant};
use crate::{check, nearest, pools};
use quittance::{LifeRule, PoolSpec, SPILL_BYTES_MAX};
use quittance_engine::targets::HostPattern;
use quittance_engine::{BudgetRule, ProviderRules, Settings, Targets, Throttle};
use quittance_gateway::{Limits, WebhookSettings};
use quittance_lifecycle::{KeySettings, Kind, Money, Policy, Preset, WhenInDoubt};
use quittance_protocol::Dialect;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Everything that the operator sets, checked and in our own types.
#[derive(Clone, Debug)]
pub struct Config {
    pub listen: SocketAddr,
    /// The address without a slash at its end. `None`: no callbacks, only polls.
    pub public_url: Option<String>,
    pub(crate) callback_secret: Option<Credential>,
    pub listener: Limits,
    /// Names under which clients reach this gateway, besides localhost.
    pub hosts: Vec<HostPattern>,
    pub tls: TlsConfig,
    /// The operator's key.
    pub admin: Option<CallerKey>,
    /// The dialect for callers if neither the path nor the tenant sets it.
    pub dialect: Option<Dialect>,
    /// The settings of webhooks, without the tenants' secrets: see [`Config::webhook_settings`].
    pub(crate) webhooks: WebhookSettings,
    pub alerts: AlertsConfig,
    pub log: LogConfig,
    /// The address of a collector of traces.
    pub traces: Option<String>,
    pub store: StoreConfig,
    pub node_name: Option<String>,
    pub spill_bytes_max: u64,
    pub targets: Targets,
    pub(crate) keys: KeySettings,
    pub policy: Policy,
    /// The rules for every provider. Each provider has a copy, with the values that it overrides.
    pub(crate) throttle: Throttle,
    pub reuse: ReuseRules,
    pub kinds: KindTable,
    /// How long answers live, where this differs from their kind.
    pub lifetimes: Vec<LifeRule>,
    /// What an answer of a kind costs if the provider does not report it.
    pub(crate) prices: BTreeMap<String, Money>,
    /// Days for which the usage is kept in detail.
    pub(crate) usage_days: u64,
    /// Days for which the usage is kept at all.
    pub(crate) sums_days: u64,
    /// Pools that exist from the start.
    pub pools: Vec<PoolSpec>,
    /// The limits of what may be spent, in the order of the file.
    pub budgets: Vec<BudgetRule>,
    /// The providers, in the order of the file.
    pub providers: Vec<ProviderConfig>,
    pub tenants: Vec<TenantConfig>,
    /// Probable mistakes without an effect, such as a variable that is no setting.
    pub warnings: Vec<String>,
    /// Every value with its origin.
    pub(crate) effective: Effective,
    /// The variables that it was read with. The keys of a client of our API are there, too.
    pub environment: Environment,
}

/// The certificate of the https listener.
#[derive(Clone, Debug, Default)]
pub struct TlsConfig {
    pub listen: Option<SocketAddr>,
    pub(crate) cert_file: Option<PathBuf>,
    pub(crate) key_file: Option<PathBuf>,
}

impl TlsConfig {
    /// The files of the certificate and of its key, if they are named. One without the other is an error.
    pub fn files(&self) -> Result<Option<(&Path, &Path)>, ConfigError> {
        let remedy = "a certificate and its key belong together: set both, or neither";
        let missing = |key| ConfigError::incomplete(&Name::of(["tls"]), key, remedy);
        match (&self.cert_file, &self.key_file) {
            (Some(cert), Some(key)) => Ok(Some((cert, key))),
            (None, None) => Ok(None),
            (Some(_), None) => Err(missing("key_file")),
            (None, Some(_)) => Err(missing("cert_file")),
        }
    }
}

/// What `serve` logs on standard error.
#[derive(Clone, Copy, Debug)]
pub struct LogConfig {
    pub level: tracing::Level,
    pub is_json: bool,
}

impl Config {
    /// The configuration with only defaults.
    pub(crate) fn new(preset: Preset) -> Self {
        let engine = Settings::new(0, |_| None);
        Self {
            listen: (Ipv4Addr::LOCALHOST, 8780).into(),
            public_url: None,
            callback_secret: None,
            listener: Limits::default(),
            hosts: Vec::new(),
            tls: TlsConfig::default(),
            admin: None,
            dialect: None,
            webhooks: WebhookSettings::default(),
            alerts: AlertsConfig::default(),
            log: LogConfig { level: tracing::Level::INFO, is_json: false },
            traces: None,
            store: StoreConfig::new(StoreUrl::Memory),
            node_name: None,
            spill_bytes_max: SPILL_BYTES_MAX,
            targets: Targets::default(),
            keys: KeySettings::default(),
            policy: Policy::DEFAULT.with_preset(preset),
            throttle: Throttle::DEFAULT,
            reuse: ReuseRules::default(),
            kinds: KindTable::default(),
            lifetimes: Vec::new(),
            prices: BTreeMap::new(),
            usage_days: engine.usage_days,
            sums_days: engine.sums_days,
            pools: Vec::new(),
            budgets: Vec::new(),
            providers: Vec::new(),
            tenants: Vec::new(),
            warnings: Vec::new(),
            effective: Effective::default(),
            environment: Environment::default(),
        }
    }

    /// Builds the configuration from these settings. A wrong value is reported in `errors`, and gets its default here
    /// or is left out.
    pub(crate) fn of(effective: Effective, environment: &Environment, errors: &mut Errors) -> Self {
        check::settings(&effective, errors);
        let mut config = Self::new(effective.preset());
        effective.apply(&Name::top(), &mut config);
        config.public_url = config.public_url.map(|url| without_slash(&url));
        config.log.is_json = effective.text("log.format") == "json";
        config.callback_secret =
            errors.keep(Credential::find(&effective, &Name::top(), "callback_secret", environment)).flatten();
        config.admin = errors.keep(CallerKey::find(&effective, &Name::of(["admin"]), environment)).flatten();
        config.store = StoreConfig::of(&effective, environment, errors);
        config.alerts.find(&effective, environment, errors);
        config.targets.undescribed.get_or_insert(effective.labels("tenant").is_empty());
        config.targets.vendors = effective.entries(&Name::of(["targets", "vendors"])).into_iter().collect();
        config.throttle = throttle(&effective, &Name::of(["provider_rules"]));
        config.kinds = kinds::kinds(&effective);
        kinds::check(&effective, &config.kinds, errors);
        config.reuse = ReuseRules::of(&effective);
        config.prices = prices(&effective, &Name::of(["prices"]));
        config.providers =
            effective.list("provider", |label| provider(&effective, &label, environment, errors));
        config.lifetimes = lifetimes(&effective, &config.kinds, &config.providers, errors);
        config.tenants = effective.list("tenant", |label| tenant(&effective, &label, environment, errors));
        config.pools = pools::pools(&effective, errors);
        config.budgets = budgets(&effective, &config.providers, errors);
        config.policy.callbacks = config.public_url.is_some();
        config.effective = effective;
        config.environment = environment.clone();
        check::secrets(&config, errors);
        pools::check(&config, errors);
        budgets::check(&config, errors);
        config
    }

    /// The config file, if there is one.
    pub fn file(&self) -> Option<&Path> {
        self.effective.file.as_deref()
    }

    /// This configuration for a command that only reads: it creates and changes no tables of the store.
    #[must_use]
    pub fn read_only(&self) -> Self {
        Self { store: self.store.as_it_is(), ..self.clone() }
    }

    /// Sets everything that the engine takes, except its identity and its callback address.
    pub fn apply(&self, settings: &mut Settings) {
        self.effective.apply(&Name::top(), settings);
        settings.policy = self.policy;
        settings.keys = self.keys;
        settings.targets = self.targets.clone();
        // They hold for commands that work without a daemon, too.
        settings.tenants = self
            .tenants
            .iter()
            .map(|tenant| (tenant.name().to_owned(), tenant.rule(&self.targets)))
            .collect();
        settings.is_shared = self.tenants.len() > 1;
        settings.lifetimes.clone_from(&self.lifetimes);
        settings.providers = self.providers.iter().map(|provider| provider.rules(&self.prices)).collect();
        if settings.providers.is_empty() {
            let (throttle, prices) = (self.throttle, self.prices.clone());
            settings.providers.push(ProviderRules { throttle, prices, ..ProviderRules::default() });
        }
        let rules = |list| self.effective.entries(&Name::of(["routing", list])).into_iter().collect();
        (settings.routing.kinds, settings.routing.tenants) = (rules("kinds"), rules("tenants"));
        settings.retries = retry_rules(&self.effective);
        settings.budgets.clone_from(&self.budgets);
        settings.usage_days = self.usage_days;
        settings.sums_days = self.sums_days;
        // `targets.undescribed` decides about kinds without a description: clients know new ones before we do.
        let known = self.kinds();
        settings.kinds =
            Arc::new(move |name| known(name).or_else(|| Some(quittance_protocol::kinds::open_kind(name))));
    }

    /// The kinds of the catalogue, with the operator's corrections.
    pub fn kinds(&self) -> impl Fn(&str) -> Option<Kind> + Send + Sync + 'static {
        let table = self.kinds.clone();
        move |name| table.kind(name)
    }

    /// The settings of webhooks. Fails if a tenant's secret is named and missing, because another secret would be
    /// used then.
    pub fn webhook_settings(&self) -> Result<WebhookSettings, ConfigError> {
        let mut settings = self.webhooks.clone();
        for tenant in &self.tenants {
            if let Some(secret) = &tenant.webhook_secret {
                settings.secrets.insert(tenant.name().to_owned(), secret.webhook_bytes()?);
            }
        }
        Ok(settings)
    }

    /// The secret that signs callback addresses, if the operator gave one.
    pub fn callback_secret(&self) -> Result<Option<[u8; 32]>, ConfigError> {
        self.callback_secret.as_ref().map(Credential::bytes).transpose()
    }

    /// Whether orders may be placed for this tenant: for any name if there are no tenants, else for one of them.
    pub fn check_tenant(&self, name: &str) -> Result<(), String> {
        let names = || self.tenants.iter().map(|tenant| tenant.name().to_owned());
        if self.tenants.is_empty() || names().any(|known| known == name) {
            return Ok(());
        }
        let hint = match nearest::nearest(name, names()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "`quittance tenant list` shows them all".into(),
        };
        Err(format!("there is no tenant `{}`: {hint}", name.escape_debug()))
    }

    /// What it means that no callback address is set. `doctor`, `config check` and the start of `serve` use this
    /// text.
    pub fn lost_reply_risk(&self) -> Option<&'static str> {
        match (&self.public_url, self.policy.when_in_doubt) {
            (Some(_), _) => None,
            (None, WhenInDoubt::Resubmit) => Some(
                "public_url is not set: when the reply to a submit is lost, the order is submitted again and may be paid \
                 twice. Set public_url to an address where the provider can call this node, or set \
                 retry.when_in_doubt = \"dead_letter\" to make such an order a dead letter",
            ),
            (None, WhenInDoubt::DeadLetter) => Some(
                "public_url is not set: when the reply to a submit is lost, the order becomes a dead letter. Set public_url to \
                 an address where the provider can call this node, and its callback settles the doubt",
            ),
        }
    }
}

pub(crate) fn without_slash(url: &str) -> String {
    url.trim_end_matches('/').to_owned()
}
