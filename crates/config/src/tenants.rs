//! The entries of `[[tenant]]`. A setting of a tenant is one row of `table/gateway.rs` and one field of the gateway's
//! [`TenantSettings`]; `quittance tenant list` shows it by its row.

use crate::Config;
use crate::effective::Effective;
use crate::error::{ConfigError, Errors};
use crate::layers::Environment;
use crate::named_secret::{CallerKey, Credential};
use crate::setting_name::Name;
use crate::setting_shape::SettingShape;
use crate::setting_table::settings;
use quittance_engine::targets::HostPattern;
use quittance_engine::{Targets, TenantRule};
use quittance_gateway::{KeyDigest, Rate, TenantSettings};
use serde_json::Value as Json;
use std::time::Duration;

/// How many orders a tenant may have open if `open_max` is not set: enough for many workers.
pub const OPEN_MAX_DEFAULT: usize = 5_000;
/// How fast a tenant may place orders if `rate` is not set: too slow to fill a disk in an hour.
pub const RATE_DEFAULT: Rate = Rate { every: Duration::from_millis(10), burst: 2_500 };

/// One tenant.
#[derive(Clone, Debug)]
pub struct TenantConfig {
    pub key: CallerKey,
    pub webhook_secret: Option<Credential>,
    pub hosts: Option<Vec<HostPattern>>,
    /// The other settings. The key, the targets and the webhook secret are missing here: see
    /// [`TenantConfig::settings`].
    limits: TenantSettings,
}

impl TenantConfig {
    pub fn name(&self) -> &str {
        &self.limits.name
    }

    /// The settings of the tenant, without defaults, secrets and hosts. Its key is a placeholder.
    pub const fn limits(&self) -> &TenantSettings {
        &self.limits
    }

    /// What every order of the tenant is checked against. `targets` are those of all tenants.
    pub fn rule(&self, targets: &Targets) -> TenantRule {
        let own = |hosts: &Vec<HostPattern>| Targets { allow: hosts.clone(), ..targets.clone() };
        let TenantSettings { kinds, weight, priority, .. } = &self.limits;
        TenantRule {
            targets: self.hosts.as_ref().map(own),
            kinds: kinds.clone(),
            weight: *weight,
            priority: *priority,
        }
    }

    /// Settings for an API that knows the tenant by its name only: without its key, its secrets and its pace.
    pub fn settings_without_key(&self, targets: &Targets) -> TenantSettings {
        let TenantRule { targets, kinds, weight, priority } = self.rule(targets);
        TenantSettings {
            targets,
            kinds,
            weight,
            priority,
            ..TenantSettings::new(self.name(), KeyDigest([0; 32]))
        }
    }

    /// Settings for the gateway. Fails if a secret is missing or wrong. `targets` are those of all tenants.
    pub fn settings(&self, targets: &Targets) -> Result<TenantSettings, ConfigError> {
        Ok(TenantSettings {
            key: self.key.digest()?,
            targets: self.rule(targets).targets,
            webhook_secret: self.webhook_secret.as_ref().map(Credential::webhook_bytes).transpose()?,
            rate: self.limits.rate.or(Some(RATE_DEFAULT)),
            open_max: self.limits.open_max.or(Some(OPEN_MAX_DEFAULT)),
            ..self.limits.clone()
        })
    }
}

impl Config {
    /// The settings of a tenant by their keys, without its name and the places of its secrets. Each has its value, if
    /// there is one.
    pub fn settings_of_tenant(&self, tenant: &str) -> impl Iterator<Item = (&'static str, Option<Json>)> {
        let rows = settings().filter(|row| row.is_in("tenant") && row.leaf() != "name");
        let rows = rows.filter(|row| {
            !matches!(row.shape, SettingShape::KeyHash | SettingShape::Variable | SettingShape::File)
        });
        rows.map(move |row| {
            let held = self.effective.get(&Name::of(["tenant", tenant, row.leaf()]));
            (row.leaf(), held.map(|held| held.value.json()))
        })
    }
}

pub(crate) fn tenant(
    effective: &Effective,
    label: &str,
    environment: &Environment,
    errors: &mut Errors,
) -> Option<TenantConfig> {
    let table = Name::of(["tenant", label]);
    let remedy = "add `key_sha256 = \"...\"` with the hash of its key (`quittance tenant new` prints both), or \
                  `key_env` with the variable that holds the key, or `key_file`";
    let key = CallerKey::find(effective, &table, environment)
        .and_then(|key| key.ok_or_else(|| ConfigError::incomplete(&table, "key_env", remedy)));
    let webhook_secret = Credential::find(effective, &table, "webhook_secret", environment);
    let (key, webhook_secret) = (errors.keep(key), errors.keep(webhook_secret));
    let mut limits = TenantSettings::new(label, KeyDigest([0; 32]));
    effective.apply(&table, &mut limits);
    Some(TenantConfig {
        key: key?,
        webhook_secret: webhook_secret?,
        hosts: effective.read_at(&table.below("hosts")),
        limits,
    })
}
