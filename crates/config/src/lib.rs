//! The settings: one TOML file, which the environment overrides, and flags override both. One table describes them
//! all. This is the only crate that may read, check and explain settings; other crates get the typed [`Config`].
//! Start at `setting_table.rs`: it is data.
#![forbid(unsafe_code)]

mod address;
mod alerts;
mod budgets;
mod check;
mod config;
mod config_file;
pub mod decimal;
#[cfg(test)]
mod docs;
pub mod duration;
mod effective;
mod error;
mod kinds;
mod layers;
mod lifetimes;
mod named_files;
mod named_secret;
mod nearest;
mod origin;
mod pools;
mod prices;
mod providers;
mod rate;
mod read_again;
mod retry_settings;
mod reuse;
mod routing_checks;
mod setting;
mod setting_name;
mod setting_shape;
mod setting_table;
mod show;
mod store;
mod tenants;
#[cfg(test)]
mod tests;
mod value;

pub use address::{Scheme, ServerUrl};
pub use alerts::AlertsConfig;
pub use config::{Config, LogConfig, TlsConfig};
pub use error::{ConfigError, ConfigErrors};
pub use kinds::KindTable;
pub use layers::{ADMIN_KEY, Environment, FROM_PASSWORD, TENANT_KEY, TO_PASSWORD};
pub use named_files::{check_folder, read_file, reading_remedy};
pub use named_secret::{CallerKey, Credential, Secret};
pub use nearest::nearest;
pub use origin::SettingOrigin;
pub use prices::PriceSource;
pub use providers::ProviderConfig;
pub use read_again::{ReadAgain, SettingChange};
pub use reuse::ReuseRules;
pub use setting_name::toml_text;
pub use setting_shape::is_label;
pub use show::{Line, ORIGIN_COLUMN, in_force, lines, object, secret_files, secret_variables};
pub use store::{StoreConfig, StoreUrl};
pub use tenants::{OPEN_MAX_DEFAULT, RATE_DEFAULT, TenantConfig};

use effective::Effective;
use error::Errors;
use std::path::{Path, PathBuf};

/// The parts of the command line that are about the configuration.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The file of `--config`.
    pub file: Option<PathBuf>,
    /// The values of `--set`, each as `NAME=VALUE`; a later one overrides an earlier one.
    pub overrides: Vec<String>,
}

/// The name of every setting; `*` stands for a part that the operator chooses.
pub fn setting_names() -> impl Iterator<Item = &'static str> {
    setting_table::settings().map(|setting| setting.path)
}

/// Checks a text as the value of a setting with this name, one of [`setting_names`]. An error says what the value must be.
pub fn check_value(name: &str, text: &str) -> Result<(), String> {
    let setting = setting_table::settings().find(|setting| setting.path == name);
    let shape = setting.ok_or_else(|| format!("there is no setting `{name}`"))?.shape;
    match shape.read(&shape.raw(text), Path::new("")) {
        Some(_) => Ok(()),
        None => Err(format!("it must be {}", shape.describe())),
    }
}

impl Config {
    /// Finds and reads the configuration. `folder` is the folder in which the process was started; it is empty for
    /// the real one.
    pub fn load(sources: &Sources, environment: &Environment, folder: &Path) -> Result<Self, ConfigErrors> {
        match Self::read(sources, environment, folder) {
            Ok((config, errors)) if errors.is_empty() => Ok(config),
            Ok((_, errors)) => Err(ConfigErrors(errors)),
            Err(error) => Err(ConfigErrors(vec![error])),
        }
    }

    /// Reads the configuration, and reports everything that is wrong with it. A wrong value has its default in the
    /// result, or is left out, so that the rest can be checked, too. Fails if the file cannot be read at all.
    pub fn read(
        sources: &Sources,
        environment: &Environment,
        folder: &Path,
    ) -> Result<(Self, Vec<ConfigError>), ConfigError> {
        let mut errors = Errors::default();
        let path = layers::find_file(sources.file.as_deref(), environment, folder)?;
        let from_file = match &path {
            Some(path) => layers::from_file(path, &mut errors)?,
            None => Vec::new(),
        };
        let from_flags = layers::from_flags(&sources.overrides, &mut errors);
        let (from_environment, warnings) =
            layers::from_environment(environment, &[&from_file, &from_flags], &mut errors);
        let read_errors = errors.count();
        let entries = [from_file, from_environment, from_flags].concat();
        let config = Self::of(Effective::of(path, entries), environment, &mut errors);
        Ok((Self { warnings, ..config }, errors.into_errors(read_errors)))
    }
}
