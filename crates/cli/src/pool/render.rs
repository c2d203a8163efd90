//! Pools as text.

use crate::output::{cut, harmless, roughly};
use crate::text_table::{self, Cell, cell, styled};
use anstyle::{AnsiColor, Style};
use quittance::SystemClock;
use quittance::lifecycle::{Money, PriceSum};
use quittance_admin::pools::{ShownLevel, ShownPool};
use quittance_config::{decimal, duration};
use quittance_ports::Clock;
use quittance_ports::moment::read_rfc3339;
use std::fmt::Write;
use std::time::Duration;

const NOTE: Style = AnsiColor::Yellow.on_default();
/// What the API shows in place of a secret.
const CONCEALED: &str = "***";

pub(super) fn is_concealed(value: &str) -> bool {
    value.contains(CONCEALED)
}

pub(super) fn param(value: &str) -> String {
    if value == CONCEALED { "(not shown)".into() } else { cut(&harmless(value), 200) }
}

pub(super) fn goal(pool: &ShownPool) -> String {
    match (pool.service_level, pool.size) {
        (Some(ratio), _) => format!("{} of orders", percent(ratio)),
        (None, size) => format!("a fixed size of {}", size.unwrap_or_default()),
    }
}

pub(super) fn budget(pool: &ShownPool, currency: &str) -> String {
    let budget = pool.budget_per_hour.as_ref();
    budget.map_or("no limit".into(), |budget| format!("{} {currency} an hour", harmless(budget)))
}

/// The planned spending in this hour. Refills without a known price are not counted as 0.
fn spent(pool: &ShownPool) -> String {
    let spent = price_sum(pool.spent.money_micros, pool.spent.unpriced);
    let words = spent.words(&pool.currency);
    if pool.spent.incomplete {
        return format!("at least {words}; the store forgot how much");
    }
    match (spent.known(), spent.unpriced) {
        (Some(_), some @ 1..) => format!("{words}; the price of {some} is not known"),
        _ => words,
    }
}

pub(crate) fn price_sum(micros: Option<u64>, unpriced: u64) -> PriceSum {
    PriceSum { sum: Money(micros.unwrap_or_default()), unpriced }
}

pub(super) fn hours(pool: &ShownPool) -> String {
    if pool.hours.is_empty() { "always".into() } else { format!("{} UTC", harmless(&pool.hours.join(", "))) }
}

pub(super) fn min_life(pool: &ShownPool) -> String {
    let life = pool.min_life_s.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    life.map_or("the kind's margin".into(), duration::render)
}

/// A ratio in percent with at most one decimal place, rounded down: only the full ratio gives 100 %.
pub(crate) fn percent(ratio: f64) -> String {
    let text = format!("{:.1}", (ratio * 1000.0 + 1e-6).floor() / 10.0);
    format!("{} %", text.strip_suffix(".0").unwrap_or(&text))
}

/// Why the pool has its level, or none.
fn why(pool: &ShownPool) -> Cell {
    match &pool.level {
        _ if !pool.valid => {
            styled("WHY", NOTE, "not valid here: its kind is not known, or its site is not allowed")
        }
        Some(level) => cell("WHY", harmless(&level.why)),
        None => styled("WHY", NOTE, "no node has handled it yet"),
    }
}

fn cells(pool: &ShownPool) -> [Cell; 9] {
    let of_level = |show: fn(&ShownLevel) -> String| pool.level.as_ref().map_or("-".into(), show);
    [
        cell("NAME", harmless(&pool.name)),
        cell("KIND", harmless(&pool.kind)),
        cell("KEEPS", goal(pool)),
        cell("LEVEL", of_level(|level| level.size.to_string())),
        cell("FRESH", of_level(|level| level.fresh.to_string())),
        cell("COMING", of_level(|level| level.on_their_way.to_string())),
        cell("ORDERS/S", of_level(|level| format!("{:.3}", level.rate_per_s))),
        cell("SERVED", pool.demand.hit_rate.map_or("-".into(), percent)),
        why(pool),
    ]
}

pub(crate) fn as_table(pools: &[ShownPool]) -> String {
    if pools.is_empty() {
        return "There are no pools: `quittance pool set --help` says how to make one.\n".into();
    }
    text_table::render(pools.iter().map(cells))
}

pub(super) fn as_text(pool: &ShownPool) -> String {
    let mut text = String::new();
    let mut line = |name: &str, words: &str| _ = writeln!(text, "{name:<11}{words}");
    line("pool", &format!("{}{}", harmless(&pool.name), if pool.enabled { "" } else { " (off)" }));
    line("tenant", &harmless(&pool.tenant));
    line("kind", &harmless(&pool.kind));
    line("keeps", &goal(pool));
    let (budget, refills) = (budget(pool, &pool.currency), pool.spent.refills);
    line("budget", &format!("{budget}; planned in this hour: {} ({refills} refills)", spent(pool)));
    if let Some(stopped) = &pool.stopped {
        line("stopped", &harmless(stopped));
    }
    line("hours", &hours(pool));
    let usable = pool.usable_ms / 1000;
    line(
        "min life",
        &format!("{}; an answer can be handed out for {usable} s after its solve", min_life(pool)),
    );
    match &pool.level {
        Some(level) if pool.valid => of_level(&mut line, pool, level),
        _ => line("level", &why(pool).text),
    }
    let (served, all) = (pool.demand.served, pool.demand.served.saturating_add(pool.demand.missed));
    let ratio = pool.demand.hit_rate.map_or(String::new(), |ratio| format!(" ({})", percent(ratio)));
    line("served", &format!("{served} of {all} orders{ratio}, since the running nodes started"));
    text.push_str("\nparameters\n");
    for (name, value) in &pool.params {
        _ = writeln!(text, "  {:<18} {}", harmless(name), param(value));
    }
    text
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a float saturates")]
fn of_level(line: &mut impl FnMut(&str, &str), pool: &ShownPool, level: &ShownLevel) {
    line("level", &format!("{}: {}", level.size, harmless(&level.why)));
    let age = read_rfc3339(&level.at).map_or("-".into(), |at| roughly(SystemClock.now().since(at)));
    line("stock", &format!("{} fresh, {} on their way ({age} ago)", level.fresh, level.on_their_way));
    let lead = level.lead_ms as f64 / 1000.0;
    line("demand", &format!("{:.3} orders a second; an answer takes {lead:.1} s to come", level.rate_per_s));
    let Some(price) = pool.price.as_deref().and_then(decimal::money) else {
        return line("price", "not known");
    };
    let hourly = Money((level.rate_per_s * 3600.0 * price.0 as f64).round() as u64);
    let words = format!(
        "{} each, so these orders cost about {} an hour, with a pool or without; answers that expire are extra",
        decimal::with_currency(price, &pool.currency),
        decimal::with_currency(hourly, &pool.currency)
    );
    line("price", &words);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pool() -> ShownPool {
        let pool = json!({
            "name": "login", "tenant": "default", "kind": "turnstile",
            "params": { "sitekey": "0x4A", "proxy": "***", "data": "a\u{1b}[2J" },
            "service_level": 0.955, "budget_per_hour": "2", "budget_per_hour_micros": 2_000_000,
            "hours": ["08:00-20:30"], "enabled": true, "valid": true,
            "level": {
                "at": "2026-11-16T03:34:28.045Z", "size": 4, "why": "because\u{1b}[2J", "fresh": 3, "on_their_way": 1,
                "rate_per_s": 0.12, "lead_ms": 12_500,
            },
            "demand": { "served": 412, "missed": 18, "hit_rate": 0.9581 },
            "spent": { "money": "0.41", "money_micros": 410_000, "refills": 137, "unpriced": 0 },
            "price": "0.00299", "currency": "USD", "usable_ms": 250_000, "kept_here": true,
        });
        serde_json::from_value(pool).unwrap()
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn a_pool_shows_its_goal_its_level_and_its_cost() {
        let text = plain(&as_text(&pool()));
        for words in [
            "95.5 % of orders",
            "2 USD an hour; planned in this hour: 0.41 USD (137 refills)",
            "08:00-20:30 UTC",
            "for 250 s after its solve",
            "4: because",
            "3 fresh, 1 on their way",
            "0.120 orders a second; an answer takes 12.5 s to come",
            "0.00299 USD each, so these orders cost about 1.29168 USD an hour",
            "412 of 430 orders (95.8 %)",
            "proxy              (not shown)",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn a_pool_without_a_level_or_that_is_not_valid_says_so() {
        let mut pool = pool();
        pool.level = None;
        assert!(plain(&as_text(&pool)).contains("no node has handled it"), "{}", as_text(&pool));
        pool.valid = false;
        for text in [as_text(&pool), as_table(&[pool.clone()])] {
            assert!(plain(&text).contains("not valid here"), "{text}");
        }
        assert!(as_table(&[]).contains("no pools"));
    }

    #[test]
    fn a_ratio_below_one_is_not_shown_as_100_percent() {
        for (ratio, text) in
            [(1.0, "100 %"), (0.9999, "99.9 %"), (0.957, "95.7 %"), (0.5, "50 %"), (0.0, "0 %")]
        {
            assert_eq!(percent(ratio), text);
        }
    }
}
