//! The entries of `[[provider]]`.

use crate::config::without_slash;
use crate::effective::Effective;
use crate::error::{ConfigError, Errors};
use crate::layers::Environment;
use crate::named_files::certificates;
use crate::named_secret::Credential;
use crate::prices::currency_at;
use crate::retry_settings::retry_limits;
use crate::setting_name::Name;
use quittance::{ApiKey, ProviderSettings};
use quittance_engine::{ProviderRules, Throttle};
use quittance_lifecycle::{FaultClass, Money, RetryLimits};
use quittance_protocol::classic::code::class_named;
use quittance_protocol::classic::dialect::PollQuota;
use quittance_protocol::{Dialect, Protocol, ServiceCodes};
use std::collections::BTreeMap;
use std::time::Duration;

/// One provider.
#[derive(Clone, Debug)]
pub struct ProviderConfig {
    pub name: String,
    pub protocol: Protocol,
    pub key: Credential,
    /// The settings of the adapter, without the key.
    pub(crate) settings: ProviderSettings,
    pub(crate) throttle: Throttle,
    /// The prices of its answers by kind, where they differ from `prices`.
    pub(crate) prices: BTreeMap<String, Money>,
    /// The currency of its account, by ISO 4217.
    pub currency: String,
    /// The kinds and the tenants for which it gets orders; `None` means all.
    pub(crate) kinds: Option<Vec<String>>,
    pub(crate) tenants: Option<Vec<String>>,
    pub(crate) weight: u32,
    pub(crate) retry: RetryLimits,
}

impl ProviderConfig {
    pub const fn dialect(&self) -> Dialect {
        self.protocol.dialect()
    }

    /// How long the service keeps a result after the solve, if that is known.
    pub(crate) fn result_kept(&self) -> Option<Duration> {
        match self.protocol {
            Protocol::Classic(_) => None,
            Protocol::Json(dialect) => dialect.facts().limits.result_kept,
        }
    }

    /// The rules by which the engine uses it. `all` are the prices for all providers.
    pub(crate) fn rules(&self, all: &BTreeMap<String, Money>) -> ProviderRules {
        ProviderRules {
            name: self.name.clone(),
            currency: self.currency.clone(),
            prices: self.price_table(all),
            throttle: self.throttle,
            unsolvable: Some(self.unsolvable()),
            result_kept: self.result_kept(),
            kinds: self.kinds.clone(),
            tenants: self.tenants.clone(),
            weight: self.weight,
            retry: self.retry,
        }
    }

    /// The provider's address, without a slash at the end.
    pub fn url(&self) -> &str {
        &self.settings.url
    }

    /// Certificates to trust besides the usual ones, as PEM.
    pub fn extra_ca(&self) -> &[u8] {
        &self.settings.extra_ca
    }

    /// The meaning of its codes, with the operator's corrections.
    pub fn codes(&self) -> ServiceCodes {
        let codes = ServiceCodes::of(self.protocol);
        self.settings.codes.iter().fold(codes, |codes, (code, class)| codes.with(code, *class))
    }

    /// Settings for its adapter; an error if the key is missing.
    pub fn settings(&self) -> Result<ProviderSettings, ConfigError> {
        Ok(ProviderSettings { key: ApiKey::new(self.key.get()?.reveal()), ..self.settings.clone() })
    }
}

pub(crate) fn provider(
    effective: &Effective,
    label: &str,
    environment: &Environment,
    errors: &mut Errors,
) -> Option<ProviderConfig> {
    let table = Name::of(["provider", label]);
    let missing = |key, remedy| ConfigError::incomplete(&table, key, remedy);
    let protocol = protocol(effective, &table).and_then(|protocol| {
        protocol.ok_or_else(|| missing("dialect", "add `dialect = \"captchaai\"`, or \"2captcha\""))
    });
    let url = effective.text_at(&table.below("url"));
    let url = url.ok_or_else(|| missing("url", "add the service's address, `url = \"https://...\"`"));
    let key = Credential::find(effective, &table, "key", environment).and_then(|key| {
        let remedy = "add `key_env = \"...\"` with the variable that holds the key, or `key_file`";
        key.ok_or_else(|| missing("key_env", remedy))
    });
    let (protocol, url, key) = (errors.keep(protocol), errors.keep(url), errors.keep(key));
    let extra_ca = errors.keep(certificates(effective, &table.below("ca_file")));
    let (protocol, url, key) = (protocol?, url?, key?);
    let throttle = throttle(effective, &table);
    let mut settings = ProviderSettings::new(label, without_slash(&url), ApiKey::new(""));
    effective.apply(&table, &mut settings);
    settings.extra_ca = extra_ca.unwrap_or_default();
    settings.codes = corrections(effective, &table);
    settings.submit_interval = Some(throttle.submit_interval);
    settings.poll_quota = errors.keep(poll_quota(effective, &table, protocol)).flatten();
    Some(ProviderConfig {
        kinds: effective.read_at(&table.below("kinds")),
        tenants: effective.read_at(&table.below("tenants")),
        weight: effective.read_at(&table.below("weight")).unwrap_or(1),
        retry: retry_limits(effective, &table),
        name: label.to_owned(),
        protocol,
        key,
        settings,
        throttle,
        prices: prices(effective, &table.below("prices")),
        currency: effective.text_at(&table.below("currency")).unwrap_or_else(|| currency_at(&url).to_owned()),
    })
}

/// The quota of polls. If only one of its numbers is set, the dialect completes the other. The JSON protocol has no
/// slack.
fn poll_quota(
    effective: &Effective,
    table: &Name,
    protocol: Protocol,
) -> Result<Option<PollQuota>, ConfigError> {
    let number = |key| effective.read_at::<u32>(&table.below(key));
    let (per_task, slack) = (number("poll_quota_per_task"), number("poll_quota_slack"));
    if per_task.is_none() && slack.is_none() {
        return Ok(None);
    }
    let known = match protocol {
        Protocol::Classic(dialect) => dialect.facts().tempo.poll_quota,
        Protocol::Json(_) => Some(PollQuota { per_task: 0, slack: 0 }),
    };
    let remedy = "a quota has two parts, and its dialect knows of none: set both, or neither";
    let missing = |key| ConfigError::incomplete(table, key, remedy);
    Ok(Some(PollQuota {
        per_task: per_task
            .or(known.map(|known| known.per_task))
            .ok_or_else(|| missing("poll_quota_per_task"))?,
        slack: slack.or(known.map(|known| known.slack)).ok_or_else(|| missing("poll_quota_slack"))?,
    }))
}

fn corrections(effective: &Effective, provider: &Name) -> BTreeMap<String, FaultClass> {
    let texts: Vec<(String, String)> = effective.entries(&provider.below("faults"));
    texts.into_iter().filter_map(|(code, class)| Some((code, class_named(&class)?))).collect()
}

/// What an answer of each kind costs, by this table.
pub(crate) fn prices(effective: &Effective, table: &Name) -> BTreeMap<String, Money> {
    effective.entries(table).into_iter().collect()
}

/// The protocol and its dialect, if they are set.
fn protocol(effective: &Effective, table: &Name) -> Result<Option<Protocol>, ConfigError> {
    let name = table.below("dialect");
    let Some(dialect) = effective.text_at(&name).and_then(|dialect| dialect.parse::<Dialect>().ok()) else {
        return Ok(None);
    };
    if effective.text_at(&table.below("protocol")).as_deref() != Some("json") {
        let problem = format!("is \"{dialect}\", which speaks the JSON protocol");
        return dialect
            .classic()
            .map(|dialect| Some(Protocol::Classic(dialect)))
            .ok_or_else(|| effective.unsound(&name, problem, "add `protocol = \"json\"`"));
    }
    for key in ["poll_batch_max", "poll_quota_slack"] {
        let name = table.below(key);
        if effective.get(&name).is_some() {
            return Err(effective.unsound(&name, "is for the classic protocol", "leave it out"));
        }
    }
    let problem = format!("is \"{dialect}\", which speaks the classic protocol only");
    let remedy = "leave `protocol` out, or choose another dialect";
    dialect
        .json()
        .map(|dialect| Some(Protocol::Json(dialect)))
        .ok_or_else(|| effective.unsound(&name, problem, remedy))
}

/// The rules for all providers, or for one.
pub(crate) fn throttle(effective: &Effective, table: &Name) -> Throttle {
    let mut throttle = Throttle::DEFAULT;
    effective.apply(table, &mut throttle);
    throttle
}
