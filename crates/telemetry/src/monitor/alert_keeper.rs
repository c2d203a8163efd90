//! Raises and clears alerts. Every node evaluates the rules. One node, chosen by a hash, writes the changes to a
//! document that all nodes read, and then announces them. Each node decides by itself whether the store is down,
//! because nothing can be written then.

use super::announcement::Announcement;
use super::oldest_dead_letter::OldestDeadLetter;
use super::{Monitor, MonitorState, marks};
use crate::account::KnownAccount;
use crate::alert::{
    AlertChange, AlertEngine, Balance, BudgetReading, DeadLetterReading, FailingEndpoint, Health, Named,
    Node, Pool, Readings, Rule, Thresholds, words,
};
use quittance_engine::{BudgetView, Engine, ProviderState};
use quittance_lifecycle::Timestamp;
use quittance_ports::membership::SILENT_AFTER;
use quittance_ports::{
    AlertDocument, AlertNote, DocumentWritten, EndpointNote, SharedDocument, StoreError, StoredDocument,
    Version,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long a cleared alert is kept.
const CLEARED_KEPT: Duration = Duration::from_secs(24 * 3600);
/// The most alerts that are kept; only cleared ones are removed.
const ALERTS_MAX: usize = 100;
/// How long a node waits for the keeper to write changes before it writes them itself. The keeper may hang, or may be
/// a command that only handles orders.
const KEEPER_TIMEOUT: Duration = Duration::from_secs(15);
/// Time between two updates of the figures in the messages of active alerts.
const UPDATE_INTERVAL: Duration = Duration::from_secs(30);
/// How often a write can lose a race before the request fails.
const WRITES_MAX: usize = 8;

/// The alerts as this node sees them.
pub(super) struct AlertKeeper {
    /// The rules about all nodes together.
    shared_rules: AlertEngine,
    /// The rules about this node alone.
    own_rules: AlertEngine,
    /// The alerts of this node's own rules.
    own_alerts: Vec<AlertNote>,
    /// The name of this node. It stays known after the store has lost the node's status.
    name: String,
    /// The time of the last data loss for which an alert was raised.
    forgot_at: Option<Timestamp>,
    oldest: OldestDeadLetter,
    dead_age_max: Duration,
    /// Since when there are changes that the keeper has not written.
    unwritten: Option<Timestamp>,
    updated: Timestamp,
    /// Whether the counts before the start of this node have been read.
    has_recalled: bool,
}

impl AlertKeeper {
    pub(super) fn new(thresholds: &Thresholds) -> Self {
        let (own, shared): (Vec<_>, Vec<_>) =
            Rule::ALL.iter().copied().partition(|rule| matches!(rule, Rule::StoreAway | Rule::StoreForgot));
        Self {
            shared_rules: AlertEngine::new(thresholds.clone(), shared),
            own_rules: AlertEngine::new(thresholds.clone(), own),
            own_alerts: Vec::new(),
            name: String::new(),
            forgot_at: None,
            oldest: OldestDeadLetter::default(),
            dead_age_max: thresholds.dead_age,
            unwritten: None,
            updated: Timestamp::ZERO,
            has_recalled: false,
        }
    }

    /// Judges by these thresholds from now on. Alerts that stand are cleared or kept by them.
    pub(super) fn set_thresholds(&mut self, thresholds: &Thresholds) {
        self.shared_rules.set_thresholds(thresholds.clone());
        self.own_rules.set_thresholds(thresholds.clone());
        self.dead_age_max = thresholds.dead_age;
    }

    /// Whether this node must write the changes.
    fn must_write(&mut self, is_keeper: bool, has_changes: bool, now: Timestamp) -> bool {
        if is_keeper {
            return true;
        }
        let since = if has_changes { *self.unwritten.get_or_insert(now) } else { now };
        // Start again if the clock was set back.
        self.unwritten = has_changes.then_some(since.min(now));
        now.since(since) >= KEEPER_TIMEOUT
    }

    /// Evaluates the rules of this node alone, and returns what to announce.
    fn evaluate_own(&mut self, readings: &Readings, forgot_at: Option<Timestamp>) -> Vec<Announcement> {
        let changes = self.own_rules.evaluate(&active(&self.own_alerts), readings);
        let is_new_loss = self.forgot_at.zip(forgot_at).is_some_and(|(before, now)| before < now);
        self.forgot_at = forgot_at;
        let is_raised =
            |change: &AlertChange| matches!(change, AlertChange::Raised { rule: Rule::StoreForgot, .. });
        let renews = is_new_loss && !changes.iter().any(is_raised);
        let mut announcements = apply(&mut self.own_alerts, changes, readings.at);
        if let Some(words) = readings.forgot.as_ref().filter(|_| renews) {
            announcements.extend(renew(&mut self.own_alerts, Rule::StoreForgot, words, readings.at));
        }
        remove_old(&mut self.own_alerts, readings.at);
        announcements
    }

    /// All alerts: active ones first, newest first.
    pub(super) fn all(&self, documents: &[StoredDocument]) -> Vec<AlertNote> {
        let (_, document) = alert_document(documents);
        let mut all: Vec<_> = document.alerts.into_iter().chain(self.own_alerts.iter().cloned()).collect();
        all.sort_by_key(|note| (note.cleared.is_some(), Reverse(note.cleared.unwrap_or(note.raised))));
        all
    }
}

fn alert_document(documents: &[StoredDocument]) -> (Version, AlertDocument) {
    let found = documents.iter().find(|found| found.name == SharedDocument::ALERTS);
    match found.map(|found| (found.version, &found.document)) {
        Some((version, SharedDocument::Alerts(document))) => (version, document.clone()),
        _ => (Version::ABSENT, AlertDocument::default()),
    }
}

fn endpoints(documents: &[StoredDocument]) -> Vec<FailingEndpoint> {
    let found = documents.iter().find_map(|found| match &found.document {
        SharedDocument::Endpoints(document) => Some(&document.endpoints),
        _ => None,
    });
    let shown = |note: &EndpointNote| FailingEndpoint {
        tenant: note.tenant.clone(),
        host: note.host.clone(),
        is_off: note.off_at.is_some(),
        why: note.why.clone(),
    };
    found.map(|notes| notes.iter().map(shown).collect()).unwrap_or_default()
}

/// The active alerts of rules that this version knows: only the version that raised an alert can clear it.
fn active(notes: &[AlertNote]) -> BTreeSet<Named> {
    let active = notes.iter().filter(|note| note.cleared.is_none());
    active.filter_map(|note| Some((Rule::named(&note.rule)?, note.subject.clone()))).collect()
}

/// Applies the changes to the alerts, and returns what to announce.
fn apply(notes: &mut Vec<AlertNote>, changes: Vec<AlertChange>, now: Timestamp) -> Vec<Announcement> {
    let mut announcements = Vec::new();
    for change in changes {
        match change {
            AlertChange::Raised { rule, subject, words } => {
                if active(notes).len() >= ALERTS_MAX {
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
                announcements.push(Announcement::of(&note));
                notes.push(note);
            }
            AlertChange::Cleared { rule, subject } => {
                let is_it = |note: &&mut AlertNote| note.rule == rule.name() && note.subject == subject;
                if let Some(note) = notes.iter_mut().find(is_it) {
                    note.cleared = Some(now);
                    note.words = words::what_was(&note.words).to_owned();
                    announcements.push(Announcement::of(note));
                }
            }
        }
    }
    announcements
}

/// Updates the messages of active alerts with current figures.
fn update_messages(notes: &mut [AlertNote], words: &BTreeMap<Named, String>) {
    for note in notes.iter_mut().filter(|note| note.cleared.is_none()) {
        let is_it = |(rule, subject): &Named| rule.name() == note.rule && *subject == note.subject;
        if let Some((_, now)) = words.iter().find(|(found, _)| is_it(found)) {
            note.words.clone_from(now);
        }
    }
}

/// Raises an active alert again, without acknowledgement, because its event has happened again.
fn renew(notes: &mut [AlertNote], rule: Rule, words: &str, now: Timestamp) -> Option<Announcement> {
    let note = notes.iter_mut().find(|note| note.rule == rule.name() && note.cleared.is_none())?;
    (note.raised, note.seen) = (now, None);
    words.clone_into(&mut note.words);
    Some(Announcement::of(note))
}

/// Removes alerts that were cleared long ago, and the oldest cleared ones if there are too many.
fn remove_old(notes: &mut Vec<AlertNote>, now: Timestamp) {
    notes.retain(|note| note.cleared.is_none_or(|cleared| now.since(cleared) < CLEARED_KEPT));
    while notes.len() > ALERTS_MAX {
        let cleared = notes.iter().enumerate().filter_map(|(n, note)| Some((note.cleared?, n)));
        let Some((_, oldest)) = cleared.min() else { break };
        notes.remove(oldest);
    }
}

impl Monitor {
    fn engine(&self) -> &Engine {
        &self.inner.sources.engine
    }

    /// Whether this node is the one that writes the alerts.
    pub(super) fn is_keeper(&self, state: &MonitorState) -> bool {
        self.engine().is_keeper(SharedDocument::ALERTS, &state.reader.members)
    }

    /// Evaluates the rules on the last readings.
    pub(super) async fn evaluate_rules(&self, state: &mut MonitorState) {
        let is_keeper = self.is_keeper(state);
        let readings = self.readings(state).await;
        let now = readings.at;
        let forgot_at = self.engine().forgetting().map(|forgetting| forgetting.at);
        let announcements = state.keeper.evaluate_own(&readings, forgot_at);
        self.announce(announcements);
        if !state.reader.store_is_up {
            return;
        }
        let (version, document) = alert_document(&state.reader.documents);
        if !state.keeper.has_recalled && state.reader.has_usage && state.reader.has_membership {
            state.keeper.has_recalled = true;
            state.keeper.shared_rules.recall(now, marks::recalled(&document.marks, &state.history));
        }
        let changes = state.keeper.shared_rules.evaluate(&active(&document.alerts), &readings);
        let is_unwritten = !changes.is_empty() || marks::is_due(&document.marks, now);
        if !state.keeper.must_write(is_keeper, is_unwritten, now) {
            return;
        }
        let mut next = document.clone();
        next.marks = marks::next(&document.marks, &state.history, now);
        let announcements = apply(&mut next.alerts, changes, now);
        if now.since(state.keeper.updated) >= UPDATE_INTERVAL {
            state.keeper.updated = now;
            update_messages(&mut next.alerts, &state.keeper.shared_rules.words(&readings));
        }
        remove_old(&mut next.alerts, now);
        if next == document {
            return;
        }
        match self.write(state, version, next).await {
            Ok(true) => self.announce(announcements),
            // Another node has written, or the outcome is not known: evaluate again on what is stored then.
            Ok(false) | Err(_) => state.reader.membership_has_changed(),
        }
    }

    /// Writes the alerts; returns whether they are stored.
    async fn write(
        &self,
        state: &mut MonitorState,
        version: Version,
        document: AlertDocument,
    ) -> Result<bool, StoreError> {
        let document = SharedDocument::Alerts(document);
        let membership = self.engine().membership();
        let written = membership.write_document(SharedDocument::ALERTS, version, Some(&document)).await?;
        let DocumentWritten::Done(version) = written else { return Ok(false) };
        let documents = &mut state.reader.documents;
        documents.retain(|found| found.name != SharedDocument::ALERTS);
        documents.push(StoredDocument { name: SharedDocument::ALERTS.into(), version, document });
        Ok(true)
    }

    /// Marks an alert as acknowledged. `None` if there is no such alert.
    pub async fn acknowledge(&self, rule: &str, subject: &str) -> Result<Option<AlertNote>, StoreError> {
        let now = self.engine().now();
        let is_it = |note: &&mut AlertNote| note.rule == rule && note.subject == subject;
        let mut state = self.inner.state.lock().await;
        if let Some(note) = state.keeper.own_alerts.iter_mut().find(is_it) {
            note.seen.get_or_insert(now);
            if rule == Rule::StoreForgot.name() {
                self.engine().forgetting_was_seen();
            }
            return Ok(Some(note.clone()));
        }
        for _ in 0..WRITES_MAX {
            state.reader.documents = self.engine().membership().documents().await?;
            let (version, mut document) = alert_document(&state.reader.documents);
            let Some(note) = document.alerts.iter_mut().find(is_it) else { return Ok(None) };
            if note.seen.is_some() {
                return Ok(Some(note.clone()));
            }
            note.seen = Some(now);
            let note = note.clone();
            if self.write(&mut state, version, document).await? {
                return Ok(Some(note));
            }
        }
        Err(StoreError::Unavailable {
            doing: "writing that an alert was acknowledged",
            source: "other nodes write the alerts all the time".into(),
        })
    }

    async fn readings(&self, state: &mut MonitorState) -> Readings {
        let engine = self.engine();
        let (now, reader) = (engine.now(), &state.reader);
        let own = reader.members.nodes.iter().find(|member| member.node_status.node == engine.node());
        if let Some(own) = own {
            state.keeper.name.clone_from(&own.node_status.name);
        }
        let mut readings = Readings {
            at: now,
            store_is_up: reader.store_is_up,
            currency: engine.currency().to_owned(),
            here: state.keeper.name.clone(),
            forgot: engine.forgetting().map(|forgetting| forgetting.what),
            ..Readings::default()
        };
        if !reader.store_is_up {
            return readings;
        }
        readings.counts = state.history.total().filter(|_| reader.has_usage);
        readings.providers = Some(self.providers(state));
        readings.balances = self.balances();
        if reader.has_membership {
            readings.pools = Some(self.pools(state, now));
            readings.nodes = Some(nodes(state));
            readings.endpoints = Some(endpoints(&state.reader.documents));
        }
        if reader.has_budgets {
            readings.budgets = Some(reader.budgets.iter().map(|view| budget(view, now)).collect());
        }
        if reader.has_order_counts {
            readings.dead = self.dead_letters(state, now).await;
            readings.unreadable = engine.records_unreadable().or(match state.reader.order_counts.dead {
                0 => Some(0),
                _ => state.keeper.oldest.unreadable(),
            });
        }
        readings
    }

    /// The health of each provider as this node sees it. A node that submits nothing because all providers are paused
    /// counts for all nodes.
    fn providers(&self, state: &MonitorState) -> Vec<(String, Health)> {
        let states = self.engine().provider_states();
        let health = |(name, known)| (name, self.health(known, state));
        states.into_iter().map(health).collect()
    }

    /// The balances of the accounts.
    fn balances(&self) -> Vec<Balance> {
        let accounts = self.accounts();
        let balance = |known: &KnownAccount| Balance {
            provider: known.provider.clone(),
            currency: known.currency.clone(),
            money: known.account.and_then(|account| account.balance),
        };
        accounts.1.iter().map(balance).collect()
    }

    fn health(&self, known: ProviderState, state: &MonitorState) -> Health {
        let members = &state.reader.members;
        let alive = members.nodes.iter().filter(|member| members.now.since(member.seen) < SILENT_AFTER);
        let mut paused = alive
            .map(|member| &member.node_status.node_stats)
            .filter(|node_stats| node_stats.is_paused)
            .peekable();
        match known {
            ProviderState::Paused { fault: Some(fault) } => Health::Paused { code: fault.code },
            // An operator wants it so.
            ProviderState::Paused { fault: None } | ProviderState::Drained => Health::Well,
            _ if paused.peek().is_some() => Health::Paused {
                code: paused.find_map(|node_stats| node_stats.pause_code.clone()).unwrap_or_default(),
            },
            ProviderState::Tripped { .. } => Health::Broken,
            _ => Health::Well,
        }
    }

    fn pools(&self, state: &MonitorState, now: Timestamp) -> Vec<Pool> {
        let pools = self.engine().pools_among(&state.reader.documents, &state.reader.members);
        let pools = pools.into_iter().map(|pool| {
            let (document, level) =
                (&pool.document, |level: &quittance_ports::LevelView| (level.size, level.fresh));
            let (level, fresh) = document.level.as_ref().map(level).unwrap_or_default();
            Pool {
                name: document.spec.name.clone(),
                is_on: document.spec.is_on,
                budget: document.spec.budget,
                spent: document.spent.in_hour_of(now),
                stopped: pool.stopped(now),
                price: pool.price,
                level,
                fresh,
                missed: pool.demand.missed,
            }
        });
        pools.collect()
    }

    async fn dead_letters(&self, state: &mut MonitorState, now: Timestamp) -> Option<DeadLetterReading> {
        let MonitorState { reader, keeper, .. } = state;
        if reader.order_counts.dead == 0 || keeper.dead_age_max.is_zero() {
            return Some(DeadLetterReading { count: reader.order_counts.dead, oldest: None });
        }
        let oldest = keeper.oldest.read(self.engine(), now, keeper.dead_age_max).await.ok()?;
        Some(DeadLetterReading { count: reader.order_counts.dead, oldest })
    }
}

fn budget(view: &BudgetView, now: Timestamp) -> BudgetReading {
    let mut used = view.spent;
    used += view.reserved;
    BudgetReading {
        name: view.rule.name.clone(),
        currency: view.rule.currency.clone(),
        period: view.rule.period.name(),
        limit: view.rule.limit,
        used,
        stopped: view.stopped.clone(),
        left: view.ends.since(now),
    }
}

fn nodes(state: &MonitorState) -> Vec<Node> {
    let members = &state.reader.members;
    let nodes = members.nodes.iter().map(|member| Node {
        name: member.node_status.name.clone(),
        is_silent: members.now.since(member.seen) >= SILENT_AFTER,
        has_spilled: member.node_status.node_stats.has_spilled,
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
        remove_old(&mut notes, now);
        assert_eq!(notes.len(), ALERTS_MAX);
        assert!(notes.iter().any(|note| note.subject == "pool501"), "an active alert is never removed");
        assert!(!notes.iter().any(|note| note.subject == "pool500"), "more than a day ago");
        assert!(
            notes.iter().any(|note| note.subject == "pool149")
                && !notes.iter().any(|note| note.subject == "pool0")
        );
    }

    #[test]
    fn what_stands_is_reported_in_the_figures_of_now_and_what_is_over_in_those_of_then() {
        let mut notes = vec![note(1, None), note(2, Some(900))];
        let words = [1, 2].map(|n| ((Rule::PoolStarves, format!("pool{n}")), "7 more".to_owned()));
        update_messages(&mut notes, &BTreeMap::from(words));
        assert_eq!((notes[0].words.as_str(), notes[1].words.as_str()), ("7 more", ""));
    }

    #[test]
    fn an_alert_that_is_raised_again_takes_the_place_of_the_one_that_was_cleared() {
        let (now, mut notes) = (Timestamp::from_millis(1000), vec![note(1, Some(900))]);
        let raised = |n: u64| AlertChange::Raised {
            rule: Rule::PoolStarves,
            subject: format!("pool{n}"),
            words: "it is empty: fill it".into(),
        };
        assert_eq!(apply(&mut notes, vec![raised(1)], now).len(), 1);
        assert_eq!((notes.len(), notes[0].cleared), (1, None));
        let all = (2..300).map(raised).collect();
        assert_eq!(apply(&mut notes, all, now).len(), ALERTS_MAX - 1, "there is an end to it");
        let cleared = AlertChange::Cleared { rule: Rule::PoolStarves, subject: "pool1".into() };
        let announcements = apply(&mut notes, vec![cleared], now + Duration::from_secs(90));
        assert_eq!(
            (announcements[0].event, announcements[0].words.as_str()),
            ("cleared", "over after 90 seconds; it was: it is empty")
        );
        assert!(notes.iter().any(|note| note.words == "it is empty"), "there is nothing left to do");
    }
}
