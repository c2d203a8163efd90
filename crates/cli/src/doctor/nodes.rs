//! Checks whether the nodes of a store can keep the promises together: their clocks, silent nodes, versions and
//! names.

use super::{Findings, State};
use crate::nodes::{complaints, skew_words};
use crate::output::roughly;
use quittance::lifecycle::Timestamp;
use quittance_admin::nodes::{ShownNode, ShownNodes};
use quittance_ports::membership::SKEW_MAX;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const NODES: &str = "nodes";
const CLOCK: &str = "clock";

/// Findings about the nodes. The store's time is `now`. The request was sent at `before` and answered at `after`, by
/// our clock.
pub(super) fn judge(
    findings: &mut Findings,
    shown: &ShownNodes,
    now: Timestamp,
    before: Timestamp,
    after: Timestamp,
) {
    let trip = after.since(before);
    // The store read its clock during the request; half-way is the best estimate.
    own_clock(findings, apart((before + trip / 2).as_millis(), now.as_millis()), trip);
    // The last report of a silent node is old.
    let there: Vec<&ShownNode> = shown.nodes.iter().filter(|node| !node.silent).collect();
    there.iter().for_each(|node| clock_of(findings, node));
    who_is_there(findings, &shown.nodes);
    versions(findings, &there);
    same_names(findings, &there);
    there.iter().for_each(|node| health(findings, node));
}

fn apart(one: u64, other: u64) -> i64 {
    let span = i64::try_from(one.abs_diff(other)).unwrap_or(i64::MAX);
    if one < other { -span } else { span }
}

fn skew_state(skew_ms: i64) -> State {
    match Duration::from_millis(skew_ms.unsigned_abs()) {
        skew if skew > SKEW_MAX => State::Bad,
        skew if skew > SKEW_MAX / 2 => State::Note,
        _ => State::Good,
    }
}

/// A clock difference as part of a sentence.
fn beside_the_store(skew_ms: i64) -> String {
    let span = skew_words(skew_ms).trim_start_matches(['+', '-']).to_owned();
    format!("{span} {} the store's", if skew_ms < 0 { "behind" } else { "ahead of" })
}

/// What a wrong clock causes, and what to do.
fn consequence(state: State) -> String {
    let most = roughly(SKEW_MAX);
    match state {
        State::Good => String::new(),
        State::Note => {
            format!("; {most} is the most that does no harm: set it by NTP (`timedatectl set-ntp true`)")
        }
        State::Bad => format!(
            ", and {most} is the most that does no harm: a token may be handed out that is older than promised by the rest, and \
             timers fire early, which puts more orders in doubt: set it by NTP (`timedatectl set-ntp true`)"
        ),
    }
}

fn own_clock(findings: &mut Findings, skew_ms: i64, trip: Duration) {
    let state = skew_state(skew_ms);
    let (beside, half_ms) = (beside_the_store(skew_ms), (trip / 2).as_millis());
    let what = format!("this machine's clock is {beside} (give or take {half_ms} ms){}", consequence(state));
    findings.add(CLOCK, state, what);
}

/// A finding about a node's clock, if the clock is wrong. There may be many nodes, so correct clocks are left out.
fn clock_of(findings: &mut Findings, node: &ShownNode) {
    let Some(skew_ms) = node.skew_ms else { return };
    let state = skew_state(skew_ms);
    if state != State::Good {
        let words = beside_the_store(skew_ms);
        findings.add(
            CLOCK,
            state,
            format!("the clock of node {} is {words}{}", node.name, consequence(state)),
        );
    }
}

fn who_is_there(findings: &mut Findings, nodes: &[ShownNode]) {
    let (silent, there): (Vec<&ShownNode>, Vec<&ShownNode>) = nodes.iter().partition(|node| node.silent);
    match (there.len(), silent.len()) {
        (0, 0) => findings
            .note(NODES, "no node works on this store now: orders wait until one does (`quittance serve`)"),
        (0, _) => findings.note(
            NODES,
            "no node has sent a heartbeat lately: all have died, hang, or cannot write to the store; orders wait until \
             one can work",
        ),
        (count, _) => findings.good(NODES, format!("nodes at work: {count}; see `quittance nodes`")),
    }
    let fate = match there.is_empty() {
        true => "it has died, hangs, or cannot write to the store, and no other node takes over its orders",
        false => "it has died or hangs, and the others take over its orders",
    };
    for node in silent {
        let (name, span) = (&node.name, roughly(Duration::from_secs(node.seen_s_ago)));
        let what = format!("{name} has been silent for {span}: {fate}; if it should run, start it again");
        findings.note(NODES, what);
    }
}

/// Whether the running nodes have the same version.
fn versions(findings: &mut Findings, there: &[&ShownNode]) {
    let versions: BTreeSet<&str> = there.iter().map(|node| node.version.as_str()).collect();
    let formats: BTreeSet<u64> = there.iter().map(|node| node.format).collect();
    if versions.len() > 1 {
        let all = versions.into_iter().collect::<Vec<_>>().join(", ");
        let what =
            format!("nodes of different versions: {all}; is a rolling restart under way? If not, finish it");
        findings.note(NODES, what);
    }
    if formats.len() > 1 {
        let what = "nodes that write records in different formats: older ones read what newer ones write only as far as \
                    the formats are compatible; finish the rolling restart";
        findings.note(NODES, what);
    }
}

/// Whether two running nodes have the same name.
fn same_names(findings: &mut Findings, there: &[&ShownNode]) {
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for node in there {
        *names.entry(node.name.as_str()).or_default() += 1;
    }
    for (name, count) in names.into_iter().filter(|(_, count)| *count > 1) {
        let what = format!(
            "{count} nodes at work are called {name}: give each a `node.name` of its own, so that logs and lists can name it"
        );
        findings.note(NODES, what);
    }
}

fn health(findings: &mut Findings, node: &ShownNode) {
    let complaints = complaints(node);
    if !complaints.is_empty() {
        let what = format!("node {} reports: {}; see its log", node.name, complaints.join(", "));
        findings.note(NODES, what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Finding;
    use quittance_ports::membership::{Member, Members, NodeStats, NodeStatus};

    const OUR_MS: u64 = 1_794_837_600_000;

    fn node(name: &str, version: &str, skew_ms: i64, seen_ago_ms: u64) -> (NodeStatus, u64) {
        let node_status = NodeStatus {
            node: skew_ms.unsigned_abs(),
            name: name.into(),
            version: version.into(),
            format: 1,
            started: Timestamp::ZERO,
            at: Timestamp::ZERO,
            skew_ms: Some(skew_ms),
            node_stats: NodeStats::default(),
            reach: None,
            demand: BTreeMap::new(),
        };
        (node_status, seen_ago_ms)
    }

    /// The findings of a machine whose clock is behind the store's by this much.
    fn findings(behind: Duration, nodes: Vec<(NodeStatus, u64)>) -> Vec<Finding> {
        let (ours, now) = (Timestamp::from_millis(OUR_MS), Timestamp::from_millis(OUR_MS) + behind);
        let seen = |ago: u64| Timestamp::from_millis(now.as_millis() - ago);
        let nodes =
            nodes.into_iter().map(|(node_status, ago)| Member { node_status, seen: seen(ago) }).collect();
        let mut findings = Findings::default();
        judge(&mut findings, &ShownNodes::of(&Members { now, nodes }), now, ours, ours);
        findings.0
    }

    #[track_caller]
    fn says(findings: &[Finding], state: State, words: &[&str]) {
        let fits =
            |found: &&Finding| found.state == state && words.iter().all(|word| found.what.contains(word));
        let all: Vec<String> =
            findings.iter().map(|found| format!("{:?} {}", found.state, found.what)).collect();
        assert!(findings.iter().any(|found| fits(&found)), "{words:?}: {all:#?}");
    }

    #[test]
    fn clocks_that_agree_are_good_and_others_are_reported_with_their_cost() {
        let good = findings(Duration::ZERO, vec![node("a", "1", 20, 0)]);
        assert!(good.iter().all(|found| found.state == State::Good));
        let near = findings(Duration::from_millis(1600), vec![node("a", "1", -1500, 0)]);
        says(&near, State::Note, &["this machine's clock", "NTP"]);
        says(&near, State::Note, &["node a", "1500 ms behind", "NTP"]);
        let far = findings(Duration::from_secs(60), vec![node("a", "1", 2001, 0)]);
        let words = [
            "this machine's clock is ",
            " s behind the store's",
            "older than promised",
            "timers fire early",
            "NTP",
        ];
        says(&far, State::Bad, &words);
        says(&far, State::Bad, &["node a", "2001 ms ahead of"]);
    }

    #[test]
    fn silent_nodes_and_other_versions_are_reported() {
        let nodes = vec![node("a", "1", 1, 0), node("b", "2", 2, 0), node("c", "3", 3, 60_000)];
        let found = findings(Duration::ZERO, nodes);
        says(&found, State::Good, &["nodes at work: 2"]);
        says(&found, State::Note, &["c has been silent for 60 s", "the others take over its orders"]);
        says(&found, State::Note, &["different versions: 1, 2;", "rolling restart"]);
        says(&findings(Duration::ZERO, Vec::new()), State::Note, &["no node works on this store"]);
    }

    #[test]
    fn the_old_report_of_a_silent_node_is_not_used_and_the_last_node_has_no_successor() {
        let mut alone = node("a", "1", 60_000, 60_000);
        alone.0.node_stats.store_was_away = true;
        let found = findings(Duration::ZERO, vec![alone]);
        says(&found, State::Note, &["no node has sent a heartbeat lately", "cannot write to the store"]);
        says(&found, State::Note, &["a has been silent for 60 s", "no other node takes over its orders"]);
        for words in ["store away", "clock of node a", "the others"] {
            assert!(found.iter().all(|found| !found.what.contains(words)), "{words}");
        }
    }

    #[test]
    fn running_nodes_with_the_same_name_are_reported() {
        let both = findings(Duration::ZERO, vec![node("a", "1", 1, 0), node("a", "1", 2, 0)]);
        says(&both, State::Note, &["2 nodes at work are called a", "`node.name`"]);
        let restarted = findings(Duration::ZERO, vec![node("a", "1", 1, 0), node("a", "1", 2, 60_000)]);
        assert!(restarted.iter().all(|found| !found.what.contains("are called")));
    }
}
