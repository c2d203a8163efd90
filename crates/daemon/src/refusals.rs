//! The reasons for which `serve` refuses to start, as far as the configuration shows them. `serve` and `config check`
//! share this code, so that they agree.

use crate::configured_node;
use crate::gateway_setup::gateway_setup;
use crate::serving::ServeRequest;
use crate::setup_error::{SetupError, with_causes};
use crate::shown_certificate::{CertificateSource, load};
use crate::sockets::CannotListen;
use quittance::GatewaySetup;
use quittance_config::{Config, ConfigError, check_folder};

/// Everything that is wrong, each with what to do. Nothing is opened, called or changed.
pub(crate) fn refusals(config: &Config, request: &ServeRequest) -> Vec<SetupError> {
    let certificate = match request.certificate(config) {
        Ok(Some(CertificateSource::Files { cert, key })) => {
            load(&cert, &key).map(drop).map_err(SetupError::config)
        }
        Ok(_) => Ok(()),
        Err(error) => Err(error),
    };
    let tenants = config.tenants.iter().map(|tenant| tenant.settings(&config.targets).map(drop));
    let admin = config.admin.iter().map(|key| key.digest().map(drop));
    let secret = [config.callback_secret().map(drop), config.alerts.settings().map(drop)];
    let keys = tenants.chain(admin).chain(secret).filter_map(|checked| checked.err());
    let keys = keys.map(SetupError::config);
    let password = config.store.place().map(drop).map_err(SetupError::config);
    let folder = check_folder(&config.store).map_err(SetupError::store);
    let mut found: Vec<SetupError> = [configured_node::check_provider(config), certificate, password, folder]
        .into_iter()
        .filter_map(Result::err)
        .collect();
    found.extend(keys);
    // Everything else that `serve` would refuse.
    if found.is_empty() {
        found.extend(gateway_setup(config, "check").err());
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
pub(crate) async fn refused_pools(config: &Config) -> Vec<SetupError> {
    if config.pools.is_empty() {
        return Vec::new();
    }
    match gateway_setup(config, "check") {
        Ok(setup) => configured_node::refused_pools(config, GatewaySetup { traces: None, ..setup }).await,
        Err(error) => vec![error],
    }
}

/// The addresses of the configuration on which `serve` could not listen. Each is opened for a test and closed again.
fn unusable_addresses(config: &Config) -> Vec<CannotListen> {
    let request = ServeRequest::default();
    let has_https = request.certificate(config).is_ok_and(|source| source.is_some());
    request.addresses(config, has_https).unusable()
}

/// Whether a daemon would start with a configuration, as far as the configuration shows it.
#[derive(Debug, Default)]
pub struct CheckReport {
    pub file: Option<String>,
    /// What would stop the daemon; each says what to do.
    pub wrong: Vec<String>,
    /// What is valid, and may surprise.
    pub notes: Vec<String>,
}

impl CheckReport {
    /// Makes the report. `read` is the configuration, with the errors in its names and values. Must be called within a
    /// runtime, because it tries to listen on the addresses.
    pub async fn of(read: Result<(Config, Vec<ConfigError>), ConfigError>) -> Self {
        let (config, errors) = match read {
            Ok(read) => read,
            Err(error) => return Self { wrong: vec![with_causes(&error)], ..Self::default() },
        };
        let mut refused = refusals(&config, &ServeRequest::default());
        if refused.is_empty() && errors.is_empty() {
            refused = refused_pools(&config).await;
        }
        let (in_use, unusable): (Vec<_>, Vec<_>) =
            unusable_addresses(&config).into_iter().partition(|address| address.is_in_use);
        let refused = refused.into_iter().map(|refusal| refusal.what);
        let refused = refused.chain(unusable.into_iter().map(|address| address.what));
        // An error that only follows from another is left out.
        let refused = refused.filter(|what| !errors.iter().any(|error| error.explains(what, None)));
        let wrong: Vec<String> = errors.iter().map(|error| with_causes(error)).chain(refused).collect();
        let is_wide = config.targets.allow.iter().any(|pattern| pattern.to_string() == "*");
        let wide = is_wide.then(|| {
            "`targets.allow` has `*`: every site may be automated, by every caller; list the hosts that you may automate".into()
        });
        let risk = config.lost_reply_risk().map(str::to_owned);
        let alerts = config.alerts.problems().into_iter().filter(|problem| !wrong.contains(problem));
        let in_use = in_use.into_iter();
        let notes = [
            config.warnings.clone(),
            wide.into_iter().chain(risk).collect(),
            config.unused_lifetimes(),
            config.budgets_that_buy_nothing(),
            config.budget_notes(),
            config.provider_notes(),
            alerts.collect(),
            in_use.map(|address| format!("{} (unless it is the daemon itself)", address.what)).collect(),
        ];
        let file = config.file().map(|path| path.display().to_string());
        Self { file, wrong, notes: notes.concat() }
    }
}
