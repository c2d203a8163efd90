//! The section `[alerts]`: when an alert is raised, and where it is sent.

use crate::effective::Effective;
use crate::error::{ConfigError, Errors};
use crate::layers::Environment;
use crate::named_secret::Credential;
use crate::setting_name::Name;
use quittance_telemetry::alert::Thresholds;
use quittance_telemetry::{AlertSettings, AlertWebhook};
use std::fs::Metadata;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

pub(crate) const WEBHOOK: &str = "alerts.webhook";

/// When an alert is raised, and where it is sent.
#[derive(Clone, Debug, Default)]
pub struct AlertsConfig {
    pub(crate) thresholds: Thresholds,
    pub(crate) webhook: Option<String>,
    pub(crate) webhook_secret: Option<Credential>,
    /// The program that is run for an alert; empty if none is run.
    pub command: Vec<String>,
    /// Why the program cannot be run at present.
    command_error: Option<String>,
}

impl AlertsConfig {
    /// Finds the secret and the program that the settings name.
    pub(crate) fn find(&mut self, effective: &Effective, environment: &Environment, errors: &mut Errors) {
        let secret = Credential::find(effective, &Name::of(["alerts"]), "webhook_secret", environment);
        self.webhook_secret = errors.keep(secret).flatten();
        self.command_error =
            self.command.first().and_then(|program| why_not_run(program, environment.get("PATH")));
    }

    /// Checks that alert webhooks are signed with a secret that the receiver knows, too.
    pub(crate) fn check(&self, effective: &Effective) -> Result<(), ConfigError> {
        match (&self.webhook, &self.webhook_secret) {
            (Some(_), None) => {
                let remedy = "set `alerts.webhook_secret_env` or `alerts.webhook_secret_file`, and give the same secret \
                              to the receiver";
                let problem = "has no secret to sign its calls with";
                Err(effective.unsound(&Name::of(WEBHOOK.split('.')), problem, remedy))
            }
            // A secret may be missing as long as nothing is sent; but one that is there must make sense.
            (_, Some(credential)) if credential.is_set() => credential.webhook_bytes().map(drop),
            _ => Ok(()),
        }
    }

    /// What would keep alerts from being delivered.
    pub fn problems(&self) -> Vec<String> {
        let secret = self.settings().err().map(|error| error.to_string());
        let command = self.command_error.as_ref().map(|why| format!("`alerts.command` cannot be run: {why}"));
        secret.into_iter().chain(command).collect()
    }

    pub const fn has_receiver(&self) -> bool {
        self.webhook.is_some() || !self.command.is_empty()
    }

    /// Settings for the gateway; an error if the secret is named and missing.
    pub fn settings(&self) -> Result<AlertSettings, ConfigError> {
        let secret = self.webhook_secret.as_ref().map(Credential::webhook_bytes).transpose()?;
        let webhook = self.webhook.clone().zip(secret).map(|(url, secret)| AlertWebhook { url, secret });
        Ok(AlertSettings { thresholds: self.thresholds.clone(), webhook, ..AlertSettings::default() })
    }
}

/// Why this program cannot be run; `None` if it can. A name without a folder is searched in PATH, as a shell does.
fn why_not_run(program: &str, path: Option<&str>) -> Option<String> {
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

/// An address without its path, which may be a secret.
pub(crate) fn without_path(url: &str) -> String {
    let host = url.split_inclusive('/').take(3).collect::<String>();
    if host.len() < url.len() { format!("{host}***") } else { host }
}

#[cfg(test)]
mod tests {
    use super::{why_not_run, without_path};

    #[test]
    fn a_program_is_searched_as_a_shell_does() {
        let here = tempfile::tempdir().unwrap();
        let (file, path) = (here.path().join("page-me"), here.path().to_str().unwrap());
        let why = |program: &str| why_not_run(program, Some(path)).unwrap_or_default();
        assert!(why("page-me").contains("in any folder of PATH"), "{}", why("page-me"));
        let whole = file.to_str().unwrap();
        assert!(why(whole).contains("there is no file"), "{}", why(whole));
        std::fs::write(&file, "#!/bin/sh\n").unwrap();
        assert!(why("page-me").contains("chmod +x") && why(whole).contains("chmod +x"), "{}", why(whole));
        assert_eq!(why_not_run("sh", Some("/nowhere:/bin:/usr/bin")), None);
        assert!(why_not_run("sh", None).is_some());
    }

    #[test]
    fn the_path_of_a_webhook_is_not_shown() {
        assert_eq!(without_path("https://hooks.example.org/T0/B1/secret"), "https://hooks.example.org/***");
        assert_eq!(without_path("https://hooks.example.org/"), "https://hooks.example.org/");
        assert_eq!(without_path("https://hooks.example.org"), "https://hooks.example.org");
    }
}
