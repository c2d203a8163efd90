//! Who raises alerts and clears them. What stands is told to him each time, because others may have written it; what he remembers
//! is only since when something has been so.

use crate::judge::{Judge, Level, Misses, RuleReading};
use crate::readings::Readings;
use crate::rule::{Rule, Thresholds};
use crate::window::{Counts, Window};
use quittance_lifecycle::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// An alert by its rule, and what it is about: a provider, a pool, a node; nothing, if there is only one.
pub type Named = (Rule, String);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Raised { rule: Rule, subject: String, words: String },
    Cleared { rule: Rule, subject: String },
}

/// For how long something has been over its bar, or well under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Since {
    is_high: bool,
    at: Timestamp,
}

#[derive(Clone, Debug)]
pub struct AlertEngine {
    bars: Thresholds,
    rules: Vec<Rule>,
    window: Window,
    misses: Misses,
    since: BTreeMap<Named, Since>,
}

impl AlertEngine {
    /// Looks after these rules only.
    #[must_use]
    pub fn new(bars: Thresholds, rules: impl IntoIterator<Item = Rule>) -> Self {
        Self {
            bars,
            rules: rules.into_iter().collect(),
            window: Window::default(),
            misses: Misses::default(),
            since: BTreeMap::new(),
        }
    }

    /// What others had counted, and when, before he came; the oldest first, in the same count as what he is shown from now on.
    pub fn recall(&mut self, now: Timestamp, counted: impl IntoIterator<Item = (Timestamp, Counts)>) {
        self.window.recall(now, counted);
    }

    /// What changes, if these alerts stand and this is seen. Whoever cannot write the changes down does nothing, and hears them
    /// again.
    pub fn hear(&mut self, standing: &BTreeSet<Named>, readings: &Readings) -> Vec<Change> {
        if let Some(counts) = readings.counts {
            self.window.note(readings.at, counts);
        }
        self.misses.note(readings);
        let mut changes = Vec::new();
        for rule in self.rules.clone() {
            let seen = if self.bars.is_on(rule) {
                let Self { bars, window, misses, .. } = self;
                Judge { bars, readings, window, misses }.says(rule)
            } else {
                // What is switched off while its alert stands is well.
                Some(Vec::new())
            };
            if let Some(seen) = seen {
                changes.extend(self.weigh(rule, standing, seen, readings.at));
            }
        }
        changes
    }

    /// What is over its bar, in the words of what was heard last: figures go on while an alert stands.
    #[must_use]
    pub fn words(&self, readings: &Readings) -> BTreeMap<Named, String> {
        let Self { bars, window, misses, .. } = self;
        let judge = Judge { bars, readings, window, misses };
        let on = self.rules.iter().filter(|rule| bars.is_on(**rule));
        let seen = on.flat_map(|rule| judge.says(*rule).into_iter().flatten().map(|seen| (*rule, seen)));
        let high = seen.filter(|(_, seen)| seen.level == Level::High);
        high.map(|(rule, seen)| ((rule, seen.subject), seen.words)).collect()
    }

    fn weigh(
        &mut self,
        rule: Rule,
        standing: &BTreeSet<Named>,
        seen: Vec<RuleReading>,
        now: Timestamp,
    ) -> Vec<Change> {
        let known: BTreeSet<String> = seen.iter().map(|seen| seen.subject.clone()).collect();
        // What is no longer there at all is well.
        let gone = standing.iter().filter(|(of, subject)| *of == rule && !known.contains(subject));
        let gone = gone.map(|(_, subject)| RuleReading {
            subject: subject.clone(),
            level: Level::Low,
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
    ) -> Option<Change> {
        let named = (rule, seen.subject.clone());
        let stands = standing.contains(&named);
        let is_news = match seen.level {
            Level::High => !stands,
            Level::Low => stands,
            Level::Between => false,
        };
        if !is_news {
            self.since.remove(&named);
            return None;
        }
        let is_high = seen.level == Level::High;
        let since = self.since.entry(named).or_insert(Since { is_high, at: now });
        // A clock that was set back begins anew, and so does whoever has changed sides.
        if since.is_high != is_high || since.at > now {
            *since = Since { is_high, at: now };
        }
        if now.since(since.at) < self.span(rule, is_high) {
            return None;
        }
        let RuleReading { subject, words, .. } = seen;
        Some(if is_high {
            Change::Raised { rule, subject, words }
        } else {
            Change::Cleared { rule, subject }
        })
    }

    const fn span(&self, rule: Rule, is_high: bool) -> Duration {
        if is_high { self.bars.raised_after(rule) } else { self.bars.cleared_after(rule) }
    }
}
