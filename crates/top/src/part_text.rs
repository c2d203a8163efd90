//! The lines of each part, used on a full screen, in a window, and for output to a pipe. Control characters from
//! outside are shown as text.

use crate::{Missing, SnapshotSource, TakenSnapshot};
use quittance_admin::alerts::ShownAlert;
use quittance_admin::live::{ShownPeer, ShownRates};
use quittance_admin::pools::PoolInShort;
use quittance_admin::providers::ShownProvider;
use quittance_gateway::harmless;
use quittance_lifecycle::{Money, PriceSum};
use quittance_ports::moment::roughly;
use std::time::Duration;

/// The tone of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tone {
    Plain,
    Good,
    Uneasy,
    Bad,
}

pub(crate) type TonedLine = (Tone, String);

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn plain(text: impl Into<String>) -> TonedLine {
    (Tone::Plain, text.into())
}

/// What was spent, saved or wasted. If prices are missing, the sum says so, and never counts them as 0.
fn money(taken: &TakenSnapshot, what: &str, line: &str, unpriced: &str) -> String {
    let is_known = taken.snapshot.today.get(line).is_none_or(Option::is_some);
    let unpriced = if is_known { taken.today(unpriced) } else { 1 };
    let sum = PriceSum { sum: Money(taken.today(line)), unpriced };
    match sum.known() {
        None => format!("{what}: price not known"),
        Some(_) => format!("{what} {}", sum.words(&harmless(&taken.snapshot.currency))),
    }
}

fn spent(taken: &TakenSnapshot) -> TonedLine {
    plain(money(taken, "spent", "cost_micros", "unpriced"))
}

fn saved(taken: &TakenSnapshot) -> TonedLine {
    (Tone::Good, money(taken, "saved", "saved_micros", ""))
}

fn wasted(taken: &TakenSnapshot) -> TonedLine {
    plain(money(taken, "wasted", "wasted_micros", "wasted_unpriced"))
}

/// The heading: as much as fits, with errors first.
pub(super) fn heading(taken: &TakenSnapshot, width: usize) -> TonedLine {
    let store = &taken.snapshot.store;
    let kind = harmless(store.kind.as_deref().unwrap_or("store"));
    let (open, dead, alerts) =
        (taken.snapshot.orders.open, taken.snapshot.orders.dead, taken.active_alerts().count());
    let counts = format!("open {open}, dead {dead}, alerts {alerts}");
    let (tone, long, short) = match taken.source {
        _ if !store.is_up => {
            let away = format!("{kind} AWAY, figures are old");
            (Tone::Bad, format!("{away}: quittance {VERSION}, {counts}"), away)
        }
        SnapshotSource::EmbeddedStore => {
            let none = "NO DAEMON RUNS on this store";
            let long = format!("quittance {VERSION}, {none} ({kind}), {counts}");
            (Tone::Uneasy, long, format!("{none}, {counts}"))
        }
        SnapshotSource::SharedStore => {
            (Tone::Plain, format!("quittance {VERSION}, {kind} up, {counts}"), format!("{counts}, {kind} up"))
        }
        SnapshotSource::Node => {
            let node = &taken.snapshot.node;
            let up = roughly(Duration::from_secs(node.uptime_s));
            let (version, name) = (harmless(&node.version), harmless(&node.name));
            let long = format!("quittance {version} {name} up {up}, {kind} up, {counts}");
            (Tone::Plain, long, format!("{counts}, {kind} up"))
        }
    };
    (tone, if long.chars().count() <= width { long } else { short })
}

/// The heading while no snapshot arrives.
pub(super) fn heading_without(missing: &Missing, silent: Duration, has_picture: bool) -> TonedLine {
    let text = match missing {
        _ if has_picture => {
            format!("THE DAEMON DOES NOT ANSWER since {}: figures are old", roughly(silent))
        }
        Missing::NoDaemon => format!("quittance {VERSION}: NO DAEMON RUNS on this store"),
        Missing::Error(_) => format!("quittance {VERSION}: NO ANSWER"),
    };
    (Tone::Bad, text)
}

/// Every phase with its number of orders, dead letters last.
fn phases(taken: &TakenSnapshot) -> Vec<(Tone, &'static str, u64)> {
    let (dead, phases) = (taken.snapshot.orders.dead, &taken.snapshot.orders.phases);
    let uneasy_if = |count| if count > 0 { Tone::Uneasy } else { Tone::Plain };
    vec![
        (Tone::Plain, "queued", phases.queued),
        (uneasy_if(phases.held), "held", phases.held),
        (Tone::Plain, "submitting", phases.submitting),
        (Tone::Plain, "solving", phases.solving),
        (uneasy_if(phases.in_doubt), "in_doubt", phases.in_doubt),
        (if dead > 0 { Tone::Bad } else { Tone::Plain }, "dead", dead),
    ]
}

/// The orders by phase. `estimated` marks the numbers of a sample.
fn orders_by_phase(taken: &TakenSnapshot, width: usize, estimated: &str) -> Vec<TonedLine> {
    let mark = |phase| if taken.snapshot.orders.is_sampled && phase != "dead" { estimated } else { "" };
    let line = |(tone, phase, count)| (tone, format!("{phase:<width$} {}{count}", mark(phase)));
    phases(taken).into_iter().map(line).collect()
}

pub(super) fn orders(taken: &TakenSnapshot) -> Vec<TonedLine> {
    orders_by_phase(taken, 10, "about ")
}

/// The orders in few columns.
pub(super) fn orders_short(taken: &TakenSnapshot) -> Vec<TonedLine> {
    orders_by_phase(taken, 0, "~")
}

type RateOf = fn(&ShownRates) -> Option<f64>;

const RATES: [(&str, RateOf); 6] = [
    ("asked", |rates| rates.asked),
    ("joined", |rates| rates.joined),
    ("cached", |rates| rates.cached),
    ("stock", |rates| rates.from_stock),
    ("paid", |rates| rates.paid),
    ("solved", |rates| rates.solved),
];

/// The rates per second. `unit` follows the known ones.
fn rates(taken: &TakenSnapshot, unit: &str) -> [String; 6] {
    RATES.map(|(name, of)| {
        let rate = taken.rate(of).map_or("-".into(), |rate| format!("{rate:.1}{unit}"));
        format!("{name} {rate}")
    })
}

/// The rates per second, the most important first.
pub(super) fn rates_short(taken: &TakenSnapshot) -> Vec<TonedLine> {
    let [asked, joined, cached, stock, paid, solved] = rates(taken, "");
    [asked, joined, paid, solved, cached, stock].map(plain).into()
}

pub(super) fn took(taken: &TakenSnapshot) -> Vec<TonedLine> {
    let is_known = taken.source == SnapshotSource::Node;
    let seconds = |ms: Option<u64>| {
        ms.filter(|_| is_known).map_or("-".into(), |ms| format!("{:.1} s", ms as f64 / 1000.0))
    };
    let latency = &taken.snapshot.latency_ms;
    [("p50", latency.p50), ("p95", latency.p95), ("p99", latency.p99)]
        .map(|(name, ms)| plain(format!("{name} {}", seconds(ms))))
        .into()
}

pub(super) fn throughput(taken: &TakenSnapshot) -> Vec<TonedLine> {
    let (rates, took) = (rates(taken, "/s"), took(taken));
    let took: Vec<_> = took.into_iter().map(|(_, text)| text).collect();
    vec![
        plain(rates[..3].join("  ")),
        plain(rates[3..].join("  ")),
        plain(format!("took {}", took.join("  "))),
    ]
}

/// The balance and the threads of each provider, with its name if there are several.
fn accounts(taken: &TakenSnapshot) -> Vec<TonedLine> {
    let providers = &taken.snapshot.providers;
    if providers.is_empty() {
        return vec![plain("balance not known")];
    }
    let mut lines = Vec::new();
    for provider in providers {
        let name = if providers.len() > 1 { format!("{} ", harmless(&provider.name)) } else { String::new() };
        let balance = provider.balance_micros.map_or("not known".into(), |micros| {
            format!("{} {}", Money(micros), harmless(&provider.currency))
        });
        lines.push(plain(format!("{name}balance {balance}")));
        if let Some(threads) = &provider.threads {
            lines.push(plain(format!("{name}threads {} of {}", threads.working, threads.total)));
        }
    }
    lines
}

pub(super) fn today(taken: &TakenSnapshot) -> Vec<TonedLine> {
    let (asked, solved) = (taken.today("asked"), taken.today("solved"));
    let mut lines = vec![
        plain(format!("asked {asked}  solved {solved}")),
        plain(format!("failed {}", taken.today("failed"))),
        spent(taken),
        saved(taken),
        wasted(taken),
    ];
    lines.extend(accounts(taken));
    lines
}

/// The sums of today, the money first.
pub(super) fn today_short(taken: &TakenSnapshot) -> Vec<TonedLine> {
    let money = [spent(taken), saved(taken)];
    let counts = ["asked", "solved", "failed"].map(|line| plain(format!("{line} {}", taken.today(line))));
    money.into_iter().chain(accounts(taken)).chain(counts).chain([wasted(taken)]).collect()
}

fn provider(provider: &ShownProvider, now_ms: u64) -> TonedLine {
    let (tone, state) = match provider.state.as_deref() {
        Some("ok") => (Tone::Good, "ok".to_owned()),
        Some(state @ ("throttled" | "drained")) => (Tone::Uneasy, state.to_owned()),
        Some(state) => (Tone::Bad, harmless(state)),
        None => (Tone::Plain, "not known".to_owned()),
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

fn pool(pool: &PoolInShort) -> TonedLine {
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
        None => plain(format!("{name} not handled yet")),
    }
}

fn node(node: &ShownPeer) -> TonedLine {
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

fn alert(alert: &ShownAlert) -> TonedLine {
    let subject =
        if alert.subject.is_empty() { String::new() } else { format!(" {}", harmless(&alert.subject)) };
    let seen = if alert.seen_at.is_some() { " (seen)" } else { "" };
    let tone = if alert.is_grave { Tone::Bad } else { Tone::Uneasy };
    (tone, format!("{}{subject}{seen}: {}", harmless(&alert.rule), harmless(&alert.words)))
}

pub(super) fn providers(taken: &TakenSnapshot) -> Vec<TonedLine> {
    if taken.source != SnapshotSource::Node {
        return vec![plain("not known here: only a node that works knows")];
    }
    taken.snapshot.providers.iter().map(|found| provider(found, taken.snapshot.at_ms)).collect()
}

pub(super) fn pools(taken: &TakenSnapshot) -> Vec<TonedLine> {
    taken.snapshot.pools.iter().map(pool).collect()
}

pub(super) fn nodes(taken: &TakenSnapshot) -> Vec<TonedLine> {
    taken.snapshot.nodes.iter().map(node).collect()
}

pub(super) fn alerts(taken: &TakenSnapshot) -> Vec<TonedLine> {
    taken.active_alerts().map(alert).collect()
}

/// The whole snapshot as text, for output that is not a terminal.
#[must_use]
pub fn page(taken: &TakenSnapshot) -> String {
    let mut page = format!("{}\n", heading(taken, usize::MAX).1);
    for (title, lines) in [
        ("orders", orders(taken)),
        ("throughput", throughput(taken)),
        ("today", today(taken)),
        ("providers", providers(taken)),
        ("pools", pools(taken)),
        ("nodes", nodes(taken)),
        ("alerts", alerts(taken)),
    ] {
        if !lines.is_empty() {
            page += &format!("\n{title}\n");
            lines.iter().for_each(|(_, line)| page += &format!("  {line}\n"));
        }
    }
    page
}
