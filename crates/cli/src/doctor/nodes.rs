//! Whether the nodes that share a store can keep their promises together: their clocks, who has gone missing, and whether
//! they are of one version and one mind.

use super::{Finding, State};
use crate::nodes::{beside_the_store, complaints, is_silent, silence};
use crate::output::roughly;
use quittance::{StoreError, SystemClock};
use quittance_ports::Clock;
use quittance_ports::membership::{Member, Members, Membership, SKEW_MAX};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub(super) async fn nodes(membership: &dyn Membership) -> Result<Vec<Finding>, StoreError> {
    let before = SystemClock.now();
    let members = membership.members().await?;
    let trip = SystemClock.now().since(before);
    // The store has said its time somewhere on the way; half-way is the best guess.
    let own = apart((before + trip / 2).as_millis(), members.now.as_millis());
    let mut findings = vec![own_clock(own, trip)];
    // Of one that is silent, what it said last is no longer so.
    let there: Vec<&Member> = members.nodes.iter().filter(|signed| !is_silent(&members, signed)).collect();
    findings.extend(there.iter().filter_map(|signed| clock_of(signed)));
    findings.extend(who_is_there(&members));
    findings.extend(kinds_of(&there));
    findings.extend(namesakes(&there));
    findings.extend(there.iter().filter_map(|signed| health(signed)));
    Ok(findings)
}

fn apart(one: u64, other: u64) -> i64 {
    let span = i64::try_from(one.abs_diff(other)).unwrap_or(i64::MAX);
    if one < other { -span } else { span }
}

fn judge(skew_ms: i64) -> State {
    match Duration::from_millis(skew_ms.unsigned_abs()) {
        skew if skew > SKEW_MAX => State::Bad,
        skew if skew > SKEW_MAX / 2 => State::Note,
        _ => State::Good,
    }
}

/// What a clock that is off costs, and what to do.
fn consequence(state: State) -> String {
    let most = roughly(SKEW_MAX);
    match state {
        State::Good => String::new(),
        State::Note => {
            format!("; {most} is the most that does no harm: set it by NTP (`timedatectl set-ntp true`)")
        }
        State::Bad => format!(
            ", and {most} is the most that does no harm: a token may be handed out that is older than promised by the rest, and \
             timers ring early, which makes more doubts: set it by NTP (`timedatectl set-ntp true`)"
        ),
    }
}

fn own_clock(skew_ms: i64, trip: Duration) -> Finding {
    let state = judge(skew_ms);
    let what = format!(
        "this machine's clock is {} (give or take {} ms){}",
        beside_the_store(skew_ms),
        (trip / 2).as_millis(),
        consequence(state)
    );
    Finding::new("clock", state, what)
}

/// Only what is not good: there may be many nodes.
fn clock_of(signed: &Member) -> Option<Finding> {
    let skew_ms = signed.node_status.skew_ms?;
    let state = judge(skew_ms);
    (state != State::Good).then(|| {
        let words = beside_the_store(skew_ms);
        let what = format!("the clock of node {} is {words}{}", signed.node_status.name, consequence(state));
        Finding::new("clock", state, what)
    })
}

fn who_is_there(members: &Members) -> Vec<Finding> {
    let of = |state, what: String| Finding::new("nodes", state, what);
    let (silent, there): (Vec<&Member>, Vec<&Member>) =
        members.nodes.iter().partition(|signed| is_silent(members, signed));
    let first = match (there.len(), silent.len()) {
        (0, 0) => {
            let what = "no node works on this store now: orders wait until one does (`quittance serve`)";
            of(State::Note, what.into())
        }
        (0, _) => {
            let what = "no node has signed in lately: all are gone, or frozen, or the store takes nothing from them; orders \
                        wait until one can work";
            of(State::Note, what.into())
        }
        (count, _) => of(State::Good, format!("nodes at work: {count}; see `quittance nodes`")),
    };
    let fate = match there.is_empty() {
        true => {
            "it is gone, or frozen, or the store takes nothing from it, and there is nobody to take its orders over"
        }
        false => "it is gone, or frozen, and the others take its orders over",
    };
    let mut findings = vec![first];
    findings.extend(silent.into_iter().map(|signed| {
        let (name, span) = (&signed.node_status.name, roughly(silence(members, signed)));
        let what = format!("{name} has been silent for {span}: {fate}; if it should be there, look after it");
        of(State::Note, what)
    }));
    findings
}

/// Of those who are there: whether they are alike.
fn kinds_of(there: &[&Member]) -> Vec<Finding> {
    let versions: BTreeSet<&str> = there.iter().map(|signed| signed.node_status.version.as_str()).collect();
    let formats: BTreeSet<u64> = there.iter().map(|signed| signed.node_status.format).collect();
    let mut findings = Vec::new();
    if versions.len() > 1 {
        let all: Vec<&str> = versions.into_iter().collect();
        let what = format!(
            "nodes of different versions: {}; is a rolling restart under way? If not, finish it",
            all.join(", ")
        );
        findings.push(Finding::new("nodes", State::Note, what));
    }
    if formats.len() > 1 {
        let what = "nodes that write records in different formats: older ones read what newer ones write only as far as \
                    the formats are compatible; finish the rolling restart";
        findings.push(Finding::new("nodes", State::Note, what));
    }
    findings
}

/// Two nodes of one name cannot be told apart by people.
fn namesakes(there: &[&Member]) -> Vec<Finding> {
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for signed in there {
        *names.entry(signed.node_status.name.as_str()).or_default() += 1;
    }
    let told = names.into_iter().filter(|(_, count)| *count > 1).map(|(name, count)| {
        let what = format!(
            "{count} nodes at work are called {name}: give each a `node.name` of its own, so that logs and lists tell them \
             apart"
        );
        Finding::new("nodes", State::Note, what)
    });
    told.collect()
}

fn health(signed: &Member) -> Option<Finding> {
    let complaints = complaints(&signed.node_status);
    (!complaints.is_empty()).then(|| {
        let what =
            format!("node {} says: {}; its log says more", signed.node_status.name, complaints.join(", "));
        Finding::new("nodes", State::Note, what)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_trait::async_trait;
    use quittance_lifecycle::Timestamp;
    use quittance_ports::membership::{NodeStats, NodeStatus};
    use quittance_ports::{DocumentWritten, SharedDocument, StoredDocument, Version};

    /// A membership that says what it was told to say, at a time of its own.
    struct Told(Members);

    #[async_trait]
    impl Membership for Told {
        async fn heartbeat(&self, _: &NodeStatus) -> Result<Timestamp, StoreError> {
            Ok(self.0.now)
        }
        async fn leave(&self, _: u64) -> Result<(), StoreError> {
            Ok(())
        }
        async fn members(&self) -> Result<Members, StoreError> {
            Ok(self.0.clone())
        }
        async fn seal(&self, _: Option<&str>) -> Result<(), StoreError> {
            Ok(())
        }
        async fn sealed(&self) -> Result<Option<String>, StoreError> {
            Ok(None)
        }
        async fn set_filling(&self, _: Option<&str>) -> Result<(), StoreError> {
            Ok(())
        }
        async fn filling(&self) -> Result<Option<String>, StoreError> {
            Ok(None)
        }
        async fn documents(&self) -> Result<Vec<StoredDocument>, StoreError> {
            Ok(Vec::new())
        }
        async fn write_document(
            &self,
            _: &str,
            _: Version,
            _: Option<&SharedDocument>,
        ) -> Result<DocumentWritten, StoreError> {
            Ok(DocumentWritten::NoRoom)
        }
        async fn checkup(&self) -> Result<Vec<quittance_ports::membership::Finding>, StoreError> {
            Ok(Vec::new())
        }
    }

    fn signed(name: &str, version: &str, skew_ms: i64, seen: Timestamp) -> Member {
        let node_status = NodeStatus {
            node: skew_ms.unsigned_abs(),
            name: name.into(),
            version: version.into(),
            format: 1,
            started: Timestamp::ZERO,
            at: seen,
            skew_ms: Some(skew_ms),
            node_stats: NodeStats::default(),
            reach: None,
            demand: std::collections::BTreeMap::new(),
        };
        Member { node_status, seen }
    }

    async fn findings(ahead: Duration, nodes: impl FnOnce(Timestamp) -> Vec<Member>) -> Vec<Finding> {
        let now = SystemClock.now() + ahead;
        let membership = Told(Members { now, nodes: nodes(now) });
        super::nodes(&membership).await.unwrap()
    }

    #[track_caller]
    fn says(findings: &[Finding], state: State, words: &[&str]) {
        let fits =
            |found: &&Finding| found.state == state && words.iter().all(|word| found.what.contains(word));
        let all: Vec<String> =
            findings.iter().map(|found| format!("{:?} {}", found.state, found.what)).collect();
        assert!(findings.iter().any(|found| fits(&found)), "{words:?}: {all:#?}");
    }

    #[tokio::test]
    async fn clocks_that_agree_are_good_and_others_are_told_with_their_cost() {
        let good = findings(Duration::ZERO, |now| vec![signed("a", "1", 20, now)]).await;
        assert!(good.iter().all(|found| found.state == State::Good));
        let near = findings(Duration::from_millis(1600), |now| vec![signed("a", "1", -1500, now)]).await;
        says(&near, State::Note, &["this machine's clock", "NTP"]);
        says(&near, State::Note, &["node a", "1500 ms behind", "NTP"]);
        let far = findings(Duration::from_secs(60), |now| vec![signed("a", "1", 2001, now)]).await;
        says(
            &far,
            State::Bad,
            &[
                "this machine's clock is ",
                " s behind the store's",
                "older than promised",
                "timers ring early",
                "NTP",
            ],
        );
        says(&far, State::Bad, &["node a", "2001 ms ahead of"]);
    }

    #[tokio::test]
    async fn whoever_went_missing_or_is_of_another_version_is_told() {
        let long_ago = Timestamp::from_millis(SystemClock.now().as_millis() - 60_000);
        let nodes =
            |now| vec![signed("a", "1", 1, now), signed("b", "2", 2, now), signed("c", "3", 3, long_ago)];
        let found = findings(Duration::ZERO, nodes).await;
        says(&found, State::Good, &["nodes at work: 2"]);
        says(&found, State::Note, &["c has been silent for 60 s", "the others take its orders over"]);
        says(&found, State::Note, &["different versions: 1, 2;", "rolling restart"]);
        let nobody = findings(Duration::ZERO, |_| Vec::new()).await;
        says(&nobody, State::Note, &["no node works on this store"]);
    }
    #[tokio::test]
    async fn of_a_silent_node_nothing_old_is_told_and_nobody_is_said_to_stand_in_for_the_last() {
        let found = findings(Duration::ZERO, |now| {
            let mut alone = signed("a", "1", 60_000, Timestamp::from_millis(now.as_millis() - 60_000));
            alone.node_status.node_stats.store_was_away = true;
            vec![alone]
        });
        let found = found.await;
        says(&found, State::Note, &["no node has signed in lately", "the store takes nothing"]);
        says(&found, State::Note, &["a has been silent for 60 s", "nobody to take its orders over"]);
        for words in ["store away", "clock of node a", "the others"] {
            assert!(found.iter().all(|found| !found.what.contains(words)), "{words}");
        }
    }

    #[tokio::test]
    async fn nodes_of_one_name_are_told_unless_one_is_silent() {
        let long_ago = Timestamp::from_millis(SystemClock.now().as_millis() - 60_000);
        let both = findings(Duration::ZERO, |now| vec![signed("a", "1", 1, now), signed("a", "1", 2, now)]);
        says(&both.await, State::Note, &["2 nodes at work are called a", "`node.name`"]);
        let restarted =
            findings(Duration::ZERO, |now| vec![signed("a", "1", 1, now), signed("a", "1", 2, long_ago)]);
        assert!(restarted.await.iter().all(|found| !found.what.contains("are called")));
    }
}
