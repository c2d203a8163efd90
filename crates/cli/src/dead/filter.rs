//! The filter for dead letters: the arguments, and the query of the API.

use crate::exit::{CliError, Exit, OrExit};
use clap::Args;
use quittance::SystemClock;
use quittance::lifecycle::{DeadLetterCause, Timestamp};
use quittance_admin::dead_letter::ShownFilter;
use quittance_config::Config;
use quittance_engine::targets::{canonical_host, host_of_page};
use quittance_gateway::Tenants;
use quittance_ports::Clock;
use quittance_ports::moment::rfc3339;
use std::time::Duration;

#[derive(Args, Debug, Default)]
pub(super) struct FilterArgs {
    /// Only with this cause: retries_spent, deadline, in_doubt, budget_spent, delivery, unreadable or store_forgot
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
    #[arg(long, value_name = "DURATION", value_parser = crate::typed::span)]
    older_than: Option<Duration>,
    /// Only dead for less than this
    #[arg(long, value_name = "DURATION", value_parser = crate::typed::span)]
    newer_than: Option<Duration>,
}

fn cause(typed: &str) -> Result<&'static str, String> {
    let names = DeadLetterCause::ALL.map(DeadLetterCause::name);
    let found = DeadLetterCause::named(typed).map(DeadLetterCause::name);
    found.ok_or_else(|| format!("there are {}", names.join(", ")))
}

/// The host in a text that may be a URL, as orders have it.
fn host(typed: &str) -> String {
    host_of_page(typed).unwrap_or_else(|| canonical_host(typed.split('/').next().unwrap_or_default()))
}

/// A number of at least one.
pub(super) fn limit(typed: &str) -> Result<usize, String> {
    typed.parse().ok().filter(|limit| *limit > 0).ok_or_else(|| "a number, at least 1".to_owned())
}

impl FilterArgs {
    /// The filter in the form of the API.
    pub(super) fn filter(&self) -> Result<ShownFilter, CliError> {
        let now = SystemClock.now();
        let ago = |span: Duration| {
            let ms = u64::try_from(span.as_millis()).ok().and_then(|ms| now.as_millis().checked_sub(ms));
            ms.map(|ms| rfc3339(Timestamp::from_millis(ms)))
                .ok_or_else(|| CliError::new(Exit::Usage, "no dead letter is that old"))
        };
        Ok(ShownFilter {
            cause: self.cause.map(str::to_owned),
            kind: self.kind.clone(),
            site: self.site.as_deref().map(host),
            tenant: self.tenant.clone(),
            before: self.older_than.map(ago).transpose()?,
            since: self.newer_than.map(ago).transpose()?,
        })
    }

    /// Names that the configuration does not know. They may be misspelt, or belong to a removed tenant.
    pub(super) fn unknown_names(&self, config: &Config) -> Vec<String> {
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
        serde_urlencoded::to_string(self.filter()?).or_exit(Exit::Usage)
    }
}

/// The first digits of a key, enough for a reader.
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
    fn names_that_are_not_known_are_reported() {
        let config = config_with(&[]);
        let unknown = |kind: &str, tenant: &str| {
            let filter =
                FilterArgs { kind: Some(kind.into()), tenant: Some(tenant.into()), ..FilterArgs::default() };
            filter.unknown_names(&config)
        };
        assert_eq!(unknown("turnstile", Tenants::LOCAL), Vec::<String>::new());
        let notes = unknown("nonsense", "carla");
        assert!(
            notes[0].contains("no kind is called `nonsense`") && notes[1].contains("`carla`"),
            "{notes:?}"
        );
    }

    #[test]
    fn a_limit_is_a_number_that_is_not_zero() {
        assert_eq!((limit("1"), limit("5000")), (Ok(1), Ok(5000)));
        assert!(limit("0").is_err() && limit("-1").is_err() && limit("many").is_err());
    }
}
