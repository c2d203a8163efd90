//! The lines of each part: equal on the screen, in a window of it, and on a pipe. Control characters from outside are shown as text.

use super::feed::Missing;
use super::snapshot::{Alert, Node, Pool, Provider, Snapshot};
use crate::output::{harmless, roughly};
use quittance_config::Scheme;
use quittance_lifecycle::{Money, PriceSum};
use std::time::Duration;

/// How a line is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tone {
    Plain,
    Good,
    Uneasy,
    Bad,
}

pub(super) type Line = (Tone, String);

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The phases in which an order is open, in the order of its life.
const PHASES: [&str; 5] = ["queued", "held", "submitting", "solving", "in_doubt"];

fn plain(text: impl Into<String>) -> Line {
    (Tone::Plain, text.into())
}

fn named(picture: &Snapshot, amount: Money) -> String {
    match picture.currency.as_str() {
        "" => amount.to_string(),
        currency => format!("{amount} {}", harmless(currency)),
    }
}

/// What was spent, saved or wasted. A sum that lacks prices says so, and is never 0 because of them.
fn money(picture: &Snapshot, what: &str, line: &str, unpriced: &str) -> String {
    let is_known = picture.today.get(line).is_none_or(Option::is_some);
    let unpriced = if is_known { picture.today(unpriced) } else { 1 };
    let sum = PriceSum { sum: Money(picture.today(line)), unpriced };
    match sum.known() {
        None => format!("{what}: price not known"),
        Some(_) => format!("{what} {}", sum.words(&harmless(&picture.currency))),
    }
}

fn spent(picture: &Snapshot) -> Line {
    plain(money(picture, "spent", "cost_micros", "unpriced"))
}

fn saved(picture: &Snapshot) -> Line {
    (Tone::Good, money(picture, "saved", "saved_micros", ""))
}

fn wasted(picture: &Snapshot) -> Line {
    plain(money(picture, "wasted", "wasted_micros", "wasted_unpriced"))
}

/// The heading: as much as fits, and first what is wrong.
pub(super) fn heading(picture: &Snapshot, width: usize) -> Line {
    let store = &picture.store;
    let kind = harmless(store.kind.as_deref().unwrap_or("store"));
    let (open, dead, alerts) = (picture.orders.open, picture.orders.dead, picture.standing().count());
    let counts = format!("open {open}, dead {dead}, alerts {alerts}");
    let (tone, long, short) = match &picture.node {
        _ if !store.is_up => {
            let away = format!("{kind} AWAY, figures are old");
            (Tone::Bad, format!("{away}: quittance {VERSION}, {counts}"), away)
        }
        None if kind == Scheme::Embedded.word() => {
            let none = "NO DAEMON RUNS on this store";
            (
                Tone::Uneasy,
                format!("quittance {VERSION}, {none} ({kind}), {counts}"),
                format!("{none}, {counts}"),
            )
        }
        None => {
            (Tone::Plain, format!("quittance {VERSION}, {kind} up, {counts}"), format!("{counts}, {kind} up"))
        }
        Some(node) => {
            let up = roughly(Duration::from_secs(node.uptime_s));
            let (version, name) = (harmless(&node.version), harmless(&node.name));
            let long = format!("quittance {version} {name} up {up}, {kind} up, {counts}");
            (Tone::Plain, long, format!("{counts}, {kind} up"))
        }
    };
    (tone, if long.chars().count() <= width { long } else { short })
}

/// The heading while no snapshot arrives.
pub(super) fn heading_without(missing: &Missing, silent: Duration, has_picture: bool) -> Line {
    let text = match missing {
        _ if has_picture => {
            format!("THE DAEMON DOES NOT ANSWER since {}: figures are old", roughly(silent))
        }
        Missing::NoDaemon => format!("quittance {VERSION}: NO DAEMON RUNS on this store"),
        Missing::CliError(_) => format!("quittance {VERSION}: NO ANSWER"),
    };
    (Tone::Bad, text)
}

/// Every phase and how many are in it, the dead last.
fn phases(picture: &Snapshot) -> Vec<(Tone, &'static str, u64)> {
    let orders = &picture.orders;
    let counted = PHASES.map(|phase| {
        let count = orders.phases.get(phase).copied().unwrap_or_default();
        let is_uneasy = count > 0 && matches!(phase, "held" | "in_doubt");
        (if is_uneasy { Tone::Uneasy } else { Tone::Plain }, phase, count)
    });
    let tone = if orders.dead > 0 { Tone::Bad } else { Tone::Plain };
    counted.into_iter().chain([(tone, "dead", orders.dead)]).collect()
}

pub(super) fn orders(picture: &Snapshot) -> Vec<Line> {
    let about = |phase| if picture.orders.is_sampled && phase != "dead" { "about " } else { "" };
    let line = |(tone, phase, count)| (tone, format!("{phase:<11}{}{count}", about(phase)));
    phases(picture).into_iter().map(line).collect()
}

/// The orders in few columns.
pub(super) fn orders_short(picture: &Snapshot) -> Vec<Line> {
    let about = |phase| if picture.orders.is_sampled && phase != "dead" { "~" } else { "" };
    let line = |(tone, phase, count)| (tone, format!("{phase} {}{count}", about(phase)));
    phases(picture).into_iter().map(line).collect()
}

fn rate(picture: &Snapshot, line: &str) -> String {
    picture.rate(line).map_or("-".into(), |rate| format!("{rate:.1}"))
}

/// A second, what matters most first.
pub(super) fn rates_short(picture: &Snapshot) -> Vec<Line> {
    let lines = ["asked", "joined", "paid", "solved", "cached", "from_stock"];
    let name = |line| if line == "from_stock" { "stock" } else { line };
    lines.map(|line| plain(format!("{} {}", name(line), rate(picture, line)))).into()
}

pub(super) fn took(picture: &Snapshot) -> Vec<Line> {
    let ms = |value: Option<u64>| value.map_or("-".into(), |ms| format!("{:.1} s", ms as f64 / 1000.0));
    let latency = &picture.latency_ms;
    [("p50", latency.p50), ("p95", latency.p95), ("p99", latency.p99)]
        .map(|(name, value)| plain(format!("{name} {}", ms(value))))
        .into()
}

pub(super) fn throughput(picture: &Snapshot) -> Vec<Line> {
    let rate = |line: &str| rate(picture, line) + if picture.rate(line).is_some() { "/s" } else { "" };
    let took: Vec<_> = took(picture).into_iter().map(|(_, text)| text).collect();
    vec![
        plain(format!("asked {}  joined {}  cached {}", rate("asked"), rate("joined"), rate("cached"))),
        plain(format!("stock {}  paid {}  solved {}", rate("from_stock"), rate("paid"), rate("solved"))),
        plain(format!("took {}", took.join("  "))),
    ]
}

fn account(picture: &Snapshot) -> Vec<Line> {
    let balance =
        picture.balance.balance_micros.map_or("not known".into(), |micros| named(picture, Money(micros)));
    let threads = picture.balance.threads.as_ref();
    let threads = threads.map(|threads| format!("threads {} of {}", threads.working, threads.total));
    [format!("balance {balance}")].into_iter().chain(threads).map(plain).collect()
}

pub(super) fn today(picture: &Snapshot) -> Vec<Line> {
    let (asked, solved) = (picture.today("asked"), picture.today("solved"));
    let mut lines = vec![
        plain(format!("asked {asked}  solved {solved}")),
        plain(format!("failed {}", picture.today("failed"))),
        spent(picture),
        saved(picture),
        wasted(picture),
    ];
    lines.extend(account(picture));
    lines
}

/// The sums of today, the money first.
pub(super) fn today_short(picture: &Snapshot) -> Vec<Line> {
    let money = [spent(picture), saved(picture)];
    let counts = ["asked", "solved", "failed"].map(|line| plain(format!("{line} {}", picture.today(line))));
    money.into_iter().chain(account(picture)).chain(counts).chain([wasted(picture)]).collect()
}

fn provider(provider: &Provider, now_ms: u64) -> Line {
    let (tone, state) = match provider.state.as_str() {
        "ok" => (Tone::Good, "ok".to_owned()),
        "throttled" => (Tone::Uneasy, "throttled".to_owned()),
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

pub(super) fn providers(picture: &Snapshot) -> Vec<Line> {
    if picture.node.is_none() {
        return vec![plain("not known here: only a node that works knows")];
    }
    picture.providers.iter().map(|found| provider(found, picture.at_ms)).collect()
}

pub(super) fn pools(picture: &Snapshot) -> Vec<Line> {
    picture.pools.iter().map(pool).collect()
}

pub(super) fn nodes(picture: &Snapshot) -> Vec<Line> {
    picture.nodes.iter().map(node).collect()
}

pub(super) fn alerts(picture: &Snapshot) -> Vec<Line> {
    picture.standing().map(alert).collect()
}

/// All of it, where there is no screen.
pub(super) fn page(picture: &Snapshot) -> String {
    let mut page = format!("{}\n", heading(picture, usize::MAX).1);
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
