//! Reads the configuration again while the daemon runs: what differs, and which of it a running daemon can take.

use crate::effective::Held;
use crate::error::Errors;
use crate::named_secret::Credential;
use crate::setting::Setting;
use crate::setting_name::Name;
use crate::setting_table::needs_restart;
use crate::show::{credentials, shown_value};
use crate::{Config, ConfigError, ConfigErrors, Sources};
use std::collections::BTreeMap;
use std::path::Path;

/// One setting that the configuration now sets differently. It contains no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingChange {
    pub name: String,
    /// The value in use, as in a config file; `None` if there is none.
    pub from: Option<String>,
    /// The new value; `None` if there is none any more.
    pub to: Option<String>,
    /// Where the new value came from.
    pub origin: Option<String>,
    /// Whether a running daemon keeps the value in use, because only a restart can apply the new one.
    pub needs_restart: bool,
}

/// The configuration, read again.
#[derive(Clone, Debug)]
pub struct ReadAgain {
    /// The configuration as it stands now. A daemon would start with it.
    pub whole: Config,
    /// What a running daemon takes of it: every setting that needs a restart has the value in use.
    pub live: Config,
    pub changes: Vec<SettingChange>,
}

impl Config {
    /// Reads the configuration again, from the same sources and with the same environment. Fails as a start would fail.
    pub fn read_again(&self, sources: &Sources, folder: &Path) -> Result<ReadAgain, ConfigErrors> {
        let whole = Self::load(sources, &self.environment, folder)?;
        if let (Some(file), None) = (self.file(), whole.file()) {
            let what = format!("the config file {} does not exist any more", file.display());
            return Err(ConfigErrors(vec![ConfigError::general(what)]));
        }
        let mut errors = Errors::default();
        let mixed = whole.effective.with_values_of(&self.effective, needs_restart);
        let live = Self::of(mixed, &self.environment, &mut errors);
        let errors = errors.into_errors(0);
        if !errors.is_empty() {
            return Err(ConfigErrors(errors));
        }
        let live = Self { warnings: whole.warnings.clone(), ..live };
        let changes = changes(self, &whole);
        Ok(ReadAgain { whole, live, changes })
    }
}

fn changes(from: &Config, to: &Config) -> Vec<SettingChange> {
    let values = |config: &Config| -> BTreeMap<Name, (&'static Setting, Held)> {
        config.effective.all().map(|(name, row, held)| (name.clone(), (row, held.clone()))).collect()
    };
    let (before, after) = (values(from), values(to));
    let mut names: Vec<&Name> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    let differs = |name: &&Name| match (before.get(*name), after.get(*name)) {
        (Some((_, was)), Some((_, is))) => was.value != is.value,
        // What only follows from a new entry is not worth a line.
        (Some((_, one)), None) | (None, Some((_, one))) => one.origin.strength() > 0,
        (None, None) => false,
    };
    let shown =
        |found: Option<&(&'static Setting, Held)>| {
            found.map(|(row, held)| {
                if row.leaf().ends_with("_sha256") { "set".into() } else { shown_value(row, &held.value) }
            })
        };
    let change = |name: &Name| {
        let (was, is) = (before.get(name), after.get(name));
        let row = is.or(was).map(|(row, _)| *row);
        SettingChange {
            name: name.to_string(),
            from: shown(was),
            to: shown(is),
            origin: is.map(|(_, held)| held.origin.to_string()),
            needs_restart: row.is_some_and(needs_restart),
        }
    };
    let settings: Vec<SettingChange> = names.into_iter().filter(differs).map(change).collect();
    let secrets = credentials(to).filter_map(|secret| other_secret(from, secret));
    let secrets: Vec<SettingChange> = secrets.collect();
    other_order(from, to).into_iter().chain(settings).chain(secrets).collect()
}

/// The order of the providers, if it is another one: it decides which of them comes first.
fn other_order(from: &Config, to: &Config) -> Option<SettingChange> {
    let names = |config: &Config| -> Vec<String> {
        config.providers.iter().map(|provider| provider.name.clone()).collect()
    };
    let (before, after) = (names(from), names(to));
    let kept = |names: &[String], others: &[String]| -> Vec<String> {
        names.iter().filter(|name| others.contains(name)).cloned().collect()
    };
    (kept(&before, &after) != kept(&after, &before)).then(|| SettingChange {
        name: "provider".into(),
        from: Some(before.join(", ")),
        to: Some(after.join(", ")),
        origin: None,
        needs_restart: false,
    })
}

/// The change of a secret whose keeper is the same, and whose content is another one.
fn other_secret(from: &Config, secret: &Credential) -> Option<SettingChange> {
    let before = credentials(from).find(|known| known.name == secret.name)?;
    if before.keeper != secret.keeper || before == secret {
        return None;
    }
    Some(SettingChange {
        name: secret.name.clone(),
        from: Some(before.word().into()),
        to: Some(format!("{}, another one", secret.word())),
        origin: Some(secret.keeper.to_string()),
        needs_restart: crate::setting_table::is_restart_secret(&secret.name),
    })
}
