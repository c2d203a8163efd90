//! What refusals at a site show about the real life of its answers. A caller can only report that an answer was
//! refused, which may have many reasons. Only refusals that come late in an answer's life say something about its
//! life.
//!
//! The rule: a refusal counts for a day, unless an answer that was at least as old has been approved since. A refusal
//! is late if the answer was older than half of its life when it was handed out. If three or more refusals are late,
//! and three quarters of those that count, answers are trusted only up to the age of the youngest late one. They are
//! always trusted for at least half of their life.

use quittance_lifecycle::Timestamp;
use std::time::Duration;

/// How many refusals, and how many approvals, are kept for one site.
pub const REPORTS_MAX: usize = 32;
/// How long a refusal counts.
const COUNTS_FOR: Duration = Duration::from_secs(24 * 3600);
/// The fewest late refusals that have an effect: one or two prove nothing.
const LATE_MIN: usize = 3;

/// A caller's report on one answer: when it came, and how old the answer was when it was handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerReport {
    pub at: Timestamp,
    pub age: Duration,
}

/// The reports on answers of one target: refusals and approvals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    pub refusals: Vec<AnswerReport>,
    pub approvals: Vec<AnswerReport>,
}

impl Trust {
    pub fn refused(&mut self, at: Timestamp, age: Duration) {
        remember(&mut self.refusals, AnswerReport { at, age });
    }

    pub fn approved(&mut self, at: Timestamp, age: Duration) {
        remember(&mut self.approvals, AnswerReport { at, age });
    }

    /// How long answers of this `life` are trusted: the whole life, or less if sites have refused answers late in
    /// their lives.
    #[must_use]
    pub fn life(&self, life: Duration, now: Timestamp) -> Duration {
        let half = life / 2;
        let (mut counted, mut late) = (0, 0);
        let mut youngest = life;
        for refusal in self.refusals.iter().filter(|refusal| self.counts(refusal, now)) {
            counted += 1;
            if refusal.age > half {
                late += 1;
                youngest = youngest.min(refusal.age);
            }
        }
        if late >= LATE_MIN && late * 4 >= counted * 3 { youngest.max(half) } else { life }
    }

    fn counts(&self, refusal: &AnswerReport, now: Timestamp) -> bool {
        let refutes = |approval: &AnswerReport| approval.at >= refusal.at && approval.age >= refusal.age;
        now.since(refusal.at) < COUNTS_FOR && !self.approvals.iter().any(refutes)
    }
}

fn remember(heard: &mut Vec<AnswerReport>, news: AnswerReport) {
    // Records from elsewhere may hold more than we would.
    if heard.len() >= REPORTS_MAX {
        heard.drain(..=heard.len() - REPORTS_MAX);
    }
    heard.push(news);
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: Duration = Duration::from_secs(120);

    fn at(second: u64) -> Timestamp {
        Timestamp::from_millis(second * 1000)
    }

    fn refused_at_ages(ages: &[u64]) -> Trust {
        let mut trust = Trust::default();
        for (second, age) in (1..).zip(ages) {
            trust.refused(at(second), Duration::from_secs(*age));
        }
        trust
    }

    fn trusted_s(trust: &Trust, second: u64) -> u64 {
        trust.life(LIFE, at(second)).as_secs()
    }

    #[test]
    fn refusals_that_come_late_shorten_life_to_the_youngest_of_them() {
        assert_eq!(trusted_s(&Trust::default(), 10), 120);
        assert_eq!(trusted_s(&refused_at_ages(&[100, 110]), 10), 120, "two prove nothing");
        assert_eq!(trusted_s(&refused_at_ages(&[100, 110, 95]), 10), 95);
        assert_eq!(trusted_s(&refused_at_ages(&[100, 110, 95, 5]), 10), 95, "one early refusal among them");
    }

    #[test]
    fn refusals_that_are_early_or_come_at_all_ages_say_nothing_about_life() {
        assert_eq!(trusted_s(&refused_at_ages(&[1, 2, 3, 4, 5, 6, 60]), 10), 120);
        assert_eq!(trusted_s(&refused_at_ages(&[10, 30, 50, 70, 90, 110]), 10), 120);
        assert_eq!(trusted_s(&refused_at_ages(&[100, 110, 95, 5, 7]), 10), 120);
    }

    #[test]
    fn no_report_lowers_it_under_half_of_the_life() {
        assert_eq!(trusted_s(&refused_at_ages(&[61; 32]), 40), 61);
        let mut hostile = Trust::default();
        for second in 0..10_000 {
            hostile.refused(at(second), Duration::from_millis(60_001 + second % 7));
            assert!(hostile.life(LIFE, at(second)) >= LIFE / 2);
            // The life may have become shorter since, so that what was late is beyond it.
            assert!(hostile.life(LIFE / 4, at(second)) >= LIFE / 8);
            assert!(hostile.life(LIFE / 4, at(second)) <= LIFE / 4);
        }
    }

    #[test]
    fn an_approval_of_an_older_answer_wins_it_back() {
        let mut trust = refused_at_ages(&[80, 90, 100]);
        trust.approved(at(20), Duration::from_secs(70));
        assert_eq!(trusted_s(&trust, 30), 80, "a younger answer proves nothing");
        trust.approved(at(25), Duration::from_secs(90));
        assert_eq!(trusted_s(&trust, 30), 120, "one refusal is left, and that is none");
        for second in 31..34 {
            trust.refused(at(second), Duration::from_secs(85));
        }
        assert_eq!(trusted_s(&trust, 40), 85, "what is approved can be refused later");
    }

    #[test]
    fn a_day_without_refusals_wins_it_back() {
        let trust = refused_at_ages(&[80, 90, 100]);
        assert_eq!(trusted_s(&trust, 24 * 3600), 80);
        assert_eq!(trusted_s(&trust, 24 * 3600 + 3), 120);
    }

    #[test]
    fn only_the_newest_are_remembered() {
        let mut trust = refused_at_ages(&[100; 40]);
        assert_eq!(trust.refusals.len(), REPORTS_MAX);
        assert_eq!(trust.refusals[0].at, at(9));
        for second in 0..40 {
            trust.approved(at(second), LIFE);
        }
        assert_eq!(trust.approvals.len(), REPORTS_MAX);
        trust.refusals = vec![AnswerReport { at: at(1), age: LIFE }; 100];
        trust.refused(at(2), LIFE);
        assert_eq!(trust.refusals.len(), REPORTS_MAX);
    }
}
