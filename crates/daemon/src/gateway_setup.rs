//! The gateway of a daemon, as its configuration says: tenants, keys, limits, and what operators and collectors get.

use crate::provider_names::dialects;
use crate::setup_error::{SetupError, SetupFault};
use quittance::GatewaySetup;
use quittance_admin::AdminSettings;
use quittance_config::{CallerKey, Config, ProviderConfig};
use quittance_gateway::{GatewaySettings, ReuseRule, harmless};
use quittance_protocol::Dialect;
use quittance_telemetry::TraceSettings;
use std::sync::Arc;

/// The path at which a collector accepts traces.
const TRACES_PATH: &str = "/v1/traces";

/// The default dialect for callers: clients of a provider that calls back in its own dialect expect that from us,
/// too.
fn dialect(config: &Config) -> Option<Dialect> {
    let usual = config.providers.first().map(ProviderConfig::dialect);
    config.dialect.or(usual.filter(|dialect| *dialect == Dialect::CaptchaAi))
}

/// The settings for traces: a collector accepts them at a path of its own.
fn traces(config: &Config, name: &str) -> Result<Option<TraceSettings>, SetupError> {
    let Some(url) = &config.traces else { return Ok(None) };
    let url = url.trim_end_matches('/');
    let whole = if url.ends_with(TRACES_PATH) { url.to_owned() } else { format!("{url}{TRACES_PATH}") };
    let collector = whole.parse().map_err(|_| {
        SetupError::new(
            SetupFault::Config,
            format!("traces.url is no address that can be called: {}", harmless(url)),
        )
    })?;
    Ok(Some(TraceSettings { collector, node: name.to_owned() }))
}

/// The settings of the gateway: tenants, keys and limits.
pub(crate) fn gateway_setup(config: &Config, name: &str) -> Result<GatewaySetup, SetupError> {
    let wrong = SetupError::config;
    let tenants = config.tenants.iter().map(|tenant| tenant.settings(&config.targets));
    let reuse = config.reuse.clone();
    Ok(GatewaySetup {
        tenants: tenants.collect::<Result<_, _>>().map_err(wrong)?,
        admin: config.admin.as_ref().map(CallerKey::digest).transpose().map_err(wrong)?,
        settings: GatewaySettings {
            limits: config.listener,
            dialect: dialect(config),
            hosts: config.hosts.clone(),
        },
        operator: AdminSettings {
            alerts: config.alerts.settings().map_err(wrong)?,
            shown: quittance_config::in_force(config),
            store: Some(config.store.url.scheme().word()),
            dialects: dialects(config),
            is_idle: false,
            reloads: None,
        },
        traces: traces(config, name)?,
        reuse: Some(ReuseRule(Arc::new(move |tenant, kind, host| reuse.setting(tenant, kind, host)))),
    })
}
