//! What no single value can be wrong about: how settings stand to each other, and names that must mean something.

use super::Config;
use super::effective::Effective;
use super::error::{ConfigError, Wrong};
use super::name::Name;
use super::nearest::nearest;
use super::origin::Origin;
use super::secret::{CallerKey, Credential};
use super::span;
use super::types::KindTable;
use super::value::{Raw, Shape, Value};
use quittance_engine::targets::HostPattern;
use std::path::Path;
use std::time::Duration;

/// The second must be longer than the first, or at least as long.
const RELATIONS: [(&str, &str, bool, &str); 8] = [
    ("engine.poll_wait", "engine.claim_span", true, "a poll that outlives its claim is asked for twice"),
    ("engine.sweep_pause", "engine.sweep_span", false, "one is the shortest and the other the longest pause"),
    ("retry.base", "retry.cap", false, "pauses grow from the base up to the cap"),
    (
        "timing.in_doubt_min",
        "timing.in_doubt_wait",
        false,
        "one is the shortest and the other the longest doubt",
    ),
    ("timing.callback_wait", "timing.task_life", true, "a task would be given up before it is asked for"),
    ("timing.first_poll", "timing.task_life", true, "a task would be given up before it is asked for"),
    ("timing.p50", "timing.p95", false, "more answers take longer"),
    ("timing.p95", "timing.p99", false, "more answers take longer"),
];

/// Why a margin has a limit.
pub(crate) const PROMISED: &str =
    "promise at most three quarters of the life, because part of it is over before we know the answer";

pub fn relations(effective: &Effective, wrong: &mut Wrong) {
    for (short, long, strictly, why) in RELATIONS {
        let (less, more) = (effective.span(short), effective.span(long));
        if if strictly { less < more } else { less <= more } {
            continue;
        }
        // Whoever set one of them wants to hear about that one.
        let blame_short = effective.held(long).origin == Origin::Default;
        let (name, other) = if blame_short { (short, long) } else { (long, short) };
        let wanted = match (blame_short, strictly) {
            (true, true) => "shorter than",
            (true, false) => "at most",
            (false, true) => "longer than",
            (false, false) => "at least",
        };
        let held = effective.held(other);
        wrong.keep::<()>(Err(ConfigError::Unsound {
            name: name.into(),
            at: effective.held(name).origin.clone(),
            problem: format!("is {}", effective.held(name).value),
            remedy: format!(
                "it must be {wanted} `{other}` = {} ({}), because {why}",
                held.value, held.origin
            ),
        }));
    }
    waits_of_providers(effective, wrong);
}

fn waits_of_providers(effective: &Effective, wrong: &mut Wrong) {
    for label in effective.of_list("provider") {
        let table = Name::of(["provider", &label]);
        let (connect, reply) = (table.below("connect_wait"), table.below("reply_wait"));
        let wait = |name| effective.span_at(name).unwrap_or(Duration::ZERO);
        let submit_wait = effective.span("timing.submit_wait");
        if wait(&connect) + wait(&reply) > submit_wait {
            wrong.keep::<()>(Err(ConfigError::Unsound {
                name: reply.to_string(),
                at: effective.get(&reply).map_or(Origin::Default, |held| held.origin.clone()),
                problem: format!(
                    "is {}, after up to {} for `{connect}`",
                    span::render(wait(&reply)),
                    span::render(wait(&connect))
                ),
                remedy: format!(
                    "together they must be at most `timing.submit_wait` = {}, or the engine gives a submit up before the call does",
                    span::render(submit_wait)
                ),
            }));
        }
    }
}

/// Fail-over between several providers does not work yet, and a provider that is never asked is worse than an error.
pub fn one_provider(effective: &Effective) -> Result<(), ConfigError> {
    let [first, second, ..] = &effective.of_list("provider")[..] else { return Ok(()) };
    let name = Name::of(["provider", second, "name"]);
    Err(ConfigError::Unsound {
        name: format!("provider.{second}"),
        at: effective.get(&name).map_or(Origin::Default, |held| held.origin.clone()),
        problem: format!(
            "is a second provider beside `provider.{first}`, and this version buys from one only"
        ),
        remedy: "keep the one that is to be used, and take the other out".into(),
    })
}

/// Names that the operator made up, in flags and variables as well as in the file.
pub fn names(effective: &Effective, wrong: &mut Wrong) {
    for list in super::file::LISTS.into_iter().filter(|list| *list != super::file::LIFETIMES) {
        for label in effective.of_list(list) {
            let name = Name::of([list, &label, "name"]);
            let held = effective.get(&name).expect("every entry of a list has its name filled in");
            if Shape::Label.read(&Raw::Text(label.clone()), Path::new("")).is_none() {
                let bad = bad_value(&Name::of([list, &label]), &held.origin, Shape::Label.describe());
                wrong.keep::<()>(Err(bad));
            }
            if held.value != Value::Text(label.clone()) {
                wrong.keep::<()>(Err(ConfigError::Unsound {
                    name: name.to_string(),
                    at: held.origin.clone(),
                    problem: "would rename it".into(),
                    remedy: format!(
                        "names are given in the file only; leave this out, or use `{list}.NEW_NAME`"
                    ),
                }));
            }
        }
    }
    let table = Name::of(["reuse", "targets"]);
    for (name, held) in effective.below(&table) {
        if HostPattern::parse(name.last()).is_err() {
            let expected = Shape::Hosts.describe().replace("a list of hosts", "named by a host");
            wrong.keep::<()>(Err(bad_value(name, &held.origin, expected)));
        }
    }
}

fn bad_value(name: &Name, at: &Origin, expected: String) -> ConfigError {
    ConfigError::BadValue { name: name.to_string(), at: at.clone(), found: "a wrong name".into(), expected }
}

/// Sums of days that are still kept in detail would be forgotten with the detail.
pub fn usage(effective: &Effective) -> Result<(), ConfigError> {
    let [detail, sums] = ["usage.detail_days", "usage.sum_days"];
    if effective.count::<u64>(detail) <= effective.count(sums) {
        return Ok(());
    }
    let blamed = if effective.held(sums).origin == Origin::Default { detail } else { sums };
    let held = effective.held(blamed);
    Err(ConfigError::Unsound {
        name: blamed.into(),
        at: held.origin.clone(),
        problem: format!("is {}", held.value),
        remedy: format!("days in detail are days that are kept: set `{sums}` to at least `{detail}`"),
    })
}

pub fn kinds(effective: &Effective, table: &KindTable, wrong: &mut Wrong) {
    let providers = effective.of_list("provider");
    let of_providers = providers.iter().map(|label| vec!["provider", label, "prices"]);
    let tables = [vec!["kinds"], vec!["reuse", "kinds"], vec!["prices"]].into_iter().chain(of_providers);
    for path in tables {
        let (depth, is_prices) = (path.len(), path.last() == Some(&"prices"));
        for (name, held) in effective.below(&Name::of(path)) {
            let kind = name.segments().nth(depth).unwrap_or_default();
            let kind = if is_prices { without_variant(table, kind) } else { kind };
            wrong.keep(known_kind(table, kind, name, &held.origin));
        }
    }
    for label in effective.of_list("tenant") {
        let name = Name::of(["tenant", &label, "kinds"]);
        let Some(held) = effective.get(&name) else { continue };
        let listed = super::entries::list_at(effective, &name).unwrap_or_default();
        for kind in &listed {
            wrong.keep(known_kind(table, kind, &name, &held.origin));
        }
    }
    for kind in table.0.keys() {
        wrong.keep(lives_and_paces(effective, table, kind));
    }
}

/// The kind of a price such as `recaptcha_v2+enterprise`, if the kind has that parameter.
fn without_variant<'a>(table: &KindTable, named: &'a str) -> &'a str {
    let has = |kind: &str, param: &str| {
        table.kind(kind).is_some_and(|kind| kind.fields.iter().any(|field| field.name == param))
    };
    named.split_once('+').filter(|(kind, param)| has(kind, param)).map_or(named, |(kind, _)| kind)
}

pub(crate) fn known_kind(table: &KindTable, kind: &str, name: &Name, at: &Origin) -> Result<(), ConfigError> {
    if table.kind(kind).is_some() {
        return Ok(());
    }
    let known = table.all().into_iter().map(|kind| kind.name.into_owned());
    let hint = match nearest(kind, known) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => "`quittance kinds` lists them all.".into(),
    };
    Err(ConfigError::Unsound {
        name: name.to_string(),
        at: at.clone(),
        problem: format!("is about a kind `{kind}`, which nobody has described"),
        remedy: format!("{hint} For a kind that is new to us, set `kinds.{kind}.new = true`"),
    })
}

fn lives_and_paces(effective: &Effective, table: &KindTable, name: &str) -> Result<(), ConfigError> {
    let Some(kind) = table.kind(name) else { return Ok(()) };
    let own = |key: &str| Name::of(["kinds", name, key]);
    let blame = |keys: [&str; 2], problem: String, remedy: &str| {
        let set = keys.into_iter().map(own).find_map(|name| Some((effective.get(&name)?, name)));
        let (at, name) = match set {
            Some((held, name)) => (held.origin.clone(), name),
            None => (Origin::Default, own(keys[0])),
        };
        Err(ConfigError::Unsound { name: name.to_string(), at, problem, remedy: remedy.into() })
    };
    let show = |span| span::render(span);
    if let Some(life) = kind.life
        && kind.margin > life * 3 / 4
    {
        let problem = format!("makes a margin of {} in a life of {}", show(kind.margin), show(life));
        return blame(["margin", "life"], problem, PROMISED);
    }
    let pace = kind.pace;
    if pace.p50 > pace.p95 {
        let problem = format!("makes p50 = {} longer than p95 = {}", show(pace.p50), show(pace.p95));
        return blame(["p50", "p95"], problem, "set them so that they grow");
    }
    if pace.p95 > pace.p99 {
        let problem = format!("makes p95 = {} longer than p99 = {}", show(pace.p95), show(pace.p99));
        return blame(["p95", "p99"], problem, "set them so that they grow");
    }
    Ok(())
}

/// A key that two callers have would make them one caller: the first tenant, or the operator. A short callback secret could
/// be guessed.
pub fn secrets(config: &Config, wrong: &mut Wrong) {
    let keys: Vec<&CallerKey> =
        config.admin.iter().chain(config.tenants.iter().map(|tenant| &tenant.key)).collect();
    for (at, key) in keys.iter().enumerate() {
        let is_same = |other: &&&CallerKey| matches!((other.plain(), key.plain()), (Some(one), Some(two)) if one == two);
        if let Some(other) = keys[..at].iter().find(is_same) {
            let table = key.name().trim_end_matches(".key");
            let said = Name::parse(table).and_then(|table| config.effective.get(&table.below("name")));
            wrong.keep::<()>(Err(ConfigError::Unsound {
                name: key.name().to_owned(),
                at: said.map_or(Origin::Default, |held| held.origin.clone()),
                problem: format!("is the same as `{}`", other.name()),
                remedy: "give each tenant a key of its own, and the operator another".into(),
            }));
        }
    }
    wrong.keep(config.alerts.check(&config.effective));
    // Only who listens needs it to be there; but what is there must make sense.
    if config.callback_secret.as_ref().is_some_and(Credential::is_set) {
        wrong.keep(config.callback_secret());
    }
}
