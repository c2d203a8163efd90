//! The pools of the configuration. All errors in a pool are found when it is read, before a node starts.

use crate::Config;
use crate::check::bad_name;
use crate::config_file::POOLS;
use crate::effective::Effective;
use crate::error::{ConfigError, Errors};
use crate::origin::SettingOrigin;
use crate::setting::Defaults;
use crate::setting_name::Name;
use crate::setting_shape::{SettingShape, is_label};
use quittance::{DEFAULT_TENANT, PoolSpec};
use quittance_engine::targets::site;
use quittance_engine::with_life_rules;
use quittance_lifecycle::{Draft, Reuse, Target, Timestamp, Value as Param};
use quittance_ports::Goal;

/// The tables of `[pools]`.
pub(crate) fn pools(effective: &Effective, errors: &mut Errors) -> Vec<PoolSpec> {
    effective.list(POOLS, |label| errors.keep(pool(effective, &label)))
}

fn pool(effective: &Effective, label: &str) -> Result<PoolSpec, ConfigError> {
    let table = Name::of([POOLS, label]);
    if !is_label(label) {
        return Err(bad_name(&table, &effective.first_origin(&table), &SettingShape::Label.describe()));
    }
    let missing = |key, remedy| ConfigError::incomplete(&table, key, remedy);
    let text = |key| effective.text_at(&table.below(key));
    let mut spec: PoolSpec = Defaults::of(effective.preset()).section();
    effective.apply(&table, &mut spec);
    label.clone_into(&mut spec.name);
    spec.kind =
        text("kind").ok_or_else(|| missing("kind", "set what it keeps, such as `kind = \"turnstile\"`"))?;
    spec.goal = goal(effective, &table)?
        .ok_or_else(|| missing("service_level", "add `service_level = 0.95`, or a fixed `size = 5`"))?;
    let params: Vec<(String, String)> = effective.entries(&table.below("params"));
    spec.params = params.into_iter().map(|(name, value)| (name, Param::Text(value))).collect();
    spec.tenant = match (text("tenant"), &effective.labels("tenant")[..]) {
        (Some(tenant), _) => tenant,
        (None, []) => DEFAULT_TENANT.into(),
        (None, [only]) => only.clone(),
        (None, [..]) => {
            let remedy = "set the tenant whose orders it serves: there are several tenants";
            return Err(missing("tenant", remedy));
        }
    };
    Ok(spec)
}

/// How many answers the pool should hold; `None` if that is not set.
fn goal(effective: &Effective, table: &Name) -> Result<Option<Goal>, ConfigError> {
    let (level, size) = (table.below("service_level"), table.below("size"));
    match (effective.read_at::<u32>(&level), effective.read_at(&size)) {
        (Some(_), Some::<u32>(_)) => Err(effective.unsound(
            &size,
            "is set, and so is `service_level`",
            "a pool has one or the other: leave one out",
        )),
        (Some(0 | 1000), None) => Err(effective.unsound(
            &level,
            "asks for nothing, or for what no stock can promise",
            "write a ratio from 0.001 to 0.999",
        )),
        (Some(permille), None) => Ok(Some(Goal::Served { permille })),
        (None, size) => Ok(size.map(|size| Goal::Fixed { size })),
    }
}

/// Checks what depends on the rest of the configuration: kinds, tenants, targets.
pub(crate) fn check(config: &Config, errors: &mut Errors) {
    let mut kept: Vec<(Target, &str)> = Vec::new();
    for spec in &config.pools {
        let Some(Some(target)) = errors.keep(check_one(config, spec)) else { continue };
        if let Some((_, other)) = kept.iter().find(|(known, _)| *known == target) {
            let problem = format!("keeps the same target as the pool `{other}`");
            let table = Name::of([POOLS, &spec.name]);
            let remedy = "two pools with the same target would share one stock: make one pool of them";
            errors.push(unsound(config, &table, &table, &problem, remedy));
        }
        kept.push((target, &spec.name));
    }
}

/// The error about `name`, or about its pool if `name` is not set.
fn unsound(config: &Config, table: &Name, name: &Name, problem: &str, remedy: &str) -> ConfigError {
    let at = match config.effective.origin(name) {
        SettingOrigin::Default => config.effective.first_origin(table),
        origin => origin,
    };
    ConfigError::at(&at, name, format!("{problem}: {remedy}"))
}

/// Checks one pool. Returns the target that it keeps, if its kind is known.
fn check_one(config: &Config, spec: &PoolSpec) -> Result<Option<Target>, ConfigError> {
    let table = Name::of([POOLS, &spec.name]);
    let unsound =
        |name: &Name, problem: &str, remedy: &str| Err(unsound(config, &table, name, problem, remedy));
    let kind_name = table.below("kind");
    config.kinds.check(&config.effective, &spec.kind, &kind_name)?;
    let Some(kind) = config.kinds.kind(&spec.kind) else { return Ok(None) };
    if !kind.single_use || kind.life.is_none() {
        let remedy = format!(
            "answers of kind `{}` can be used more than once, or never expire, so no pool is needed: remove it",
            spec.kind
        );
        return unsound(&kind_name, "is nothing to keep in stock", &remedy);
    }
    let tenant_name = table.below("tenant");
    if config.tenants.is_empty() && spec.tenant != DEFAULT_TENANT {
        let remedy =
            format!("there is no tenant `{}`: add it as a `[[tenant]]`, or leave this out", spec.tenant);
        return unsound(&tenant_name, "serves no tenant", &remedy);
    }
    if let Err(why) = config.check_tenant(&spec.tenant) {
        return unsound(&tenant_name, "serves no tenant", &why);
    }
    if let Some(name) = spec.params.iter().find_map(|(name, value)| has_password(value).then_some(name)) {
        let remedy = "backups and colleagues would read it here; set such a pool through `/v1/pools`";
        return unsound(&table.below("params").below(name), "has a password in it", remedy);
    }
    let meant =
        match quittance_protocol::json::meaning(&spec.kind, &spec.params, &|name| config.kinds.kind(name)) {
            Ok(meant) => meant,
            Err(why) => return unsound(&table, "asks for what cannot be solved", &why.to_string()),
        };
    let (kind, params) = match meant {
        Some(meant) => (config.kinds.kind(&meant.kind).unwrap_or(kind), meant.params),
        None => (kind, spec.params.clone()),
    };
    let draft = Draft {
        params: params.clone(),
        reuse: Some(Reuse::Exclusive),
        min_life: spec.min_life,
        ..Draft::new(spec.tenant.clone())
    };
    if let Err(why) = config.targets.check(&kind, &draft.params) {
        return unsound(&table, "asks for what may not be bought", &why.to_string());
    }
    let kind = with_life_rules(&config.lifetimes, &kind, &site(&kind, &params));
    match draft.check(&kind, config.keys, &config.policy, Timestamp::ZERO, 0) {
        Ok((_, terms)) => Ok(Some(terms.target)),
        Err(why) => unsound(&table, "asks for what cannot be solved", &why.to_string()),
    }
}

/// Whether the value is the address of a proxy with a password: `user:password@host`.
fn has_password(value: &Param) -> bool {
    let Param::Text(text) = value else { return false };
    let authority = text.split_once("://").map_or(text.as_str(), |(_, rest)| rest);
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
}
