//! The section `[alerts]`: when a person is told, and where.

use super::effective::Effective;
use super::entries::list_at;
use super::error::{ConfigError, Wrong};
use super::layers::Environment;
use super::name::Name;
use super::secret::Credential;
use super::types::webhook_bytes;
use super::value::Value;
use quittance_lifecycle::Money;
use quittance_telemetry::alert::Thresholds;
use quittance_telemetry::{AlertSettings, AlertWebhook};
use std::fs::Metadata;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

pub(super) const WEBHOOK: &str = "alerts.webhook";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AlertsConfig {
    thresholds: Thresholds,
    webhook: Option<String>,
    pub(super) webhook_secret: Option<Credential>,
    /// Nothing, if nothing is to be run.
    pub(crate) command: Vec<String>,
    /// Why it cannot be run, as things are now.
    no_command: Option<String>,
}

impl AlertsConfig {
    pub(super) fn of(effective: &Effective, environment: &Environment, wrong: &mut Wrong) -> Self {
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
            webhooks_failed: effective.count("alerts.webhooks_failed"),
            polled_permille: share("alerts.polled_rate"),
            polled_answers: effective.count("alerts.polled_answers"),
            pool_starves_for: effective.span("alerts.pool_starves_for"),
            store_away_for: effective.span("alerts.store_away_for"),
            spill_for: effective.span("alerts.spill_for"),
            node_silent_for: effective.span("alerts.node_silent_for"),
            clear_after: effective.span("alerts.clear_after"),
        };
        let table = Name::of(["alerts"]);
        let command = list_at(effective, &table.below("command")).unwrap_or_default();
        let webhook_secret = Credential::find(effective, &table, "webhook_secret", environment);
        Self {
            thresholds,
            webhook: effective.text_at(&table.below("webhook")),
            webhook_secret: wrong.keep(webhook_secret).flatten(),
            no_command: command.first().and_then(|program| no_program(program, environment.get("PATH"))),
            command,
        }
    }

    /// Nobody could tell a call of ours from another's if nobody but us knew what it is signed with.
    pub(super) fn check(&self, effective: &Effective) -> Result<(), ConfigError> {
        match (&self.webhook, &self.webhook_secret) {
            (Some(_), None) => Err(ConfigError::Unsound {
                name: WEBHOOK.into(),
                at: effective.held(WEBHOOK).origin.clone(),
                problem: "has no secret that its calls are signed with".into(),
                remedy: "set `alerts.webhook_secret_env` or `alerts.webhook_secret_file`, and give the same secret \
                         to whoever is called"
                    .into(),
            }),
            // Only who calls needs it to be there; but what is there must make sense.
            (_, Some(credential)) if credential.is_set() => webhook_bytes(credential).map(drop),
            _ => Ok(()),
        }
    }

    /// What would keep alerts from getting to where they are to go.
    pub(crate) fn troubles(&self) -> Vec<String> {
        let secret = self.settings().err().map(|error| error.to_string());
        let no_command = self.no_command.as_ref().map(|why| format!("`alerts.command` cannot be run: {why}"));
        secret.into_iter().chain(no_command).collect()
    }

    pub(crate) const fn has_somewhere_to_go(&self) -> bool {
        self.webhook.is_some() || !self.command.is_empty()
    }

    /// What the gateway takes; an error if a secret is named and not there.
    pub(crate) fn settings(&self) -> Result<AlertSettings, ConfigError> {
        let secret = self.webhook_secret.as_ref().map(webhook_bytes).transpose()?;
        let webhook = self.webhook.clone().zip(secret).map(|(url, secret)| AlertWebhook { url, secret });
        Ok(AlertSettings { thresholds: self.thresholds.clone(), webhook, ..AlertSettings::default() })
    }
}

/// Why this program cannot be run, if it cannot. What is named without a folder is looked for where the shell would.
fn no_program(program: &str, path: Option<&str>) -> Option<String> {
    let tried: Vec<PathBuf> = match program.contains('/') {
        true => vec![program.into()],
        false => std::env::split_paths(path.unwrap_or_default()).map(|folder| folder.join(program)).collect(),
    };
    let files: Vec<_> =
        tried.iter().filter_map(|file| file.metadata().ok()).filter(Metadata::is_file).collect();
    match files.as_slice() {
        [] if program.contains('/') => Some(format!("there is no file {program}")),
        [] => Some(format!("there is no {program} in any folder of PATH")),
        found if found.iter().any(|file| file.permissions().mode() & 0o111 != 0) => None,
        _ => Some(format!("{program} may not be run: `chmod +x` it")),
    }
}

/// Enough of an address to know it by.
pub(super) fn without_path(url: &str) -> String {
    let host = url.split_inclusive('/').take(3).collect::<String>();
    if host.len() < url.len() { format!("{host}***") } else { host }
}

#[cfg(test)]
mod tests {
    use super::{no_program, without_path};

    #[test]
    fn a_program_is_looked_for_where_the_shell_would_look() {
        let here = tempfile::tempdir().unwrap();
        let (file, path) = (here.path().join("page-me"), here.path().to_str().unwrap());
        let said = |program: &str| no_program(program, Some(path)).unwrap_or_default();
        assert!(said("page-me").contains("in any folder of PATH"), "{}", said("page-me"));
        let whole = file.to_str().unwrap();
        assert!(said(whole).contains("there is no file"), "{}", said(whole));
        std::fs::write(&file, "#!/bin/sh\n").unwrap();
        assert!(said("page-me").contains("chmod +x") && said(whole).contains("chmod +x"), "{}", said(whole));
        assert_eq!(no_program("sh", Some("/nowhere:/bin:/usr/bin")), None);
        assert!(no_program("sh", None).is_some());
    }

    #[test]
    fn the_path_of_a_webhook_is_nobodys_to_read() {
        assert_eq!(without_path("https://hooks.example.org/T0/B1/secret"), "https://hooks.example.org/***");
        assert_eq!(without_path("https://hooks.example.org/"), "https://hooks.example.org/");
        assert_eq!(without_path("https://hooks.example.org"), "https://hooks.example.org");
    }
}
