//! The section `[alerts]`: when a person is told, and where.

use super::effective::Effective;
use super::entries::list_at;
use super::error::ConfigError;
use super::layers::Environment;
use super::name::Name;
use super::secret::Credential;
use super::types::webhook_bytes;
use super::value::Value;
use quittance_alert::Thresholds;
use quittance_gateway::{AlertSettings, Webhook};
use quittance_lifecycle::Money;

pub(super) const WEBHOOK: &str = "alerts.webhook";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AlertsConfig {
    thresholds: Thresholds,
    webhook: Option<String>,
    pub(super) webhook_secret: Option<Credential>,
    /// Nothing, if nothing is to be run.
    pub(crate) command: Vec<String>,
}

impl AlertsConfig {
    pub(super) fn of(effective: &Effective, environment: &Environment) -> Result<Self, ConfigError> {
        let share = |path: &str| match effective.held(path).value {
            Value::Share(permille) => permille,
            _ => unreachable!("{path} has the shape of a share"),
        };
        let balance_low = match effective.held("alerts.balance_low").value {
            Value::Money(amount) => amount,
            _ => Money(0),
        };
        let thresholds = Thresholds {
            dead_new: effective.count("alerts.dead_new"),
            dead_age: effective.span("alerts.dead_age"),
            provider_paused: effective.flag("alerts.provider_paused"),
            provider_broken_for: effective.span("alerts.provider_broken_for"),
            balance_low,
            balance_lasts: effective.span("alerts.balance_lasts"),
            budget_used_permille: share("alerts.budget_used"),
            doubt_permille: share("alerts.doubt_rate"),
            doubt_attempts: effective.count("alerts.doubt_attempts"),
            untold: effective.count("alerts.untold"),
            polled_permille: share("alerts.polled_rate"),
            polled_answers: effective.count("alerts.polled_answers"),
            pool_starves_for: effective.span("alerts.pool_starves_for"),
            store_away_for: effective.span("alerts.store_away_for"),
            spill_for: effective.span("alerts.spill_for"),
            node_silent_for: effective.span("alerts.node_silent_for"),
            clear_after: effective.span("alerts.clear_after"),
        };
        let table = Name::of(["alerts"]);
        Ok(Self {
            thresholds,
            webhook: effective.text_at(&table.below("webhook")),
            webhook_secret: Credential::find(effective, &table, "webhook_secret", environment)?,
            command: list_at(effective, &table.below("command")).unwrap_or_default(),
        })
    }

    /// What the gateway takes; an error if a secret is named and not there, because another would be used then.
    pub(crate) fn settings(&self) -> Result<AlertSettings, ConfigError> {
        let secret = self.webhook_secret.as_ref().map(webhook_bytes).transpose()?;
        let webhook = self.webhook.clone().map(|url| Webhook { url, secret });
        Ok(AlertSettings { thresholds: self.thresholds.clone(), webhook, ..AlertSettings::default() })
    }
}

/// Enough of an address to know it by.
pub(super) fn without_path(url: &str) -> String {
    let host = url.split_inclusive('/').take(3).collect::<String>();
    if host.len() < url.len() { format!("{host}***") } else { host }
}

#[cfg(test)]
mod tests {
    use super::without_path;

    #[test]
    fn the_path_of_a_webhook_is_nobodys_to_read() {
        assert_eq!(without_path("https://hooks.example.org/T0/B1/secret"), "https://hooks.example.org/***");
        assert_eq!(without_path("https://hooks.example.org/"), "https://hooks.example.org/");
        assert_eq!(without_path("https://hooks.example.org"), "https://hooks.example.org");
    }
}
