//! The providers of the configuration, by name: for the API and for the log.

use quittance_admin::providers::ProviderDialect;
use quittance_config::{Config, ProviderConfig};
use std::collections::BTreeMap;

/// The protocol and the dialect of each provider, by name, for the API.
pub(crate) fn dialects(config: &Config) -> BTreeMap<String, ProviderDialect> {
    let dialect = |provider: &ProviderConfig| {
        let protocol = provider.protocol.name().to_owned();
        let dialect = provider.dialect().name().to_owned();
        (provider.name.clone(), ProviderDialect { protocol, dialect })
    };
    config.providers.iter().map(dialect).collect()
}

/// All providers in words, for the log.
pub(crate) fn in_words(config: &Config) -> String {
    let words = |provider: &ProviderConfig| {
        format!("{} ({}, {})", provider.name, provider.dialect().name(), provider.protocol.name())
    };
    config.providers.iter().map(words).collect::<Vec<_>>().join(", ")
}
