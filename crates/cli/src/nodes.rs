//! `quittance nodes`: the nodes of a store, the share and the health of each. They are read from the store, so dead
//! nodes are listed, too.

use crate::exit::{CliError, Exit, OrExit};
use crate::output::{harmless, roughly};
use crate::text_table::{Cell, PLAIN, cell, count, styled};
use crate::{output, store, text_table};
use anstyle::{AnsiColor, Style};
use clap::Args;
use quittance::SystemClock;
use quittance_admin::nodes::{ShownNode, ShownNodes};
use quittance_config::{ADMIN_KEY, Config};
use quittance_daemon::ApiClient;
use quittance_daemon::configured_store;
use quittance_ports::Clock;
use quittance_ports::membership::SKEW_MAX;
use quittance_ports::moment::rfc3339;
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

If a daemon uses the embedded store, the command asks the daemon over HTTP. If
an operator's key is configured (`admin`), set QUITTANCE_ADMIN_KEY to it.

Exit codes:
  0  shown
  4  the configuration or the operator's key is wrong
  5  there is no store, it cannot be opened or used, or its daemon does not
     answer";

#[derive(Args, Debug)]
pub(crate) struct NodesArgs {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: NodesArgs, config: &Config) -> Result<Exit, CliError> {
    let scheme = config.store.url.scheme();
    let nodes = match ApiClient::of_daemon(&config.store, config, ADMIN_KEY)? {
        Some(client) => client.get("/v1/admin/nodes").await?,
        None if !scheme.is_shared() => {
            store::must_exist(&config.store)?;
            let nodes = ShownNodes { now: rfc3339(SystemClock.now()), nodes: Vec::new() };
            return output::show(args.json, &nodes, || {
                format!("{} has one node, and no daemon runs on it now\n", scheme.name())
            });
        }
        // The store is opened without a node, so that a sealed store can be read too.
        None => {
            let opened = configured_store::open(&config.store).await?;
            let members = opened.membership.members().await;
            ShownNodes::of(&members.or_exit(Exit::Store)?)
        }
    };
    output::show(args.json, &nodes, || as_text(&nodes.nodes))
}

pub(crate) fn skew_words(skew_ms: i64) -> String {
    match skew_ms.unsigned_abs() {
        0..10_000 => format!("{skew_ms:+} ms"),
        _ => format!("{:+} s", skew_ms / 1000),
    }
}

/// Whether a clock differs so much from the store's that promises suffer.
fn is_far(skew_ms: i64) -> bool {
    u128::from(skew_ms.unsigned_abs()) > SKEW_MAX.as_millis()
}

/// What is wrong with a node; empty if nothing is.
pub(crate) fn complaints(node: &ShownNode) -> Vec<String> {
    let flags = [
        (node.paused, "paused: the provider does not accept the account"),
        (node.store_was_away, "store away"),
        (node.has_spilled, "spilled"),
    ];
    let counts = [(node.panics, "panics"), (node.unreadable, "unreadable records")];
    let flags = flags.into_iter().filter(|(is_so, _)| *is_so).map(|(_, words)| words.to_owned());
    let counts =
        counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
    flags.chain(counts).collect()
}

const BAD: Style = AnsiColor::Red.on_default().bold();
const NOTE: Style = AnsiColor::Yellow.on_default();
/// The health of a node. The last report of a silent node may be outdated.
fn health(node: &ShownNode) -> Cell {
    let far = node.skew_ms.filter(|skew| is_far(*skew));
    let clock = far.map(|skew| format!("clock off by {:.1} s", skew.unsigned_abs() as f64 / 1000.0));
    let style = if clock.is_some() { BAD } else { NOTE };
    let words = clock.into_iter().chain(complaints(node)).collect::<Vec<_>>().join(", ");
    match (words.is_empty(), node.silent) {
        (true, true) => cell("HEALTH", "not known"),
        (true, false) => cell("HEALTH", "well"),
        (false, true) => styled("HEALTH", style, format!("at last: {words}")),
        (false, false) => styled("HEALTH", style, words),
    }
}

fn cells(node: &ShownNode) -> [Cell; 14] {
    let seen_ago = roughly(Duration::from_secs(node.seen_s_ago));
    let skew_style = if node.skew_ms.is_some_and(is_far) { BAD } else { PLAIN };
    [
        cell("NAME", harmless(&node.name)),
        cell("VERSION", harmless(&node.version)),
        cell("UP", roughly(Duration::from_secs(node.uptime_s))),
        match node.silent {
            true => styled("SEEN", BAD, format!("SILENT {seen_ago}")),
            false => cell("SEEN", format!("{seen_ago} ago")),
        },
        styled("SKEW", skew_style, node.skew_ms.map_or("-".into(), skew_words)),
        count("PLACED", node.placed),
        count("JOINED", node.joined),
        count("ATTENDED", node.attended),
        cell("SHARE", format!("{} %", node.share_percent)),
        count("SUBMITTED", node.submitted),
        count("POLLED", node.polled),
        count("ANSWERED", node.answered),
        count("IN HAND", node.in_hand),
        health(node),
    ]
}

fn as_text(nodes: &[ShownNode]) -> String {
    if nodes.is_empty() {
        return "No node works on this store.\n".into();
    }
    let mut by_name: Vec<&ShownNode> = nodes.iter().collect();
    by_name.sort_by_key(|node| (&node.name, &node.started, &node.node));
    text_table::render(by_name.into_iter().map(cells))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node(name: &str, skew_ms: Option<i64>, seen_s_ago: u64) -> ShownNode {
        let node = json!({
            "node": "0000000000000001", "name": name, "version": "0.1.0", "format": 1,
            "started": "2026-11-16T14:00:00.000Z", "uptime_s": 61, "seen": "2026-11-16T14:01:00.000Z",
            "seen_s_ago": seen_s_ago, "silent": seen_s_ago > 8, "skew_ms": skew_ms, "placed": 0, "joined": 0,
            "attended": 3, "share_percent": 75, "submitted": 0, "polled": 0, "answered": 0, "in_hand": 7,
            "store_errors": 0, "unreadable": 0, "panics": 0, "paused": false, "store_was_away": false,
            "has_spilled": false,
        });
        serde_json::from_value(node).unwrap()
    }

    fn plain(nodes: &[ShownNode]) -> String {
        anstream::adapter::strip_str(&as_text(nodes)).to_string()
    }

    #[test]
    fn each_node_is_shown_with_its_share_and_its_health() {
        let sick =
            ShownNode { paused: true, panics: 2, share_percent: 25, ..node("web-2:8780", Some(-2_500), 20) };
        let text = plain(&[sick, node("web-1:8780", None, 1)]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("NAME ") && lines[0].ends_with("HEALTH"), "{text}");
        assert!(lines[1].starts_with("web-1:8780 ") && lines[1].ends_with("well"), "{text}");
        for (line, words) in
            [(1, ["61 s", "1 s ago", "75 %", " 7 "]), (2, ["SILENT 20 s", "-2500 ms", "25 %", "paused"])]
        {
            for word in words {
                assert!(lines[line].contains(word), "{word}: {text}");
            }
        }
        assert!(lines[2].contains("2 panics"), "{text}");
    }

    #[test]
    fn a_node_whose_clock_is_off_is_not_well_and_the_health_of_a_silent_one_is_not_known() {
        for (skew_ms, seen_s_ago, health) in [
            (2_000, 1, " well\n"),
            (2_001, 1, " clock off by 2.0 s\n"),
            (-61_000, 1, " clock off by 61.0 s\n"),
            (-61_000, 100, " at last: clock off by 61.0 s\n"),
            (0, 100, " not known\n"),
        ] {
            let text = plain(&[node("a", Some(skew_ms), seen_s_ago)]);
            assert!(text.ends_with(health), "{health}: {text}");
        }
    }

    #[test]
    fn a_name_from_another_machine_moves_no_cursor() {
        assert!(!as_text(&[node("a\u{1b}[2J", None, 0)]).contains("\u{1b}[2J"));
        assert!(as_text(&[]).contains("No node works"));
    }
}
