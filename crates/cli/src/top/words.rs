//! What is said of each part, in lines: the same on the screen, in a window of it, and on a pipe. Whatever came from outside stands
//! in them as text.

use super::picture::{Alert, Node, Picture, Pool, Provider, UNKNOWN};
use crate::output::{harmless, roughly};
use quittance_lifecycle::Money;
use std::time::Duration;

/// How a line is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Good,
    Uneasy,
    Bad,
}

pub(super) type Line = (Tone, String);

/// The phases in which an order is open, in the order of its life.
const PHASES: [&str; 5] = ["queued", "held", "submitting", "solving", "unsure"];

fn plain(text: impl Into<String>) -> Line {
    (Tone::Plain, text.into())
}

fn money(picture: &Picture, line: &str) -> String {
    Money(picture.today(line)).to_string()
}

pub(super) fn heading(picture: &Picture) -> Line {
    let (node, store) = (&picture.node, &picture.store);
    let kind = store.kind.as_deref().unwrap_or("store");
    let up = roughly(Duration::from_secs(node.uptime_s));
    let text = format!(
        "quittance {} {} up {up}, {} {}, open {}, dead {}, alerts {}",
        harmless(&node.version),
        harmless(&node.name),
        harmless(kind),
        if store.is_up { "up" } else { "AWAY" },
        picture.orders.open,
        picture.orders.dead,
        picture.standing().count()
    );
    (if store.is_up { Tone::Plain } else { Tone::Bad }, text)
}

pub(super) fn orders(picture: &Picture) -> Vec<Line> {
    let orders = &picture.orders;
    let about = if orders.is_sampled { "about " } else { "" };
    let mut lines = Vec::new();
    for phase in PHASES {
        let count = orders.phases.get(phase).copied().unwrap_or_default();
        let is_uneasy = count > 0 && matches!(phase, "held" | "unsure");
        lines
            .push((if is_uneasy { Tone::Uneasy } else { Tone::Plain }, format!("{phase:<11}{about}{count}")));
    }
    let tone = if orders.dead > 0 { Tone::Bad } else { Tone::Plain };
    lines.push((tone, format!("{:<11}{}", "dead", orders.dead)));
    lines
}

pub(super) fn throughput(picture: &Picture) -> Vec<Line> {
    let rate = |line: &str| format!("{:.1}", picture.rate(line));
    let ms = |value: Option<u64>| value.map_or("-".into(), |ms| format!("{:.1} s", ms as f64 / 1000.0));
    let latency = &picture.latency_ms;
    vec![
        plain(format!("asked {}/s  joined {}/s  cached {}/s", rate("asked"), rate("joined"), rate("cached"))),
        plain(format!(
            "stock {}/s  paid {}/s  solved {}/s",
            rate("from_stock"),
            rate("paid"),
            rate("solved")
        )),
        plain(format!("took p50 {}  p95 {}  p99 {}", ms(latency.p50), ms(latency.p95), ms(latency.p99))),
    ]
}

pub(super) fn today(picture: &Picture) -> Vec<Line> {
    let (asked, solved) = (picture.today("asked"), picture.today("solved"));
    let mut lines = vec![
        plain(format!("asked {asked}  solved {solved}")),
        plain(format!("failed {}", picture.today("failed"))),
        plain(format!("spent {}", money(picture, "cost_micros"))),
        (Tone::Good, format!("saved {}", money(picture, "saved_micros"))),
        plain(format!("wasted {}", money(picture, "wasted_micros"))),
    ];
    if let Some(micros) = picture.balance.balance_micros {
        lines.push(plain(format!("balance {}", Money(micros))));
    }
    if let Some(threads) = &picture.balance.threads {
        lines.push(plain(format!("threads {} of {}", threads.working, threads.total)));
    }
    lines
}

fn provider(provider: &Provider, now_ms: u64) -> Line {
    // An open circuit is a broken one to many: what is well is said to be so.
    let (tone, state) = match provider.state.as_str() {
        "open" => (Tone::Good, "ok".to_owned()),
        UNKNOWN => (Tone::Plain, "not known here: a daemon knows".to_owned()),
        state @ ("slowed" | "busy") => (Tone::Uneasy, state.to_owned()),
        state => (Tone::Bad, harmless(state)),
    };
    let mut text = format!("{} {state}", harmless(&provider.name));
    if let Some(spacing) = provider.spacing_ms {
        text += &format!(", one each {spacing} ms");
    }
    if let Some(left) = provider.until_ms.map(|until| until.saturating_sub(now_ms)).filter(|left| *left > 0) {
        text += &format!(", tried again in {} s", left.div_ceil(1000));
    }
    if let Some(fault) = &provider.fault {
        text += &format!(": {}", harmless(&fault.code));
    }
    (tone, text)
}

fn pool(pool: &Pool) -> Line {
    let name = harmless(&pool.name);
    if !pool.enabled {
        return plain(format!("{name} off"));
    }
    let hits = pool.demand.hit_rate.map_or("-".into(), |rate| format!("{:.0} %", rate * 100.0));
    match &pool.level {
        Some(level) => {
            let tone = if level.size > 0 && level.fresh == 0 { Tone::Uneasy } else { Tone::Plain };
            let (fresh, size, coming) = (level.fresh, level.size, level.on_their_way);
            (tone, format!("{name} {fresh} of {size}, {coming} coming, served {hits}"))
        }
        None => plain(format!("{name} not looked at yet")),
    }
}

fn node(node: &Node) -> Line {
    let mut text = format!("{}{}", if node.is_here { "* " } else { "  " }, harmless(&node.name));
    text += &format!(" in hand {}, answered {}", node.in_hand, node.answered);
    let flags = [
        (!node.is_alive, "SILENT"),
        (node.is_paused, "paused"),
        (node.store_was_away, "store away"),
        (node.has_spilled, "spilled"),
    ];
    let flags: Vec<_> = flags.into_iter().filter(|(is_so, _)| *is_so).map(|(_, word)| word).collect();
    let tone = if flags.is_empty() { Tone::Plain } else { Tone::Bad };
    (tone, if flags.is_empty() { text } else { format!("{text}, {}", flags.join(", ")) })
}

fn alert(alert: &Alert) -> Line {
    let subject =
        if alert.subject.is_empty() { String::new() } else { format!(" {}", harmless(&alert.subject)) };
    let seen = if alert.seen_at.is_some() { " (seen)" } else { "" };
    let tone = if alert.is_grave { Tone::Bad } else { Tone::Uneasy };
    (tone, format!("{}{subject}{seen}: {}", harmless(&alert.rule), harmless(&alert.words)))
}

pub(super) fn providers(picture: &Picture) -> Vec<Line> {
    picture.providers.iter().map(|found| provider(found, picture.at_ms)).collect()
}

pub(super) fn pools(picture: &Picture) -> Vec<Line> {
    picture.pools.iter().map(pool).collect()
}

pub(super) fn nodes(picture: &Picture) -> Vec<Line> {
    picture.nodes.iter().map(node).collect()
}

pub(super) fn alerts(picture: &Picture) -> Vec<Line> {
    picture.standing().map(alert).collect()
}

/// All of it, where there is no screen.
pub(super) fn page(picture: &Picture) -> String {
    let mut page = format!("{}\n", heading(picture).1);
    for (title, lines) in [
        ("orders", orders(picture)),
        ("throughput", throughput(picture)),
        ("today", today(picture)),
        ("providers", providers(picture)),
        ("pools", pools(picture)),
        ("nodes", nodes(picture)),
        ("alerts", alerts(picture)),
    ] {
        if !lines.is_empty() {
            page += &format!("\n{title}\n");
            lines.iter().for_each(|(_, line)| page += &format!("  {line}\n"));
        }
    }
    page
}
