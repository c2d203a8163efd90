//! Configurations for tests of commands.

use quittance_config::{Config, ConfigErrors, Environment, Sources};
use tempfile::TempDir;

/// A folder to start in, with or without a config file.
pub(crate) struct TestFolder {
    folder: TempDir,
    variables: Vec<(String, String)>,
    sources: Sources,
}

impl TestFolder {
    pub(crate) fn empty() -> Self {
        Self { folder: TempDir::new().unwrap(), variables: Vec::new(), sources: Sources::default() }
    }

    pub(crate) fn with_file(text: &str) -> Self {
        let place = Self::empty();
        std::fs::write(place.folder.path().join("quittance.toml"), text).unwrap();
        place
    }

    pub(crate) fn env(mut self, variables: &[(&str, &str)]) -> Self {
        self.variables.extend(variables.iter().map(|(name, value)| ((*name).into(), (*value).into())));
        self
    }

    pub(crate) fn set(mut self, overrides: &[&str]) -> Self {
        self.sources.overrides.extend(overrides.iter().map(|words| (*words).into()));
        self
    }

    pub(crate) fn load(&self) -> Result<Config, ConfigErrors> {
        Config::load(&self.sources, &self.environment(), self.folder.path())
    }

    fn environment(&self) -> Environment {
        self.variables.iter().cloned().collect()
    }
}

/// The configuration of these values of `--set`, without a file.
pub(crate) fn config_with(overrides: &[&str]) -> Config {
    TestFolder::empty().set(overrides).load().unwrap()
}
