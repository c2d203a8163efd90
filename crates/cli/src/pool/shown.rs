//! Pools as people and scripts read them.

use super::told::{CONCEALED, Pool, is_concealed};
use crate::output::{cut, harmless, roughly};
use crate::table::{self, Cell, PLAIN};
use anstyle::{AnsiColor, Style};
use quittance::gateway::harmless_param;
use quittance::lifecycle::{Money, Timestamp};
use quittance::{Goal, LevelView, PoolSpec, SystemClock, Value as Param};
use quittance_config::{decimal, duration};
use quittance_ports::Clock;
use serde_json::{Map, Value, json};
use std::fmt::Write;

const NOTE: Style = AnsiColor::Yellow.on_default();

/// As for dead letters.
pub(super) fn param(name: &str, value: &Param) -> String {
    match value {
        Param::Text(_) if is_concealed(value) => "(not shown)".into(),
        _ => match harmless_param(name, value) {
            concealed if concealed == CONCEALED => "(not shown)".into(),
            shown => cut(&harmless(&shown), 200),
        },
    }
}

pub(super) fn goal(goal: Goal) -> String {
    match goal {
        Goal::Served { permille } => format!("{} of orders", percent(u64::from(permille))),
        Goal::Fixed { size } => format!("a fixed size of {size}"),
    }
}

pub(super) fn budget(spec: &PoolSpec, currency: &str) -> String {
    spec.budget
        .map_or("no limit".into(), |budget| format!("{} an hour", decimal::with_currency(budget, currency)))
}

/// What it has set out to spend in this hour. Refills without a known price are never counted as 0.
fn spent(pool: &Pool) -> String {
    let words = pool.spent.words(&pool.currency);
    match (pool.spent.known(), pool.spent.unpriced) {
        (Some(_), some @ 1..) => format!("{words}; the price of {some} is not known"),
        _ => words,
    }
}

pub(super) fn hours(spec: &PoolSpec) -> String {
    if spec.hours.is_empty() {
        return "always".into();
    }
    let parts: Vec<String> = spec.hours.iter().map(ToString::to_string).collect();
    format!("{} UTC", parts.join(", "))
}

pub(super) fn min_life(spec: &PoolSpec) -> String {
    spec.min_life.map_or("the kind's margin".into(), duration::render)
}

/// Of thousandths.
pub(crate) fn percent(permille: u64) -> String {
    match permille % 10 {
        0 => format!("{} %", permille / 10),
        tenth => format!("{}.{tenth} %", permille / 10),
    }
}

/// In thousandths; none if nobody has asked.
pub(crate) const fn share(part: u64, all: u64) -> Option<u64> {
    part.saturating_mul(1000).checked_div(all)
}

/// In thousandths of orders that the stock has served.
fn hits(pool: &Pool) -> Option<u64> {
    share(pool.demand.served, pool.demand.served.saturating_add(pool.demand.missed))
}

fn rate(level: &LevelView) -> f64 {
    level.rate_milli as f64 / 1000.0
}

pub(super) fn spec_json(spec: &PoolSpec) -> Map<String, Value> {
    let PoolSpec { name, tenant, kind, params, goal, budget, hours, min_life, is_on } = spec;
    let params: Map<String, Value> =
        params.iter().map(|(name, value)| (name.clone(), param(name, value).into())).collect();
    let (service_level, size) = match goal {
        Goal::Served { permille } => (Some(f64::from(*permille) / 1000.0), None),
        Goal::Fixed { size } => (None, Some(size)),
    };
    let object = json!({
        "name": name, "tenant": tenant, "kind": kind, "params": params,
        "service_level": service_level, "size": size, "budget_per_hour": budget.map(|budget| budget.to_string()),
        "hours": hours.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "min_life_s": min_life.map(|span| span.as_secs_f64()), "enabled": is_on,
    });
    match object {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

pub(crate) fn as_json(pool: &Pool) -> Value {
    let mut object = spec_json(&pool.spec);
    let level = pool.level.as_ref().map(|level| {
        json!({
            "size": level.size, "why": level.why, "fresh": level.fresh, "on_their_way": level.on_their_way,
            "rate_per_s": rate(level), "lead_s": level.lead.as_secs_f64(), "at_ms": level.at.as_millis(),
        })
    });
    let more = json!({
        "makes_sense": pool.makes_sense, "usable_s": pool.usable.as_secs_f64(), "level": level,
        "served": pool.demand.served, "missed": pool.demand.missed,
        "hit_rate": hits(pool).map(|permille| permille as f64 / 1000.0),
        "spent_micros": pool.spent.known().map(|spent| spent.0), "refills": pool.refills, "unpriced": pool.spent.unpriced,
        "price_micros": pool.price.map(|price| price.0), "currency": pool.currency, "stopped": pool.stopped,
    });
    if let Value::Object(more) = more {
        object.extend(more);
    }
    object.into()
}

const HEADINGS: [&str; 9] =
    ["NAME", "KIND", "KEEPS", "LEVEL", "FRESH", "COMING", "ORDERS/S", "SERVED", "WHY"];

fn why(pool: &Pool) -> Cell {
    match &pool.level {
        _ if !pool.makes_sense => (NOTE, "what it asks for makes no sense here any more".into()),
        Some(level) => (PLAIN, harmless(&level.why)),
        None => (NOTE, "no node has looked at it yet".into()),
    }
}

fn cells(pool: &Pool) -> [Cell; 9] {
    let spec = &pool.spec;
    let level = pool.level.as_ref();
    let told = |tell: fn(&LevelView) -> String| (PLAIN, level.map_or("-".into(), tell));
    let plain = |text: String| (PLAIN, text);
    [
        plain(harmless(&spec.name)),
        plain(harmless(&spec.kind)),
        plain(goal(spec.goal)),
        told(|level| level.size.to_string()),
        told(|level| level.fresh.to_string()),
        told(|level| level.on_their_way.to_string()),
        told(|level| format!("{:.3}", rate(level))),
        plain(hits(pool).map_or("-".into(), percent)),
        why(pool),
    ]
}

pub(crate) fn as_table(pools: &[Pool]) -> String {
    if pools.is_empty() {
        return "There are no pools: `quittance pool set --help` says how to make one.\n".into();
    }
    table::render(HEADINGS, pools.iter().map(cells))
}

pub(super) fn as_text(pool: &Pool) -> String {
    let (spec, now) = (&pool.spec, SystemClock.now());
    let mut text = String::new();
    let mut line = |name: &str, words: &str| _ = writeln!(text, "{name:<11}{words}");
    line("pool", &format!("{}{}", harmless(&spec.name), if spec.is_on { "" } else { " (off)" }));
    line("tenant", &harmless(&spec.tenant));
    line("kind", &harmless(&spec.kind));
    line("keeps", &goal(spec.goal));
    line(
        "budget",
        &format!(
            "{}; set out to spend in this one: {} ({} refills)",
            budget(spec, &pool.currency),
            spent(pool),
            pool.refills
        ),
    );
    if let Some(stopped) = &pool.stopped {
        line("stopped", &harmless(stopped));
    }
    line("hours", &hours(spec));
    let usable = pool.usable.as_secs();
    line(
        "min life",
        &format!("{}; an answer can be handed out for {usable} s after its solve", min_life(spec)),
    );
    match &pool.level {
        Some(level) if pool.makes_sense => of_level(&mut line, pool, level, now),
        _ => line("level", &why(pool).1),
    }
    let (served, all) = (pool.demand.served, pool.demand.served.saturating_add(pool.demand.missed));
    let part = hits(pool).map_or(String::new(), |permille| format!(" ({})", percent(permille)));
    line("served", &format!("{served} of {all} orders{part}, since the nodes that are there started"));
    text.push_str("\nparameters\n");
    for (name, value) in &spec.params {
        _ = writeln!(text, "  {:<18} {}", harmless(name), param(name, value));
    }
    text
}

fn of_level(line: &mut impl FnMut(&str, &str), pool: &Pool, level: &LevelView, now: Timestamp) {
    let LevelView { at, size, why, lead, fresh, on_their_way, .. } = level;
    line("level", &format!("{size}: {}", harmless(why)));
    line("stock", &format!("{fresh} fresh, {on_their_way} on their way ({} ago)", roughly(now.since(*at))));
    line(
        "demand",
        &format!("{:.3} orders a second; an answer takes {:.1} s to come", rate(level), lead.as_secs_f64()),
    );
    if pool.price.is_none() {
        line("price", "not known");
    }
    if let Some(price) = pool.price {
        let micros = level.rate_milli.saturating_mul(3600).saturating_mul(price.0) / 1000;
        let words = format!(
            "{} each, so the orders that come cost about {} an hour, with a pool or without; what expires comes on top",
            decimal::with_currency(price, &pool.currency),
            decimal::with_currency(Money(micros), &pool.currency)
        );
        line("price", &words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quittance::{Demand, Hours, PoolDocument, PoolView, Spent};
    use std::time::Duration;

    fn pool() -> Pool {
        Pool::of_store(stored(), SystemClock.now())
    }

    fn stored() -> PoolView {
        let spec = PoolSpec {
            name: "login".into(),
            tenant: "default".into(),
            kind: "turnstile".into(),
            params: [("sitekey".into(), "0x4A".into()), ("proxy".into(), Param::from("u:s3cr3t@h:1"))].into(),
            goal: Goal::Served { permille: 955 },
            budget: Some(Money(2_000_000)),
            hours: vec![Hours { from: 480, to: 1230 }],
            min_life: None,
            is_on: true,
        };
        let now = SystemClock.now();
        let level = LevelView {
            at: now,
            size: 4,
            why: "because\u{1b}[2J".into(),
            rate_milli: 120,
            lead: Duration::from_millis(12_500),
            fresh: 3,
            on_their_way: 1,
        };
        let spent =
            Spent { hour: now.as_millis() / 3_600_000, money: Money(410_000), refills: 137, unpriced: 0 };
        PoolView {
            document: PoolDocument {
                generations: vec![1],
                spent,
                price: Some(Money(2_990)),
                level: Some(level),
                ..PoolDocument::new(spec, now)
            },
            target: Some(quittance::lifecycle::Target([7; 32])),
            demand: Demand { served: 412, missed: 18 },
            is_kept_here: false,
            price: Some(Money(2_990)),
            currency: "USD".into(),
            usable: Duration::from_secs(250),
        }
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn a_pool_says_what_it_keeps_why_and_what_it_costs() {
        let text = plain(&as_text(&pool()));
        for words in [
            "95.5 % of orders",
            "2 USD an hour; set out to spend in this one: 0.41 USD (137 refills)",
            "08:00-20:30 UTC",
            "for 250 s after its solve",
            "4: because",
            "3 fresh, 1 on their way",
            "0.120 orders a second; an answer takes 12.5 s to come",
            "0.00299 USD each, so the orders that come cost about 1.29168 USD an hour",
            "412 of 430 orders (95.8 %)",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(!text.contains('\u{1b}') && !text.contains("s3cr3t"), "{text}");
    }

    #[test]
    fn scripts_get_the_same_as_numbers_and_no_secret() {
        let object = as_json(&pool());
        for (pointer, expected) in [
            ("/service_level", json!(0.955)),
            ("/size", json!(null)),
            ("/budget_per_hour", json!("2")),
            ("/level/size", json!(4)),
            ("/level/rate_per_s", json!(0.12)),
            ("/hit_rate", json!(0.958)),
            ("/spent_micros", json!(410_000)),
            ("/params/sitekey", json!("0x4A")),
        ] {
            assert_eq!(object.pointer(pointer), Some(&expected), "{pointer}");
        }
        assert!(!object.to_string().contains("s3cr3t"));
    }

    #[test]
    fn what_was_spent_in_another_hour_does_not_count_for_this_one() {
        let mut stored = stored();
        stored.document.spent.hour -= 1;
        assert_eq!(as_json(&Pool::of_store(stored, SystemClock.now()))["spent_micros"], 0);
    }

    #[test]
    fn a_pool_that_nobody_has_looked_at_or_that_makes_no_sense_says_so() {
        let mut pool = pool();
        pool.level = None;
        assert!(plain(&as_text(&pool)).contains("no node has looked"), "{}", as_text(&pool));
        pool.makes_sense = false;
        for text in [as_text(&pool), as_table(&[pool.clone()])] {
            assert!(plain(&text).contains("makes no sense here"), "{text}");
        }
        assert!(as_table(&[]).contains("no pools"));
    }
}
