//! The pools that the operator describes in the configuration. All that can be wrong with one is found when it is read, so
//! that a daemon does not start first and complain later.

use super::Config;
use super::check::known_kind;
use super::effective::Effective;
use super::entries::{count_at, list_at};
use super::error::{ConfigError, Wrong};
use super::file::POOLS;
use super::name::Name;
use super::origin::Origin;
use super::value::{Raw, Shape, Value};
use crate::tenant::check_name;
use quittance::{DEFAULT_TENANT, PoolSpec};
use quittance_engine::with_life_rules;
use quittance_lifecycle::terms::site;
use quittance_lifecycle::{Draft, Reuse, Target, Timestamp, Value as Param};
use quittance_ports::{Goal, Hours};
use std::path::Path;

/// The tables of `[pools]`.
pub(super) fn pools(effective: &Effective, wrong: &mut Wrong) -> Vec<PoolSpec> {
    effective.of_list(POOLS).iter().filter_map(|label| wrong.keep(pool(effective, label))).collect()
}

fn pool(effective: &Effective, label: &str) -> Result<PoolSpec, ConfigError> {
    let table = Name::of([POOLS, label]);
    if Shape::Label.read(&Raw::Text(label.to_owned()), Path::new("")).is_none() {
        let (at, expected) = (said_at(effective, &table), Shape::Label.describe());
        let name = table.to_string();
        return Err(ConfigError::BadValue { name, at, found: "a wrong name".into(), expected });
    }
    let missing =
        |key, remedy: &str| ConfigError::Incomplete { table: table.to_string(), key, remedy: remedy.into() };
    let text = |key| effective.text_at(&table.below(key));
    let kind =
        text("kind").ok_or_else(|| missing("kind", "say what it keeps, such as `kind = \"turnstile\"`"))?;
    let goal = goal(effective, &table)?
        .ok_or_else(|| missing("service_level", "add `service_level = 0.95`, or a fixed `size = 5`"))?;
    let held = |key| effective.get(&table.below(key)).map(|held| &held.value);
    let hours = list_at(effective, &table.below("hours")).unwrap_or_default();
    let hours = hours.iter().map(|hours| Hours::parse(hours).expect("they are checked when they are read"));
    let of_params = table.below("params");
    let params = effective
        .below(&of_params)
        .filter_map(|(name, _)| Some((name.last().to_owned(), Param::Text(effective.text_at(name)?))));
    Ok(PoolSpec {
        name: label.to_owned(),
        tenant: match (text("tenant"), &effective.of_list("tenant")[..]) {
            (Some(tenant), _) => tenant,
            (None, []) => DEFAULT_TENANT.into(),
            (None, [only]) => only.clone(),
            (None, [..]) => {
                return Err(missing("tenant", "say whose orders it serves: there are several tenants"));
            }
        },
        kind,
        params: params.collect(),
        goal,
        budget: match held("budget_per_hour") {
            Some(Value::Money(money)) => Some(*money),
            _ => None,
        },
        hours: hours.collect(),
        min_life: effective.span_at(&table.below("min_life")),
        is_on: held("enabled") == Some(&Value::Flag(true)),
    })
}

/// How much it is to hold; none if that is not said.
fn goal(effective: &Effective, table: &Name) -> Result<Option<Goal>, ConfigError> {
    let (level, size) = (table.below("service_level"), table.below("size"));
    let unsound = |name: &Name, problem: &str, remedy: &str| {
        Err(ConfigError::Unsound {
            name: name.to_string(),
            at: effective.get(name).map_or(Origin::Default, |held| held.origin.clone()),
            problem: problem.into(),
            remedy: remedy.into(),
        })
    };
    let fixed = count_at(effective, &size).and_then(|size| u32::try_from(size).ok());
    let share = match effective.get(&level).map(|held| &held.value) {
        Some(Value::Share(share)) => Some(*share),
        _ => None,
    };
    match (share, fixed) {
        (Some(_), Some(_)) => {
            unsound(&size, "is said, and so is `service_level`", "a pool has one or the other: leave one out")
        }
        (Some(0 | 1000), None) => unsound(
            &level,
            "asks for nothing, or for what no stock can promise",
            "write a part from 0.001 to 0.999",
        ),
        (Some(permille), None) => Ok(Some(Goal::Served { permille })),
        (None, size) => Ok(size.map(|size| Goal::Fixed { size })),
    }
}

/// Where somebody first speaks of it.
fn said_at(effective: &Effective, table: &Name) -> Origin {
    let said =
        effective.below(table).map(|(_, held)| &held.origin).find(|origin| **origin != Origin::Default);
    said.cloned().unwrap_or(Origin::Default)
}

/// What depends on the rest of the configuration: kinds, tenants, targets.
pub(super) fn check(config: &Config, wrong: &mut Wrong) {
    let mut kept: Vec<(Target, &str)> = Vec::new();
    for spec in &config.pools {
        let Some(Some(target)) = wrong.keep(check_one(config, spec)) else { continue };
        if let Some((_, other)) = kept.iter().find(|(known, _)| *known == target) {
            let table = Name::of([POOLS, &spec.name]);
            wrong.keep::<()>(Err(ConfigError::Unsound {
                at: said_at(&config.effective, &table),
                name: table.to_string(),
                problem: format!("keeps the same target as the pool `{other}`"),
                remedy: "they would share one stock: make one of them".into(),
            }));
        }
        kept.push((target, &spec.name));
    }
}

/// What it keeps, if its kind is known.
fn check_one(config: &Config, spec: &PoolSpec) -> Result<Option<Target>, ConfigError> {
    let table = Name::of([POOLS, &spec.name]);
    let at = |name: &Name| match config.effective.get(name) {
        Some(held) if held.origin != Origin::Default => held.origin.clone(),
        _ => said_at(&config.effective, &table),
    };
    let unsound = |name: Name, problem: &str, remedy: String| {
        Err(ConfigError::Unsound { at: at(&name), name: name.to_string(), problem: problem.into(), remedy })
    };
    let named = table.below("kind");
    known_kind(&config.kinds, &spec.kind, &named, &at(&named))?;
    let Some(kind) = config.kinds.kind(&spec.kind) else { return Ok(None) };
    if !kind.single_use || kind.life.is_none() {
        let remedy =
            format!("answers of kind `{}` are shared anyway, or never expire: leave the pool out", spec.kind);
        return unsound(named, "is nothing to keep in stock", remedy);
    }
    if config.tenants.is_empty() && spec.tenant != DEFAULT_TENANT {
        let remedy =
            format!("there is no tenant `{}`: add it as a `[[tenant]]`, or leave this out", spec.tenant);
        return unsound(table.below("tenant"), "serves nobody", remedy);
    }
    if let Err(why) = check_name(config, &spec.tenant) {
        return unsound(table.below("tenant"), "serves nobody", why);
    }
    if let Some(name) = spec.params.iter().find_map(|(name, value)| has_password(value).then_some(name)) {
        let remedy = "backups and colleagues would read it here; set such a pool through `/v1/pools`".into();
        return unsound(table.below("params").below(name), "has a password in it", remedy);
    }
    let draft = Draft {
        params: spec.params.clone(),
        reuse: Some(Reuse::Exclusive),
        min_life: spec.min_life,
        ..Draft::new(spec.tenant.clone())
    };
    if let Err(why) = config.targets.check(&kind, &draft.params) {
        return unsound(table.clone(), "asks for what may not be bought", why.to_string());
    }
    let kind = with_life_rules(&config.lifetimes, &kind, &site(&kind, &spec.params));
    match draft.check(&kind, config.keys, &config.policy, Timestamp::ZERO, 0) {
        Ok((_, terms)) => Ok(Some(terms.target)),
        Err(why) => unsound(table.clone(), "asks for what nobody can solve", why.to_string()),
    }
}

/// As a proxy has it: `user:password@host`.
fn has_password(value: &Param) -> bool {
    let Param::Text(text) = value else { return false };
    let host_begins = text.find("://").map_or(0, |at| at + 3);
    let authority = text[host_begins..].split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
}
