//! Providers as text. A value that is not known is a dash, and never 0.

use crate::output::{harmless, roughly};
use crate::text_table::{self, PLAIN, cell, count, styled};
use anstyle::{AnsiColor, Style};
use quittance::SystemClock;
use quittance::lifecycle::Timestamp;
use quittance_admin::providers::{
    ChangedProvider, ProviderDetail, ProviderList, ShownMeasured, ShownProvider, ShownRouting,
};
use quittance_config::duration;
use quittance_ports::Clock;
use quittance_ports::moment::read_rfc3339;
use std::fmt::Write;
use std::time::Duration;

const GOOD: Style = AnsiColor::Green.on_default();
const NOTE: Style = AnsiColor::Yellow.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const NOT_KNOWN: &str = "-";

fn state(provider: &ShownProvider) -> (Style, String) {
    let style = match provider.state.as_deref() {
        Some("ok") => GOOD,
        Some("throttled" | "drained") => NOTE,
        Some(_) => BAD,
        None => PLAIN,
    };
    (style, provider.state.as_deref().map_or(NOT_KNOWN.to_owned(), harmless))
}

fn balance(provider: &ProviderDetail) -> String {
    provider.balance.as_ref().map_or(NOT_KNOWN.to_owned(), |balance| {
        format!("{} {}", harmless(balance), harmless(&provider.provider.currency))
    })
}

fn threads(provider: &ShownProvider) -> String {
    provider
        .threads
        .map_or(NOT_KNOWN.to_owned(), |threads| format!("{} of {}", threads.working, threads.total))
}

fn service(provider: &ProviderDetail) -> String {
    let names = [&provider.dialect, &provider.protocol];
    let known: Vec<String> = names.into_iter().flatten().map(|name| harmless(name)).collect();
    if known.is_empty() { NOT_KNOWN.to_owned() } else { known.join(", ") }
}

/// Why a provider is in its state; empty if there is nothing to explain.
fn why(detail: &ProviderDetail, now_ms: u64) -> String {
    let ShownProvider { state, mode, fault, until_ms, spacing_ms, .. } = &detail.provider;
    let left = until_ms.map(|until| until.saturating_sub(now_ms)).filter(|left| *left > 0);
    let left = left.map(|left| roughly(Duration::from_millis(left.div_ceil(1000) * 1000)));
    let since = detail.since.as_ref().map(|since| format!(", since {}", harmless(since)));
    match (state.as_deref(), fault) {
        (Some("paused"), Some(fault)) => {
            format!("{} ({}){}", harmless(&fault.code), harmless(&fault.class), since.unwrap_or_default())
        }
        (Some("paused"), None) if mode == "paused" => "a person has paused it".into(),
        (Some("drained"), _) => "finishes its tasks, and gets no more".into(),
        (Some("tripped"), _) => {
            let next = left.map(|left| format!(", tried again in {left}"));
            format!("does not answer{}", next.unwrap_or_default())
        }
        (Some("throttled"), _) => {
            let spacing = spacing_ms.map(|spacing| format!("one submit each {spacing} ms"));
            let until = left.map(|left| format!("none for {left}"));
            let parts: Vec<String> = ["busy".to_owned()].into_iter().chain(spacing).chain(until).collect();
            parts.join(", ")
        }
        _ => String::new(),
    }
}

fn now_ms() -> u64 {
    SystemClock.now().as_millis()
}

pub(super) fn list(list: &ProviderList) -> String {
    if list.providers.is_empty() {
        return "No provider is configured: run `quittance init`.\n".into();
    }
    let now = now_ms();
    let cells = |detail: &ProviderDetail| {
        let (style, word) = state(&detail.provider);
        [
            cell("NAME", harmless(&detail.provider.name)),
            styled("STATE", style, word),
            cell("BALANCE", balance(detail)),
            cell("THREADS", threads(&detail.provider)),
            cell("TASKS", detail.open_tasks.map_or(NOT_KNOWN.to_owned(), |tasks| tasks.to_string())),
            cell("SERVICE", service(detail)),
            cell("WHY", why(detail, now)),
        ]
    };
    let mut text = text_table::render(list.providers.iter().map(cells));
    if list.providers.len() > 1 {
        _ = writeln!(text, "\n{}", routing(&list.routing));
    }
    if list.providers.iter().any(|detail| detail.provider.state.is_none()) {
        text.push_str(
            "\nNo daemon was asked, and only a daemon knows whether a provider answers: see its page or `quittance top`.\n",
        );
    }
    text
}

fn routing(routing: &ShownRouting) -> String {
    let wait = duration::render(Duration::from_millis(routing.busy_wait_ms));
    let others = |what: &str, rules: &std::collections::BTreeMap<String, String>| {
        let rules =
            rules.iter().map(|(name, rule)| format!("; {what} {}: {}", harmless(name), harmless(rule)));
        rules.collect::<String>()
    };
    format!(
        "Routing: {}{}{}. An order waits {wait} for a provider that is only busy.",
        harmless(&routing.rule),
        others("kind", &routing.kinds),
        others("tenant", &routing.tenants)
    )
}

fn line(text: &mut String, name: &str, value: &str) {
    _ = writeln!(text, "{name:<11}{value}");
}

pub(super) fn one(detail: &ProviderDetail) -> String {
    let (provider, mut text) = (&detail.provider, String::new());
    let (style, word) = state(provider);
    let name = harmless(&provider.name);
    let all = |list: &Option<Vec<String>>| {
        list.as_ref().map_or("all".to_owned(), |list| harmless(&list.join(", ")))
    };
    line(&mut text, "name", &name);
    line(&mut text, "service", &service(detail));
    let word = if provider.state.is_some() { word } else { "not known, because no daemon was asked".into() };
    line(&mut text, "state", &format!("{style}{word}{style:#}"));
    let why = why(detail, now_ms());
    if !why.is_empty() {
        line(&mut text, "why", &why);
    }
    line(&mut text, "mode", &harmless(&provider.mode));
    line(&mut text, "currency", &harmless(&provider.currency));
    line(&mut text, "balance", &balance(detail).replace(NOT_KNOWN, "not known"));
    line(&mut text, "spent", &spent_last_day(detail));
    line(&mut text, "ends", &balance_ends(detail, now_ms()));
    if provider.threads.is_some() {
        line(&mut text, "threads", &format!("{} in use", threads(provider)));
    }
    let tasks =
        detail.open_tasks.map_or("not counted: more than 1000 orders are open".into(), |n| n.to_string());
    line(&mut text, "open tasks", &tasks);
    line(&mut text, "kinds", &all(&detail.kinds));
    line(&mut text, "tenants", &all(&detail.tenants));
    line(&mut text, "weight", &detail.weight.to_string());
    if let Some(next) = next_step(provider, &name) {
        line(&mut text, "next", &next);
    }
    if !detail.measured.is_empty() {
        text.push_str("\nMeasured by the daemon since its start:\n");
        text += &measured(&detail.measured);
    }
    text
}

fn spent_last_day(detail: &ProviderDetail) -> String {
    let currency = harmless(&detail.provider.currency);
    match &detail.spent_last_day {
        Some(spent) => format!("{} {currency} in the last 24 hours", harmless(spent)),
        None => "not known, because a cost of the last 24 hours is not known".to_owned(),
    }
}

/// When the balance ends.
fn balance_ends(detail: &ProviderDetail, now_ms: u64) -> String {
    let at = detail.balance_ends.as_deref().and_then(read_rfc3339).map(Timestamp::as_millis);
    match (at, detail.spent_last_day_micros, &detail.balance) {
        (Some(at), ..) => {
            let left = roughly(Duration::from_millis(at.saturating_sub(now_ms)));
            let moment = harmless(detail.balance_ends.as_deref().unwrap_or_default());
            format!("the balance ends in {left}, at {moment}, if spending goes on like this")
        }
        (None, Some(0), Some(_)) => "the balance does not end: nothing was spent".to_owned(),
        _ => "not known".to_owned(),
    }
}

/// Why a provider gets no orders now, and what to do. `None` if it gets orders, or if its state is not known.
pub(super) fn no_orders(detail: &ProviderDetail) -> Option<String> {
    let state = detail.provider.state.as_deref()?;
    let next = next_step(&detail.provider, &harmless(&detail.provider.name))?;
    Some(format!("it is {state} ({}); {next}", why(detail, now_ms())))
}

/// What to do about the state.
fn next_step(provider: &ShownProvider, name: &str) -> Option<String> {
    let words = match (provider.state.as_deref()?, &provider.fault) {
        ("paused", Some(fault)) => format!(
            "fix the account there (`quittance errors --provider {name} {}`), then run `quittance provider resume {name}`",
            harmless(&fault.code)
        ),
        ("paused" | "drained", _) => format!("`quittance provider resume {name}` gives it orders again"),
        ("tripped", _) => "look at its status page and at the network (`quittance doctor`)".into(),
        _ => return None,
    };
    Some(words)
}

fn measured(measured: &[ShownMeasured]) -> String {
    let seconds =
        |ms: Option<u64>| ms.map_or(NOT_KNOWN.to_owned(), |ms| format!("{:.1} s", ms as f64 / 1000.0));
    let success = |permille: Option<u32>| {
        let percent = permille.map(|permille| format!("{:.1} %", f64::from(permille) / 10.0));
        percent.unwrap_or(NOT_KNOWN.to_owned())
    };
    let rows = measured.iter().map(|one| {
        [
            cell("KIND", harmless(&one.kind)),
            count("SOLVES", one.solves),
            cell("P50", seconds(one.p50_ms)),
            cell("P95", seconds(one.p95_ms)),
            cell("P99", seconds(one.p99_ms)),
            cell("SUCCESS", success(one.success_permille)),
        ]
    });
    text_table::render(rows)
}

pub(super) fn changed(changed: &ChangedProvider) -> String {
    let provider = &changed.provider.provider;
    let name = harmless(&provider.name);
    match provider.mode.as_str() {
        "paused" => format!(
            "{name} is paused: its open tasks are still polled, and new orders go to another provider or wait, until \
             `quittance provider resume {name}`\n"
        ),
        "drained" => {
            let tasks = match changed.provider.open_tasks {
                Some(0) => "it has no open task".to_owned(),
                Some(tasks) => format!("it finishes {tasks} open tasks"),
                None => "it finishes its open tasks".to_owned(),
            };
            format!("{name} is drained: {tasks}, and gets no more until `quittance provider resume {name}`\n")
        }
        _ => resumed(&format!("{name} is"), changed.continued),
    }
}

pub(super) fn resumed(who: &str, continued: usize) -> String {
    let orders = match continued {
        0 => {
            "no order was held for its account, and orders that wait for their next try go on then".to_owned()
        }
        1 => "1 order continues".to_owned(),
        orders => format!("{orders} orders continue"),
    };
    format!("{who} resumed: {orders}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn detail(change: &Value) -> ProviderDetail {
        let mut detail = json!({
            "name": "main", "mode": "active", "state": "ok", "until_ms": null, "spacing_ms": null, "fault": null,
            "since_ms": null, "since": null, "currency": "USD", "balance": null, "balance_micros": null,
            "threads": null, "protocol": "classic", "dialect": "2captcha", "open_tasks": null, "kinds": null,
            "tenants": null, "weight": 1, "measured": [], "spent_last_day": null, "spent_last_day_micros": null,
            "balance_ends": null,
        });
        for (name, value) in change.as_object().unwrap() {
            detail[name] = value.clone();
        }
        serde_json::from_value(detail).unwrap()
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    fn listed(providers: Vec<ProviderDetail>) -> String {
        let routing = json!({ "rule": "ordered", "busy_wait_ms": 5000, "kinds": { "image": "cheapest" }, "tenants": {} });
        plain(&list(&ProviderList { routing: serde_json::from_value(routing).unwrap(), providers }))
    }

    #[test]
    fn what_is_not_known_is_a_dash_and_never_zero() {
        let text = listed(vec![detail(&json!({ "state": null }))]);
        assert!(
            text.lines()
                .nth(1)
                .unwrap()
                .starts_with("main  -      -        -        -      2captcha, classic"),
            "{text}"
        );
        assert!(text.contains("No daemon was asked"), "{text}");
        assert!(!text.contains("Routing"), "one provider needs none: {text}");
        assert!(one(&detail(&json!({ "state": null }))).contains("no daemon was asked"));
        let shown = plain(&one(&detail(&json!({}))));
        assert!(shown.contains("balance    not known\n") && shown.contains("kinds      all\n"), "{shown}");
    }

    #[test]
    fn each_state_says_why_and_what_to_do_next() {
        let blocked = json!({ "state": "paused", "fault": { "class": "no_funds", "code": "ERROR_ZERO_BALANCE" },
            "since": "2026-11-16T14:00:00.000Z" });
        let in_two_minutes = now_ms() + 119_500;
        for (change, words, next) in [
            (
                blocked,
                "ERROR_ZERO_BALANCE (no_funds), since 2026-11-16T14",
                "then run `quittance provider resume main`",
            ),
            (
                json!({ "state": "paused", "mode": "paused" }),
                "a person has paused it",
                "resume main` gives it orders",
            ),
            (
                json!({ "state": "drained", "mode": "drained" }),
                "gets no more",
                "resume main` gives it orders",
            ),
            (
                json!({ "state": "tripped", "until_ms": in_two_minutes }),
                "does not answer, tried again in ",
                "`quittance doctor`",
            ),
            (json!({ "state": "throttled", "spacing_ms": 250 }), "busy, one submit each 250 ms", ""),
        ] {
            let detail = detail(&change);
            let text = plain(&one(&detail));
            assert!(text.contains(words) && text.contains(next), "{text}");
            assert!(listed(vec![detail]).contains(words));
        }
    }

    #[test]
    fn several_providers_are_listed_with_the_rule_that_chooses() {
        let spare = detail(
            &json!({ "name": "spare", "balance": "12.5", "open_tasks": 3, "threads": { "total": 5, "working": 2 } }),
        );
        let text = listed(vec![detail(&json!({})), spare]);
        assert!(text.contains("spare  ok     12.5 USD  2 of 5   3"), "{text}");
        assert!(text.contains("Routing: ordered; kind image: cheapest. An order waits 5s for"), "{text}");
    }

    #[test]
    fn measured_times_are_shown_by_kind() {
        let measured = json!([{ "kind": "image", "solves": 40, "p50_ms": 4200, "p95_ms": 9000, "p99_ms": 12_000, "success_permille": 987 },
            { "kind": "turnstile", "solves": 3, "p50_ms": null, "p95_ms": null, "p99_ms": null, "success_permille": null }]);
        let text = plain(&one(&detail(&json!({ "measured": measured }))));
        assert!(text.contains("image      40      4.2 s  9.0 s  12.0 s  98.7 %"), "{text}");
        assert!(text.contains("turnstile  3       -      -      -       -"), "{text}");
    }

    #[test]
    fn the_end_of_a_balance_is_shown_as_far_as_it_is_known() {
        let shown = |change: &Value| plain(&one(&detail(change)));
        let text = shown(&json!({}));
        assert!(
            text.contains("spent      not known, because") && text.contains("ends       not known\n"),
            "{text}"
        );
        let quiet = json!({ "balance": "12.5", "spent_last_day": "0", "spent_last_day_micros": 0 });
        assert!(shown(&quiet).contains("ends       the balance does not end: nothing was spent\n"));
        let at = quittance_ports::moment::rfc3339(Timestamp::from_millis(now_ms() + 10_790_000));
        let ends = json!({ "balance": "12.5", "spent_last_day": "100", "spent_last_day_micros": 100_000_000, "balance_ends": at });
        let text = shown(&ends);
        assert!(text.contains("spent      100 USD in the last 24 hours\n"), "{text}");
        assert!(text.contains("ends       the balance ends in 2 h, at 2"), "{text}");
    }

    #[test]
    fn a_change_says_what_follows() {
        let text =
            |change: &Value, continued| changed(&ChangedProvider { provider: detail(change), continued });
        assert!(text(&json!({ "mode": "paused", "state": "paused" }), 0).starts_with("main is paused: "));
        let drained = text(&json!({ "mode": "drained", "state": "drained", "open_tasks": 2 }), 0);
        assert!(drained.contains("it finishes 2 open tasks"), "{drained}");
        assert_eq!(text(&json!({}), 7), "main is resumed: 7 orders continue\n");
        assert_eq!(
            resumed("all providers are", 0),
            "all providers are resumed: no order was held for its account, and orders that wait for their next try go on then\n"
        );
    }

    #[test]
    fn a_code_of_the_provider_moves_no_cursor() {
        let evil = json!({ "state": "paused", "fault": { "class": "no_funds", "code": "\u{1b}[2J" } });
        assert!(!one(&detail(&evil)).contains("\u{1b}[2J"));
    }
}
