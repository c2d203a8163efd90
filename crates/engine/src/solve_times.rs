//! Measures how long answers take, by kind. This decides when to poll and how long an attempt stays in doubt, so the
//! recent solves count. Until there are enough, the numbers of the kind apply.

use crate::{Engine, lock};
use quittance_lifecycle::{CallbackResult, Event, FaultClass, Order, Pace, Phase, PollOutcome, Timestamp};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

const SAMPLES_MAX: usize = 128;
/// The first answers of a burst are its quick ones, so a few of them say little about the slow ones.
const SAMPLES_MIN: usize = 64;
const KINDS_MAX: usize = 128;
/// Fewer solve times than this say too little to be shown.
const SHOWN_MIN: usize = 20;

#[derive(Default)]
struct RecentTimes {
    spans: VecDeque<Duration>,
    pace: Option<Pace>,
}

#[derive(Default)]
pub(crate) struct Paces(BTreeMap<String, RecentTimes>);

impl Paces {
    pub(crate) fn of(&self, kind: &str) -> Option<Pace> {
        self.0.get(kind)?.pace
    }

    /// Each kind, with the number of its solve times.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, usize, Option<Pace>)> {
        self.0.iter().map(|(kind, times)| (kind.as_str(), times.spans.len(), times.pace))
    }

    /// The time within which half of the remembered answers came, and that for 95 %: of one kind, or of all together.
    /// `None` if there are fewer than 20 answers.
    pub(crate) fn quantiles(&self, kind: Option<&str>) -> Option<(Duration, Duration)> {
        let of_kind = self.0.iter().filter(|(known, _)| kind.is_none_or(|kind| kind == *known));
        let mut spans: Vec<Duration> = of_kind.flat_map(|(_, times)| times.spans.iter().copied()).collect();
        spans.sort_unstable();
        let at = |percent: usize| spans.get(spans.len() * percent / 100).copied();
        if spans.len() < SHOWN_MIN { None } else { at(50).zip(at(95)) }
    }

    pub(crate) fn learn(&mut self, kind: &str, span: Duration) {
        if !self.0.contains_key(kind) && self.0.len() >= KINDS_MAX {
            return;
        }
        let samples = self.0.entry(kind.to_owned()).or_default();
        if samples.spans.len() == SAMPLES_MAX {
            samples.spans.pop_front();
        }
        samples.spans.push_back(span);
        if samples.spans.len() >= SAMPLES_MIN {
            let mut sorted: Vec<_> = samples.spans.iter().copied().collect();
            sorted.sort_unstable();
            let at = |percent: usize| sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)];
            samples.pace = Some(Pace { p50: at(50), p95: at(95), p99: at(99) });
        }
    }
}

impl Engine {
    /// Counts a task that its provider could not solve.
    pub(crate) fn learn_failure(&self, order: &Order, event: &Event) {
        let attempt = match event {
            Event::Polled { attempt, outcome: PollOutcome::NoSuchTask(_), .. } => *attempt,
            Event::Polled { attempt, outcome: PollOutcome::Faulted(fault), .. }
            | Event::CalledBack { attempt, word: CallbackResult::Faulted(fault), .. }
                if fault.class == FaultClass::Unsolvable =>
            {
                *attempt
            }
            _ => return,
        };
        if let Some(provider) = self.provider_to_ask(order, Some(attempt)) {
            provider.note_success(&order.terms.kind, false, self.now());
        }
    }

    /// Learns the solve time of the order's kind, if this event has solved the order.
    pub(crate) fn learn_pace(&self, order: &Order, event: &Event) {
        if let Phase::Solved { answer, at } = &order.phase
            && let Some(attempt) = order.attempt(answer.attempt)
        {
            let solved_at = match event {
                // The poll found it; it was solved earlier. To learn from the time of the poll would make polls ever
                // later. It was solved at some moment between the last "not ready" and this poll.
                Event::Polled { asked, outcome: PollOutcome::Answered(_), .. } => {
                    middle(answer.earliest, *asked)
                }
                Event::CalledBack { receipt: Some(receipt), .. } => receipt.at.min(*at),
                _ => *at,
            };
            let provider = self.provider_of(order, Some(answer.attempt));
            lock(&provider.paces).learn(&order.terms.kind, solved_at.since(attempt.sent));
            provider.note_success(&order.terms.kind, true, self.now());
        }
    }
}

fn middle(earlier: Timestamp, later: Timestamp) -> Timestamp {
    earlier + later.since(earlier) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_one_kind_or_of_all_and_not_known_from_a_few() {
        let mut paces = Paces::default();
        (1..=20).for_each(|n| paces.learn("slow", Duration::from_secs(100 + n)));
        (1..=19).for_each(|n| paces.learn("quick", Duration::from_secs(n)));
        let s = Duration::from_secs;
        assert_eq!(paces.quantiles(Some("slow")), Some((s(111), s(120))));
        assert_eq!(paces.quantiles(Some("quick")), None);
        assert_eq!(paces.quantiles(None), Some((s(101), s(119))));
        assert_eq!(paces.quantiles(Some("other")), None);
    }

    #[test]
    fn percentiles_follow_what_was_seen_last_and_say_nothing_before_there_is_enough() {
        let mut paces = Paces::default();
        for n in 1..SAMPLES_MIN as u64 {
            paces.learn("a", Duration::from_secs(n));
        }
        assert_eq!(paces.of("a"), None);
        for n in 1..=1000 {
            paces.learn("a", Duration::from_secs(if n <= 500 { 1000 } else { n % 100 }));
        }
        let pace = paces.of("a").unwrap();
        assert!(
            pace.p50 < pace.p95 && pace.p95 <= pace.p99 && pace.p99 < Duration::from_secs(100),
            "{pace:?}"
        );
        for n in 0..1000 {
            paces.learn(&format!("kind {n}"), Duration::ZERO);
        }
        assert_eq!(paces.0.len(), KINDS_MAX, "kinds that callers make up do not fill the memory");
    }
}
