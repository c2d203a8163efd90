//! The engine that raises and clears alerts. The active alerts are an argument of each call, because another node may
//! have written them. The engine itself keeps only since when a value has been above or below its threshold.

use super::readings::Readings;
use super::rule::{Rule, Thresholds};
use super::rule_reading::{AlertLevel, Judge, Misses, RuleReading};
use super::window::Window;
use quittance_lifecycle::{Counters, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// An alert by its rule and its subject: a provider, a pool or a node, or an empty text if there is only one.
pub type Named = (Rule, String);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlertChange {
    Raised { rule: Rule, subject: String, words: String },
    Cleared { rule: Rule, subject: String },
}

/// Since when a value has been above its threshold, or below the lower one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Since {
    is_high: bool,
    at: Timestamp,
}

#[derive(Clone, Debug)]
pub struct AlertEngine {
    thresholds: Thresholds,
    rules: Vec<Rule>,
    window: Window,
    misses: Misses,
    since: BTreeMap<Named, Since>,
}

impl AlertEngine {
    /// An engine for these rules only.
    #[must_use]
    pub fn new(thresholds: Thresholds, rules: impl IntoIterator<Item = Rule>) -> Self {
        Self {
            thresholds,
            rules: rules.into_iter().collect(),
            window: Window::default(),
            misses: Misses::default(),
            since: BTreeMap::new(),
        }
    }

    /// Judges by these thresholds from now on.
    pub fn set_thresholds(&mut self, thresholds: Thresholds) {
        self.thresholds = thresholds;
    }

    /// Adds what other nodes had counted before this engine started, oldest first. These counters continue in the
    /// later readings.
    pub fn recall(&mut self, now: Timestamp, counted: impl IntoIterator<Item = (Timestamp, Counters)>) {
        self.window.recall(now, counted);
    }

    /// The alerts to raise and to clear, given the active alerts and these readings. If the caller cannot store the changes, the next
    /// call returns them again.
    pub fn evaluate(&mut self, standing: &BTreeSet<Named>, readings: &Readings) -> Vec<AlertChange> {
        if let Some(counts) = readings.counts {
            self.window.note(readings.at, counts);
        }
        self.misses.note(readings);
        let mut changes = Vec::new();
        for rule in self.rules.clone() {
            let seen = if self.thresholds.is_on(rule) {
                let Self { thresholds, window, misses, .. } = self;
                Judge { thresholds, readings, window, misses }.read(rule)
            } else {
                // A rule that is switched off clears its alerts.
                Some(Vec::new())
            };
            if let Some(seen) = seen {
                changes.extend(self.weigh(rule, standing, seen, readings.at));
            }
        }
        changes
    }

    /// The message of each subject above its threshold, with current figures: they change while an alert is active.
    #[must_use]
    pub fn words(&self, readings: &Readings) -> BTreeMap<Named, String> {
        let Self { thresholds, window, misses, .. } = self;
        let judge = Judge { thresholds, readings, window, misses };
        let on = self.rules.iter().filter(|rule| thresholds.is_on(**rule));
        let seen = on.flat_map(|rule| judge.read(*rule).into_iter().flatten().map(|seen| (*rule, seen)));
        let high = seen.filter(|(_, seen)| seen.level == AlertLevel::High);
        high.map(|(rule, seen)| ((rule, seen.subject), seen.words)).collect()
    }

    fn weigh(
        &mut self,
        rule: Rule,
        standing: &BTreeSet<Named>,
        seen: Vec<RuleReading>,
        now: Timestamp,
    ) -> Vec<AlertChange> {
        let known: BTreeSet<String> = seen.iter().map(|seen| seen.subject.clone()).collect();
        // A subject that no longer exists clears its alert.
        let gone = standing.iter().filter(|(of, subject)| *of == rule && !known.contains(subject));
        let gone = gone.map(|(_, subject)| RuleReading {
            subject: subject.clone(),
            level: AlertLevel::Low,
            words: String::new(),
        });
        self.since.retain(|(of, subject), since| {
            *of != rule
                || known.contains(subject)
                || (!since.is_high && standing.contains(&(rule, subject.clone())))
        });
        let all: Vec<RuleReading> = seen.into_iter().chain(gone).collect();
        all.into_iter().filter_map(|seen| self.change(rule, standing, seen, now)).collect()
    }

    fn change(
        &mut self,
        rule: Rule,
        standing: &BTreeSet<Named>,
        seen: RuleReading,
        now: Timestamp,
    ) -> Option<AlertChange> {
        let named = (rule, seen.subject.clone());
        let stands = standing.contains(&named);
        let is_news = match seen.level {
            AlertLevel::High => !stands,
            AlertLevel::Low => stands,
            AlertLevel::Between => false,
        };
        if !is_news {
            self.since.remove(&named);
            return None;
        }
        let is_high = seen.level == AlertLevel::High;
        let since = self.since.entry(named).or_insert(Since { is_high, at: now });
        // Start again if the clock was set back, or if the value crossed to the other side.
        if since.is_high != is_high || since.at > now {
            *since = Since { is_high, at: now };
        }
        if now.since(since.at) < self.span(rule, is_high) {
            return None;
        }
        let RuleReading { subject, words, .. } = seen;
        Some(if is_high {
            AlertChange::Raised { rule, subject, words }
        } else {
            AlertChange::Cleared { rule, subject }
        })
    }

    const fn span(&self, rule: Rule, is_high: bool) -> Duration {
        if is_high { self.thresholds.raised_after(rule) } else { self.thresholds.cleared_after(rule) }
    }
}
