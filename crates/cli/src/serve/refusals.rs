//! The reasons for which `serve` refuses to start, as far as the configuration shows them. `serve` and `config check`
//! share this code, so that they agree.

use super::{setup, source, wanted};
use crate::exit::{CliError, Exit, OrExit};
use crate::node;
use quittance::GatewaySetup;
use quittance_config::{Config, check_folder};
use quittance_daemon::{CannotListen, CertificateSource, load};
use std::path::Path;

/// Everything that is wrong, each with what to do. Nothing is opened, called or changed. `tls_self_signed` and
/// `has_https` come from the command line.
pub(crate) fn refusals(config: &Config, tls_self_signed: Option<&Path>, has_https: bool) -> Vec<CliError> {
    let certificate = match source(tls_self_signed, has_https, config) {
        Ok(Some(CertificateSource::Files { cert, key })) => load(&cert, &key).map(drop).or_exit(Exit::Config),
        Ok(_) => Ok(()),
        Err(error) => Err(error),
    };
    let tenants = config.tenants.iter().map(|tenant| tenant.settings(&config.targets).map(drop));
    let admin = config.admin.iter().map(|key| key.digest().map(drop));
    let secret = [config.callback_secret().map(drop), config.alerts.settings().map(drop)];
    let keys = tenants.chain(admin).chain(secret).filter_map(|checked| checked.err());
    let keys = keys.map(|error| CliError::of(Exit::Config, &error));
    let password = config.store.place().map(drop).or_exit(Exit::Config);
    let folder = check_folder(&config.store).or_exit(Exit::Store);
    let mut found: Vec<CliError> = [node::check_provider(config), certificate, password, folder]
        .into_iter()
        .filter_map(Result::err)
        .collect();
    found.extend(keys);
    // Everything else that `serve` would refuse.
    if found.is_empty() {
        found.extend(setup(config, "check").err());
    }
    let mut reported = Vec::new();
    found.retain(|error| {
        let is_new = !reported.contains(&error.what);
        reported.push(error.what.clone());
        is_new
    });
    found
}

/// The pools of the configuration that `serve` would refuse. A node in memory that does no work sets each as `serve`
/// does. So the check is the real one, and nothing is opened, called or changed.
pub(crate) async fn refused_pools(config: &Config) -> Vec<CliError> {
    if config.pools.is_empty() {
        return Vec::new();
    }
    match setup(config, "check") {
        Ok(setup) => node::refused_pools(config, GatewaySetup { traces: None, ..setup }).await,
        Err(error) => vec![error],
    }
}

/// The addresses of the configuration on which `serve` could not listen. Each is opened for a test and closed again.
pub(crate) fn unusable_addresses(config: &Config) -> Vec<CannotListen> {
    let has_https = source(None, false, config).is_ok_and(|source| source.is_some());
    wanted(config, None, None, has_https).unusable()
}
