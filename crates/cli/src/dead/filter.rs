//! Which dead letters somebody means, as it is typed at the prompt and as `/v1` is asked for it.

use crate::day;
use crate::exit::{CliError, Exit};
use clap::Args;
use quittance::SystemClock;
use quittance::lifecycle::terms::page_host;
use quittance::lifecycle::{DeadLetterCause, Timestamp};
use quittance_config::Config;
use quittance_gateway::Tenants;
use quittance_ports::Clock;
use serde_json::{Map, Value};
use std::time::Duration;

#[derive(Args, Debug, Default)]
pub(super) struct FilterArgs {
    /// Only with this cause: retries_spent, deadline, in_doubt, delivery, unreadable or store_forgot
    #[arg(long, value_name = "CAUSE", value_parser = cause)]
    cause: Option<&'static str>,
    /// Only of this kind
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Only for pages of this host; of a URL, the host is used
    #[arg(long, visible_alias = "target", value_name = "HOST")]
    site: Option<String>,
    /// Only of this tenant
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// Only dead for longer than this, such as 2h
    #[arg(long, value_name = "SPAN", value_parser = crate::node::span)]
    older_than: Option<Duration>,
    /// Only dead for less than this
    #[arg(long, value_name = "SPAN", value_parser = crate::node::span)]
    newer_than: Option<Duration>,
}

fn cause(typed: &str) -> Result<&'static str, String> {
    let names = DeadLetterCause::ALL.map(DeadLetterCause::name);
    let found = DeadLetterCause::named(typed).map(DeadLetterCause::name);
    found.ok_or_else(|| format!("there are {}", names.join(", ")))
}

/// People paste addresses.
fn host(typed: &str) -> String {
    let host = page_host(typed).unwrap_or_else(|_| typed.split('/').next().unwrap_or_default());
    host.to_lowercase()
}

/// So many, and at least one.
pub(super) fn limit(typed: &str) -> Result<usize, String> {
    typed.parse().ok().filter(|limit| *limit > 0).ok_or_else(|| "a number, at least 1".to_owned())
}

impl FilterArgs {
    /// The fields of `/v1`, and nothing for what was not said.
    pub(super) fn said(&self) -> Result<Map<String, Value>, CliError> {
        let now = SystemClock.now();
        let ago = |span: Duration| {
            let ms = u64::try_from(span.as_millis()).ok().and_then(|ms| now.as_millis().checked_sub(ms));
            ms.map(|ms| day::moment(Timestamp::from_millis(ms)))
                .ok_or_else(|| CliError::new(Exit::Usage, "nothing is that old"))
        };
        let fields = [
            ("cause", self.cause.map(str::to_owned)),
            ("kind", self.kind.clone()),
            ("site", self.site.as_deref().map(host)),
            ("tenant", self.tenant.clone()),
            ("before", self.older_than.map(ago).transpose()?),
            ("since", self.newer_than.map(ago).transpose()?),
        ];
        Ok(fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into()))).collect())
    }

    /// What is named here and is not known in this configuration: a slip of the pen looks like all is well. It may be right all the
    /// same, of a tenant that is gone or of a daemon with another file.
    pub(super) fn slips(&self, config: &Config) -> Vec<String> {
        let is_tenant = |name: &str| match config.tenants.is_empty() {
            true => name == Tenants::LOCAL,
            false => config.tenants.iter().any(|tenant| tenant.name() == name),
        };
        let kind = self.kind.as_deref().filter(|kind| config.kinds.kind(kind).is_none());
        let tenant = self.tenant.as_deref().filter(|tenant| !is_tenant(tenant));
        let kind = kind.map(|kind| format!("no kind is called `{kind}`: `quittance kinds` lists them"));
        let tenant = tenant.map(|tenant| format!("no tenant is called `{tenant}` in this configuration"));
        kind.into_iter().chain(tenant).collect()
    }

    pub(super) fn query(&self) -> Result<String, CliError> {
        let said = self.said()?;
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (name, value) in &said {
            query.append_pair(name, value.as_str().unwrap_or_default());
        }
        Ok(query.finish())
    }
}

/// What of an answer is text; nothing is no text.
pub(super) fn text<'a>(told: &'a Value, field: &str) -> &'a str {
    told[field].as_str().unwrap_or_default()
}

pub(super) fn number(told: &Value, field: &str) -> u64 {
    told[field].as_u64().unwrap_or_default()
}

/// The first digits of a key, enough for people.
pub(super) fn short(key: &str) -> &str {
    key.get(..12).unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_config::config_with;

    #[test]
    fn an_address_is_taken_for_its_host() {
        for typed in [
            "busy.example.com",
            "https://Busy.example.com:8443/a?b",
            "http://busy.example.com",
            "busy.example.com/a",
        ] {
            assert_eq!(host(typed), "busy.example.com", "{typed}");
        }
    }

    #[test]
    fn what_nobody_knows_is_told_and_what_is_known_is_not() {
        let config = config_with(&[]);
        let slips = |kind: &str, tenant: &str| {
            let filter =
                FilterArgs { kind: Some(kind.into()), tenant: Some(tenant.into()), ..FilterArgs::default() };
            filter.slips(&config)
        };
        assert_eq!(slips("turnstile", Tenants::LOCAL), Vec::<String>::new());
        let told = slips("nonsense", "nobody");
        assert!(told[0].contains("no kind is called `nonsense`") && told[1].contains("`nobody`"), "{told:?}");
    }

    #[test]
    fn a_limit_is_a_number_that_is_not_zero() {
        assert_eq!((limit("1"), limit("5000")), (Ok(1), Ok(5000)));
        assert!(limit("0").is_err() && limit("-1").is_err() && limit("many").is_err());
    }
}
