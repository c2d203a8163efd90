//! Compares our attempts with the provider's tasks. It finds what both have, what only one side has, and which of our
//! attempts in doubt may explain the difference. Each explains at most one task.

use super::entry::{is_answered, is_known, order};
use super::ledger::{ProviderLedger, Theirs};
use quittance::lifecycle::Money;
use quittance_admin::audit::PaidAttempt;
use serde::Serialize;

/// How many findings of a sort are listed one by one. The rest is counted.
const DETAILS_MAX: usize = 100;
/// The most attempts without a task id that are remembered. Further ones are counted, and explain nothing.
const NAMELESS_MAX: usize = 100_000;
/// How far apart a submit and its outcome can be in time.
const APART_MS_MAX: u64 = 10 * 60 * 1000;

#[derive(Debug)]
pub(super) struct Comparison {
    /// The provider's tasks that no attempt of ours has matched yet.
    theirs: ProviderLedger,
    /// Attempts whose task is not known, or no longer in the timeline.
    nameless: Vec<PaidAttempt>,
    compared: Compared,
}

/// The result of the comparison.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Compared {
    pub(super) matched: u64,
    /// What the provider has charged for the matched attempts.
    pub(super) matched_micros: u64,
    /// How many matched attempts never got an answer.
    pub(super) unanswered: u64,
    pub(super) unanswered_micros: u64,
    /// How many attempts we counted as paid and the provider did not charge.
    pub(super) given_back: u64,
    pub(super) given_back_micros: u64,
    /// Tasks that only the ledger has, and that an attempt in doubt explains: the provider took them, and no reply or
    /// callback reached us.
    #[serde(rename = "explained_by_doubt")]
    pub(super) by_doubt: u64,
    #[serde(rename = "explained_by_doubt_micros")]
    pub(super) by_doubt_micros: u64,
    /// Tasks that only the ledger has, because their orders are no longer on record here.
    #[serde(rename = "no_longer_on_record")]
    pub(super) forgotten: u64,
    #[serde(rename = "no_longer_on_record_micros")]
    pub(super) forgotten_micros: u64,
    /// Tasks that only the ledger has, and that nothing explains.
    pub(super) theirs_only: u64,
    pub(super) theirs_only_micros: u64,
    pub(super) ours_only: u64,
    pub(super) priced_otherwise: u64,
    /// How many attempts without a task were too many to remember.
    pub(super) passed_over: u64,
    /// The first findings of each sort, as text.
    pub(super) details: Vec<String>,
}

impl Compared {
    pub(super) const fn is_explained(&self) -> bool {
        self.theirs_only == 0 && self.ours_only == 0 && self.priced_otherwise == 0
    }

    /// Records an attempt that both sides have.
    fn meet(&mut self, ours: &PaidAttempt, task: &str, theirs: &Theirs) {
        self.matched += 1;
        self.matched_micros += theirs.cost.0;
        if Some(theirs.cost.0) == ours.cost_micros {
            return;
        }
        // A caller reported the answer as bad, and the provider accepted it.
        if !theirs.is_charged {
            self.given_back += 1;
            self.given_back_micros += ours.cost_micros.unwrap_or_default();
            return;
        }
        if !is_answered(ours) && ours.cost_micros.is_none() {
            self.unanswered += u64::from(theirs.cost.0 > 0);
            self.unanswered_micros += theirs.cost.0;
            return;
        }
        self.priced_otherwise += 1;
        self.note(self.priced_otherwise, || {
            let (paid, hint) = match ours.cost_micros {
                None => ("price not known".to_owned(), ": set `prices` in the configuration"),
                Some(micros) => (amount(micros), ""),
            };
            let charged = amount(theirs.cost.0);
            format!(
                "order {}, task {task}: {paid} in our usage, {charged} in their ledger{hint}",
                order(ours)
            )
        });
    }

    /// Records that an attempt in doubt explains this task: the provider accepted it, and no reply or callback
    /// reported it.
    fn explain(&mut self, doubt: &PaidAttempt, task: &str, theirs: &Theirs) {
        self.by_doubt += 1;
        self.by_doubt_micros += theirs.cost.0;
        self.note(self.by_doubt, || {
            format!(
                "task {task}, {}: only in the ledger; attempt {} of order {}, which is in doubt, may explain it",
                amount(theirs.cost.0),
                doubt.attempt,
                order(doubt)
            )
        });
    }

    fn note(&mut self, count: u64, words: impl FnOnce() -> String) {
        if count <= DETAILS_MAX as u64 {
            self.details.push(words());
        }
    }
}

fn amount(micros: u64) -> String {
    Money(micros).to_string()
}

impl Comparison {
    pub(super) fn of(theirs: ProviderLedger) -> Self {
        Self { theirs, nameless: Vec::new(), compared: Compared::default() }
    }

    pub(super) fn see(&mut self, entry: PaidAttempt) {
        let Some(task) = entry.task.as_ref() else {
            match self.nameless.len() {
                NAMELESS_MAX => self.compared.passed_over += 1,
                _ => self.nameless.push(entry),
            }
            return;
        };
        match self.theirs.remove(task) {
            Some(theirs) => self.compared.meet(&entry, task, &theirs),
            None => {
                self.compared.ours_only += 1;
                self.compared.note(self.compared.ours_only, || {
                    format!(
                        "order {}, attempt {}: the ledger has no task {task}",
                        order(&entry),
                        entry.attempt
                    )
                });
            }
        }
    }

    /// Ends the comparison. `forgotten` is how many payments the usage has for orders that are no longer on record.
    pub(super) fn end(self, forgotten: u64) -> Compared {
        let Self { mut theirs, nameless, mut compared } = self;
        let mut left = forgotten;
        // What was certainly taken is one of theirs, whatever it is called, and must not be left to a doubt.
        let (known, mut doubts): (Vec<PaidAttempt>, Vec<PaidAttempt>) =
            nameless.into_iter().partition(is_known);
        for ours in known {
            let Some(task) = likeliest(&theirs, &ours) else { continue };
            if let Some(found) = theirs.remove(&task) {
                compared.meet(&ours, &task, &found);
            }
        }
        let mut theirs: Vec<_> = theirs.iter().filter(|(_, theirs)| !theirs.is_of_other_days).collect();
        // What has cost money is to be explained first.
        theirs.sort_by_key(|(_, theirs)| !theirs.is_charged);
        for (task, theirs) in theirs {
            match nearest(&doubts, theirs).map(|at| doubts.swap_remove(at)) {
                Some(doubt) => compared.explain(&doubt, task, theirs),
                None if !theirs.is_charged => {}
                None if left > 0 => {
                    left -= 1;
                    compared.forgotten += 1;
                    compared.forgotten_micros += theirs.cost.0;
                }
                None => {
                    compared.theirs_only += 1;
                    compared.theirs_only_micros += theirs.cost.0;
                    compared.note(compared.theirs_only, || {
                        let cost = amount(theirs.cost.0);
                        format!("task {task}, {cost}: only in the ledger, and nothing explains it")
                    });
                }
            }
        }
        compared
    }
}

/// How far apart an attempt and a task are in time; `None` if they cannot be the same, for example because their
/// sites differ.
fn apart(ours: &PaidAttempt, theirs: &Theirs) -> Option<u64> {
    let apart = theirs.at_ms.map_or(0, |at| at.abs_diff(ours.sent_ms));
    let is_of_site = theirs.site.as_deref().is_none_or(|site| site == ours.site);
    (is_of_site && apart <= APART_MS_MAX).then_some(apart)
}

/// The attempt in doubt that may explain this task.
fn nearest(doubts: &[PaidAttempt], theirs: &Theirs) -> Option<usize> {
    let fitting = doubts.iter().enumerate().filter_map(|(at, doubt)| Some((apart(doubt, theirs)?, at)));
    fitting.min().map(|(_, at)| at)
}

/// The task that most likely belongs to an attempt without a task id. For an attempt without an answer, the money was
/// most likely given back.
fn likeliest(theirs: &ProviderLedger, ours: &PaidAttempt) -> Option<String> {
    let fitting = theirs.iter().filter_map(|(task, theirs)| {
        let is_odd = theirs.is_charged == (ours.state == "faulted");
        Some(((is_odd, apart(ours, theirs)?), task))
    });
    fitting.min().map(|(_, task)| task.clone())
}

#[cfg(test)]
mod tests {
    use super::super::entry::tests::answered;
    use super::*;

    fn theirs(micros: u64) -> Theirs {
        Theirs {
            cost: Money(micros),
            is_charged: micros > 0,
            at_ms: Some(1_794_837_601_000),
            site: Some("shop.example.com".into()),
            is_of_other_days: false,
        }
    }

    fn compared(ours: Vec<PaidAttempt>, tasks: &[(&str, Theirs)], forgotten: u64) -> Compared {
        let ledger = tasks.iter().map(|(task, theirs)| ((*task).to_owned(), theirs.clone())).collect();
        let mut comparison = Comparison::of(ledger);
        ours.into_iter().for_each(|entry| comparison.see(entry));
        comparison.end(forgotten)
    }

    fn doubt() -> PaidAttempt {
        PaidAttempt { task: None, state: "in_doubt".into(), cost_micros: None, ..answered("") }
    }

    #[test]
    fn what_both_have_at_one_price_is_explained() {
        let faulted = PaidAttempt { state: "faulted".into(), cost_micros: None, ..answered("2") };
        let found = compared(vec![answered("1"), faulted], &[("1", theirs(2990)), ("2", theirs(0))], 0);
        assert_eq!((found.matched, found.matched_micros, found.unanswered), (2, 2990, 0));
        assert!(found.is_explained() && found.details.is_empty(), "{found:?}");
    }

    #[test]
    fn what_only_they_have_is_explained_by_one_doubt_each_and_then_by_nothing() {
        let tasks = [("1", theirs(2990)), ("2", theirs(2990))];
        let one = compared(vec![doubt()], &tasks, 0);
        assert_eq!((one.by_doubt, one.theirs_only, one.theirs_only_micros), (1, 1, 2990));
        assert!(!one.is_explained() && one.details.len() == 2, "{one:?}");
        assert!(one.details[0].contains("attempt 1 of order 3f3f3f3f, which is in doubt"), "{one:?}");
        assert!(compared(vec![doubt(), doubt()], &tasks, 0).is_explained());
        let forgotten = compared(vec![doubt()], &tasks, 1);
        assert!(forgotten.is_explained() && forgotten.forgotten == 1, "{forgotten:?}");
    }

    #[test]
    fn a_doubt_about_another_site_or_another_hour_explains_nothing() {
        let elsewhere = PaidAttempt { site: "other.example.com".into(), ..doubt() };
        let before = PaidAttempt { sent_ms: 1_794_830_000_000, ..doubt() };
        let found = compared(vec![elsewhere, before], &[("1", theirs(2990))], 0);
        assert_eq!((found.by_doubt, found.theirs_only), (0, 1));
        let unknown = Theirs { at_ms: None, site: None, ..theirs(2990) };
        assert!(compared(vec![doubt()], &[("1", unknown)], 0).is_explained());
    }

    /// The only evidence is a callback that reports the task as unsolvable: it was taken, and its id is not known.
    #[test]
    fn what_was_certainly_taken_is_not_left_to_a_doubt() {
        let nameless =
            || PaidAttempt { task: None, cost_micros: None, state: "faulted".into(), ..answered("") };
        let tasks = [("1", theirs(0)), ("2", theirs(2990))];
        let found = compared(vec![doubt(), nameless()], &tasks, 0);
        assert_eq!((found.matched, found.by_doubt, found.by_doubt_micros), (1, 1, 2990), "{found:?}");
        let found = compared(vec![doubt(), nameless()], &tasks[..1], 0);
        assert_eq!((found.matched, found.by_doubt), (1, 0), "{found:?}");
    }

    #[test]
    fn what_only_we_have_and_prices_that_differ_are_listed() {
        let found = compared(vec![answered("1"), answered("2")], &[("1", theirs(500))], 0);
        assert_eq!((found.ours_only, found.priced_otherwise), (1, 1));
        assert!(!found.is_explained());
        let words = found.details.join("\n");
        assert!(words.contains("0.00299 in our usage, 0.0005 in their ledger"), "{words}");
        assert!(words.contains("the ledger has no task 2"), "{words}");
        let unpriced = PaidAttempt { cost_micros: None, ..answered("1") };
        assert!(compared(vec![unpriced], &[("1", theirs(500))], 0).details[0].contains("`prices`"));
    }

    #[test]
    fn a_task_that_never_answered_was_paid_for_all_the_same() {
        let given_up = PaidAttempt { state: "given_up".into(), cost_micros: None, ..answered("1") };
        let found = compared(vec![given_up], &[("1", theirs(2990))], 0);
        assert_eq!((found.unanswered, found.unanswered_micros), (1, 2990));
        assert!(found.is_explained());
        let back = compared(vec![answered("1")], &[("1", theirs(0))], 0);
        assert!(back.is_explained() && back.given_back_micros == 2990, "{back:?}");
        let other_day = Theirs { is_of_other_days: true, ..theirs(2990) };
        assert!(compared(Vec::new(), &[("1", other_day)], 0).is_explained());
    }
}
