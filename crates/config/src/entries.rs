//! Providers and tenants, entry by entry: what each says itself, what it must say, and what follows from its profile.

use super::effective::{Effective, Held};
use super::error::{ConfigError, Wrong};
use super::layers::Environment;
use super::name::Name;
use super::origin::Origin;
use super::prices::currency_at;
use super::rate;
use super::secret::{CallerKey, Credential};
use super::types::{Dialect, ProviderConfig, TenantConfig};
use super::value::Value;
use quittance_engine::Throttle;
use quittance_engine::targets::HostPattern;
use quittance_lifecycle::{FaultClass, Money, Reuse};
use quittance_protocol::classic::Profile;
use quittance_protocol::classic::code::class_named;
use quittance_protocol::classic::profile::PollQuota;
use quittance_protocol::json::Flavour;
use std::collections::BTreeMap;
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

/// The entries of `[[provider]]`.
pub(crate) fn providers(
    effective: &Effective,
    environment: &Environment,
    wrong: &mut Wrong,
) -> Vec<ProviderConfig> {
    let provider = |label: &String| provider(effective, label, environment, wrong);
    effective.of_list("provider").iter().filter_map(provider).collect()
}

fn provider(
    effective: &Effective,
    label: &str,
    environment: &Environment,
    wrong: &mut Wrong,
) -> Option<ProviderConfig> {
    let table = Name::of(["provider", label]);
    let missing =
        |key, remedy: &str| ConfigError::Incomplete { table: table.to_string(), key, remedy: remedy.into() };
    let text = |key| effective.text_at(&table.below(key));
    let dialect = dialect(effective, &table).and_then(|dialect| {
        dialect.ok_or_else(|| missing("profile", "add `profile = \"captchaai\"`, or \"2captcha\""))
    });
    let url = text("url").ok_or_else(|| missing("url", "add the service's address, `url = \"https://...\"`"));
    let key = Credential::find(effective, &table, "key", environment).and_then(|key| {
        let remedy = "add `key_env = \"...\"` with the variable that holds the key, or `key_file`";
        key.ok_or_else(|| missing("key_env", remedy))
    });
    let extra_ca = certificates(effective, &table.below("ca_file"));
    let (dialect, url, key) = (wrong.keep(dialect), wrong.keep(url), wrong.keep(key));
    let extra_ca = wrong.keep(extra_ca).unwrap_or_default();
    let (dialect, url, key) = (dialect?, url?, key?);
    let poll_quota = match dialect {
        Dialect::Classic(profile) => wrong.keep(poll_quota(effective, &table, profile)).flatten(),
        Dialect::Json(_) => None,
    };
    let span = |key| effective.span_at(&table.below(key));
    let always = |key| span(key).expect("it has a default");
    let size = |key| count_at(effective, &table.below(key)).and_then(|count| usize::try_from(count).ok());
    Some(ProviderConfig {
        name: label.to_owned(),
        dialect,
        url: without_slash(&url),
        key,
        connect_wait: always("connect_wait"),
        reply_wait: always("reply_wait"),
        poll_reply_wait: always("poll_reply_wait"),
        poll_batch_max: size("poll_batch_max"),
        poll_quota,
        queries_per_task_max: count_at(effective, &table.below("poll_quota_per_task"))
            .and_then(|count| u32::try_from(count).ok()),
        reply_bytes_max: size("reply_bytes_max").expect("it has a default"),
        idle_wait: always("idle_wait"),
        idle_connections_max: size("idle_connections_max").expect("it has a default"),
        extra_ca,
        throttle: throttle(effective, &table),
        corrections: corrections(effective, &table),
        prices: prices(effective, &table.below("prices")),
        currency: text("currency").unwrap_or_else(|| currency_at(&url).to_owned()),
    })
}

pub(crate) fn count_at(effective: &Effective, name: &Name) -> Option<u64> {
    match effective.get(name)?.value {
        Value::Count(count) => Some(count),
        _ => None,
    }
}

/// Half of a quota is completed by what is known of the profile.
fn poll_quota(
    effective: &Effective,
    table: &Name,
    profile: Profile,
) -> Result<Option<PollQuota>, ConfigError> {
    let number = |key| count_at(effective, &table.below(key)).and_then(|count| u32::try_from(count).ok());
    let (per_task, slack) = (number("poll_quota_per_task"), number("poll_quota_slack"));
    if per_task.is_none() && slack.is_none() {
        return Ok(None);
    }
    let known = profile.facts().tempo.poll_quota;
    let missing = |key| ConfigError::Incomplete {
        table: table.to_string(),
        key,
        remedy: "a quota has two parts, and its profile knows of none: set both, or neither".into(),
    };
    Ok(Some(PollQuota {
        per_task: per_task
            .or(known.map(|known| known.per_task))
            .ok_or_else(|| missing("poll_quota_per_task"))?,
        slack: slack.or(known.map(|known| known.slack)).ok_or_else(|| missing("poll_quota_slack"))?,
    }))
}

pub(crate) fn certificates(effective: &Effective, name: &Name) -> Result<Vec<u8>, ConfigError> {
    let (Some(held), Some(path)) = (effective.get(name), effective.text_at(name)) else {
        return Ok(Vec::new());
    };
    let unsound = |problem: String| ConfigError::Unsound {
        name: name.to_string(),
        at: held.origin.clone(),
        problem,
        remedy: "put certificates in PEM there, with lines of `-----BEGIN CERTIFICATE-----`, or leave it out"
            .into(),
    };
    let pem =
        std::fs::read(&path).map_err(|why| unsound(format!("names {path}, which cannot be read ({why})")))?;
    match authorities(&pem) {
        Ok(0) => Err(unsound(format!("names {path}, which has no certificate in it"))),
        Ok(_) => Ok(pem),
        Err(why) => Err(unsound(format!("names {path}, and a certificate in it cannot be used ({why})"))),
    }
}

/// How many authorities are in a PEM file, each of them one that a connection can be checked with.
fn authorities(pem: &[u8]) -> Result<usize, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|why| why.to_string())?;
        roots.add(certificate).map_err(|why| why.to_string())?;
    }
    Ok(roots.len())
}

fn corrections(effective: &Effective, provider: &Name) -> BTreeMap<String, FaultClass> {
    let table = provider.below("faults");
    let class = |name| effective.text_at(name).and_then(|class| class_named(&class));
    let corrected = effective.below(&table).map(|(name, _)| {
        (name.last().to_owned(), class(name).expect("classes are checked when they are read"))
    });
    corrected.collect()
}

/// What an answer of each kind costs, by this table.
pub(crate) fn prices(effective: &Effective, table: &Name) -> BTreeMap<String, Money> {
    let price = |(name, held): (&Name, &Held)| match held.value {
        Value::Money(price) => Some((name.last().to_owned(), price)),
        _ => None,
    };
    effective.below(table).filter_map(price).collect()
}

/// Which protocol it speaks, and as whom; none if that is not said.
fn dialect(effective: &Effective, table: &Name) -> Result<Option<Dialect>, ConfigError> {
    let name = table.below("profile");
    let Some(profile) = effective.text_at(&name) else { return Ok(None) };
    let unsound = |name: &Name, problem: String, remedy: &str| {
        let at = effective.get(name).map_or(Origin::Default, |held| held.origin.clone());
        Err(ConfigError::Unsound { name: name.to_string(), at, problem, remedy: remedy.into() })
    };
    if effective.text_at(&table.below("protocol")).as_deref() != Some("json") {
        return match Profile::named(&profile) {
            Some(known) => Ok(Some(Dialect::Classic(known))),
            None => unsound(
                &name,
                format!("is \"{profile}\", which speaks the JSON protocol"),
                "add `protocol = \"json\"`",
            ),
        };
    }
    for key in ["poll_batch_max", "poll_quota_slack"] {
        let name = table.below(key);
        if effective.get(&name).is_some() {
            return unsound(&name, "is for the classic protocol".into(), "leave it out");
        }
    }
    match Flavour::parse(&profile) {
        Some(flavour) => Ok(Some(Dialect::Json(flavour))),
        None => unsound(
            &name,
            format!("is \"{profile}\", which speaks the classic protocol only"),
            "leave `protocol` out, or choose another profile",
        ),
    }
}

/// Of all providers, or of one: the names are the same.
pub(crate) fn throttle(effective: &Effective, table: &Name) -> Throttle {
    let span = |key| effective.span_at(&table.below(key)).unwrap_or_default();
    let number = |key| match effective.get(&table.below(key)).map(|held| &held.value) {
        Some(Value::Count(count)) => u32::try_from(*count).unwrap_or(u32::MAX),
        Some(Value::Share(share)) => *share,
        _ => 0,
    };
    Throttle {
        submit_interval: span("submit_interval"),
        trip_at: number("trip_at"),
        probe: span("probe"),
        retry_share: number("retry_share"),
        retry_burst: number("retry_burst"),
        retry_trickle: span("retry_trickle"),
    }
}

/// The entries of `[[tenant]]`.
pub(crate) fn tenants(
    effective: &Effective,
    environment: &Environment,
    wrong: &mut Wrong,
) -> Vec<TenantConfig> {
    let tenant = |label: &String| tenant(effective, label, environment, wrong);
    effective.of_list("tenant").iter().filter_map(tenant).collect()
}

fn tenant(
    effective: &Effective,
    label: &str,
    environment: &Environment,
    wrong: &mut Wrong,
) -> Option<TenantConfig> {
    let table = Name::of(["tenant", label]);
    let missing = || ConfigError::Incomplete {
        table: table.to_string(),
        key: "key_env",
        remedy:
            "add `key_sha256 = \"...\"` with the hash of its key (`quittance tenant new` prints both), or \
                 `key_env` with the variable that holds the key, or `key_file`"
                .into(),
    };
    let key = CallerKey::find(effective, &table, environment).and_then(|key| key.ok_or_else(missing));
    let webhook_secret = Credential::find(effective, &table, "webhook_secret", environment);
    let (key, webhook_secret) = (wrong.keep(key), wrong.keep(webhook_secret));
    let (key, webhook_secret) = (key?, webhook_secret?);
    let text = |key| effective.text_at(&table.below(key));
    let list = |key| list_at(effective, &table.below(key));
    let pattern = |host: &String| HostPattern::parse(host).expect("patterns are checked when they are read");
    let open_max = count_at(effective, &table.below("open_max"));
    Some(TenantConfig {
        name: label.to_owned(),
        key,
        hosts: list("hosts").map(|hosts| hosts.iter().map(pattern).collect()),
        kinds: list("kinds"),
        reuse: text("reuse").and_then(|reuse| reuse_named(&reuse)),
        rate: text("rate").and_then(|text| rate::parse(&text)),
        open_max: open_max.and_then(|count| usize::try_from(count).ok()),
        flavour: text("flavour"),
        balance: effective.get(&table.below("balance")).is_some_and(|held| held.value == Value::Flag(true)),
        webhook_secret,
    })
}

pub(crate) fn list_at(effective: &Effective, name: &Name) -> Option<Vec<String>> {
    match &effective.get(name)?.value {
        Value::List(list) => Some(list.clone()),
        _ => None,
    }
}

/// `None` for `by_kind`.
pub(crate) fn reuse_named(name: &str) -> Option<Reuse> {
    match name {
        "shared" => Some(Reuse::Shared),
        "exclusive" => Some(Reuse::Exclusive),
        _ => None,
    }
}

pub(crate) fn without_slash(url: &str) -> String {
    url.trim_end_matches('/').to_owned()
}
