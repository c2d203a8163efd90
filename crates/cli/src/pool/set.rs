//! `quittance pool set`: sends only the typed values, so that all others stay, and shows each change with the old
//! value.

use super::{SetArgs, list, render};
use crate::exit::{CliError, Exit};
use crate::kinds::no_such_kind;
use crate::output::{self, harmless};
use hyper::Method;
use quittance::DEFAULT_TENANT;
use quittance_admin::pools::{PoolChange, ShownPool};
use quittance_config::Config;
use quittance_daemon::{ApiClient, ApiError, api_client::segment};
use serde_json::{Map, Value, json};
use std::fmt::Write;

pub(super) async fn run(args: SetArgs, client: &ApiClient, config: &Config) -> Result<Exit, CliError> {
    let before = list(client).await?.into_iter().find(|pool| pool.name == args.name);
    let change = change(&args, before.as_ref(), config)?;
    let method = if before.is_some() { Method::PATCH } else { Method::PUT };
    let path = format!("/v1/pools/{}", segment(&args.name));
    let after: ShownPool = client.send(method, &path, &change).await.map_err(not_set)?;
    let changes = changes(before.as_ref(), &after, &change);
    output::show(args.json, &object(before.is_none(), &after, &changes)?, || {
        text(before.is_none(), &after, &changes)
    })?;
    if let Some(stopped) = &after.stopped {
        output::tell(&format!("note: {}\n", harmless(stopped)));
    }
    let configured = config.pools.iter().find(|spec| spec.name == after.name);
    if configured
        .is_some_and(|spec| settings(&ShownPool::of_settings(spec.clone()), "") != settings(&after, ""))
    {
        output::tell(
            "note: the configuration describes this pool differently, and `serve` resets it when it starts: change it there too\n",
        );
    }
    Ok(Exit::Done)
}

/// The error about a pool that was not set. Here a target that is not allowed is an invalid value.
fn not_set(error: ApiError) -> CliError {
    match error {
        ApiError::Problem(problem) if problem.code.ends_with("_not_allowed") => usage(problem.detail),
        error => error.into(),
    }
}

fn usage(what: impl Into<String>) -> CliError {
    CliError::new(Exit::Usage, what)
}

/// The request: the typed values, and those that a new pool needs.
fn change(args: &SetArgs, before: Option<&ShownPool>, config: &Config) -> Result<PoolChange, CliError> {
    if let Some(kind) = &args.kind {
        check_kind(kind, config)?;
    } else if before.is_none() {
        return Err(usage(format!(
            "there is no pool `{}` yet: a new pool needs a kind, such as `--kind turnstile`",
            harmless(&args.name)
        )));
    }
    if before.is_none() && args.service_level.is_none() && args.size.is_none() {
        return Err(usage("a new pool needs a size: `--service-level 0.95`, or a fixed `--size 5`"));
    }
    let typed = |value: &String| (!value.is_empty()).then(|| value.clone());
    let params = args.params.iter().map(|(name, value)| (name.clone(), typed(value)));
    Ok(PoolChange {
        tenant: tenant(args.tenant.as_deref(), before, config)?,
        kind: args.kind.clone(),
        // A new pool has nothing to remove.
        params: params.filter(|(_, value)| before.is_some() || value.is_some()).collect(),
        service_level: args.service_level.map(|permille| f64::from(permille) / 1000.0),
        size: args.size,
        budget_per_hour: args.budget_per_hour.map(|budget| budget.value().map(|money| money.to_string())),
        hours: hours(args)?,
        min_life_s: args.min_life.map(|life| life.value().map(|life| life.as_secs_f64())),
        enabled: (args.on || args.off).then_some(args.on),
    })
}

/// Checks that the kind is known. The API accepts undescribed kinds, because clients may know new ones before we do.
/// Here an unknown kind is probably misspelt, and the pool would buy.
fn check_kind(kind: &str, config: &Config) -> Result<(), CliError> {
    match config.kinds.kind(kind) {
        Some(_) => Ok(()),
        None => Err(no_such_kind(kind, config, ": `quittance kinds` lists the kinds")),
    }
}

fn tenant(
    typed: Option<&str>,
    before: Option<&ShownPool>,
    config: &Config,
) -> Result<Option<String>, CliError> {
    if let Some(typed) = typed {
        config.check_tenant(typed).map_err(usage)?;
    }
    match (typed, before, &config.tenants[..]) {
        (Some(typed), ..) => Ok(Some(typed.to_owned())),
        (None, Some(_), _) => Ok(None),
        (None, None, []) => Ok(Some(DEFAULT_TENANT.into())),
        (None, None, [only]) => Ok(Some(only.name().to_owned())),
        (None, None, [..]) => {
            Err(usage("there are several tenants: name the one whose orders it serves with `--tenant NAME`"))
        }
    }
}

fn hours(args: &SetArgs) -> Result<Option<Vec<String>>, CliError> {
    let parts: Vec<String> =
        args.hours.iter().filter_map(|hours| hours.value()).map(|hours| hours.to_string()).collect();
    match args.hours.len() {
        0 => Ok(None),
        typed if typed > 1 && parts.len() < typed => {
            Err(usage("`--hours always` cannot be combined with other hours"))
        }
        _ => Ok(Some(parts)),
    }
}

/// The settings of a pool as text, by name.
fn settings(pool: &ShownPool, currency: &str) -> Vec<(String, String)> {
    let mut settings = vec![
        ("tenant".to_owned(), harmless(&pool.tenant)),
        ("kind".into(), harmless(&pool.kind)),
        ("goal".into(), render::goal(pool)),
        ("budget".into(), render::budget(pool, currency)),
        ("hours".into(), render::hours(pool)),
        ("min life".into(), render::min_life(pool)),
        ("state".into(), if pool.enabled { "on" } else { "off" }.into()),
    ];
    settings.extend(pool.params.iter().map(|(name, value)| (harmless(name), render::param(value))));
    settings
}

/// A new or changed setting: its name, the value now, the value before.
type Changed = (String, Option<String>, Option<String>);

fn changes(before: Option<&ShownPool>, after: &ShownPool, change: &PoolChange) -> Vec<Changed> {
    let currency = after.currency.as_str();
    let mut old = before.map(|before| settings(before, currency)).unwrap_or_default();
    // A secret that was typed may have changed, although the API shows the same for it.
    let is_secret = |name: &str| {
        change.params.contains_key(name)
            && after.params.get(name).is_some_and(|value| render::is_concealed(value))
    };
    let mut changes = Vec::new();
    for (name, now) in settings(after, currency) {
        let at = old.iter().position(|(known, _)| *known == name);
        let was = at.map(|at| old.swap_remove(at).1);
        if was.as_ref() != Some(&now) || is_secret(&name) {
            changes.push((name, Some(now), was));
        }
    }
    changes.extend(old.into_iter().map(|(name, was)| (name, None, Some(was))));
    changes
}

fn object(is_new: bool, after: &ShownPool, changes: &[Changed]) -> Result<Value, CliError> {
    let changed =
        changes.iter().map(|(name, is, was)| (name.replace(' ', "_"), json!({ "is": is, "was": was })));
    let mut object = output::to_json(after)?;
    object["created"] = is_new.into();
    object["changed"] = Value::Object(changed.collect::<Map<_, _>>());
    Ok(object)
}

fn text(is_new: bool, after: &ShownPool, changes: &[Changed]) -> String {
    let name = harmless(&after.name);
    let mut text = match is_new {
        true => format!("new pool {name}\n"),
        false if changes.is_empty() => return format!("pool {name} is unchanged\n"),
        false => format!("changed pool {name}\n"),
    };
    for (setting, is, was) in changes {
        let is = is.as_deref().unwrap_or("-");
        let was = was.as_ref().map(|was| format!(" (was: {was})")).unwrap_or_default();
        _ = writeln!(text, "  {setting:<14} {is}{was}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::OrNot;
    use crate::test_config::config_with;
    use quittance::Hours;
    use quittance::lifecycle::Money;
    use quittance::{Goal, PoolSpec};
    use std::time::Duration;

    fn typed(name: &str) -> SetArgs {
        SetArgs { name: name.into(), ..SetArgs::default() }
    }

    fn login() -> ShownPool {
        let text = |text: &str| quittance::Value::Text(text.into());
        let spec = PoolSpec {
            name: "login".into(),
            tenant: "default".into(),
            kind: "turnstile".into(),
            params: [("sitekey".into(), text("0x4A")), ("proxy".into(), text("u:s3cr3t@h:1"))].into(),
            goal: Goal::Served { permille: 950 },
            budget: Some(Money(2_000_000)),
            hours: vec![Hours { from: 480, to: 1200 }],
            min_life: Some(Duration::from_secs(60)),
            is_on: true,
        };
        ShownPool::of_settings(spec)
    }

    #[test]
    fn only_what_was_typed_is_sent() {
        let (config, before) = (config_with(&[]), login());
        let change = |args| change(&args, Some(&before), &config).unwrap();
        assert_eq!(change(typed("login")), PoolChange::default());
        let args = SetArgs { size: Some(3), off: true, ..typed("login") };
        let expected = PoolChange { size: Some(3), enabled: Some(false), ..PoolChange::default() };
        assert_eq!(change(args), expected);
        let args = SetArgs {
            params: vec![("a".into(), "1".into()), ("b".into(), String::new())],
            budget_per_hour: Some(OrNot::Not),
            hours: vec![OrNot::Not],
            min_life: Some(OrNot::Not),
            ..typed("login")
        };
        let sent = serde_json::to_value(change(args)).unwrap();
        let expected = json!({ "params": { "a": "1", "b": null }, "budget_per_hour": null, "hours": [], "min_life_s": null });
        assert_eq!(sent, expected);
    }

    #[test]
    fn changes_are_shown_with_the_old_value_and_secrets_are_not() {
        let before = login();
        let after = ShownPool { service_level: None, size: Some(3), enabled: false, ..before.clone() };
        let shown = text(false, &after, &changes(Some(&before), &after, &PoolChange::default()));
        for words in ["a fixed size of 3 (was: 95 % of orders)", "off (was: on)"] {
            assert!(shown.contains(words), "{words}: {shown}");
        }
        assert!(!shown.contains("hours") && !shown.contains("sitekey"), "{shown}");
        assert!(
            text(false, &before, &changes(Some(&before), &before, &PoolChange::default()))
                .contains("unchanged")
        );
        let secret = PoolChange {
            params: [("proxy".into(), Some("u:other@h:1".into()))].into(),
            ..PoolChange::default()
        };
        let shown = text(false, &before, &changes(Some(&before), &before, &secret));
        assert!(shown.contains("changed") && shown.contains("proxy") && !shown.contains("other"), "{shown}");
        let object = object(false, &after, &changes(Some(&before), &after, &PoolChange::default())).unwrap();
        assert_eq!((&object["created"], &object["changed"]["state"]["was"]), (&false.into(), &"on".into()));
    }

    #[test]
    fn a_new_pool_needs_a_kind_a_size_and_a_tenant() {
        let config = config_with(&[]);
        let refused = |args: SetArgs, config: &Config| change(&args, None, config).unwrap_err();
        assert!(refused(typed("login"), &config).what.contains("--kind"));
        let args = || SetArgs { kind: Some("turnstile".into()), ..typed("login") };
        assert!(refused(args(), &config).what.contains("--service-level"));
        let odd = SetArgs { kind: Some("turnstyle".into()), ..typed("login") };
        assert!(refused(odd, &config).what.contains("did you mean `turnstile`?"));
        let key = |name: &str| format!("tenant.{name}.key_env=K");
        let two = config_with(&[&key("a"), &key("b")]);
        let args = |tenant: Option<&str>| SetArgs { size: Some(1), tenant: tenant.map(Into::into), ..args() };
        assert!(refused(args(None), &two).what.contains("--tenant"));
        assert!(refused(args(Some("c")), &two).what.contains("no tenant `c`"));
        let set = |args: SetArgs, config: &Config| change(&args, None, config).unwrap().tenant.unwrap();
        assert_eq!(set(args(Some("b")), &two), "b");
        assert_eq!(set(args(None), &config_with(&[&key("a")])), "a", "there is no other");
        let both = SetArgs { hours: vec![OrNot::Not, OrNot::Is(Hours { from: 0, to: 60 })], ..args(None) };
        assert!(refused(both, &config).what.contains("cannot be combined"));
    }
}
