//! What a configuration means, in our own types.

use super::error::ConfigError;
use super::secret::{self, CallerKey, Credential};
use quittance::{ApiKey, ClassicSettings, JsonSettings};
use quittance_engine::targets::HostPattern;
use quittance_engine::{Settings, Targets, Throttle};
use quittance_gateway::{Allowed, Rate, ReuseSetting, TenantSettings, WebhookSettings};
use quittance_lifecycle::{FaultClass, Kind, Money, Pace, Reuse};
use quittance_protocol::classic::profile::PollQuota;
use quittance_protocol::classic::{FaultCodes, Profile};
use quittance_protocol::json::Flavour;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Which protocol a provider speaks, and as whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Classic(Profile),
    Json(Flavour),
}

impl Dialect {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Classic(profile) => profile.name(),
            Self::Json(flavour) => flavour.name(),
        }
    }

    pub const fn protocol(self) -> &'static str {
        match self {
            Self::Classic(_) => "classic",
            Self::Json(_) => "json",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderConfig {
    pub name: String,
    pub dialect: Dialect,
    /// Without a slash at its end.
    pub url: String,
    pub key: Credential,
    pub connect_wait: Duration,
    pub reply_wait: Duration,
    pub poll_reply_wait: Duration,
    // What is `None` here follows from the profile.
    pub poll_batch_max: Option<usize>,
    pub poll_quota: Option<PollQuota>,
    pub queries_per_task_max: Option<u32>,
    pub reply_bytes_max: usize,
    pub idle_wait: Duration,
    pub idle_connections_max: usize,
    pub extra_ca: Vec<u8>,
    pub throttle: Throttle,
    /// What the operator knows better about its codes.
    pub corrections: BTreeMap<String, FaultClass>,
    /// What its answers cost by kind, where that is not what `prices` says.
    pub prices: BTreeMap<String, Money>,
    /// What its account is kept in, by ISO 4217.
    pub currency: String,
}

impl ProviderConfig {
    /// What its codes mean, the operator's corrections included. The JSON protocol has the codes of 2captcha.
    pub fn codes(&self) -> FaultCodes {
        let profile = match self.dialect {
            Dialect::Classic(profile) => profile,
            Dialect::Json(_) => Profile::TwoCaptcha,
        };
        let of_profile = FaultCodes::of(profile);
        self.corrections.iter().fold(of_profile, |codes, (code, class)| codes.with(code, *class))
    }

    /// What the adapter takes; an error if the key is not there.
    pub fn classic(&self, profile: Profile) -> Result<ClassicSettings, ConfigError> {
        let key = ApiKey::new(self.key.get()?.reveal());
        let mut settings = ClassicSettings::new(&self.name, profile, &self.url, key);
        settings.connect_timeout = self.connect_wait;
        settings.submit_timeout = self.reply_wait;
        settings.poll_timeout = self.poll_reply_wait;
        settings.poll_batch_max = self.poll_batch_max;
        settings.codes.clone_from(&self.corrections);
        settings.response_bytes_max = self.reply_bytes_max;
        settings.pace.submit_interval = Some(self.throttle.submit_interval);
        settings.pace.poll_quota = self.poll_quota;
        settings.extra_ca.clone_from(&self.extra_ca);
        settings.idle_max = self.idle_wait;
        settings.idle_connections_max = self.idle_connections_max;
        Ok(settings)
    }

    /// Settings of a provider that speaks the JSON protocol.
    pub fn json(&self, flavour: Flavour) -> Result<JsonSettings, ConfigError> {
        let key = ApiKey::new(self.key.get()?.reveal());
        let mut settings = JsonSettings::new(&self.name, flavour, &self.url, key);
        settings.connect_timeout = self.connect_wait;
        settings.submit_timeout = self.reply_wait;
        settings.poll_timeout = self.poll_reply_wait;
        settings.codes.clone_from(&self.corrections);
        settings.response_bytes_max = self.reply_bytes_max;
        settings.pace.submit_interval = Some(self.throttle.submit_interval);
        settings.pace.queries_per_task_max = self.queries_per_task_max;
        settings.extra_ca.clone_from(&self.extra_ca);
        settings.idle_max = self.idle_wait;
        settings.idle_connections_max = self.idle_connections_max;
        Ok(settings)
    }
}

/// Who may ask, and how much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantConfig {
    pub name: String,
    pub key: CallerKey,
    pub hosts: Option<Vec<HostPattern>>,
    pub kinds: Option<Vec<String>>,
    pub reuse: Option<Reuse>,
    pub rate: Option<Rate>,
    pub open_max: Option<usize>,
    pub flavour: Option<String>,
    pub balance: bool,
    pub webhook_secret: Option<Credential>,
}

/// The limits of a tenant that has none: enough for a large crowd of workers, and too little to fill a disk in an hour.
pub const OPEN_MAX_DEFAULT: usize = 5_000;
pub const RATE_DEFAULT: Rate = Rate { every: Duration::from_millis(10), burst: 2_500 };

impl TenantConfig {
    /// What the gateway takes; an error if a secret is not there, or none. `targets` is what everybody may.
    pub fn settings(&self, targets: &Targets) -> Result<TenantSettings, ConfigError> {
        let Self { name, key, hosts, kinds, reuse, rate, open_max, flavour, balance, webhook_secret } = self;
        let of_his = |hosts: &Vec<HostPattern>| Targets { allow: hosts.clone(), ..targets.clone() };
        Ok(TenantSettings {
            name: name.clone(),
            key: key.digest()?,
            targets: hosts.as_ref().map(of_his),
            kinds: kinds.clone(),
            reuse: *reuse,
            rate: rate.or(Some(RATE_DEFAULT)),
            open_max: open_max.or(Some(OPEN_MAX_DEFAULT)),
            sees_balance: *balance,
            flavour: flavour.clone(),
            webhook_secret: webhook_secret.as_ref().map(webhook_bytes).transpose()?,
        })
    }
}

pub(crate) fn webhook_bytes(credential: &Credential) -> Result<[u8; 32], ConfigError> {
    secret::bytes_of(credential.get()?.reveal()).ok_or_else(|| ConfigError::BadSecret {
        name: credential.name.clone(),
        why: format!(
            "{} must hold 64 hexadecimal digits (`openssl rand -hex 32`), or `whsec_` and 32 bytes in base64",
            credential.keeper
        ),
    })
}

/// How callers are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallbacksOut {
    /// What may be called inside the operator's network.
    pub allow: Vec<Allowed>,
    pub wait: Duration,
}

impl CallbacksOut {
    /// What the library takes; an error if a tenant's secret is named and not there, because another would be used then.
    pub fn settings(&self, tenants: &[TenantConfig]) -> Result<WebhookSettings, ConfigError> {
        let secrets = tenants.iter().filter_map(|tenant| {
            let secret = webhook_bytes(tenant.webhook_secret.as_ref()?);
            Some(secret.map(|secret| (tenant.name.clone(), secret)))
        });
        Ok(WebhookSettings {
            allow: self.allow.clone(),
            wait: self.wait,
            secrets: secrets.collect::<Result<_, _>>()?,
            ..WebhookSettings::default()
        })
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsConfig {
    pub listen: Option<SocketAddr>,
    cert_file: Option<PathBuf>,
    key_file: Option<PathBuf>,
}

impl TlsConfig {
    pub(crate) const fn new(
        listen: Option<SocketAddr>,
        cert_file: Option<PathBuf>,
        key_file: Option<PathBuf>,
    ) -> Self {
        Self { listen, cert_file, key_file }
    }

    /// The files of the certificate and of its key, if they are named. One without the other is an error only for who
    /// wants to use them.
    pub fn files(&self) -> Result<Option<(&Path, &Path)>, ConfigError> {
        let missing = |key| ConfigError::Incomplete {
            table: "tls".into(),
            key,
            remedy: "a certificate and its key belong together: set both, or neither".into(),
        };
        match (&self.cert_file, &self.key_file) {
            (Some(cert), Some(key)) => Ok(Some((cert, key))),
            (None, None) => Ok(None),
            (Some(_), None) => Err(missing("key_file")),
            (None, Some(_)) => Err(missing("cert_file")),
        }
    }
}

/// What `serve` tells on standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogConfig {
    pub level: tracing::Level,
    pub is_json: bool,
}

/// The part of the engine's settings that is only about this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineLimits {
    pub submits_max: usize,
    pub polls_max: usize,
    pub steps_max: usize,
    pub follow_ups_max: usize,
    pub backlog_max: usize,
    pub claim_max: usize,
    pub claim_span: Duration,
    pub sweep_span: Duration,
    pub sweep_pause: Duration,
    pub poll_wait: Duration,
    pub place_wait: Duration,
    pub others_first: Duration,
    pub count_span: Duration,
}

impl EngineLimits {
    pub fn apply(self, settings: &mut Settings) {
        let Self { submits_max, polls_max, steps_max, follow_ups_max, backlog_max, claim_max, .. } = self;
        let Self {
            claim_span, sweep_span, sweep_pause, poll_wait, place_wait, others_first, count_span, ..
        } = self;
        settings.submits_max = submits_max;
        settings.polls_max = polls_max;
        settings.steps_max = steps_max;
        settings.follow_ups_max = follow_ups_max;
        settings.backlog_max = backlog_max;
        settings.claim_max = claim_max;
        settings.claim_span = claim_span;
        settings.sweep_span = sweep_span;
        settings.sweep_pause = sweep_pause;
        settings.poll_wait = poll_wait;
        settings.place_wait = place_wait;
        settings.others_first = others_first;
        settings.count_span = count_span;
    }
}

/// One setting of reuse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReuseEntry {
    /// As it is written in the configuration: `reuse.kinds.turnstile`.
    pub name: String,
    /// `None`: the kind decides.
    pub reuse: Option<Reuse>,
}

/// Whether answers are shared: the nearer to the caller, the stronger. What an order says itself beats them all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReuseRules {
    pub default: ReuseEntry,
    pub kinds: BTreeMap<String, ReuseEntry>,
    /// The narrowest pattern first.
    pub targets: Vec<(HostPattern, ReuseEntry)>,
    pub tenants: BTreeMap<String, ReuseEntry>,
}

impl ReuseRules {
    /// What the settings say about an order of this tenant and kind; `host` is that of its page, if it has one. `None`: the
    /// kind decides.
    pub fn of(&self, tenant: &str, kind: &str, host: Option<&str>) -> Option<ReuseSetting> {
        let host = host.map(|host| host.trim_end_matches('.').to_ascii_lowercase());
        let by_host = || {
            let host = host.as_deref()?;
            self.targets.iter().find(|(pattern, _)| pattern.covers(host)).map(|(_, entry)| entry)
        };
        let by_tenant = self.tenants.get(tenant);
        let entry = by_tenant.or_else(by_host).or_else(|| self.kinds.get(kind)).unwrap_or(&self.default);
        entry.reuse.map(|reuse| ReuseSetting { reuse, name: entry.name.clone() })
    }
}

/// What the operator knows better about a kind than the catalogue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindOverride {
    /// `Some(None)`: for ever.
    pub life: Option<Option<Duration>>,
    pub margin: Option<Duration>,
    pub single_use: Option<bool>,
    pub p50: Option<Duration>,
    pub p95: Option<Duration>,
    pub p99: Option<Duration>,
    pub is_new: bool,
}

impl KindOverride {
    pub fn on(&self, kind: Kind) -> Kind {
        let pace = kind.pace;
        Kind {
            life: self.life.unwrap_or(kind.life),
            margin: self.margin.unwrap_or(kind.margin),
            single_use: self.single_use.unwrap_or(kind.single_use),
            pace: Pace {
                p50: self.p50.unwrap_or(pace.p50),
                p95: self.p95.unwrap_or(pace.p95),
                p99: self.p99.unwrap_or(pace.p99),
            },
            ..kind
        }
    }
}

/// The kinds of the catalogue with the operator's corrections, and those that he has added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KindTable(pub BTreeMap<String, KindOverride>);

impl KindTable {
    pub fn kind(&self, name: &str) -> Option<Kind> {
        let own = self.0.get(name);
        let added = || {
            // The operator has described it.
            let mut kind =
                own.filter(|own| own.is_new).map(|_| quittance_protocol::kinds::open_kind(name))?;
            kind.hosts.is_described = true;
            Some(kind)
        };
        let kind = quittance_protocol::kinds::kind(name).or_else(added)?;
        Some(match own {
            Some(own) => own.on(kind),
            None => kind,
        })
    }

    /// All of them, the operator's own last.
    pub fn all(&self) -> Vec<Kind> {
        let known: Vec<String> =
            quittance_protocol::kinds::kinds().map(|kind| kind.name.into_owned()).collect();
        let added = self.0.keys().filter(|name| !known.contains(name)).cloned().collect::<Vec<_>>();
        known.iter().chain(&added).filter_map(|name| self.kind(name)).collect()
    }

    pub fn is_corrected(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}
