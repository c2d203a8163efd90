//! `quittance nodes`: who works on a shared store, what each has done and how it is, as they say themselves on the cards
//! that they leave there. It asks the store and no node, so it also shows who went missing.

use crate::exit::{CliError, Exit};
use crate::output::{harmless, roughly};
use crate::table::PLAIN;
use crate::{output, place, table};
use anstyle::{AnsiColor, Style};
use clap::Args;
use quittance_config::Config;
use quittance_ports::membership::{Member, Members, NodeStatus, SILENT_AFTER, SKEW_MAX};
use serde_json::{Value, json};
use std::time::Duration;

pub(crate) const AFTER_HELP: &str = "\
Examples:
  quittance nodes
  quittance nodes --json | jq -r '.nodes[] | select(.silent) | .name'
  watch -n 2 quittance nodes

Columns:
  SEEN   time since the last heartbeat, by the store's clock
  SKEW   how far the node's clock is ahead of the store's; above 2 s, run
         `quittance doctor`
  SHARE  timers that this node handled / timers that all listed nodes handled

A node without a heartbeat for 8 s is SILENT: it has died or hangs. Other nodes,
if there are any, take over its orders, and its last reported state is old. A
node that stops cleanly removes itself from the list; a silent node is removed
after 10 minutes.

Exit codes:
  0  shown
  4  the configuration is wrong
  5  the store cannot be opened or used";

#[derive(Args, Debug)]
pub(crate) struct NodesArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: NodesArgs, config: &Config) -> Result<Exit, CliError> {
    let scheme = config.store.url.scheme();
    if !scheme.is_shared() {
        let text = match args.json {
            true => "{\"shared\":false,\"nodes\":[]}\n".to_owned(),
            false => format!(
                "{} has one node, and no list of them: see `quittance doctor`, or share Redis or PostgreSQL with `store.url`\n",
                scheme.name()
            ),
        };
        return output::print(&text).map(|()| Exit::Done);
    }
    let opened = place::open(&config.store).await?;
    let members = opened.membership.members().await.map_err(|error| CliError::of(Exit::Store, &error))?;
    output::print(&if args.json { format!("{:#}\n", as_json(&members)) } else { as_text(&members) })?;
    Ok(Exit::Done)
}

/// How long nobody has heard of it.
pub(crate) fn silence(members: &Members, signed: &Member) -> Duration {
    members.now.since(signed.seen)
}

pub(crate) fn is_silent(members: &Members, signed: &Member) -> bool {
    silence(members, signed) > SILENT_AFTER
}

/// Its two moments are by its own clock, and what has passed since then by the store's.
fn up_for(members: &Members, signed: &Member) -> Duration {
    signed.node_status.at.since(signed.node_status.started) + silence(members, signed)
}

pub(crate) fn skew_words(skew_ms: i64) -> String {
    match skew_ms.unsigned_abs() {
        0..10_000 => format!("{skew_ms:+} ms"),
        _ => format!("{:+} s", skew_ms / 1000),
    }
}

/// Whether a clock is so far from the store's that promises suffer.
fn is_far(skew_ms: i64) -> bool {
    u128::from(skew_ms.unsigned_abs()) > SKEW_MAX.as_millis()
}

/// A clock difference as part of a sentence.
pub(crate) fn beside_the_store(skew_ms: i64) -> String {
    let span = skew_words(skew_ms).trim_start_matches(['+', '-']).to_owned();
    format!("{span} {} the store's", if skew_ms < 0 { "behind" } else { "ahead of" })
}

/// In thousandths of all; none if nobody has done anything.
fn share(members: &Members, node_status: &NodeStatus) -> Option<u64> {
    let all: u64 = members.nodes.iter().map(|signed| signed.node_status.node_stats.attended).sum();
    node_status.node_stats.attended.saturating_mul(1000).checked_div(all)
}

/// What is wrong with it, in a few words each; nothing, if all is well.
pub(crate) fn complaints(node_status: &NodeStatus) -> Vec<String> {
    let node_stats = &node_status.node_stats;
    let flags = [
        (node_stats.is_paused, "paused: the provider does not accept the account"),
        (node_stats.store_was_away, "store away"),
        (node_stats.has_spilled, "spilled"),
    ];
    let counts = [(node_stats.panics, "panics"), (node_stats.unreadable, "unreadable records")];
    let flags = flags.into_iter().filter(|(is_so, _)| *is_so).map(|(_, words)| words.to_owned());
    let counts =
        counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
    flags.chain(counts).collect()
}

fn as_json(members: &Members) -> Value {
    let nodes = members.nodes.iter().map(|signed| {
        let Member { node_status, seen } = signed;
        let node_stats = &node_status.node_stats;
        json!({
            "node": format!("{:016x}", node_status.node), "name": node_status.name, "version": node_status.version, "format": node_status.format,
            "started_ms": node_status.started.as_millis(), "seen_ms": seen.as_millis(),
            "silent": is_silent(members, signed), "skew_ms": node_status.skew_ms,
            "placed": node_stats.placed, "joined": node_stats.joined,
            "attended": node_stats.attended, "share": share(members, node_status).map(|share| share as f64 / 1000.0),
            "submitted": node_stats.submitted, "polled": node_stats.polled, "answered": node_stats.answered, "in_hand": node_stats.in_hand,
            "paused": node_stats.is_paused, "store_away": node_stats.store_was_away, "spilled": node_stats.has_spilled,
            "store_errors": node_stats.store_errors, "unreadable": node_stats.unreadable, "panics": node_stats.panics,
        })
    });
    json!({ "shared": true, "now_ms": members.now.as_millis(), "nodes": nodes.collect::<Vec<_>>() })
}

const BAD: Style = AnsiColor::Red.on_default().bold();
const NOTE: Style = AnsiColor::Yellow.on_default();
const HEADINGS: [&str; 14] = [
    "NAME",
    "VERSION",
    "UP",
    "SEEN",
    "SKEW",
    "PLACED",
    "JOINED",
    "ATTENDED",
    "SHARE",
    "SUBMITTED",
    "POLLED",
    "ANSWERED",
    "IN HAND",
    "HEALTH",
];

/// What people read first. Of one that is silent nobody knows more than what it said last.
fn health(members: &Members, signed: &Member) -> (Style, String) {
    let far = signed.node_status.skew_ms.filter(|skew| is_far(*skew));
    let clock = far.map(|skew| format!("clock off by {:.1} s", skew.unsigned_abs() as f64 / 1000.0));
    let style = if clock.is_some() { BAD } else { NOTE };
    let words: Vec<String> = clock.into_iter().chain(complaints(&signed.node_status)).collect();
    match (words.is_empty(), is_silent(members, signed)) {
        (true, true) => (PLAIN, "not known".into()),
        (true, false) => (PLAIN, "well".into()),
        (false, true) => (style, format!("at last: {}", words.join(", "))),
        (false, false) => (style, words.join(", ")),
    }
}

fn cells(members: &Members, signed: &Member) -> [(Style, String); 14] {
    let node_status = &signed.node_status;
    let node_stats = &node_status.node_stats;
    let plain = |text: String| (PLAIN, text);
    let count = |count: u64| (PLAIN, count.to_string());
    let silence = roughly(silence(members, signed));
    let seen = match is_silent(members, signed) {
        true => (BAD, format!("SILENT {silence}")),
        false => plain(format!("{silence} ago")),
    };
    let skew = match node_status.skew_ms {
        None => plain("-".into()),
        Some(skew) if is_far(skew) => (BAD, skew_words(skew)),
        Some(skew) => plain(skew_words(skew)),
    };
    [
        plain(harmless(&node_status.name)),
        plain(harmless(&node_status.version)),
        plain(roughly(up_for(members, signed))),
        seen,
        skew,
        count(node_stats.placed),
        count(node_stats.joined),
        count(node_stats.attended),
        plain(
            share(members, node_status)
                .map_or("-".into(), |share| format!("{}.{} %", share / 10, share % 10)),
        ),
        count(node_stats.submitted),
        count(node_stats.polled),
        count(node_stats.answered),
        count(node_stats.in_hand),
        health(members, signed),
    ]
}

fn as_text(members: &Members) -> String {
    if members.nodes.is_empty() {
        return "No node works on this store.\n".into();
    }
    let mut by_name: Vec<&Member> = members.nodes.iter().collect();
    by_name.sort_by_key(|signed| {
        (signed.node_status.name.as_str(), signed.node_status.started, signed.node_status.node)
    });
    table::render(HEADINGS, by_name.into_iter().map(|signed| cells(members, signed)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use quittance_lifecycle::Timestamp;
    use quittance_ports::membership::NodeStats;

    fn node_status(node: u64, name: &str, node_stats: NodeStats) -> NodeStatus {
        NodeStatus {
            node,
            name: name.into(),
            version: "0.1.0".into(),
            format: 1,
            started: Timestamp::from_millis(1_000),
            at: Timestamp::from_millis(61_000),
            skew_ms: None,
            node_stats,
            reach: None,
            demand: std::collections::BTreeMap::new(),
        }
    }

    fn members() -> Members {
        let busy = NodeStats { attended: 3, in_hand: 7, ..NodeStats::default() };
        let sick = NodeStats { attended: 1, is_paused: true, panics: 2, ..NodeStats::default() };
        let far = NodeStatus { skew_ms: Some(-2_500), ..node_status(1, "web-2:8780", sick) };
        let at = Timestamp::from_millis;
        Members {
            now: at(100_000),
            nodes: vec![
                Member { node_status: far, seen: at(80_000) },
                Member { node_status: node_status(2, "web-1:8780", busy), seen: at(99_000) },
            ],
        }
    }

    #[test]
    fn each_node_is_told_with_its_share_and_its_health() {
        let text = anstream::adapter::strip_str(&as_text(&members())).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("NAME ") && lines[0].ends_with("HEALTH"), "{text}");
        assert!(lines[1].starts_with("web-1:8780 ") && lines[1].ends_with("well"), "{text}");
        for (line, words) in
            [(1, ["61 s", "1 s ago", "75.0 %", " 7 "]), (2, ["SILENT 20 s", "-2500 ms", "25.0 %", "paused"])]
        {
            for word in words {
                assert!(lines[line].contains(word), "{word}: {text}");
            }
        }
        assert!(lines[2].contains("2 panics"), "{text}");
    }

    #[test]
    fn a_node_whose_clock_is_off_is_not_well_and_a_silent_one_is_not_known_to_be() {
        let seen = Timestamp::from_millis(100_000);
        let of = |skew_ms, now| {
            let node_status =
                NodeStatus { skew_ms: Some(skew_ms), ..node_status(1, "a", NodeStats::default()) };
            let text = as_text(&Members {
                now: Timestamp::from_millis(now),
                nodes: vec![Member { node_status, seen }],
            });
            anstream::adapter::strip_str(&text).to_string()
        };
        for (skew_ms, now, health) in [
            (2_000, 101_000, " well\n"),
            (2_001, 101_000, " clock off by 2.0 s\n"),
            (-61_000, 101_000, " clock off by 61.0 s\n"),
            (-61_000, 200_000, " at last: clock off by 61.0 s\n"),
            (0, 200_000, " not known\n"),
        ] {
            let text = of(skew_ms, now);
            assert!(text.ends_with(health), "{health}: {text}");
        }
    }

    #[test]
    fn scripts_get_the_same_as_numbers() {
        let told = as_json(&members());
        assert_eq!(told["nodes"][0]["silent"], true);
        assert_eq!(told["nodes"][0]["skew_ms"], -2500);
        assert_eq!(told["nodes"][1]["silent"], false);
        assert_eq!(told["nodes"][1]["share"], 0.75);
    }

    #[test]
    fn a_name_from_another_machine_moves_no_cursor() {
        let odd =
            Member { node_status: node_status(1, "a\u{1b}[2J", NodeStats::default()), seen: Timestamp::ZERO };
        let text = as_text(&Members { now: Timestamp::ZERO, nodes: vec![odd] });
        assert!(!text.contains("\u{1b}[2J"));
    }

    #[test]
    fn a_store_on_which_nobody_works_says_so() {
        assert!(as_text(&Members::default()).contains("No node works"));
    }
}
