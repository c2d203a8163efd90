//! `quittance pool set`: what was typed laid over what is there, so that nothing is lost by what was not said; and then what
//! has changed, with what it was.

use super::told::Pool;
use super::{OrNot, SetArgs, shown};
use crate::exit::{CliError, Exit};
use crate::output;
use crate::output::harmless;
use crate::stock_client::StockClient;
use quittance::{DEFAULT_TENANT, Goal, Hours, PoolSpec, Value as Param};
use quittance_config::Config;
use quittance_config::nearest;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

pub(super) async fn run(
    args: SetArgs,
    stock_client: &StockClient,
    config: &Config,
) -> Result<Exit, CliError> {
    let pools = stock_client.pools().await?.into_iter();
    let before = pools.map(|pool| pool.spec).find(|spec| spec.name == args.name);
    let as_json = args.json;
    let spec = spec(args, before.as_ref(), config)?;
    // A write makes whoever keeps it look again, for nothing.
    if before.as_ref() != Some(&spec) {
        stock_client.set(&spec).await?;
    }
    output::print(&match as_json {
        true => format!("{:#}\n", object(before.as_ref(), &spec, config.currency())),
        false => text(before.as_ref(), &spec, config.currency()),
    })?;
    let is_it = |pool: &Pool| pool.spec.name == spec.name;
    if let Some(stopped) = stock_client.pools().await?.into_iter().find(is_it).and_then(|pool| pool.stopped) {
        output::tell(&format!("note: {}\n", harmless(&stopped)));
    }
    if config.pools.iter().any(|described| described.name == spec.name && *described != spec) {
        output::tell(
            "note: the configuration describes this pool otherwise: `serve` sets it back when it starts; change it there, too\n",
        );
    }
    Ok(Exit::Done)
}

fn usage(what: impl Into<String>) -> CliError {
    CliError::new(Exit::Usage, what)
}

/// The pool as it is to be.
fn spec(args: SetArgs, before: Option<&PoolSpec>, config: &Config) -> Result<PoolSpec, CliError> {
    if let Some(kind) = &args.kind {
        known(kind, config)?;
    }
    let kind = args.kind.or_else(|| before.map(|spec| spec.kind.clone()));
    let kind = kind.ok_or_else(|| {
        usage(format!(
            "there is no pool `{}` yet: say what it keeps, such as `--kind turnstile`",
            harmless(&args.name)
        ))
    })?;
    let goal = match (args.service_level, args.size) {
        (Some(permille), _) => Some(Goal::Served { permille }),
        (None, Some(size)) => Some(Goal::Fixed { size }),
        (None, None) => before.map(|spec| spec.goal),
    };
    let goal = goal.ok_or_else(|| {
        usage("say how much a new pool is to hold: `--service-level 0.95`, or a fixed `--size 5`")
    })?;
    // The parameters of another kind mean nothing to this one.
    let kept = before.filter(|spec| spec.kind == kind).map(|spec| spec.params.clone());
    Ok(PoolSpec {
        tenant: whose(args.tenant, before, config)?,
        params: params(kept.unwrap_or_default(), args.params),
        kind,
        goal,
        budget: args.budget_per_hour.map_or_else(|| before.and_then(|spec| spec.budget), OrNot::value),
        hours: hours(&args.hours, before)?,
        min_life: args.min_life.map_or_else(|| before.and_then(|spec| spec.min_life), OrNot::value),
        is_on: if args.on || args.off { args.on } else { before.is_none_or(|spec| spec.is_on) },
        name: args.name,
    })
}

/// A daemon takes kinds that nobody has described, because clients know new ones before we do; here it is a slip of the
/// fingers, and would buy.
fn known(kind: &str, config: &Config) -> Result<(), CliError> {
    if config.kinds.kind(kind).is_some() {
        return Ok(());
    }
    let hint = match nearest(kind, config.kinds.all().into_iter().map(|kind| kind.name.into_owned())) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => "`quittance kinds` lists those that there are".into(),
    };
    Err(usage(format!("there is no kind `{}`: {hint}", harmless(kind))))
}

fn whose(typed: Option<String>, before: Option<&PoolSpec>, config: &Config) -> Result<String, CliError> {
    if let Some(typed) = typed {
        config.check_tenant(&typed).map_err(usage)?;
        return Ok(typed);
    }
    match (before, &config.tenants[..]) {
        (Some(spec), _) => Ok(spec.tenant.clone()),
        (None, []) => Ok(DEFAULT_TENANT.into()),
        (None, [only]) => Ok(only.name().to_owned()),
        (None, [..]) => {
            Err(usage("there are several tenants: say whose orders it serves with `--tenant NAME`"))
        }
    }
}

fn params(mut params: BTreeMap<String, Param>, typed: Vec<(String, String)>) -> BTreeMap<String, Param> {
    for (name, value) in typed {
        match value.is_empty() {
            true => drop(params.remove(&name)),
            false => drop(params.insert(name, Param::Text(value))),
        }
    }
    params
}

fn hours(typed: &[OrNot<Hours>], before: Option<&PoolSpec>) -> Result<Vec<Hours>, CliError> {
    let parts: Vec<Hours> = typed.iter().filter_map(|hours| hours.value()).collect();
    match typed {
        [] => Ok(before.map(|spec| spec.hours.clone()).unwrap_or_default()),
        _ if typed.len() > 1 && parts.len() < typed.len() => {
            Err(usage("`--hours always` stands alone: leave it out, or the others"))
        }
        _ => Ok(parts),
    }
}

/// What can be said of a pool, in words.
fn aspects(spec: &PoolSpec, currency: &str) -> Vec<(String, String)> {
    let mut aspects = vec![
        ("tenant".to_owned(), harmless(&spec.tenant)),
        ("kind".into(), harmless(&spec.kind)),
        ("goal".into(), shown::goal(spec.goal)),
        ("budget".into(), shown::budget(spec, currency)),
        ("hours".into(), shown::hours(spec)),
        ("min life".into(), shown::min_life(spec)),
        ("state".into(), if spec.is_on { "on" } else { "off" }.into()),
    ];
    let params = spec.params.iter().map(|(name, value)| (harmless(name), shown::param(name, value)));
    aspects.extend(params);
    aspects
}

/// What is new or other than it was: its name, what it is, what it was.
type Change = (String, Option<String>, Option<String>);

fn changes(before: Option<&PoolSpec>, spec: &PoolSpec, currency: &str) -> Vec<Change> {
    let mut was = before.map(|before| aspects(before, currency)).unwrap_or_default();
    let is = aspects(spec, currency);
    let mut changes = Vec::new();
    for (name, is) in is {
        let at = was.iter().position(|(known, _)| *known == name);
        let was = at.map(|at| was.swap_remove(at).1);
        if was.as_ref() != Some(&is) {
            changes.push((name, Some(is), was));
        }
    }
    changes.extend(was.into_iter().map(|(name, was)| (name, None, Some(was))));
    changes
}

fn object(before: Option<&PoolSpec>, spec: &PoolSpec, currency: &str) -> Value {
    let changed: Map<String, Value> = changes(before, spec, currency)
        .into_iter()
        .map(|(name, is, was)| (name.replace(' ', "_"), json!({ "is": is, "was": was })))
        .collect();
    let mut object = shown::spec_json(spec);
    object.insert("created".into(), before.is_none().into());
    object.insert("changed".into(), changed.into());
    object.into()
}

fn text(before: Option<&PoolSpec>, spec: &PoolSpec, currency: &str) -> String {
    let changes = changes(before, spec, currency);
    let name = harmless(&spec.name);
    let mut text = match before {
        None => format!("new pool {name}\n"),
        // Of a secret only its length is told, which may be the same.
        Some(before) if before == spec => return format!("pool {name} is as it was\n"),
        Some(_) => format!("changed pool {name}\n"),
    };
    for (aspect, is, was) in changes {
        let is = is.unwrap_or_else(|| "-".into());
        _ = match was {
            Some(was) => writeln!(text, "  {aspect:<14} {is} (was: {was})"),
            None => writeln!(text, "  {aspect:<14} {is}"),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_config::config_with;
    use quittance::lifecycle::Money;
    use std::time::Duration;

    fn typed(name: &str) -> SetArgs {
        SetArgs {
            name: name.into(),
            kind: None,
            params: Vec::new(),
            service_level: None,
            size: None,
            budget_per_hour: None,
            hours: Vec::new(),
            min_life: None,
            tenant: None,
            on: false,
            off: false,
            json: false,
        }
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.into(), value.into())
    }

    fn login() -> PoolSpec {
        let args = SetArgs {
            kind: Some("turnstile".into()),
            params: vec![pair("sitekey", "0x4A"), pair("pageurl", "https://example.com/")],
            service_level: Some(950),
            budget_per_hour: Some(OrNot::Is(Money(2_000_000))),
            hours: vec![OrNot::Is(Hours { from: 480, to: 1200 })],
            min_life: Some(OrNot::Is(Duration::from_secs(60))),
            ..typed("login")
        };
        spec(args, None, &config_with(&[])).unwrap()
    }

    #[test]
    fn what_was_not_said_stays_as_it_was() {
        let (config, before) = (config_with(&[]), login());
        let same = spec(typed("login"), Some(&before), &config).unwrap();
        assert_eq!(same, before);
        assert!(text(Some(&before), &same, "USD").contains("as it was"));
        let args = SetArgs { size: Some(3), off: true, ..typed("login") };
        let after = spec(args, Some(&before), &config).unwrap();
        assert_eq!(after, PoolSpec { goal: Goal::Fixed { size: 3 }, is_on: false, ..before.clone() });
        let told = text(Some(&before), &after, "USD");
        for words in ["a fixed size of 3 (was: 95 % of orders)", "off (was: on)"] {
            assert!(told.contains(words), "{words}: {told}");
        }
        assert!(!told.contains("hours") && !told.contains("sitekey"), "{told}");
        let object = object(Some(&before), &after, "USD");
        assert_eq!((&object["created"], &object["changed"]["state"]["was"]), (&false.into(), &"on".into()));
    }

    #[test]
    fn a_single_parameter_is_changed_or_taken_away_and_another_kind_begins_anew() {
        let (config, before) = (config_with(&[]), login());
        let args =
            SetArgs { params: vec![pair("sitekey", "0x5B"), pair("action", "login")], ..typed("login") };
        let after = spec(args, Some(&before), &config).unwrap();
        let names = |spec: &PoolSpec| spec.params.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&after), ["action", "pageurl", "sitekey"]);
        assert_eq!(after.params["sitekey"], Param::Text("0x5B".into()));
        let args = SetArgs { params: vec![pair("action", "")], ..typed("login") };
        assert_eq!(names(&spec(args, Some(&after), &config).unwrap()), ["pageurl", "sitekey"]);
        let args = SetArgs { kind: Some("hcaptcha".into()), ..typed("login") };
        assert!(spec(args, Some(&after), &config).unwrap().params.is_empty());
    }

    #[test]
    fn limits_can_be_taken_back() {
        let (config, before) = (config_with(&[]), login());
        let args = SetArgs {
            budget_per_hour: Some(OrNot::Not),
            hours: vec![OrNot::Not],
            min_life: Some(OrNot::Not),
            ..typed("login")
        };
        let after = spec(args, Some(&before), &config).unwrap();
        assert_eq!((after.budget, after.hours, after.min_life), (None, Vec::new(), None));
        let both = vec![OrNot::Not, OrNot::Is(Hours { from: 0, to: 60 })];
        let refused = spec(SetArgs { hours: both, ..typed("login") }, Some(&before), &config).unwrap_err();
        assert!(refused.what.contains("stands alone"), "{refused}");
    }

    #[test]
    fn a_new_pool_must_say_what_how_much_and_whose() {
        let config = config_with(&[]);
        let refused = spec(typed("login"), None, &config).unwrap_err();
        assert!(refused.exit == Exit::Usage && refused.what.contains("--kind"), "{refused}");
        let args = || SetArgs { kind: Some("turnstile".into()), ..typed("login") };
        assert!(spec(args(), None, &config).unwrap_err().what.contains("--service-level"));
        let key = |name: &str| format!("tenant.{name}.key_env=K");
        let two = config_with(&[&key("a"), &key("b")]);
        let odd = SetArgs { kind: Some("turnstyle".into()), ..typed("login") };
        assert!(spec(odd, None, &config).unwrap_err().what.contains("did you mean `turnstile`?"));
        let args = |tenant: Option<&str>| SetArgs { size: Some(1), tenant: tenant.map(Into::into), ..args() };
        assert!(spec(args(None), None, &two).unwrap_err().what.contains("--tenant"));
        assert!(spec(args(Some("c")), None, &two).unwrap_err().what.contains("no tenant `c`"));
        assert_eq!(spec(args(Some("b")), None, &two).unwrap().tenant, "b");
        assert_eq!(
            spec(args(None), None, &config_with(&[&key("a")])).unwrap().tenant,
            "a",
            "there is no other"
        );
    }
}
