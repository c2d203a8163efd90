//! `quittance nodes`: who works on a shared store, what each has done and how it is, as they say themselves on the cards
//! that they leave there. It asks the store and no node, so it also shows who went missing.

use crate::config::Config;
use crate::exit::{Exit, Trouble};
use crate::output::{harmless, roughly};
use crate::table::PLAIN;
use crate::{output, place, table};
use anstyle::{AnsiColor, Style};
use clap::Args;
use quittance_ports::roster::{Card, Roll, SILENT_AFTER, SKEW_MAX, Signed};
use serde_json::{Value, json};
use std::time::Duration;

pub(crate) const AFTER_HELP: &str = "\
Examples:
  quittance nodes
  quittance nodes --json | jq -r '.nodes[] | select(.silent) | .name'
  watch -n 2 quittance nodes

SEEN is by the store's clock; a node that has been SILENT for 8 s is gone, or frozen, and the
others, if there are any, take its orders over; what it said of its health is old. SKEW is how far its clock is ahead of the store's: above
2 s, see `quittance doctor`. SHARE is its part of all the alarms that were attended to by those
who are listed. A card that is not renewed is forgotten after 10 minutes; whoever ends politely
takes his away.

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

pub(crate) async fn run(args: NodesArgs, config: &Config) -> Result<Exit, Trouble> {
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
    let roll = opened.roster.roll().await.map_err(|error| Trouble::of(Exit::Store, &error))?;
    output::print(&if args.json { format!("{:#}\n", as_json(&roll)) } else { as_text(&roll) })?;
    Ok(Exit::Done)
}

/// How long nobody has heard of it.
pub(crate) fn silence(roll: &Roll, signed: &Signed) -> Duration {
    roll.now.since(signed.seen)
}

pub(crate) fn is_silent(roll: &Roll, signed: &Signed) -> bool {
    silence(roll, signed) > SILENT_AFTER
}

/// Its two moments are by its own clock, and what has passed since then by the store's.
fn up_for(roll: &Roll, signed: &Signed) -> Duration {
    signed.card.at.since(signed.card.started) + silence(roll, signed)
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

/// The same as a sentence has it.
pub(crate) fn beside_the_store(skew_ms: i64) -> String {
    let span = skew_words(skew_ms).trim_start_matches(['+', '-']).to_owned();
    format!("{span} {} the store's", if skew_ms < 0 { "behind" } else { "ahead of" })
}

/// In thousandths of all; none if nobody has done anything.
fn share(roll: &Roll, card: &Card) -> Option<u64> {
    let all: u64 = roll.nodes.iter().map(|signed| signed.card.vitals.attended).sum();
    card.vitals.attended.saturating_mul(1000).checked_div(all)
}

/// What is wrong with it, in a few words each; nothing, if all is well.
pub(crate) fn complaints(card: &Card) -> Vec<String> {
    let vitals = &card.vitals;
    let flags = [
        (vitals.is_paused, "paused: the provider does not accept the account"),
        (vitals.store_was_away, "store away"),
        (vitals.has_spilled, "spilled"),
    ];
    let counts = [(vitals.panics, "panics"), (vitals.unreadable, "unreadable records")];
    let flags = flags.into_iter().filter(|(is_so, _)| *is_so).map(|(_, words)| words.to_owned());
    let counts =
        counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
    flags.chain(counts).collect()
}

fn as_json(roll: &Roll) -> Value {
    let nodes = roll.nodes.iter().map(|signed| {
        let Signed { card, seen } = signed;
        let vitals = &card.vitals;
        json!({
            "node": format!("{:016x}", card.node), "name": card.name, "version": card.version, "format": card.format,
            "started_ms": card.started.as_millis(), "seen_ms": seen.as_millis(),
            "silent": is_silent(roll, signed), "skew_ms": card.skew_ms,
            "placed": vitals.placed, "joined": vitals.joined,
            "attended": vitals.attended, "share": share(roll, card).map(|share| share as f64 / 1000.0),
            "submitted": vitals.submitted, "polled": vitals.polled, "answered": vitals.answered, "in_hand": vitals.in_hand,
            "paused": vitals.is_paused, "store_away": vitals.store_was_away, "spilled": vitals.has_spilled,
            "store_errors": vitals.store_errors, "unreadable": vitals.unreadable, "panics": vitals.panics,
        })
    });
    json!({ "shared": true, "now_ms": roll.now.as_millis(), "nodes": nodes.collect::<Vec<_>>() })
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
fn health(roll: &Roll, signed: &Signed) -> (Style, String) {
    let far = signed.card.skew_ms.filter(|skew| is_far(*skew));
    let clock = far.map(|skew| format!("clock off by {:.1} s", skew.unsigned_abs() as f64 / 1000.0));
    let style = if clock.is_some() { BAD } else { NOTE };
    let words: Vec<String> = clock.into_iter().chain(complaints(&signed.card)).collect();
    match (words.is_empty(), is_silent(roll, signed)) {
        (true, true) => (PLAIN, "not known".into()),
        (true, false) => (PLAIN, "well".into()),
        (false, true) => (style, format!("at last: {}", words.join(", "))),
        (false, false) => (style, words.join(", ")),
    }
}

fn cells(roll: &Roll, signed: &Signed) -> [(Style, String); 14] {
    let card = &signed.card;
    let vitals = &card.vitals;
    let plain = |text: String| (PLAIN, text);
    let count = |count: u64| (PLAIN, count.to_string());
    let silence = roughly(silence(roll, signed));
    let seen = match is_silent(roll, signed) {
        true => (BAD, format!("SILENT {silence}")),
        false => plain(format!("{silence} ago")),
    };
    let skew = match card.skew_ms {
        None => plain("-".into()),
        Some(skew) if is_far(skew) => (BAD, skew_words(skew)),
        Some(skew) => plain(skew_words(skew)),
    };
    [
        plain(harmless(&card.name)),
        plain(harmless(&card.version)),
        plain(roughly(up_for(roll, signed))),
        seen,
        skew,
        count(vitals.placed),
        count(vitals.joined),
        count(vitals.attended),
        plain(share(roll, card).map_or("-".into(), |share| format!("{}.{} %", share / 10, share % 10))),
        count(vitals.submitted),
        count(vitals.polled),
        count(vitals.answered),
        count(vitals.in_hand),
        health(roll, signed),
    ]
}

fn as_text(roll: &Roll) -> String {
    if roll.nodes.is_empty() {
        return "No node has signed in: nobody works on this store.\n".into();
    }
    let mut by_name: Vec<&Signed> = roll.nodes.iter().collect();
    by_name.sort_by_key(|signed| (signed.card.name.as_str(), signed.card.started, signed.card.node));
    table::render(HEADINGS, by_name.into_iter().map(|signed| cells(roll, signed)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use quittance_lifecycle::Timestamp;
    use quittance_ports::roster::Vitals;

    fn card(node: u64, name: &str, vitals: Vitals) -> Card {
        Card {
            node,
            name: name.into(),
            version: "0.1.0".into(),
            format: 1,
            started: Timestamp::from_millis(1_000),
            at: Timestamp::from_millis(61_000),
            skew_ms: None,
            vitals,
            reach: None,
            demand: std::collections::BTreeMap::new(),
        }
    }

    fn roll() -> Roll {
        let busy = Vitals { attended: 3, in_hand: 7, ..Vitals::default() };
        let sick = Vitals { attended: 1, is_paused: true, panics: 2, ..Vitals::default() };
        let far = Card { skew_ms: Some(-2_500), ..card(1, "web-2:8780", sick) };
        let at = Timestamp::from_millis;
        Roll {
            now: at(100_000),
            nodes: vec![
                Signed { card: far, seen: at(80_000) },
                Signed { card: card(2, "web-1:8780", busy), seen: at(99_000) },
            ],
        }
    }

    #[test]
    fn each_node_is_told_with_its_share_and_its_health() {
        let text = anstream::adapter::strip_str(&as_text(&roll())).to_string();
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
            let card = Card { skew_ms: Some(skew_ms), ..card(1, "a", Vitals::default()) };
            let text =
                as_text(&Roll { now: Timestamp::from_millis(now), nodes: vec![Signed { card, seen }] });
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
        let told = as_json(&roll());
        assert_eq!(told["nodes"][0]["silent"], true);
        assert_eq!(told["nodes"][0]["skew_ms"], -2500);
        assert_eq!(told["nodes"][1]["silent"], false);
        assert_eq!(told["nodes"][1]["share"], 0.75);
    }

    #[test]
    fn a_name_from_another_machine_moves_no_cursor() {
        let odd = Signed { card: card(1, "a\u{1b}[2J", Vitals::default()), seen: Timestamp::ZERO };
        let text = as_text(&Roll { now: Timestamp::ZERO, nodes: vec![odd] });
        assert!(!text.contains("\u{1b}[2J"));
    }

    #[test]
    fn a_store_on_which_nobody_works_says_so() {
        assert!(as_text(&Roll::default()).contains("nobody works"));
    }
}
