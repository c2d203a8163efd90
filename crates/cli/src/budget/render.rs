//! Budgets as text. An amount that is not known is a dash, and never 0.

use crate::output::{harmless, roughly};
use crate::text_table::{self, PLAIN, cell, styled};
use anstyle::{AnsiColor, Style};
use quittance::SystemClock;
use quittance_admin::budgets::{BudgetList, ShownBudget};
use quittance_ports::Clock;
use std::fmt::Write;
use std::time::Duration;

const GOOD: Style = AnsiColor::Green.on_default();
const NOTE: Style = AnsiColor::Yellow.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const NOT_KNOWN: &str = "-";

/// Whether the budget allows purchases, and whether it will be used up before its period ends.
fn state(budget: &ShownBudget) -> (Style, &'static str) {
    match (&budget.stopped, budget.runs_out_ms) {
        (Some(_), _) => (BAD, "stopped"),
        (None, Some(_)) => (NOTE, "runs out"),
        (None, None) => (GOOD, "ok"),
    }
}

/// The time until a moment, as people read it.
fn from_now(at_ms: u64, now_ms: u64) -> String {
    match at_ms.saturating_sub(now_ms) {
        0 => "now".to_owned(),
        left => format!("in {}", roughly(Duration::from_millis(left.div_ceil(1000) * 1000))),
    }
}

fn now_ms() -> u64 {
    SystemClock.now().as_millis()
}

/// What the budget counts, in words.
fn scope(budget: &ShownBudget) -> String {
    let parts = [
        ("tenant", &budget.tenant),
        ("target", &budget.target),
        ("kind", &budget.kind),
        ("provider", &budget.provider),
        ("pool", &budget.pool),
    ];
    let parts =
        parts.into_iter().filter_map(|(what, name)| Some(format!("{what} {}", harmless(name.as_ref()?))));
    let parts: Vec<String> = parts.collect();
    match parts.is_empty() {
        true if budget.hedges => "second purchases of urgent orders".to_owned(),
        true => "all orders".to_owned(),
        false => parts.join(", "),
    }
}

pub(super) fn list(list: &BudgetList) -> String {
    if list.budgets.is_empty() {
        return "No budget is configured: add a `[[budget]]`, see docs/budgets.md.\n".into();
    }
    let now = now_ms();
    let rows = list.budgets.iter().map(|budget| {
        let (style, word) = state(budget);
        let amount = |amount: &Option<String>| amount.as_deref().map_or(NOT_KNOWN.to_owned(), harmless);
        [
            cell("NAME", harmless(&budget.name)),
            styled("STATE", style, word),
            cell("SPENT", amount(&budget.spent)),
            cell("RESERVED", harmless(&budget.reserved)),
            cell("LEFT", harmless(&budget.left)),
            cell("LIMIT", format!("{} {}", harmless(&budget.limit), harmless(&budget.currency))),
            cell("PERIOD", harmless(&budget.period)),
            cell("ENDS", from_now(budget.ends_ms, now)),
            cell("RUNS OUT", forecast_cell(budget, now)),
            cell("COUNTS", scope(budget)),
        ]
    });
    let mut text = text_table::render(rows);
    for budget in &list.budgets {
        if let Some(why) = &budget.stopped {
            _ = writeln!(text, "\n{} is stopped: {}", harmless(&budget.name), harmless(why));
        }
    }
    text
}

/// What happens to an order that the budget does not allow.
fn at_limit(word: &str) -> &'static str {
    match word {
        "refuse" => "new orders are refused, and accepted ones become dead letters",
        "wait" => "orders wait for the next period, up to their deadline",
        "cheaper_provider" => "orders go to a provider whose price fits into the rest; else they are refused",
        _ => "this version of the command does not know it",
    }
}

fn line(text: &mut String, name: &str, value: &str) {
    _ = writeln!(text, "{name:<11}{value}");
}

pub(super) fn one(budget: &ShownBudget) -> String {
    let (mut text, now) = (String::new(), now_ms());
    let currency = harmless(&budget.currency);
    let (style, word) = state(budget);
    line(&mut text, "name", &harmless(&budget.name));
    line(&mut text, "counts", &scope(budget));
    line(&mut text, "state", &format!("{style}{word}{style:#}{PLAIN}"));
    if let Some(why) = &budget.stopped {
        line(&mut text, "why", &harmless(why));
    }
    line(
        &mut text,
        "limit",
        &format!("{} {currency} each {}", harmless(&budget.limit), harmless(&budget.period)),
    );
    line(&mut text, "at limit", &format!("{}: {}", harmless(&budget.at_limit), at_limit(&budget.at_limit)));
    let period = format!("from {} to {}", harmless(&budget.begins), harmless(&budget.ends));
    line(&mut text, "period", &format!("{period}, ends {}", from_now(budget.ends_ms, now)));
    let spent = budget.spent.as_ref().map(|spent| format!("{} {currency}", harmless(spent)));
    line(&mut text, "spent", &spent.unwrap_or_else(|| "not known".to_owned()));
    if budget.unpriced > 0 {
        let words = "attempts whose cost is not known count at the price that was expected";
        line(&mut text, "unpriced", &format!("{} {words}", budget.unpriced));
    }
    line(&mut text, "reserved", &format!("{} {currency}", harmless(&budget.reserved)));
    line(&mut text, "left", &format!("{} {currency}", harmless(&budget.left)));
    line(&mut text, "runs out", &forecast(budget, now));
    text
}

/// When the limit is reached, if spending goes on as in this period.
fn forecast(budget: &ShownBudget, now: u64) -> String {
    match (budget.runs_out_ms, &budget.runs_out) {
        _ if budget.stopped.is_some() => "nothing is bought now".to_owned(),
        (Some(at), Some(moment)) => {
            format!("{}, at {}, at the spending of this period", from_now(at, now), harmless(moment))
        }
        _ if budget.spent_micros.is_none() => "not known".to_owned(),
        _ if budget.spent_micros == Some(0) => "not in this period: nothing is spent".to_owned(),
        _ => "not in this period, at the spending of this period".to_owned(),
    }
}

/// When the limit is reached, in a few words.
fn forecast_cell(budget: &ShownBudget, now: u64) -> String {
    match (&budget.stopped, budget.runs_out_ms) {
        (Some(_), _) => "now".to_owned(),
        (None, Some(at)) => from_now(at, now),
        (None, None) => NOT_KNOWN.to_owned(),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// A budget with these fields, and others that do not matter.
    pub(crate) fn budget(change: &Value) -> ShownBudget {
        let mut budget = json!({
            "name": "day", "tenant": null, "target": null, "kind": null, "provider": null, "pool": null, "hedges": false,
            "period": "day", "at_limit": "wait", "currency": "USD", "limit": "25", "limit_micros": 25_000_000,
            "spent": "5", "spent_micros": 5_000_000, "reserved": "1.5", "reserved_micros": 1_500_000,
            "left": "18.5", "left_micros": 18_500_000, "unpriced": 0, "begins": "2026-11-19T00:00:00.000Z",
            "ends": "2026-11-20T00:00:00.000Z", "ends_ms": now_ms() + 7_190_000, "stopped": null,
            "runs_out": null, "runs_out_ms": null,
        });
        for (name, value) in change.as_object().unwrap() {
            budget[name] = value.clone();
        }
        serde_json::from_value(budget).unwrap()
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn each_budget_has_its_amounts_and_what_it_counts() {
        let team = json!({ "name": "team-a", "tenant": "team-a", "kind": "image", "runs_out_ms": now_ms() + 119_500,
            "runs_out": "2026-11-19T22:00:00.000Z" });
        let text = plain(&list(&BudgetList { budgets: vec![budget(&json!({})), budget(&team)] }));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[1],
            "day     ok        5      1.5       18.5  25 USD  day     in 119 min  -         all orders"
        );
        assert!(
            lines[2].starts_with("team-a  runs out  5 ") && lines[2].ends_with("tenant team-a, kind image"),
            "{text}"
        );
        assert!(lines[2].contains("in 2 min"), "{text}");
        assert!(list(&BudgetList { budgets: Vec::new() }).contains("add a `[[budget]]`"));
    }

    #[test]
    fn a_stopped_budget_says_why_and_what_is_not_known_is_a_dash() {
        let stopped = json!({ "spent": null, "spent_micros": null, "unpriced": 2,
            "stopped": "the price of the order is not known" });
        let text = plain(&list(&BudgetList { budgets: vec![budget(&stopped)] }));
        assert!(
            text.lines().nth(1).unwrap().starts_with("day   stopped  -      1.5       18.5  25 USD"),
            "{text}"
        );
        assert!(text.contains("\nday is stopped: the price of the order is not known\n"), "{text}");
        let text = plain(&one(&budget(&stopped)));
        for words in [
            "state      stopped\n",
            "why        the price of the order is not known\n",
            "unpriced   2 attempts whose cost",
            "spent      not known\n",
            "runs out   nothing is bought now\n",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }

    #[test]
    fn one_budget_is_shown_with_its_period_what_happens_at_the_limit_and_its_forecast() {
        let text = plain(&one(&budget(&json!({}))));
        for words in [
            "counts     all orders\n",
            "limit      25 USD each day\n",
            "at limit   wait: orders wait for the next period",
            "period     from 2026-11-19T00:00:00.000Z to 2026-11-20T00:00:00.000Z, ends in 119 min\n",
            "spent      5 USD\n",
            "reserved   1.5 USD\n",
            "left       18.5 USD\n",
            "runs out   not in this period",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(!text.contains("unpriced"), "{text}");
        let soon = json!({ "runs_out_ms": now_ms() + 3_590_000, "runs_out": "2026-11-19T22:00:00.000Z" });
        let text = plain(&one(&budget(&soon)));
        assert!(
            text.contains("runs out   in 59 min, at 2026-11-19T22:00:00.000Z, at the spending"),
            "{text}"
        );
        let evil = budget(&json!({ "stopped": "\u{1b}[2J" }));
        assert!(!plain(&one(&evil)).contains('\u{1b}'));
    }
}
