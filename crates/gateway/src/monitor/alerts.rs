//! Looking after the alerts. Every node holds the rules against what it sees; one of them, the first by a hash, writes down what
//! changes, on a document that all read, and only once it is written anybody is told. Whether the store answers is for each node to say
//! for itself, because nothing can be written down then.

use super::announce::Announcement;
use super::oldest::Oldest;
use super::{Monitor, Seen, marks};
use crate::v1::spent_this_hour;
use quittance_alert::{
    AlertEngine, Change, Counts, DeadLetters, Health, Named, Node, Pool, Readings, Rule, Thresholds, words,
};
use quittance_engine::ProviderState;
use quittance_lifecycle::Timestamp;
use quittance_ports::membership::SILENT_AFTER;
use quittance_ports::{
    AlertDocument, AlertNote, DocumentWritten, SharedDocument, StoreError, StoredDocument, Version,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long an alert that was cleared is shown, and how many alerts there may be.
const CLEARED_KEPT: Duration = Duration::from_secs(24 * 3600);
const ALERTS_MAX: usize = 100;
/// How long a node waits for the one that is to write changes down before it does so itself: that one may be frozen, or a command
/// that looks after orders and nothing else.
const GRACE: Duration = Duration::from_secs(15);
/// How often the figures of an alert that stands are written down anew.
const REWORD_SPAN: Duration = Duration::from_secs(30);
/// How often a write may lose a race before whoever asked for it is told to come again.
const WRITES_MAX: usize = 8;

/// Who looks after the alerts here.
pub(super) struct Post {
    fleet: AlertEngine,
    here: AlertEngine,
    /// What only this node knows.
    own: Vec<AlertNote>,
    /// What people call this node. A store that forgets has lost its card, and the node keeps its name.
    name: String,
    /// When the last loss of the store was noticed that an alert was raised for.
    forgot_at: Option<Timestamp>,
    oldest: Oldest,
    age_bar: Duration,
    /// Since when there is something to write down that nobody has.
    unwritten: Option<Timestamp>,
    reworded: Timestamp,
    /// Whether it has read what was counted before it came.
    has_recalled: bool,
}

impl Post {
    pub(super) fn new(bars: &Thresholds) -> Self {
        let (here, fleet): (Vec<_>, Vec<_>) =
            Rule::ALL.iter().copied().partition(|rule| matches!(rule, Rule::StoreAway | Rule::StoreForgot));
        Self {
            fleet: AlertEngine::new(bars.clone(), fleet),
            here: AlertEngine::new(bars.clone(), here),
            own: Vec::new(),
            name: String::new(),
            forgot_at: None,
            oldest: Oldest::default(),
            age_bar: bars.dead_age,
            unwritten: None,
            reworded: Timestamp::ZERO,
            has_recalled: false,
        }
    }

    /// Whether it is for this node to write something down.
    fn is_turn(&mut self, is_keeper: bool, has_changes: bool, now: Timestamp) -> bool {
        if is_keeper {
            return true;
        }
        let since = if has_changes { *self.unwritten.get_or_insert(now) } else { now };
        // A clock that was set back begins anew.
        self.unwritten = has_changes.then_some(since.min(now));
        now.since(since) >= GRACE
    }

    /// Holds the rules of this node against what it sees, and says who is to be told what.
    fn weigh_own(&mut self, readings: &Readings, forgot_at: Option<Timestamp>) -> Vec<Announcement> {
        let changes = self.here.hear(&class(&self.own), readings);
        let is_new_loss = self.forgot_at.zip(forgot_at).is_some_and(|(before, now)| before < now);
        self.forgot_at = forgot_at;
        let is_raised = |change: &Change| matches!(change, Change::Raised { rule: Rule::StoreForgot, .. });
        let renews = is_new_loss && !changes.iter().any(is_raised);
        let mut told = apply(&mut self.own, changes, readings.at);
        if let Some(words) = readings.forgot.as_ref().filter(|_| renews) {
            told.extend(renew(&mut self.own, Rule::StoreForgot, words, readings.at));
        }
        forget(&mut self.own, readings.at);
        told
    }

    /// Those that stand first, and the latest of each.
    pub(super) fn all(&self, documents: &[StoredDocument]) -> Vec<AlertNote> {
        let (_, document) = on_document(documents);
        let mut all: Vec<_> = document.alerts.into_iter().chain(self.own.iter().cloned()).collect();
        all.sort_by_key(|note| (note.cleared.is_some(), Reverse(note.cleared.unwrap_or(note.raised))));
        all
    }
}

fn on_document(documents: &[StoredDocument]) -> (Version, AlertDocument) {
    let found = documents.iter().find(|found| found.name == SharedDocument::ALERTS);
    match found.map(|found| (found.version, &found.document)) {
        Some((version, SharedDocument::Alerts(document))) => (version, document.clone()),
        _ => (Version::ABSENT, AlertDocument::default()),
    }
}

fn class(notes: &[AlertNote]) -> BTreeSet<Named> {
    let class = notes.iter().filter(|note| note.cleared.is_none());
    // What a newer version has raised is its own to clear.
    class.filter_map(|note| Some((Rule::named(&note.rule)?, note.subject.clone()))).collect()
}

/// Writes the changes down, and says who is to be told what.
fn apply(notes: &mut Vec<AlertNote>, changes: Vec<Change>, now: Timestamp) -> Vec<Announcement> {
    let mut told = Vec::new();
    for change in changes {
        match change {
            Change::Raised { rule, subject, words } => {
                if class(notes).len() >= ALERTS_MAX {
                    continue;
                }
                notes.retain(|note| note.rule != rule.name() || note.subject != subject);
                let is_grave = rule.is_grave();
                let note = AlertNote {
                    rule: rule.name().into(),
                    subject,
                    is_grave,
                    words,
                    raised: now,
                    cleared: None,
                    seen: None,
                };
                told.push(Announcement::of(&note));
                notes.push(note);
            }
            Change::Cleared { rule, subject } => {
                let is_it = |note: &&mut AlertNote| note.rule == rule.name() && note.subject == subject;
                if let Some(note) = notes.iter_mut().find(is_it) {
                    note.cleared = Some(now);
                    note.words = words::what_was(&note.words).to_owned();
                    told.push(Announcement::of(note));
                }
            }
        }
    }
    told
}

/// Whoever looks at an alert that stands sees how it is, and not only how it was when it was raised.
fn reword(notes: &mut [AlertNote], words: &BTreeMap<Named, String>) {
    for note in notes.iter_mut().filter(|note| note.cleared.is_none()) {
        let named = |(rule, subject): &Named| rule.name() == note.rule && *subject == note.subject;
        if let Some((_, now)) = words.iter().find(|(found, _)| named(found)) {
            note.words.clone_from(now);
        }
    }
}

/// Something has happened again while its alert stands: the alert is renewed, and no person has seen it.
fn renew(notes: &mut [AlertNote], rule: Rule, words: &str, now: Timestamp) -> Option<Announcement> {
    let note = notes.iter_mut().find(|note| note.rule == rule.name() && note.cleared.is_none())?;
    (note.raised, note.seen) = (now, None);
    words.clone_into(&mut note.words);
    Some(Announcement::of(note))
}

/// What was cleared long ago is forgotten, and the oldest of it if there is too much.
fn forget(notes: &mut Vec<AlertNote>, now: Timestamp) {
    notes.retain(|note| note.cleared.is_none_or(|cleared| now.since(cleared) < CLEARED_KEPT));
    while notes.len() > ALERTS_MAX {
        let cleared = notes.iter().enumerate().filter_map(|(n, note)| Some((note.cleared?, n)));
        let Some((_, oldest)) = cleared.min() else { break };
        notes.remove(oldest);
    }
}

impl Monitor {
    pub(super) fn is_keeper(&self, seen: &Seen) -> bool {
        self.inner.orders.engine().is_keeper(SharedDocument::ALERTS, &seen.looks.members)
    }

    /// Holds the rules against what was seen.
    pub(super) async fn tend(&self, seen: &mut Seen) {
        let is_keeper = self.is_keeper(seen);
        let readings = self.readings(seen).await;
        let now = readings.at;
        let forgot_at = self.inner.orders.engine().forgetting().map(|forgetting| forgetting.at);
        let told = seen.post.weigh_own(&readings, forgot_at);
        self.announce(told);
        if !seen.looks.store_is_up {
            return;
        }
        let (version, document) = on_document(&seen.looks.documents);
        if !seen.post.has_recalled && seen.looks.has_usage && seen.looks.has_membership {
            seen.post.has_recalled = true;
            seen.post.fleet.recall(now, marks::recalled(&document.marks, &seen.history));
        }
        let changes = seen.post.fleet.hear(&class(&document.alerts), &readings);
        let is_unwritten = !changes.is_empty() || marks::is_due(&document.marks, now);
        if !seen.post.is_turn(is_keeper, is_unwritten, now) {
            return;
        }
        let mut next = document.clone();
        next.marks = marks::next(&document.marks, &seen.history, now);
        let told = apply(&mut next.alerts, changes, now);
        if now.since(seen.post.reworded) >= REWORD_SPAN {
            seen.post.reworded = now;
            reword(&mut next.alerts, &seen.post.fleet.words(&readings));
        }
        forget(&mut next.alerts, now);
        if next == document {
            return;
        }
        match self.write(seen, version, next).await {
            Ok(true) => self.announce(told),
            // Somebody else was there first, or nobody knows: all is weighed again on what stands then.
            Ok(false) | Err(_) => seen.looks.look_at_membership_again(),
        }
    }

    /// Says whether it stands now.
    async fn write(
        &self,
        seen: &mut Seen,
        version: Version,
        document: AlertDocument,
    ) -> Result<bool, StoreError> {
        let document = SharedDocument::Alerts(document);
        let written = self
            .inner
            .orders
            .membership()
            .write_document(SharedDocument::ALERTS, version, Some(&document))
            .await?;
        let DocumentWritten::Done(version) = written else { return Ok(false) };
        let documents = &mut seen.looks.documents;
        documents.retain(|found| found.name != SharedDocument::ALERTS);
        documents.push(StoredDocument { name: SharedDocument::ALERTS.into(), version, document });
        Ok(true)
    }

    /// A person says that he knows; nothing, if there is no such alert.
    pub(crate) async fn see(&self, rule: &str, subject: &str) -> Result<Option<AlertNote>, StoreError> {
        let now = self.inner.orders.clock().now();
        let is_it = |note: &&mut AlertNote| note.rule == rule && note.subject == subject;
        let mut seen = self.inner.seen.lock().await;
        if let Some(note) = seen.post.own.iter_mut().find(is_it) {
            note.seen.get_or_insert(now);
            if rule == Rule::StoreForgot.name() {
                self.inner.orders.engine().forgetting_was_seen();
            }
            return Ok(Some(note.clone()));
        }
        for _ in 0..WRITES_MAX {
            seen.looks.documents = self.inner.orders.membership().documents().await?;
            let (version, mut document) = on_document(&seen.looks.documents);
            let Some(note) = document.alerts.iter_mut().find(is_it) else { return Ok(None) };
            if note.seen.is_some() {
                return Ok(Some(note.clone()));
            }
            note.seen = Some(now);
            let note = note.clone();
            if self.write(&mut seen, version, document).await? {
                return Ok(Some(note));
            }
        }
        Err(StoreError::Unavailable {
            doing: "writing down that an alert was seen",
            source: "somebody else writes it all the time".into(),
        })
    }

    async fn readings(&self, seen: &mut Seen) -> Readings {
        let orders = &self.inner.orders;
        let (now, looks) = (orders.clock().now(), &seen.looks);
        let own = looks.members.nodes.iter().find(|signed| signed.node_status.node == orders.engine().node());
        if let Some(own) = own {
            seen.post.name.clone_from(&own.node_status.name);
        }
        let mut readings = Readings {
            at: now,
            store_is_up: looks.store_is_up,
            currency: orders.engine().currency().to_owned(),
            here: seen.post.name.clone(),
            forgot: orders.engine().forgetting().map(|forgetting| forgetting.what),
            ..Readings::default()
        };
        if !looks.store_is_up {
            return readings;
        }
        readings.counts = seen.history.booked().filter(|_| looks.has_usage).as_ref().map(Counts::from);
        readings.provider = Some((orders.engine().provider_name().to_owned(), self.health(seen)));
        readings.balance = self.account().1.and_then(|account| account.balance);
        if looks.has_membership {
            readings.pools = Some(self.pools(seen, now));
            readings.nodes = Some(nodes(seen));
        }
        if looks.has_order_counts {
            readings.dead = self.dead_letters(seen, now).await;
        }
        readings
    }

    /// As this node sees it; and what one of them was told about the account holds for all.
    fn health(&self, seen: &Seen) -> Health {
        let members = &seen.looks.members;
        let alive = members.nodes.iter().filter(|signed| members.now.since(signed.seen) < SILENT_AFTER);
        let mut paused = alive
            .map(|signed| &signed.node_status.node_stats)
            .filter(|node_stats| node_stats.is_paused)
            .peekable();
        match self.inner.orders.engine().provider_state() {
            ProviderState::Paused { fault } => Health::Paused { code: fault.code },
            _ if paused.peek().is_some() => Health::Paused {
                code: paused.find_map(|node_stats| node_stats.pause_code.clone()).unwrap_or_default(),
            },
            ProviderState::Tripped { .. } => Health::Broken,
            _ => Health::Well,
        }
    }

    fn pools(&self, seen: &Seen, now: Timestamp) -> Vec<Pool> {
        let pools = self.inner.orders.engine().pools_among(&seen.looks.documents, &seen.looks.members);
        let pools = pools.into_iter().map(|pool| {
            let (document, level) =
                (pool.document, |level: &quittance_ports::LevelView| (level.size, level.fresh));
            let (level, fresh) = document.level.as_ref().map(level).unwrap_or_default();
            Pool {
                name: document.spec.name,
                is_on: document.spec.is_on,
                budget: document.spec.budget,
                spent_this_hour: spent_this_hour(&document.spent, now).money,
                unpriced: spent_this_hour(&document.spent, now).unpriced,
                price: pool.price,
                level,
                fresh,
                missed: pool.demand.missed,
            }
        });
        pools.collect()
    }

    async fn dead_letters(&self, seen: &mut Seen, now: Timestamp) -> Option<DeadLetters> {
        let Seen { looks, post, .. } = seen;
        if looks.order_counts.dead == 0 || post.age_bar.is_zero() {
            return Some(DeadLetters { count: looks.order_counts.dead, oldest: None });
        }
        let oldest = post.oldest.look(&self.inner.orders, now, post.age_bar).await.ok()?;
        Some(DeadLetters { count: looks.order_counts.dead, oldest })
    }
}

fn nodes(seen: &Seen) -> Vec<Node> {
    let members = &seen.looks.members;
    let nodes = members.nodes.iter().map(|signed| Node {
        name: signed.node_status.name.clone(),
        is_silent: members.now.since(signed.seen) >= SILENT_AFTER,
        has_spilled: signed.node_status.node_stats.has_spilled,
    });
    nodes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(n: u64, cleared: Option<u64>) -> AlertNote {
        AlertNote {
            rule: "pool_starves".into(),
            subject: format!("pool{n}"),
            is_grave: false,
            words: String::new(),
            raised: Timestamp::from_millis(n),
            cleared: cleared.map(Timestamp::from_millis),
            seen: None,
        }
    }

    #[test]
    fn what_was_cleared_is_kept_for_a_day_and_no_more_than_there_is_room_for() {
        let now = Timestamp::from_millis(100_000_000);
        let mut notes: Vec<_> = (0..150).map(|n| note(n, Some(99_000_000 + n))).collect();
        notes.push(note(500, Some(1)));
        notes.push(note(501, None));
        forget(&mut notes, now);
        assert_eq!(notes.len(), ALERTS_MAX);
        assert!(notes.iter().any(|note| note.subject == "pool501"), "what stands is never forgotten");
        assert!(!notes.iter().any(|note| note.subject == "pool500"), "more than a day ago");
        assert!(
            notes.iter().any(|note| note.subject == "pool149")
                && !notes.iter().any(|note| note.subject == "pool0")
        );
    }

    #[test]
    fn what_stands_is_told_in_the_figures_of_now_and_what_is_over_in_those_of_then() {
        let mut notes = vec![note(1, None), note(2, Some(900))];
        let words = [1, 2].map(|n| ((Rule::PoolStarves, format!("pool{n}")), "7 more".to_owned()));
        reword(&mut notes, &BTreeMap::from(words));
        assert_eq!((notes[0].words.as_str(), notes[1].words.as_str()), ("7 more", ""));
    }

    #[test]
    fn an_alert_that_is_raised_again_takes_the_place_of_the_one_that_was_cleared() {
        let (now, mut notes) = (Timestamp::from_millis(1000), vec![note(1, Some(900))]);
        let raised = |n: u64| Change::Raised {
            rule: Rule::PoolStarves,
            subject: format!("pool{n}"),
            words: "it is empty: fill it".into(),
        };
        assert_eq!(apply(&mut notes, vec![raised(1)], now).len(), 1);
        assert_eq!((notes.len(), notes[0].cleared), (1, None));
        let all = (2..300).map(raised).collect();
        assert_eq!(apply(&mut notes, all, now).len(), ALERTS_MAX - 1, "there is an end to it");
        let cleared = Change::Cleared { rule: Rule::PoolStarves, subject: "pool1".into() };
        let told = apply(&mut notes, vec![cleared], now + Duration::from_secs(90));
        assert_eq!(
            (told[0].event, told[0].words.as_str()),
            ("cleared", "over after 90 seconds; it was: it is empty")
        );
        assert!(
            notes.iter().any(|note| note.words == "it is empty"),
            "nobody is told to do anything about it"
        );
    }
}
