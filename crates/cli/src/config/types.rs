//! What a configuration means, in our own types.

use super::error::ConfigError;
use super::secret::Credential;
use quittance::{ApiKey, ClassicSettings};
use quittance_classic::profile::PollQuota;
use quittance_classic::{FaultCodes, Profile};
use quittance_engine::targets::HostPattern;
use quittance_engine::{Settings, Sparing};
use quittance_lifecycle::{Kind, Pace, Reuse};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreUrl {
    Embedded(PathBuf),
    /// For trials: what is in flight is lost when the process ends.
    Memory,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProviderConfig {
    pub(crate) name: String,
    pub(crate) profile: Profile,
    /// Without a slash at its end.
    pub(crate) url: String,
    pub(crate) key: Credential,
    pub(crate) connect_wait: Duration,
    pub(crate) reply_wait: Duration,
    pub(crate) poll_reply_wait: Duration,
    // What is `None` here follows from the profile.
    pub(crate) poll_batch_max: Option<usize>,
    pub(crate) poll_quota: Option<PollQuota>,
    pub(crate) reply_bytes_max: usize,
    pub(crate) idle_wait: Duration,
    pub(crate) idle_connections_max: usize,
    pub(crate) extra_ca: Vec<u8>,
    pub(crate) sparing: Sparing,
    /// What its codes mean, the operator's corrections included.
    pub(crate) codes: FaultCodes,
}

impl ProviderConfig {
    /// What the adapter takes; an error if the key is not there.
    pub(crate) fn classic(&self) -> Result<ClassicSettings, ConfigError> {
        let key = ApiKey::new(self.key.get()?.reveal());
        let mut settings = ClassicSettings::new(&self.name, self.profile, &self.url, key);
        settings.connect_timeout = self.connect_wait;
        settings.submit_timeout = self.reply_wait;
        settings.poll_timeout = self.poll_reply_wait;
        settings.poll_batch_max = self.poll_batch_max;
        let corrected = self.codes.rows().filter(|row| row.is_overridden);
        settings.codes = corrected.map(|row| (row.code.to_owned(), row.class)).collect();
        settings.response_bytes_max = self.reply_bytes_max;
        settings.pace.submit_interval = Some(self.sparing.submit_interval);
        settings.pace.poll_quota = self.poll_quota;
        settings.extra_ca.clone_from(&self.extra_ca);
        settings.idle_max = self.idle_wait;
        settings.idle_connections_max = self.idle_connections_max;
        Ok(settings)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TenantConfig {
    pub(crate) name: String,
    pub(crate) key: Credential,
    pub(crate) reuse: Option<Reuse>,
}

/// The part of the engine's settings that is only about this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EngineLimits {
    pub(crate) submits_max: usize,
    pub(crate) polls_max: usize,
    pub(crate) steps_max: usize,
    pub(crate) backlog_max: usize,
    pub(crate) claim_max: usize,
    pub(crate) claim_span: Duration,
    pub(crate) sweep_span: Duration,
    pub(crate) sweep_pause: Duration,
    pub(crate) poll_wait: Duration,
    pub(crate) place_wait: Duration,
    pub(crate) others_first: Duration,
    pub(crate) count_span: Duration,
}

impl EngineLimits {
    pub(crate) fn apply(self, settings: &mut Settings) {
        let Self { submits_max, polls_max, steps_max, backlog_max, claim_max, .. } = self;
        let Self {
            claim_span, sweep_span, sweep_pause, poll_wait, place_wait, others_first, count_span, ..
        } = self;
        settings.submits_max = submits_max;
        settings.polls_max = polls_max;
        settings.steps_max = steps_max;
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

/// Whether answers are shared: the nearer to the caller, the stronger. What an order says itself beats them all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReuseRules {
    pub(crate) default: Reuse,
    pub(crate) kinds: BTreeMap<String, Reuse>,
    /// The narrowest pattern first.
    pub(crate) targets: Vec<(HostPattern, Reuse)>,
    pub(crate) tenants: BTreeMap<String, Reuse>,
}

impl ReuseRules {
    /// For an order of this tenant and kind; `host` is that of its page, if it has one.
    pub(crate) fn of(&self, tenant: &str, kind: &str, host: Option<&str>) -> Reuse {
        let host = host.map(|host| host.trim_end_matches('.').to_ascii_lowercase());
        let by_host = || {
            let host = host.as_deref()?;
            self.targets.iter().find(|(pattern, _)| pattern.covers(host)).map(|(_, reuse)| *reuse)
        };
        let by_tenant = self.tenants.get(tenant).copied();
        by_tenant.or_else(by_host).or_else(|| self.kinds.get(kind).copied()).unwrap_or(self.default)
    }
}

/// What the operator knows better about a kind than the catalogue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KindOverride {
    /// `Some(None)`: for ever.
    pub(crate) life: Option<Option<Duration>>,
    pub(crate) margin: Option<Duration>,
    pub(crate) single_use: Option<bool>,
    pub(crate) p50: Option<Duration>,
    pub(crate) p95: Option<Duration>,
    pub(crate) p99: Option<Duration>,
    pub(crate) is_new: bool,
}

impl KindOverride {
    pub(crate) fn on(&self, kind: Kind) -> Kind {
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
pub(crate) struct KindTable(pub(crate) BTreeMap<String, KindOverride>);

impl KindTable {
    pub(crate) fn kind(&self, name: &str) -> Option<Kind> {
        let own = self.0.get(name);
        let added = || own.filter(|own| own.is_new).map(|_| quittance_catalog::open_kind(name));
        let kind = quittance_catalog::kind(name).or_else(added)?;
        Some(match own {
            Some(own) => own.on(kind),
            None => kind,
        })
    }

    /// All of them, the operator's own last.
    pub(crate) fn all(&self) -> Vec<Kind> {
        let known: Vec<String> = quittance_catalog::kinds().map(|kind| kind.name.into_owned()).collect();
        let added = self.0.keys().filter(|name| !known.contains(name)).cloned().collect::<Vec<_>>();
        known.iter().chain(&added).filter_map(|name| self.kind(name)).collect()
    }

    pub(crate) fn is_corrected(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}
